//! A journal that was read, and what had to be mended.

use super::Record;

/// A journal, as it was read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Journal {
    /// Its records; empty for a session in which nothing was said yet.
    pub records: Vec<Record>,
    /// What was damaged.
    pub repairs: Repairs,
}

/// What was wrong with a session file, and is mended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Repairs {
    /// The bytes of a torn last line. A crash leaves it behind; it was never
    /// committed, and is cut off.
    pub cut_bytes: u64,
    /// The lines that cannot be read, from 1. They stay where they are, and are
    /// passed over.
    pub unreadable: Vec<u64>,
    /// Whether a prompt was open, and was closed as interrupted.
    pub interrupted: bool,
}

impl Repairs {
    /// Whether the file was damaged; a prompt that was interrupted is no damage.
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.cut_bytes > 0 || !self.unreadable.is_empty()
    }
}
