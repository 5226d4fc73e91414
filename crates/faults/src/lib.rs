//! A loopback model provider that breaks on purpose, by script.
