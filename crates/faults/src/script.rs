//! A script says what happens to each attempt: one step an attempt, and unless
//! it says otherwise the last one repeats.
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

mod advice;
mod answer;
mod dealer;
mod dealing;
mod error;
mod field;
mod include;
mod near;
mod parse;
mod parts;
mod serving;
mod shipped;
mod step;
mod when;
mod write;

use std::{fmt, path::Path};

pub(crate) use dealer::{Dealer, Dealt, LeftInRow};
pub use dealing::{After, Dealing, Scope};
pub use error::{At, ScriptError};
pub use serving::Serving;
use shipped::SHIPPED;
pub use shipped::ShippedScript;
pub use step::Step;
pub(crate) use when::Asked;
pub use when::Match;

/// What happens to each attempt, checked: every step can be served.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    steps: Vec<Step>,
    dealing: Dealing,
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
            return Err(ScriptError::NoSteps { at: At::default() });
        }
        for (index, step) in steps.iter().enumerate() {
            step.check(index + 1)?;
        }
        let serving = Serving::for_steps(&steps);
        Self { steps, dealing: Dealing::default(), serving, stated: false }.fit()
    }

    /// The same steps, dealt in this way.
    ///
    /// # Errors
    ///
    /// [`ScriptError::WrongServer`] for a step whose fault is the handshake,
    /// where the steps are not dealt in one row to whatever comes.
    pub fn dealt(self, dealing: Dealing) -> Result<Self, ScriptError> {
        Self { dealing, ..self }.fit()
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
        let in_one_row = self.dealing.scope == Scope::Server
            && self.steps.iter().all(|step| step.is_for().is_for_all());
        for (index, step) in self.steps.iter().enumerate() {
            self.serving.check(step, index + 1)?;
            if !in_one_row && step.fails_handshake() {
                return Err(ScriptError::WrongServer {
                    at: step.lines.of("behaviour").in_step(index + 1),
                    behaviour: step.name().unwrap_or("this composition").to_owned(),
                    needs: "`scope = \"server\"` and no `match` in any step: a handshake fails \
                            before there is a request to look at",
                });
            }
        }
        Ok(self)
    }

    /// What its server speaks.
    pub fn serving(&self) -> &Serving {
        &self.serving
    }

    /// How its steps are dealt.
    pub fn dealing(&self) -> &Dealing {
        &self.dealing
    }

    /// Whether dice are thrown for any step.
    pub fn throws_dice(&self) -> bool {
        self.steps.iter().any(|step| step.chance().is_some())
    }

    /// Reads a script written in TOML.
    ///
    /// # Errors
    ///
    /// A [`ScriptError`] with the line, what is allowed there and the nearest
    /// right name.
    pub fn parse(source: &str) -> Result<Self, ScriptError> {
        Self::loaded(include::text(source)?)
    }

    /// Reads a script from a file, with the files it includes.
    ///
    /// # Errors
    ///
    /// [`ScriptError::Read`] when a file cannot be read as UTF-8,
    /// [`ScriptError::Cycle`] for files that include each other, else as
    /// [`Script::parse`] and with the name of the file.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        Self::loaded(include::file(path.as_ref())?)
    }

    fn loaded(loaded: include::Loaded) -> Result<Self, ScriptError> {
        let script = Self::new(loaded.steps)?.dealt(loaded.outermost.dealing)?;
        match loaded.outermost.serving {
            Some(serving) => script.on(serving),
            None => Ok(script),
        }
    }

    /// One of the scripts that come with the crate, see [`Script::shipped`].
    ///
    /// # Errors
    ///
    /// [`ScriptError::UnknownScript`] with the names there are.
    pub fn named(name: &str) -> Result<Self, ScriptError> {
        Self::parse(include::shipped(name, At::default())?.source)
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
}

impl fmt::Display for Script {
    /// One line a step: its number, its behaviour and what that does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.steps.iter().map(|step| step.label().len()).max();
        let width = width.unwrap_or_default().max(21);
        for (number, step) in (1..).zip(&self.steps) {
            write!(f, "{number:>3}  {:<width$} {}", step.label(), step.behaviour())?;
            match step.plays() {
                1 => {}
                Step::ALWAYS => write!(f, ", always")?,
                times => write!(f, ", {times} times")?,
            }
            if let Some(chance) = step.chance() {
                write!(f, ", with probability {chance}")?;
            }
            if !step.is_for().is_for_all() {
                write!(f, ", where it matches")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
