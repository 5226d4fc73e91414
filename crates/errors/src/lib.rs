//! Stable error codes, the classifier over facts, the recovery table and safe text.
