//! One wire attempt at one model: the vocabulary, the [`Provider`] trait, and the
//! adapters behind features.
//!
//! A provider never sleeps and never retries. [`Provider::open`] makes one
//! request; the [`EventStream`] it returns yields deltas and ends with exactly
//! one [`StreamEvent::Finished`] or exactly one [`Failure`]; a stream that ends
//! before its dialect's terminal event is a failure, whatever came before.
//!
//! [`Failure`]: turnbuckle_errors::Failure

mod assemble;
mod conversation;
mod event;
mod provider;
mod request;

#[cfg(feature = "test-support")]
pub mod testing;

pub use assemble::{Assembler, MAX_ANSWER_BYTES, TooLarge};
pub use conversation::{
    Arguments, AssistantMessage, CompletedMessage, FinishReason, Message, PartialMessage, ToolCall,
    ToolResult,
};
pub use event::{StreamEvent, ToolCallDelta};
pub use provider::{AttemptContext, EventStream, PollEvents, Provider};
pub use request::{ChatRequest, ToolDefinition};
pub use turnbuckle_errors::Usage;
