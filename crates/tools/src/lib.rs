#![cfg_attr(feature = "builtin", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "builtin"), doc = "Hands for a model, and the guards on them.")]

mod approve;
mod arguments;
mod call;
mod error;
mod guard;
mod input;
mod limits;
mod output;
mod progress;
mod set;
mod tool;
mod typed;

pub use approve::{
    Answer, ApprovalRequest, Approver, DenyAll, PERMISSION_TIMEOUT, PermissionMode, Rule,
};
pub use call::{Call, ToolOutcome};
pub use error::ToolError;
pub use guard::{Admission, Aftermath, Guard, MutationGuard, RepetitionGuard};
pub use limits::CallLimits;
pub use output::{ToolOutput, Touched};
pub use progress::{MAX_PROGRESS, Progress, ProgressUpdate};
pub use set::{Admitted, PromptTools, STOP_GRACE, ToolSet};
pub use tool::{Effect, Outside, Tool, ToolContext, ToolSpec};
pub use typed::FnTool;

#[cfg(feature = "builtin")]
pub mod builtin;
