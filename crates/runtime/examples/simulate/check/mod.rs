//! The promises, each held against everything that was seen of a run.

mod ends;
mod events;
mod requests;
mod story;
mod tools;

use std::fmt::Debug;

use crate::play::Played;

/// What came of checking runs.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// How many checks were made.
    pub(crate) checks: u64,
    /// The promises that they hold, each once.
    pub(crate) promises: Vec<&'static str>,
    /// Where among them the last one stands: the next one is often beside it.
    last: usize,
    pub(crate) broken: Vec<Broken>,
}

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) promise: &'static str,
    pub(crate) seen: String,
}

impl Findings {
    /// Makes one check. What was seen is told only if it fails.
    fn holds(&mut self, promise: &'static str, kept: bool, seen: impl FnOnce() -> String) {
        self.checks += 1;
        self.note(promise);
        if !kept {
            self.broken.push(Broken { promise, seen: seen() });
        }
    }

    fn note(&mut self, promise: &'static str) {
        let is_it = |known: &&str| std::ptr::eq(*known, promise);
        let near = self.promises.get(self.last..).unwrap_or_default();
        let found = near.iter().take(2).position(is_it).map(|at| self.last + at);
        let found = found.or_else(|| self.promises.iter().position(is_it));
        self.last = found.unwrap_or_else(|| {
            self.promises.push(promise);
            self.promises.len() - 1
        });
    }

    /// Takes in what other runs came to.
    pub(crate) fn add(&mut self, other: Self) {
        self.checks += other.checks;
        other.promises.into_iter().for_each(|promise| self.note(promise));
        self.broken.extend(other.broken);
    }

    /// Makes one check of two values that must be equal.
    pub(crate) fn equal<T: PartialEq + Copy + Debug>(
        &mut self,
        promise: &'static str,
        seen: T,
        due: T,
    ) {
        self.holds(promise, seen == due, || format!("{seen:?} instead of {due:?}"));
    }
}

/// Checks every promise on one run.
pub(crate) fn check(played: &Played, findings: &mut Findings) {
    for prompt in &played.prompts {
        events::check(prompt, findings);
        story::check(played, prompt, findings);
        ends::check(played, prompt, findings);
    }
    requests::check(played, findings);
    tools::check(played, findings);
}
