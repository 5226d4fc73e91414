//! Guards: they watch the calls of one prompt and may refuse one, or end it.

mod mutation;
mod repetition;

pub use mutation::MutationGuard;
pub use repetition::RepetitionGuard;
use turnbuckle_errors::Failure;

use crate::{Call, Effect, ToolError, ToolOutcome};

/// Watches the calls of one prompt. A fresh one is made for each prompt.
pub trait Guard: Send {
    /// Asked before a call runs.
    fn before(&mut self, call: &Call, effect: Effect) -> Admission {
        let _ = (call, effect);
        Admission::Allow
    }

    /// Told how a call ended.
    fn after(&mut self, call: &Call, outcome: &ToolOutcome) -> Aftermath {
        let _ = (call, outcome);
        Aftermath::Continue
    }
}

/// What a guard says before a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// It may run.
    Allow,
    /// It may not; the model reads why.
    Deny(ToolError),
}

/// What a guard says after a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Aftermath {
    /// Go on.
    Continue,
    /// Let the batch finish, then end the prompt with this failure.
    EndPrompt(Failure),
}
