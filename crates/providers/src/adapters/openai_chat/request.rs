//! A request in the words of Chat Completions.

use bytes::Bytes;
use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::Value;

use super::{Affinity, MaxTokensField, Options};
use crate::{ChatRequest, Message, ToolCall, ToolDefinition, ToolResult};

/// The host that is known to take `prompt_cache_key`.
const OPENAI: &str = "api.openai.com";

/// Writes the body of a streaming request. Equal requests give equal bytes.
///
/// # Errors
///
/// If a number in a tool's schema cannot be written as JSON.
pub(super) fn body(
    request: &ChatRequest,
    options: Options,
    host: &str,
) -> Result<Bytes, serde_json::Error> {
    let limit = request.max_output_tokens;
    let keyed = match options.affinity {
        Affinity::ByHost => host == OPENAI,
        Affinity::PromptCacheKey => true,
        Affinity::Off => false,
    };
    let body = Body {
        model: &request.model,
        messages: Messages(request),
        tools: request.tools.iter().map(Tool::from).collect(),
        max_tokens: limit.filter(|_| options.max_tokens == MaxTokensField::MaxTokens),
        max_completion_tokens: limit
            .filter(|_| options.max_tokens == MaxTokensField::MaxCompletionTokens),
        temperature: request.temperature,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        prompt_cache_key: request.session_id.as_deref().filter(|_| keyed),
    };
    serde_json::to_vec(&body).map(Bytes::from)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// The system prompt, then the conversation.
struct Messages<'a>(&'a ChatRequest);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let system = self.0.system.as_deref().filter(|text| !text.is_empty());
        let mut list = serializer
            .serialize_seq(Some(self.0.messages.len() + usize::from(system.is_some())))?;
        if let Some(text) = system {
            list.serialize_element(&Wire::plain("system", text))?;
        }
        for message in &self.0.messages {
            list.serialize_element(&Wire::from(message))?;
        }
        list.end()
    }
}

#[derive(Serialize)]
struct Wire<'a> {
    role: &'static str,
    /// `null` beside tool calls without text: some servers refuse an empty text.
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> Wire<'a> {
    const fn plain(role: &'static str, text: &'a str) -> Self {
        let content = Some(Content { text, failed: false });
        Self { role, content, tool_calls: Vec::new(), tool_call_id: None }
    }
}

impl<'a> From<&'a Message> for Wire<'a> {
    fn from(message: &'a Message) -> Self {
        match message {
            Message::User(said) => Self::plain("user", &said.text),
            // Its reasoning stays here: this API has no field to take it back.
            Message::Assistant(said) => {
                let mut wire = Self::plain("assistant", &said.text);
                wire.tool_calls = said.tool_calls.iter().map(Call::from).collect();
                if said.text.is_empty() && !wire.tool_calls.is_empty() {
                    wire.content = None;
                }
                wire
            }
            Message::Tool(ToolResult { call_id, text, ok, .. }) => Self {
                role: "tool",
                content: Some(Content { text, failed: !ok }),
                tool_calls: Vec::new(),
                tool_call_id: Some(call_id),
            },
        }
    }
}

/// A text; that of a failed tool says so, since the API has no field for it.
struct Content<'a> {
    text: &'a str,
    failed: bool,
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.failed {
            serializer.collect_str(&format_args!("[tool error] {}", self.text))
        } else {
            serializer.serialize_str(self.text)
        }
    }
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> From<&'a ToolCall> for Call<'a> {
    fn from(call: &'a ToolCall) -> Self {
        let function = Function { name: &call.name, arguments: call.arguments.as_json() };
        Self { id: &call.id, r#type: "function", function }
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> From<&'a ToolDefinition> for Tool<'a> {
    fn from(tool: &'a ToolDefinition) -> Self {
        let function = ToolFunction {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.input_schema,
        };
        Self { r#type: "function", function }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arguments, AssistantMessage};

    fn conversation() -> ChatRequest {
        let call = |id: &str, arguments: &str| ToolCall {
            id: id.into(),
            name: "Read".into(),
            arguments: Arguments::parse(arguments.into()),
        };
        let result = |id: &str, text: &str, ok| {
            Message::Tool(ToolResult {
                call_id: id.into(),
                name: "Read".into(),
                text: text.into(),
                images: Vec::new(),
                ok,
            })
        };
        let mut request = ChatRequest::new("m")
            .with_message(Message::User("hi \"there\"".into()))
            .with_message(Message::Assistant(AssistantMessage {
                text: String::new(),
                reasoning: "never sent back".into(),
                tool_calls: vec![call("a", r#"{"path": "x"}"#), call("b", r#"{"pa"#)],
                native: None,
            }))
            .with_message(result("a", "content", true))
            .with_message(result("b", "no such\nfile", false))
            .with_message(Message::Assistant(AssistantMessage {
                text: "done".into(),
                ..AssistantMessage::default()
            }));
        request.system = Some("be brief".into());
        request.session_id = Some("s-1".into());
        request.max_output_tokens = Some(100);
        request.temperature = Some(0.5);
        request.tools = vec![ToolDefinition {
            name: "Read".into(),
            description: "Reads a file.".into(),
            input_schema: serde_json::json!({"type": "object"}),
        }];
        request
    }

    fn value(options: Options, host: &str) -> Value {
        serde_json::from_slice(&body(&conversation(), options, host).unwrap()).unwrap()
    }

    #[test]
    fn a_conversation_is_written_in_the_words_of_the_api() {
        insta::assert_json_snapshot!(value(Options::default(), "localhost"));
    }

    #[test]
    fn the_session_id_goes_only_where_it_is_known_to_be_taken() {
        let key = |affinity, host| {
            let options = Options { affinity, ..Options::default() };
            value(options, host).get("prompt_cache_key").cloned()
        };
        assert_eq!(key(Affinity::ByHost, "api.openai.com"), Some("s-1".into()));
        assert_eq!(key(Affinity::ByHost, "api.openai.com.example.org"), None);
        assert_eq!(key(Affinity::PromptCacheKey, "localhost"), Some("s-1".into()));
        assert_eq!(key(Affinity::Off, "api.openai.com"), None);
    }

    #[test]
    fn the_limit_goes_into_one_field() {
        let field = MaxTokensField::MaxCompletionTokens;
        let written = value(Options { max_tokens: field, ..Options::default() }, "x");
        assert_eq!(written["max_completion_tokens"], 100);
        assert_eq!(written.get("max_tokens"), None);
    }
}
