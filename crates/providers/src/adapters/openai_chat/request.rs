//! A request in the words of Chat Completions.

mod messages;

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};
use turnbuckle_errors::ErrorCode;

use self::messages::Messages;
use crate::{
    ChatRequest, ToolChoice,
    profiles::{Affinity, AnswerSchema, EffortField, MaxTokensField, Profile},
    schema::{self, BadSchema},
};

/// The host that is known to take `prompt_cache_key`.
const OPENAI: &str = "api.openai.com";

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
    let tools = request.tools.iter().map(|tool| {
        let parameters = schema::of_arguments(&tool.input_schema)
            .map_err(|bad| Unfit::Tool(tool.name.clone(), bad))?;
        let (name, description) = (&tool.name, &tool.description);
        Ok(Tool { r#type: "function", function: ToolFunction { name, description, parameters } })
    });
    let tools = tools.collect::<Result<Vec<_>, Unfit>>()?;
    if let ToolChoice::Named(name) = &request.tool_choice
        && !request.tools.iter().any(|tool| tool.name == *name)
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
    let by_host = profile.affinity == Affinity::ByHost && host == OPENAI;
    let keyed = by_host || profile.affinity == Affinity::PromptCacheKey;
    let body = Body { request, profile, tools, keyed };
    Ok(Bytes::from(serde_json::to_vec(&body)?))
}

struct Body<'a> {
    request: &'a ChatRequest,
    profile: &'a Profile,
    tools: Vec<Tool<'a>>,
    keyed: bool,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, profile, .. } = self;
        let map = serializer.serialize_map(None)?;
        let mut fields = Fields { map, replaced: &request.extra_body };
        fields.put("model", Some(&request.model))?;
        fields.put("messages", Some(Messages { request, profile }))?;
        let tools = (!self.tools.is_empty()).then_some(&self.tools);
        fields.put("tools", tools)?;
        // Without tools, OpenAI refuses what is said about them.
        fields.put("tool_choice", tools.and(tool_choice(&request.tool_choice)))?;
        fields.put("parallel_tool_calls", tools.and(request.parallel_tool_calls))?;
        fields.put(cap_field(profile), request.max_output_tokens)?;
        fields.put("temperature", request.temperature)?;
        fields.put("stop", (!request.stop.is_empty()).then_some(&request.stop))?;
        let effort = request.reasoning_effort.as_deref();
        match profile.effort {
            EffortField::ReasoningEffort => fields.put("reasoning_effort", effort)?,
            EffortField::ReasoningObject => {
                fields.put("reasoning", effort.map(|effort| json!({ "effort": effort })))?;
            }
        }
        fields.put("response_format", self.response_format())?;
        fields.put("stream", Some(true))?;
        let options = profile.usage_in_stream.then(|| json!({ "include_usage": true }));
        fields.put("stream_options", options)?;
        let key = request.session_id.as_deref().filter(|_| self.keyed);
        fields.put("prompt_cache_key", key)?;
        fields.end()
    }
}

impl Body<'_> {
    fn response_format(&self) -> Option<Value> {
        let format = self.request.response_format.as_ref()?;
        Some(match self.profile.answer_schema {
            AnswerSchema::Schema => json!({
                "type": "json_schema",
                "json_schema": { "name": format.name, "schema": format.schema, "strict": true },
            }),
            AnswerSchema::ObjectOnly => json!({ "type": "json_object" }),
        })
    }
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

/// The fields of the body. The host's own come last, and win over ours.
struct Fields<'a, M> {
    map: M,
    replaced: &'a Map<String, Value>,
}

impl<M: SerializeMap> Fields<'_, M> {
    fn put(&mut self, name: &str, value: Option<impl Serialize>) -> Result<(), M::Error> {
        match value {
            Some(value) if !self.replaced.contains_key(name) => {
                self.map.serialize_entry(name, &value)
            }
            _ => Ok(()),
        }
    }

    fn end(mut self) -> Result<M::Ok, M::Error> {
        for (name, value) in self.replaced {
            self.map.serialize_entry(name, value)?;
        }
        self.map.end()
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
