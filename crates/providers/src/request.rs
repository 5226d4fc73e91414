//! One request to a model, as a value that can be sent again unchanged.

use serde_json::{Map, Value};

use crate::{History, Message, ToolList};

/// Everything a model is asked with, in no provider's dialect.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The model, by the provider's name for it.
    pub model: String,
    /// The system prompt.
    pub system: Option<String>,
    /// The conversation, oldest first.
    pub messages: History,
    /// The tools that the model may ask for.
    pub tools: ToolList,
    /// The most tokens of the answer.
    pub max_output_tokens: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f32>,
    /// Texts that end the answer when the model writes one of them.
    pub stop: Vec<String>,
    /// Whether, and which, tool the model has to call.
    pub tool_choice: ToolChoice,
    /// Whether the model may ask for several tools at once; the provider's
    /// default if it is not said.
    pub parallel_tool_calls: Option<bool>,
    /// How much the model should think, in the provider's word (`low`, `high` …).
    pub reasoning_effort: Option<String>,
    /// The JSON schema that the answer has to follow.
    pub response_format: Option<ResponseFormat>,
    /// Whether the provider should cache the beginning of the request, where it
    /// has to be asked to.
    pub prompt_caching: bool,
    /// Fields to add to the body as they are, for a gateway with ideas of its own.
    /// They win over ours.
    pub extra_body: Map<String, Value>,
    /// The durable session id, forwarded where a provider can use it to reach
    /// the cache of the last request.
    pub session_id: Option<String>,
}

impl ChatRequest {
    /// A request to `model` that says nothing yet.
    #[must_use]
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }

    /// Adds a message.
    #[must_use]
    pub fn with_message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }
}

/// Whether, and which, tool a model has to call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides; this is not sent.
    #[default]
    Auto,
    /// No tool.
    None,
    /// Some tool.
    Required,
    /// This tool.
    Named(String),
}

/// The JSON schema that an answer has to follow.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseFormat {
    /// A name for it, `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// The schema.
    pub schema: Value,
}

/// A tool as a model is told about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The name that the model calls.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub input_schema: Value,
}
