//! A request in the words of Responses.

mod input;

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use turnbuckle_errors::ErrorCode;

use self::input::Input;
use super::{DIALECT, EncryptedReasoning, Options, strict::is_strict};
use crate::{
    ChatRequest, ToolChoice, ToolDefinition,
    adapters::settings::cache_key,
    rendering::{Fields, Key},
    schema::{self, BadSchema},
    tool_list::WrittenFor,
};

/// Why this API cannot be asked this.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error("the tool `{0}` cannot be sent: {1}")]
    Tool(String, BadSchema),
    #[error("the tool choice names `{0}`, which is none of the request's tools; add it to them")]
    Choice(String),
    #[error(
        "this API knows no stop texts; leave `stop` empty, or give a gateway its own field \
         through `extra_body`"
    )]
    Stop,
    #[error("the response format's name must be 1 to 64 letters, digits, `_` or `-`")]
    FormatName,
    #[error("the response format cannot be sent: {0}")]
    Format(BadSchema),
    #[error("the request could not be written as JSON")]
    Unwritable(#[from] serde_json::Error),
}

impl Unfit {
    pub(super) const fn code(&self) -> ErrorCode {
        match self {
            Self::Unwritable(_) => ErrorCode::Internal,
            _ => ErrorCode::InvalidRequest,
        }
    }
}

/// Writes the body of a streaming request. Equal requests give equal bytes.
///
/// # Errors
///
/// What the request holds that this API cannot take.
pub(super) fn body(request: &ChatRequest, options: &Options, host: &str) -> Result<Bytes, Unfit> {
    let by = WrittenFor { dialect: DIALECT, marked: false };
    let tools = request.tools.written(by, tools)?;
    if let ToolChoice::Named(name) = &request.tool_choice
        && !request.tools.iter().any(|tool| tool.name == *name)
        // A tool of the server's own, or a custom one, is declared there.
        && !request.extra_body.contains_key("tools")
    {
        return Err(Unfit::Choice(name.clone()));
    }
    if !request.stop.is_empty() {
        return Err(Unfit::Stop);
    }
    if let Some(format) = &request.response_format {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if !(1..=64).contains(&format.name.len()) || !format.name.bytes().all(plain) {
            return Err(Unfit::FormatName);
        }
        schema::of_arguments(&format.schema).map_err(Unfit::Format)?;
    }
    let mut fields = Fields::new(&request.extra_body);
    fields.put("model", &request.model)?;
    fields.put_some("instructions", request.system.as_deref().filter(|text| !text.is_empty()))?;
    fields.messages("input", None::<()>)?;
    fields.put_written("tools", &tools)?;
    // Without tools, OpenAI refuses what is said about them.
    if !tools.is_empty() || fields.theirs("tools").is_some() {
        fields.put_some("tool_choice", Choice::of(&request.tool_choice))?;
        fields.put_some("parallel_tool_calls", request.parallel_tool_calls)?;
    }
    fields.put_some("max_output_tokens", request.max_output_tokens)?;
    fields.put_some("temperature", request.temperature)?;
    let effort = request.reasoning_effort.as_deref();
    let summary = options.reasoning_summary.as_deref();
    // Models that do not reason refuse the field, even when it is empty.
    let reasoning =
        (effort.is_some() || summary.is_some()).then_some(Reasoning { effort, summary });
    fields.put_some("reasoning", reasoning)?;
    fields.put_some("text", request.response_format.as_ref().map(Format::of))?;
    fields.put("stream", &true)?;
    // The history is ours; what the server would store, nobody asks for again.
    fields.put("store", &false)?;
    let encrypted = match options.encrypted_reasoning {
        EncryptedReasoning::ByModel => !never_reasons(&request.model),
        EncryptedReasoning::Always => true,
        EncryptedReasoning::Never => false,
    };
    fields.put_some("include", encrypted.then_some(["reasoning.encrypted_content"]))?;
    fields.put_some(
        "prompt_cache_key",
        cache_key(request.session_id.as_deref(), options.affinity, host),
    )?;
    let model = request.model.clone();
    let key = Key { dialect: DIALECT, server: "", model, options: [false; 3] };
    Ok(fields.end(&[])?.around(&request.messages, key, &Input(&request.model))?)
}

/// The tools as a list; nothing if there are none.
fn tools(tools: &[ToolDefinition]) -> Result<Vec<u8>, Unfit> {
    let tools = tools.iter().map(Tool::of).collect::<Result<Vec<_>, Unfit>>()?;
    if tools.is_empty() {
        return Ok(Vec::new());
    }
    Ok(serde_json::to_vec(&tools)?)
}

/// Models of OpenAI from before it had any that reason, whoever serves them.
fn never_reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    ["gpt-4", "gpt-3.5", "chatgpt-", "gpt-5-chat"].iter().any(|known| name.starts_with(known))
}

#[derive(Serialize)]
struct Reasoning<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Word(&'static str),
    Tool { r#type: &'static str, name: &'a str },
}

impl<'a> Choice<'a> {
    fn of(choice: &'a ToolChoice) -> Option<Self> {
        Some(match choice {
            ToolChoice::Auto => return None,
            ToolChoice::None => Self::Word("none"),
            ToolChoice::Required => Self::Word("required"),
            ToolChoice::Named(name) => Self::Tool { r#type: "function", name },
        })
    }
}

#[derive(Serialize)]
struct Format<'a> {
    format: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    r#type: &'static str,
    name: &'a str,
    schema: &'a Value,
    /// Strict mode refuses any schema that leaves something open.
    strict: bool,
}

impl<'a> Format<'a> {
    fn of(format: &'a crate::ResponseFormat) -> Self {
        let strict = is_strict(&format.schema);
        let format = JsonSchema {
            r#type: "json_schema",
            name: &format.name,
            schema: &format.schema,
            strict,
        };
        Self { format }
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
    /// This API is strict unless told otherwise, and then makes every argument required.
    strict: bool,
}

impl<'a> Tool<'a> {
    fn of(tool: &'a ToolDefinition) -> Result<Self, Unfit> {
        let mut parameters = schema::of_arguments(&tool.input_schema)
            .map_err(|bad| Unfit::Tool(tool.name.clone(), bad))?;
        // OpenAI refuses a root that does not say that it is an object.
        if parameters.get("type").is_none()
            && let Value::Object(root) = parameters.to_mut()
        {
            root.insert("type".to_owned(), "object".into());
        }
        let (name, description) = (&tool.name, &tool.description);
        Ok(Self { r#type: "function", name, description, parameters, strict: false })
    }
}

#[cfg(test)]
mod tests;
