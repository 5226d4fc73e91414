//! The Tool trait, the built-in tools and the guards on them.
