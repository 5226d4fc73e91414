//! What is said between a user, a model and its tools. All of it is content.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnbuckle_errors::Usage;

/// One message of a conversation. The system prompt is not one: it belongs to
/// the request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// What the user said.
    User(UserMessage),
    /// What the model said, completely.
    Assistant(AssistantMessage),
    /// What a tool call gave.
    Tool(ToolResult),
}

/// What the user said: a text, and images beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// The text.
    pub text: String,
    /// The images, in order. They come before the text on the wire.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl<T: Into<String>> From<T> for UserMessage {
    fn from(text: T) -> Self {
        Self { text: text.into(), images: Vec::new() }
    }
}

/// An image, by its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Its media type, for example `image/png`.
    pub media_type: String,
    /// Its bytes in standard base64.
    pub base64: String,
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
    /// The message as its provider wrote it, with the opaque parts that only the
    /// same provider and model can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Native>,
}

impl AssistantMessage {
    /// The parts to send back byte for byte, if `dialect` and `model` are those
    /// that wrote them. Otherwise text and tool calls say all that can be said.
    #[must_use]
    pub fn native_for(&self, dialect: &str, model: &str) -> Option<&[String]> {
        let native = self.native.as_ref()?;
        (native.dialect == dialect && native.model == model).then_some(native.parts.as_slice())
    }
}

/// A message in its provider's own words: signed reasoning, encrypted reasoning,
/// item ids, thought signatures, in order with text and calls.
///
/// It is content, kept in the journal and never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Native {
    /// The dialect that wrote it, for example `anthropic`.
    pub dialect: String,
    /// The model that was asked.
    pub model: String,
    /// Its parts in order, each the exact JSON to send back.
    pub parts: Vec<String>,
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
/// Serialises with its exact text, so that a journal gives back what the model
/// wrote. Only whole arguments can be run or sent back to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// Images beside the text.
    pub images: Vec<Image>,
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
    /// The provider paused a long answer, and goes on with it when the conversation
    /// is sent again with this message at its end (Anthropic's `pause_turn`).
    /// Neither a whole answer nor silence.
    Pause,
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
            Self::Pause => "pause",
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

    /// Renames every call whose id is in `taken`, and adds the ids to it.
    ///
    /// Servers that give no ids, or the same in each answer, would otherwise make
    /// two calls of a session share one id.
    #[must_use]
    pub fn with_ids_apart_from(mut self, taken: &mut HashSet<String>) -> Self {
        for call in &mut self.message.tool_calls {
            let given = call.id.clone();
            let mut count = 2_u32;
            while !taken.insert(call.id.clone()) {
                call.id = format!("{given}_{count}");
                count += 1;
                // What the provider wrote cannot be sent back if it names the old id. An
                // id that we made up stands nowhere in it.
                let quoted = format!("\"{given}\"");
                self.message.native = self
                    .message
                    .native
                    .take()
                    .filter(|native| !native.parts.iter().any(|part| part.contains(&quoted)));
            }
        }
        self
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
            assert_eq!(whole(raw).value(), None);
        }
    }

    #[test]
    fn arguments_come_back_from_a_journal_as_they_were_written() {
        for raw in [
            r#"{"path": "x",  "limit":1,"path":"y"}"#,
            r#"{"n":12345678901234567890123,"x":1e2}"#,
            "{",
        ] {
            let written = Arguments::parse(raw.into());
            let line = serde_json::to_string(&written).unwrap();
            let back: Arguments = serde_json::from_str(&line).unwrap();
            assert_eq!(back, written);
        }
    }
}
