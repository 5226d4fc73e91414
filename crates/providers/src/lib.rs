#![doc = include_str!("../README.md")]

#[cfg(feature = "adapter")]
mod adapters;
#[cfg(feature = "adapter")]
mod answer;
mod assemble;
#[cfg(feature = "adapter")]
mod attempt;
#[cfg(feature = "adapter")]
mod body;
#[cfg(feature = "http")]
mod clocks;
#[cfg(all(feature = "adapter", feature = "test-support"))]
pub mod conformance;
mod conversation;
mod event;
#[cfg(feature = "adapter")]
mod facts;
#[cfg(feature = "adapter")]
mod halves;
mod history;
#[cfg(feature = "adapter")]
mod intake;
#[cfg(feature = "adapter")]
mod loose;
pub mod profiles;
mod provider;
#[cfg(feature = "adapter")]
mod rendering;
mod request;
#[cfg(any(feature = "openai-chat", feature = "openai-responses", feature = "anthropic"))]
mod schema;
#[cfg(feature = "adapter")]
mod sse;
#[cfg(feature = "adapter")]
mod template;
mod tool_list;
#[cfg(feature = "http")]
pub mod transport;
#[cfg(feature = "adapter")]
mod watchdog;

#[cfg(any(test, feature = "test-support"))]
pub mod testing;

#[cfg(feature = "anthropic")]
pub use adapters::anthropic;
#[cfg(feature = "gemini")]
pub use adapters::gemini;
#[cfg(feature = "openai-chat")]
pub use adapters::openai_chat;
#[cfg(feature = "openai-responses")]
pub use adapters::openai_responses;
#[cfg(feature = "adapter")]
pub use adapters::{
    builder::{AdapterBuilder, AdapterOptions},
    settings::ConfigError,
};
pub use assemble::{Assembler, MAX_ANSWER_BYTES, TooLarge, WireCall};
#[cfg(feature = "http")]
pub use clocks::Clocks;
pub use conversation::{
    Arguments, AssistantMessage, CompletedMessage, FinishReason, Image, Message, Native,
    PartialMessage, ToolCall, ToolResult, UserMessage,
};
pub use event::{StreamEvent, ToolCallDelta};
pub use history::{History, Iter as HistoryIter};
pub use provider::{AttemptContext, EventStream, PollEvents, Provider};
pub use request::{ChatRequest, ResponseFormat, ToolChoice, ToolDefinition};
pub use tool_list::ToolList;
pub use turnbuckle_errors::Usage;
