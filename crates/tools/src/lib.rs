//! Hands for a model, and the guards on them.
//!
//! A [`Tool`] does one thing to the machine. A [`ToolSet`] holds the tools of a
//! session; [`ToolSet::begin_prompt`] opens the one door through which every
//! call of a prompt goes: look up, ask for permission, pass the guards, run,
//! contain a panic. The built-in tools live behind the feature `builtin`.

mod approve;
mod call;
mod error;
mod guard;
mod output;
mod set;
mod tool;

pub use approve::{
    Answer, ApprovalRequest, Approver, DenyAll, PERMISSION_TIMEOUT, PermissionMode, Rule,
};
pub use call::{Call, ToolOutcome};
pub use error::ToolError;
pub use guard::{Admission, Aftermath, Guard, MutationGuard};
pub use output::{ToolOutput, Touched};
pub use set::{PromptTools, ToolSet};
pub use tool::{Effect, Tool, ToolContext, ToolSpec};

#[cfg(feature = "builtin")]
pub mod builtin;
