#![doc = include_str!("../README.md")]

mod behaviour;
pub mod catalogue;
mod content;
mod dialect;
mod plan;
mod record;
mod script;
mod server;

pub use behaviour::{Answer, Behaviour, BehaviourError, ErrorReply, How, Insert, Point};
pub use content::{DEFAULT_TEXT, Finish, ToolCall, Usage};
pub use record::{Ended, Headers, Path, RecordedRequest};
pub use script::{At, Script, ScriptError, ShippedScript, Step};
pub use server::{FaultServer, ServeError};
