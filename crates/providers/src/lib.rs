//! The model vocabulary, and one wire attempt at one model.
