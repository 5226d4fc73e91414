//! A script says what happens to each attempt: one step an attempt, the last
//! one repeats.
//!
//! ```
//! use turnbuckle_faults::Script;
//!
//! let script = Script::parse(r#"
//!     [[step]]
//!     behaviour = "cut_inside_event"
//!     text = "The file says hello to the whole wide world."
//!
//!     [[step]]
//!     behaviour = "whole"
//! "#)?;
//! assert_eq!(script.steps().len(), 2);
//! # Ok::<(), turnbuckle_faults::ScriptError>(())
//! ```

mod error;
mod parse;
mod serving;
mod step;
mod write;

use std::{fmt, fs, path::Path};

pub use error::{At, ScriptError};
pub use serving::Serving;
pub use step::Step;

/// What happens to each attempt, checked: every step can be served.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    steps: Vec<Step>,
    serving: Serving,
    /// Whether someone said so, and it was not found out from the steps.
    stated: bool,
}

impl Script {
    /// A script of these steps; the last one repeats. Its server speaks what
    /// they need: plain HTTP/1.1, or TLS, or HTTP/2 over TLS.
    ///
    /// # Errors
    ///
    /// [`ScriptError::NoSteps`], or what is wrong with a step: a setting
    /// without effect, an event that does not exist, a composition that
    /// cannot be served, or not by the same server as the others.
    pub fn new(steps: Vec<Step>) -> Result<Self, ScriptError> {
        if steps.is_empty() {
            return Err(ScriptError::NoSteps);
        }
        for (index, step) in steps.iter().enumerate() {
            step.check(index + 1)?;
        }
        let serving = Serving::for_steps(&steps);
        Self { steps, serving, stated: false }.fit()
    }

    /// The same steps on a server that speaks this.
    ///
    /// # Errors
    ///
    /// [`ScriptError::WrongServer`] for a step that it cannot play.
    pub fn on(self, serving: Serving) -> Result<Self, ScriptError> {
        Self { serving, stated: true, ..self }.fit()
    }

    fn fit(self) -> Result<Self, ScriptError> {
        for (index, step) in self.steps.iter().enumerate() {
            self.serving.check(step, index + 1)?;
        }
        Ok(self)
    }

    /// What its server speaks.
    pub fn serving(&self) -> &Serving {
        &self.serving
    }

    /// Reads a script written in TOML.
    ///
    /// # Errors
    ///
    /// A [`ScriptError`] with the line, what is allowed there and the nearest
    /// right name.
    pub fn parse(source: &str) -> Result<Self, ScriptError> {
        let (steps, serving) = parse::script(source)?;
        let script = Self::new(steps)?;
        match serving {
            Some(serving) => script.on(serving),
            None => Ok(script),
        }
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    ///
    /// [`ScriptError::Read`] when the file cannot be read as UTF-8, else as
    /// [`Script::parse`].
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let source = fs::read_to_string(path)
            .map_err(|source| ScriptError::Read { path: path.to_owned(), source })?;
        Self::parse(&source)
    }

    /// One of the scripts that come with the crate, see [`Script::shipped`].
    ///
    /// # Errors
    ///
    /// [`ScriptError::UnknownScript`] with the names there are.
    pub fn named(name: &str) -> Result<Self, ScriptError> {
        let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.name == name) else {
            let known: Vec<_> = SHIPPED.iter().map(|shipped| shipped.name).collect();
            return Err(ScriptError::UnknownScript {
                name: name.to_owned(),
                nearest: error::nearest(name, &known),
                known,
            });
        };
        Self::parse(shipped.source)
    }

    /// The scripts that come with the crate.
    pub fn shipped() -> &'static [ShippedScript] {
        SHIPPED
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The script in TOML; [`Script::parse`] reads it back to an equal one.
    ///
    /// # Errors
    ///
    /// [`ScriptError::NotWritable`] when a step holds a behaviour built in
    /// code, which has no name to write.
    pub fn to_toml(&self) -> Result<String, ScriptError> {
        write::script(self)
    }

    /// The step for an attempt counted from 1, and its number.
    pub(crate) fn step(&self, attempt: usize) -> Option<(usize, &Step)> {
        let number = attempt.clamp(1, self.steps.len().max(1));
        self.steps.get(number - 1).map(|step| (number, step))
    }
}

impl fmt::Display for Script {
    /// One line a step: its number, its behaviour and what that does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.steps.iter().map(|step| step.name().unwrap_or("(built in code)"));
        let width = names.clone().map(str::len).max().unwrap_or_default().max(21);
        for (number, (name, step)) in (1..).zip(names.zip(&self.steps)) {
            writeln!(f, "{number:>3}  {name:<width$} {}", step.behaviour())?;
        }
        Ok(())
    }
}

/// A script that comes with the crate.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShippedScript {
    /// Its name, for [`Script::named`].
    pub name: &'static str,
    /// What it plays, in one sentence.
    pub sentence: &'static str,
    /// Its TOML.
    pub source: &'static str,
}

static SHIPPED: &[ShippedScript] = &[
    ShippedScript {
        name: "demo",
        sentence: "Reads and edits a file, is rate-limited once, cut once, then answers.",
        source: include_str!("../scripts/demo.toml"),
    },
    ShippedScript {
        name: "cut_once",
        sentence: "Is cut in the middle of its first answer, then answers.",
        source: include_str!("../scripts/cut_once.toml"),
    },
    ShippedScript {
        name: "rate_limited_twice",
        sentence: "Is rate-limited twice, then answers.",
        source: include_str!("../scripts/rate_limited_twice.toml"),
    },
    ShippedScript {
        name: "edit_fails_twice",
        sentence: "Writes a file, then asks twice for an edit whose old text is not in it.",
        source: include_str!("../scripts/edit_fails_twice.toml"),
    },
    ShippedScript {
        name: "commands_run_away",
        sentence: "Runs commands that flood, hang, stay behind and ignore signals, then answers.",
        source: include_str!("../scripts/commands_run_away.toml"),
    },
];

#[cfg(test)]
mod tests;
