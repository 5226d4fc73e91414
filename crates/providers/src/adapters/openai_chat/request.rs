//! A request in the words of Chat Completions.

mod messages;

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use turnbuckle_errors::ErrorCode;

use self::messages::Messages;
use crate::{
    ChatRequest, ToolChoice, ToolDefinition,
    adapters::settings::cache_key,
    profiles::{AnswerSchema, EffortField, MaxTokensField, Profile, ToolIds},
    rendering::{Fields, Key},
    schema::{self, BadSchema},
    tool_list::WrittenFor,
};

/// The dialect, in what is kept of a conversation that was written.
const DIALECT: &str = "openai-chat";

/// Why this API cannot be asked this.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error("the tool `{0}` cannot be sent: {1}")]
    Tool(String, BadSchema),
    #[error("the tool choice names `{0}`, which is none of the request's tools; add it to them")]
    Choice(String),
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
pub(super) fn body(request: &ChatRequest, profile: &Profile, host: &str) -> Result<Bytes, Unfit> {
    let by = WrittenFor { dialect: DIALECT, marked: false };
    let tools = request.tools.written(by, tools)?;
    if let ToolChoice::Named(name) = &request.tool_choice
        && !request.tools.iter().any(|tool| tool.name == *name)
        // The host's own tools are declared there.
        && !request.extra_body.contains_key("tools")
    {
        return Err(Unfit::Choice(name.clone()));
    }
    if let Some(format) = &request.response_format {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if !(1..=64).contains(&format.name.len()) || !format.name.bytes().all(plain) {
            return Err(Unfit::FormatName);
        }
        schema::of_arguments(&format.schema).map_err(Unfit::Format)?;
    }
    let marks = profile.cache_markers && request.prompt_caching;
    let mut fields = Fields::new(&request.extra_body);
    fields.put("model", &request.model)?;
    fields.messages("messages", messages::system(request, profile))?;
    fields.put_written("tools", &tools)?;
    // Without tools, OpenAI refuses what is said about them.
    if !tools.is_empty() || fields.theirs("tools").is_some() {
        fields.put_some("tool_choice", tool_choice(&request.tool_choice))?;
        fields.put_some("parallel_tool_calls", request.parallel_tool_calls)?;
    }
    fields.put_some(cap_field(profile), request.max_output_tokens)?;
    fields.put_some("temperature", request.temperature)?;
    fields.put_some("stop", (!request.stop.is_empty()).then_some(&request.stop))?;
    let effort = request.reasoning_effort.as_deref();
    match profile.effort {
        EffortField::ReasoningEffort => fields.put_some("reasoning_effort", effort)?,
        EffortField::ReasoningObject => {
            fields.put_some("reasoning", effort.map(|effort| json!({ "effort": effort })))?;
        }
    }
    fields.put_some("response_format", response_format(request, profile))?;
    fields.put("stream", &true)?;
    let options = profile.usage_in_stream.then(|| json!({ "include_usage": true }));
    fields.put_some("stream_options", options)?;
    let cache_key = cache_key(request.session_id.as_deref(), profile.affinity, host);
    fields.put_some("prompt_cache_key", cache_key)?;
    let key = Key {
        dialect: DIALECT,
        server: profile.name,
        model: request.model.clone(),
        options: [profile.wants_reasoning_back, profile.tool_ids == ToolIds::Any, marks],
    };
    let messages = Messages::of(request, profile, marks);
    Ok(fields.end(&[])?.around(&request.messages, key, &messages)?)
}

/// The tools as a list; nothing if there are none.
fn tools(tools: &[ToolDefinition]) -> Result<Vec<u8>, Unfit> {
    let tools = tools.iter().map(|tool| {
        let parameters = schema::of_arguments(&tool.input_schema)
            .map_err(|bad| Unfit::Tool(tool.name.clone(), bad))?;
        let (name, description) = (&tool.name, &tool.description);
        Ok(Tool { r#type: "function", function: ToolFunction { name, description, parameters } })
    });
    let tools = tools.collect::<Result<Vec<_>, Unfit>>()?;
    if tools.is_empty() {
        return Ok(Vec::new());
    }
    Ok(serde_json::to_vec(&tools)?)
}

fn response_format(request: &ChatRequest, profile: &Profile) -> Option<Value> {
    let format = request.response_format.as_ref()?;
    Some(match profile.answer_schema {
        AnswerSchema::Schema => json!({
            "type": "json_schema",
            "json_schema": { "name": format.name, "schema": format.schema, "strict": true },
        }),
        AnswerSchema::ObjectOnly => json!({ "type": "json_object" }),
    })
}

const fn cap_field(profile: &Profile) -> &'static str {
    match profile.output_cap {
        MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        // The third is no field of this dialect.
        MaxTokensField::MaxTokens | MaxTokensField::MaxOutputTokens => "max_tokens",
    }
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => {
            Some(json!({ "type": "function", "function": { "name": name } }))
        }
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
    parameters: Cow<'a, Value>,
}

#[cfg(test)]
mod tests;
