#![doc = include_str!("../README.md")]

mod behaviour;
pub mod catalogue;
mod content;
mod dialect;
mod plan;
mod record;
mod script;
mod server;
mod shape;

pub use behaviour::{
    Answer, Api, Behaviour, BehaviourError, Change, ErrorReply, Gzip, HangUp, How, Http1,
    Http2Code, Insert, Needs, Noise, Point, Protocol, Spelling, Spot, Tls,
};
pub use content::{DEFAULT_TEXT, Finish, ToolCall, Usage};
pub use record::{Ended, Headers, Path, RecordedRequest};
pub use script::{
    After, At, Dealing, Match, Scope, Script, ScriptError, Serving, ShippedScript, Step,
};
pub use server::{FaultServer, RefusingProxy, ServeError};
