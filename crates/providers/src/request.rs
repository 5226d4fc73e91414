//! One request to a model, as a value that can be sent again unchanged.

use serde_json::Value;

use crate::Message;

/// Everything a model is asked with, in no provider's dialect.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The model, by the provider's name for it.
    pub model: String,
    /// The system prompt.
    pub system: Option<String>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools that the model may ask for.
    pub tools: Vec<ToolDefinition>,
    /// The most tokens of the answer.
    pub max_output_tokens: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f32>,
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
