//! What the speed of redaction is measured against.

use aho_corasick::AhoCorasick;

use super::{Redactor, engine};

/// A pass of a plain automaton over the needles of a [`Redactor`], for benchmarks.
#[derive(Debug)]
pub struct PlainPass(Option<AhoCorasick>);

impl PlainPass {
    /// How many matches there are in `text`.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        self.0.as_ref().map_or(0, |needles| needles.find_iter(text).count())
    }
}

impl Redactor {
    /// A plain pass over the same needles, built as the automaton's own defaults
    /// have it, or as ours is if `same_kind`.
    #[must_use]
    pub fn plain_pass(&self, same_kind: bool) -> PlainPass {
        PlainPass(engine::build(self.engine.known_needles(), same_kind))
    }
}
