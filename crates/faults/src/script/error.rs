//! What can be wrong with a script, said so that it can be mended at once.

use std::{fmt, io, path::PathBuf};

use crate::{behaviour::BehaviourError, catalogue};

/// Why a script was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not TOML.
    #[error("line {line}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// What the TOML parser expected.
        message: String,
    },
    /// A key that means nothing here.
    #[error("line {line}: unknown key `{key}`{}; allowed here: {}", hint(*nearest), allowed.join(", "))]
    UnknownKey {
        /// The line, from 1.
        line: usize,
        /// The key.
        key: String,
        /// The nearest key that exists.
        nearest: Option<&'static str>,
        /// All keys allowed at this place.
        allowed: &'static [&'static str],
    },
    /// A key that must be there is not.
    #[error("line {line}: `{key}` is missing in this {table}")]
    MissingKey {
        /// The line of the table, from 1.
        line: usize,
        /// The key.
        key: &'static str,
        /// The table.
        table: &'static str,
    },
    /// A behaviour of a name the catalogue does not know.
    #[error("{}unknown behaviour `{name}`{}; known: {}", place(*line), hint(*nearest), known.join(", "))]
    UnknownBehaviour {
        /// The line, from 1; `None` for a step built in code.
        line: Option<usize>,
        /// The name.
        name: String,
        /// The nearest name that exists.
        nearest: Option<&'static str>,
        /// All names.
        known: Vec<&'static str>,
    },
    /// A word that means nothing for this key.
    #[error("line {line}: `{key}` cannot be `{word}`{}; allowed: {}", hint(*nearest), allowed.join(", "))]
    UnknownWord {
        /// The line, from 1.
        line: usize,
        /// The key.
        key: &'static str,
        /// The word.
        word: String,
        /// The nearest word that is allowed.
        nearest: Option<&'static str>,
        /// All words allowed.
        allowed: &'static [&'static str],
    },
    /// A value of the wrong type.
    #[error("line {line}: `{key}` must be {wanted}, not {found}")]
    WrongType {
        /// The line, from 1.
        line: usize,
        /// The key.
        key: String,
        /// What it must be.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A number outside its range.
    #[error("line {line}: `{key}` must be {wanted}, not {found}")]
    OutOfRange {
        /// The line, from 1.
        line: usize,
        /// The key.
        key: &'static str,
        /// What it must be.
        wanted: &'static str,
        /// The number as written.
        found: String,
    },
    /// There is nothing to play.
    #[error("the script has no steps: write one `[[step]]` with `behaviour = \"whole\"`")]
    NoSteps,
    /// A setting that the behaviour of its step ignores.
    #[error(
        "{at}: `{key}` has no effect on `{behaviour}`, for {why}: remove it, or choose another behaviour"
    )]
    NoEffect {
        /// The step.
        at: At,
        /// The setting, by its key in TOML.
        key: &'static str,
        /// The behaviour.
        behaviour: String,
        /// Why it is ignored.
        why: &'static str,
    },
    /// A composition that cannot be served.
    #[error("{at}: the step cannot be served")]
    Behaviour {
        /// The step.
        at: At,
        /// What is wrong with it.
        source: BehaviourError,
    },
    /// A step that the script's server cannot play.
    #[error("{at}: `{behaviour}` needs {needs}")]
    WrongServer {
        /// The step.
        at: At,
        /// Its behaviour.
        behaviour: String,
        /// What it needs, and how to write that.
        needs: &'static str,
    },
    /// No script of this name comes with the crate.
    #[error("unknown script `{name}`{}; known: {}", hint(*nearest), known.join(", "))]
    UnknownScript {
        /// The name.
        name: String,
        /// The nearest name that exists.
        nearest: Option<&'static str>,
        /// All names.
        known: Vec<&'static str>,
    },
    /// A behaviour built in code has no name to write.
    #[error(
        "step {step} holds a behaviour built in code, which TOML cannot name: use `Step::named`"
    )]
    NotWritable {
        /// The step, from 1.
        step: usize,
    },
}

impl ScriptError {
    /// The line of the script it is about, from 1, if it is about one.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Syntax { line, .. }
            | Self::UnknownKey { line, .. }
            | Self::MissingKey { line, .. }
            | Self::UnknownWord { line, .. }
            | Self::WrongType { line, .. }
            | Self::OutOfRange { line, .. } => Some(*line),
            Self::UnknownBehaviour { line, .. } => *line,
            Self::NoEffect { at, .. }
            | Self::Behaviour { at, .. }
            | Self::WrongServer { at, .. } => at.line,
            Self::Read { .. }
            | Self::NoSteps
            | Self::UnknownScript { .. }
            | Self::NotWritable { .. } => None,
        }
    }
}

/// A step, and its line when it was written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct At {
    /// The step, from 1.
    pub step: usize,
    /// The line of its `[[step]]`, from 1.
    pub line: Option<usize>,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}, step {}", self.step),
            None => write!(f, "step {}", self.step),
        }
    }
}

pub(super) fn unknown_behaviour(name: &str, line: Option<usize>) -> ScriptError {
    let known: Vec<_> = catalogue::names().collect();
    ScriptError::UnknownBehaviour {
        line,
        name: name.to_owned(),
        nearest: nearest(name, &known),
        known,
    }
}

/// The name that was probably meant: at most a third of it is typed wrong.
pub(super) fn nearest(word: &str, names: &[&'static str]) -> Option<&'static str> {
    let distance = |name: &&'static str| (strsim::damerau_levenshtein(word, name), *name);
    let (distance, name) = names.iter().map(distance).min()?;
    (distance <= name.chars().count().div_ceil(3)).then_some(name)
}

fn hint(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

fn place(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}
