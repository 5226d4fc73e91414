//! The behaviours that have names, each with what a good client makes of it.
//!
//! Scripts, `faults list` and the fault matrix read this one table. The
//! verdicts are plain words, so that the server knows none of the clients it
//! tests.

mod answers;
mod calls;
mod content;
mod http;
mod inband;
mod layers;
mod pace;
mod reports;
mod spelling;
mod table;
mod variants;
mod wire;

use std::sync::LazyLock;

use crate::behaviour::{Api, Behaviour, Needs};
pub use answers::DEFAULT_RETRY_AFTER;
pub use reports::Report;

/// Where an answer breaks unless a step says otherwise; in a shorter answer
/// the middle is taken.
pub const DEFAULT_EVENT: usize = 6;

/// A named behaviour.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// The name in a script, in snake_case.
    pub name: &'static str,
    /// What the server does, in one sentence.
    pub sentence: &'static str,
    /// Whether it is one of the twelve every client is tested against first.
    pub core: bool,
    /// What a good client with the default policy makes of it.
    pub expected: Expected,
    /// The least and the longest wait before the next attempt, in milliseconds, where
    /// the server asks for one.
    pub wait_ms: Option<(u64, u64)>,
    /// The fault of which it is a row, if it is one.
    pub variant_of: Option<&'static str>,
    /// What a client is left with, where the text that comes is not the one meant.
    pub heard: Option<&'static str>,
    /// The APIs that can show it.
    pub apis: &'static [Api],
    make: Make,
}

#[derive(Debug, Clone)]
enum Make {
    Call(fn() -> Behaviour),
    Value(Box<Behaviour>),
}

const fn entry(
    name: &'static str,
    core: bool,
    expected: Expected,
    make: fn() -> Behaviour,
    sentence: &'static str,
) -> Entry {
    Entry {
        name,
        sentence,
        core,
        expected,
        wait_ms: None,
        variant_of: None,
        heard: None,
        apis: Api::ALL,
        make: Make::Call(make),
    }
}

/// One that is not of the core.
const fn fault(
    name: &'static str,
    expected: Expected,
    make: fn() -> Behaviour,
    sentence: &'static str,
) -> Entry {
    entry(name, false, expected, make, sentence)
}

impl Entry {
    const fn only(mut self, apis: &'static [Api]) -> Self {
        self.apis = apis;
        self
    }

    const fn heard(mut self, text: &'static str) -> Self {
        self.heard = Some(text);
        self
    }

    /// A fresh value of the behaviour, to be served or composed further.
    pub fn behaviour(&self) -> Behaviour {
        match &self.make {
            Make::Call(make) => make(),
            Make::Value(behaviour) => behaviour.as_ref().clone(),
        }
    }

    /// The reports of real clients that it shows.
    pub fn reports(&self) -> impl Iterator<Item = &'static Report> {
        reports().iter().filter(|report| report.shown_by.contains(&self.name))
    }

    /// What the server must speak for it to be seen. A [`Script`](crate::Script)
    /// of it chooses such a server by itself; what is left to the client is to
    /// trust [`FaultServer::ca_pem`](crate::FaultServer::ca_pem) for
    /// [`Needs::Tls`] and [`Needs::Http2`].
    pub fn needs(&self) -> Needs {
        self.behaviour().needs()
    }
}

/// What a good client makes of a behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Expected {
    /// Whether, and how, trying again may help.
    pub recovery: Recovery,
    /// The error code, if the attempt fails.
    pub code: Option<&'static str>,
    /// `request` before the response headers, `stream` after them.
    pub phase: Option<&'static str>,
    /// The budget a retry is paid from: `setup`, `stream`, `capacity` or `silent`.
    pub budget: Option<&'static str>,
    /// Attempts seen when every attempt meets this behaviour.
    pub attempts_if_always: u32,
    /// Attempts seen when the first meets it and the next is whole.
    pub attempts_if_once: u32,
    /// The code that the model reads in place of the result of its call, where the
    /// call cannot be run.
    pub tool: Option<&'static str>,
}

impl Expected {
    const NOTHING: Self = Self {
        recovery: Recovery::None,
        code: None,
        phase: None,
        budget: None,
        attempts_if_always: 1,
        attempts_if_once: 1,
        tool: None,
    };

    const fn last(code: &'static str, phase: &'static str) -> Self {
        Self { recovery: Recovery::Final, code: Some(code), phase: Some(phase), ..Self::NOTHING }
    }

    const fn again(
        code: &'static str,
        phase: &'static str,
        budget: &'static str,
        retries: u32,
    ) -> Self {
        Self {
            recovery: Recovery::Recoverable,
            code: Some(code),
            phase: Some(phase),
            budget: Some(budget),
            attempts_if_always: 1 + retries,
            attempts_if_once: 2,
            tool: None,
        }
    }

    const fn setup(code: &'static str) -> Self {
        Self::again(code, "request", "setup", 1)
    }

    const fn stream(code: &'static str) -> Self {
        Self::again(code, "stream", "stream", 1)
    }

    const fn silent() -> Self {
        Self::again("EMPTY_MODEL_RESPONSE", "stream", "silent", 1)
    }

    /// Overload or a rate limit that is told inside a stream.
    const fn capacity_in_stream(code: &'static str) -> Self {
        Self::again(code, "stream", "capacity", 5)
    }

    /// The answer is whole, and its call is answered with this code.
    const fn call_refused(code: &'static str) -> Self {
        Self { tool: Some(code), ..Self::NOTHING }
    }

    const fn capacity(code: &'static str) -> Self {
        Self::again(code, "request", "capacity", 5)
    }
}

/// Whether trying again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Recovery {
    /// Nothing is wrong.
    None,
    /// The same request may succeed.
    Recoverable,
    /// The client must stop at once.
    Final,
}

static CATALOGUE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let tables = [
        table::TABLE,
        http::TABLE,
        layers::TABLE,
        pace::TABLE,
        spelling::TABLE,
        inband::TABLE,
        content::TABLE,
        calls::TABLE,
    ];
    tables.concat()
});

/// All named behaviours, the core twelve first.
pub fn all() -> &'static [Entry] {
    &CATALOGUE
}

/// The rows of the faults that come in many wordings, statuses and codes: one mechanism
/// each with its fault, and not counted as faults. They are told apart by
/// [`Entry::variant_of`], and each is shown by the APIs of [`Entry::apis`].
pub fn variants() -> &'static [Entry] {
    &VARIANTS
}

static VARIANTS: LazyLock<Vec<Entry>> = LazyLock::new(variants::rows);

/// Every report of the collection, and the faults that show it.
pub fn reports() -> &'static [Report] {
    reports::REPORTS
}

/// The twelve every client is tested against first.
pub fn core() -> impl Iterator<Item = &'static Entry> {
    CATALOGUE.iter().filter(|entry| entry.core)
}

/// The behaviour of this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    CATALOGUE.iter().chain(variants()).find(|entry| entry.name == name)
}

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().map(|entry| entry.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_are_core_and_names_are_unique() {
        assert_eq!(core().count(), 12);
        let mut names: Vec<_> = names().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().len());
    }

    #[test]
    fn every_named_behaviour_can_be_served() {
        for entry in all().iter().chain(variants()) {
            assert_eq!(entry.behaviour().check(), Ok(()), "{}", entry.name);
        }
    }

    #[test]
    fn there_are_ninety_faults_and_every_variant_is_a_row_of_one_with_its_verdict() {
        assert!(all().len() >= 90, "{}", all().len());
        assert!(all().iter().all(|entry| entry.variant_of.is_none()));
        let mut names: Vec<_> = variants().iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
        for row in variants() {
            let fault = row.variant_of.and_then(find).expect(row.name);
            assert_eq!(row.expected, fault.expected, "{}", row.name);
            assert!(row.name.starts_with(&format!("{}/", fault.name)), "{}", row.name);
        }
    }

    #[test]
    fn the_catalogue_reads_as_a_table() {
        let rows: Vec<String> = all()
            .iter()
            .map(|e| {
                let x = e.expected;
                format!(
                    "{:<26} {:<5} {:<5} {:<11} {:<26} {:<8} {:<8} {} {} | {}",
                    e.name,
                    if e.core { "core" } else { "" },
                    format!("{:?}", e.needs()),
                    format!("{:?}", x.recovery),
                    x.code.unwrap_or("-"),
                    x.phase.unwrap_or("-"),
                    x.budget.unwrap_or("-"),
                    x.attempts_if_always,
                    x.attempts_if_once,
                    e.behaviour(),
                )
            })
            .collect();
        insta::assert_snapshot!(rows.join("\n"));
    }
}
