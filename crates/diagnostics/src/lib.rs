//! Redaction and attempt timing.
