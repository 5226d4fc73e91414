//! A loopback model provider that breaks on purpose, by script.

mod behaviour;
pub mod catalogue;
mod content;
mod dialect;
mod plan;
mod script;

pub use behaviour::{Answer, Behaviour, BehaviourError, ErrorReply, How, Insert, Point};
pub use content::{DEFAULT_TEXT, Finish, ToolCall, Usage};
pub use script::{At, Script, ScriptError, ShippedScript, Step};
