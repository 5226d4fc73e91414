//! What is said between a user, a model and its tools. All of it is content.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnbuckle_errors::Usage;

/// One message of a conversation. The system prompt is not one: it belongs to
/// the request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// What the user said.
    User(String),
    /// What the model said, completely.
    Assistant(AssistantMessage),
    /// What a tool call gave.
    Tool(ToolResult),
}

/// A whole message of the model, as it goes into the history.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// The visible text.
    pub text: String,
    /// Its reasoning, where the provider shows it.
    #[serde(default)]
    pub reasoning: String,
    /// The tools it asked for, in order.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
}

/// A tool that the model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that pairs it with its result.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
}

/// The arguments of a tool call: whole JSON, or not usable.
///
/// Serialises to the JSON value, or to `null` if it is broken; only whole
/// arguments can be run or sent back to a model.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// The JSON as the model wrote it.
    Whole(String),
    /// What the model wrote is not JSON, or was cut.
    Broken(String),
}

impl Arguments {
    /// Reads what a model wrote. Nothing at all means no arguments: `{}`.
    #[must_use]
    pub fn parse(raw: String) -> Self {
        if raw.trim().is_empty() {
            return Self::Whole("{}".to_owned());
        }
        match serde_json::from_str::<&serde_json::value::RawValue>(raw.trim()) {
            Ok(_) => Self::Whole(raw),
            Err(_) => Self::Broken(raw),
        }
    }

    /// The arguments as a JSON value, if they are whole.
    #[must_use]
    pub fn value(&self) -> Option<Value> {
        match self {
            Self::Whole(raw) => serde_json::from_str(raw).ok(),
            Self::Broken(_) => None,
        }
    }

    /// What is sent back to a model: the exact text, or `{}` where it is broken.
    #[must_use]
    pub fn as_json(&self) -> &str {
        match self {
            Self::Whole(raw) => raw,
            Self::Broken(_) => "{}",
        }
    }
}

impl Serialize for Arguments {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Option::<Value>::deserialize(deserializer)? {
            Some(value) => Self::Whole(value.to_string()),
            None => Self::Broken(String::new()),
        })
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(fields: Map<String, Value>) -> Self {
        Self::Whole(Value::Object(fields).to_string())
    }
}

/// The result of one tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// What the model gets to read.
    pub text: String,
    /// Whether the tool did what was asked.
    pub ok: bool,
}

/// Why a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model wants tools to be run.
    ToolCalls,
    /// A safety filter cut it.
    ContentFilter,
}

impl FinishReason {
    /// The wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// A message whose stream reached its terminal event.
///
/// Only an [`Assembler`](crate::Assembler) that has seen it can make one, so an
/// unfinished message cannot be mistaken for a whole one.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedMessage {
    pub(crate) message: AssistantMessage,
    pub(crate) finish: FinishReason,
    pub(crate) finish_raw: Option<String>,
    pub(crate) refused: bool,
    pub(crate) refusal: String,
    pub(crate) usage: Usage,
}

impl CompletedMessage {
    /// The message.
    #[must_use]
    pub const fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// Takes the message out.
    #[must_use]
    pub fn into_message(self) -> AssistantMessage {
        self.message
    }

    /// Why it ended, in our words.
    #[must_use]
    pub const fn finish(&self) -> FinishReason {
        self.finish
    }

    /// Why it ended, in the provider's word.
    #[must_use]
    pub fn finish_raw(&self) -> Option<&str> {
        self.finish_raw.as_deref()
    }

    /// Whether its text is the model's refusal.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        self.refused
    }

    /// The part of the text that came in the wire's own field for refusals
    /// (OpenAI and OpenRouter have one); it is in the message's text too.
    #[must_use]
    pub fn refusal_text(&self) -> Option<&str> {
        (!self.refusal.is_empty()).then_some(self.refusal.as_str())
    }

    /// What it cost.
    #[must_use]
    pub const fn usage(&self) -> &Usage {
        &self.usage
    }
}

/// What came of a message whose stream is not (yet) complete: to be shown, never
/// to be committed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PartialMessage {
    /// The visible text so far.
    pub text: String,
    /// The reasoning so far.
    pub reasoning: String,
    /// Ids, names and raw arguments of the calls so far.
    pub tool_calls: Vec<ToolCall>,
    /// Token usage, where it came before the end.
    pub usage: Usage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_whole_or_broken_and_never_guessed() {
        let whole = |raw: &str| Arguments::parse(raw.into());
        assert_eq!(whole(""), Arguments::Whole("{}".into()));
        assert_eq!(whole(" \n"), Arguments::Whole("{}".into()));
        assert_eq!(whole(r#"{"a": 1}"#).as_json(), r#"{"a": 1}"#);
        for raw in [r#"{"a": 1"#, "{", "}", r#"{"a":1}{"b":2}"#, "NaN"] {
            assert_eq!(whole(raw), Arguments::Broken(raw.into()));
            assert_eq!(whole(raw).as_json(), "{}");
            assert_eq!(serde_json::to_string(&whole(raw)).unwrap(), "null");
        }
    }

    #[test]
    fn arguments_survive_a_journal() {
        for raw in [r#"{"b":1,"a":"é"}"#, "{"] {
            let line = serde_json::to_string(&Arguments::parse(raw.into())).unwrap();
            let back: Arguments = serde_json::from_str(&line).unwrap();
            assert_eq!(serde_json::to_string(&back).unwrap(), line);
        }
    }
}
