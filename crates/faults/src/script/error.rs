//! What can be wrong with a script, said so that it can be mended at once.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    advice,
    near::{self, hint, listed},
};
use crate::{behaviour::BehaviourError, catalogue};

/// Why a script was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("{}cannot read the script {}", at.prefix(), path.display())]
    Read {
        /// Where it is included; nowhere for the outermost one.
        at: At,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not TOML.
    #[error("{}{message}; allowed is TOML (https://toml.io)", at.prefix())]
    Syntax {
        /// Where.
        at: At,
        /// What the TOML parser expected.
        message: String,
    },
    /// A key that means nothing here.
    #[error(
        "{}unknown key `{key}`{}; allowed here: {}",
        at.prefix(), hint(*nearest), allowed.join(", ")
    )]
    UnknownKey {
        /// Where.
        at: At,
        /// The key.
        key: String,
        /// The nearest key that exists.
        nearest: Option<&'static str>,
        /// All keys allowed at this place.
        allowed: &'static [&'static str],
    },
    /// A key that must be there is not.
    #[error("{}`{key}` is missing in this {table}", at.prefix())]
    MissingKey {
        /// The table.
        at: At,
        /// The key.
        key: &'static str,
        /// The table, by its name in TOML.
        table: &'static str,
    },
    /// Two keys of which only one can hold.
    #[error("{}`{key}` cannot stand beside `{other}`, for {why}: leave out one of them", at.prefix())]
    Beside {
        /// Where the second one stands.
        at: At,
        /// The key.
        key: &'static str,
        /// The other key.
        other: &'static str,
        /// Why not.
        why: &'static str,
    },
    /// A behaviour of a name the catalogue does not know.
    #[error(
        "{}unknown behaviour `{name}`{}; `turnbuckle faults list` names all {known}, e.g. {}",
        at.prefix(), hint(*nearest), listed(near)
    )]
    UnknownBehaviour {
        /// Where; nowhere for a step built in code.
        at: At,
        /// The name.
        name: String,
        /// The nearest name that exists.
        nearest: Option<&'static str>,
        /// A few names that are like it.
        near: Vec<&'static str>,
        /// How many names there are.
        known: usize,
    },
    /// A word that means nothing for this key.
    #[error(
        "{}`{key}` cannot be `{word}`{}; allowed: {}",
        at.prefix(), hint(*nearest), allowed.join(", ")
    )]
    UnknownWord {
        /// Where.
        at: At,
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
    #[error("{}`{key}` must be {wanted}, not {found}", at.prefix())]
    WrongType {
        /// Where.
        at: At,
        /// The key.
        key: String,
        /// What it must be.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A number outside its range.
    #[error("{}`{key}` must be {wanted}, not {found}", at.prefix())]
    OutOfRange {
        /// Where.
        at: At,
        /// The key.
        key: &'static str,
        /// What it must be.
        wanted: &'static str,
        /// The number as written.
        found: String,
    },
    /// There is nothing to play.
    #[error(
        "{}the script has no steps: write one `[[step]]` with `behaviour = \"whole\"`",
        at.prefix()
    )]
    NoSteps {
        /// The file, if it is one.
        at: At,
    },
    /// More steps than a script may have.
    #[error("{}the script has more than {most} steps: a step can be played `times = N`", at.prefix())]
    TooManySteps {
        /// Where the first one too many stands.
        at: At,
        /// How many there may be.
        most: usize,
    },
    /// Files that include each other.
    #[error(
        "{}the files include each other without end: {}; allowed: files that do not lead back",
        at.prefix(), cycle.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" → ")
    )]
    Cycle {
        /// The line that closes the circle.
        at: At,
        /// The files on the way, the first of them again at the end.
        cycle: Vec<PathBuf>,
    },
    /// A file is included by a script that is no file.
    #[error(
        "{}`{name}` cannot be included: this script was not read from a file, so it has no \
         folder; allowed: the name of a shipped script",
        at.prefix()
    )]
    NoFolder {
        /// Where.
        at: At,
        /// What was to be included.
        name: String,
    },
    /// A setting of the whole script in a file that only lends its steps.
    #[error(
        "{}`{key}` has no effect in a file that is included: write it into the outermost script; \
         allowed here: step",
        at.prefix()
    )]
    OnlySteps {
        /// Where.
        at: At,
        /// The setting.
        key: &'static str,
    },
    /// A setting that the behaviour of its step ignores.
    #[error(
        "{}`{key}` has no effect on `{behaviour}`, for {why}: remove it, or choose another behaviour",
        at.prefix()
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
    #[error("{}the step cannot be served: {}", at.prefix(), advice::told(problem, at))]
    Behaviour {
        /// The step.
        at: At,
        /// What is wrong with it.
        problem: BehaviourError,
    },
    /// A step that the script's server cannot play.
    #[error("{}`{behaviour}` needs {needs}", at.prefix())]
    WrongServer {
        /// The step.
        at: At,
        /// Its behaviour.
        behaviour: String,
        /// What it needs, and how to write that.
        needs: &'static str,
    },
    /// No script of this name comes with the crate.
    #[error("{}unknown script `{name}`{}; known: {}", at.prefix(), hint(*nearest), known.join(", "))]
    UnknownScript {
        /// Where it is included, if it is.
        at: At,
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
    pub fn line(&self) -> Option<u32> {
        self.at().and_then(|at| at.line)
    }

    /// The place it is about.
    pub fn at(&self) -> Option<&At> {
        match self {
            Self::Read { at, .. }
            | Self::Syntax { at, .. }
            | Self::UnknownKey { at, .. }
            | Self::MissingKey { at, .. }
            | Self::Beside { at, .. }
            | Self::UnknownBehaviour { at, .. }
            | Self::UnknownWord { at, .. }
            | Self::WrongType { at, .. }
            | Self::OutOfRange { at, .. }
            | Self::NoSteps { at }
            | Self::TooManySteps { at, .. }
            | Self::Cycle { at, .. }
            | Self::NoFolder { at, .. }
            | Self::OnlySteps { at, .. }
            | Self::NoEffect { at, .. }
            | Self::Behaviour { at, .. }
            | Self::WrongServer { at, .. }
            | Self::UnknownScript { at, .. } => Some(at),
            Self::NotWritable { .. } => None,
        }
    }
}

/// A place in a script, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct At {
    /// The file, when it was read from one.
    pub file: Option<Arc<Path>>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The character of that line, from 1.
    pub column: Option<u32>,
    /// The step, from 1.
    pub step: Option<u32>,
}

impl At {
    /// The same place, in this step.
    pub(super) fn in_step(self, number: usize) -> Self {
        Self { step: Some(count(number)), ..self }
    }

    fn prefix(&self) -> String {
        match self.to_string() {
            at if at.is_empty() => at,
            at => at + ": ",
        }
    }
}

/// A line, a column or a step; a script has no more of them.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl fmt::Display for At {
    /// `FILE:LINE:COLUMN`, as editors read it; without a file, in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}", file.display())?;
            let numbers = [self.line, self.line.and(self.column)];
            return numbers.into_iter().flatten().try_for_each(|number| write!(f, ":{number}"));
        }
        let named = [("line", self.line), ("column", self.column), ("step", self.step)];
        let named = named.iter().filter_map(|(name, number)| Some((name, number.as_ref()?)));
        for (index, (name, number)) in named.enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name} {number}")?;
        }
        Ok(())
    }
}

pub(super) fn unknown_behaviour(name: &str, at: At) -> ScriptError {
    let known: Vec<_> = catalogue::names().collect();
    ScriptError::UnknownBehaviour {
        at,
        name: name.to_owned(),
        nearest: near::nearest(name, &known),
        near: near::some(name, &known),
        known: known.len(),
    }
}
