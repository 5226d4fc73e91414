//! What a stream yields.

use crate::CompletedMessage;

/// One event of an answer.
///
/// Deltas come in any number; then exactly one [`StreamEvent::Finished`] ends a
/// good stream, and exactly one failure ends any other.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The answer has begun: the first event that is no comment came.
    Started,
    /// More visible text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// More of a tool call; it may be run only from the finished message.
    ToolCall(ToolCallDelta),
    /// The terminal event came, and this is the whole message.
    Finished(Box<CompletedMessage>),
}

/// A piece of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCallDelta {
    /// Which call of the message it belongs to, from 0.
    pub slot: usize,
    /// The call's id, when it came with this piece.
    pub id: Option<String>,
    /// The tool's name, when it came with this piece.
    pub name: Option<String>,
    /// More of the arguments' text.
    pub arguments: String,
}
