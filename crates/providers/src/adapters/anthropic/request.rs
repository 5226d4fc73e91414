//! A request in the words of the Messages API.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use super::{
    Affinity, Options,
    conversation::{Block, turns},
    schema::{self, Refused},
    thinking::{asked, default_limit},
};
use crate::{ChatRequest, ToolChoice};

/// The host that is known to take `metadata.user_id`.
const ANTHROPIC: &str = "api.anthropic.com";

/// Writes the body of a streaming request. Equal requests give equal bytes.
///
/// # Errors
///
/// [`Refused`] names what the API would not take.
pub(super) fn body(request: &ChatRequest, options: Options, host: &str) -> Result<Bytes, Refused> {
    let schemas = schema::checked(request)?;
    let limit = request
        .max_output_tokens
        .or(options.default_limit)
        .unwrap_or_else(|| default_limit(&request.model));
    let forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
    let asked = match request.reasoning_effort.as_deref() {
        Some(effort) if !effort.is_empty() => asked(effort, &request.model, limit, forced)?,
        _ => super::thinking::Asked::default(),
    };
    let named = match options.affinity {
        Affinity::ByHost => host == ANTHROPIC,
        Affinity::UserId => true,
        Affinity::Off => false,
    };
    let tools = tools(request, schemas);
    let body = Body {
        extra: &request.extra_body,
        model: &request.model,
        max_tokens: limit,
        system: request.system.as_deref().filter(|text| !text.trim().is_empty()),
        messages: turns(request),
        tool_choice: choice(request).filter(|_| !tools.is_empty()),
        tools,
        temperature: request.temperature,
        stop_sequences: &request.stop,
        thinking: asked.thinking,
        output_config: OutputConfig {
            effort: asked.effort,
            format: request
                .response_format
                .as_ref()
                .map(|format| Format { r#type: "json_schema", schema: &format.schema }),
        },
        user_id: request.session_id.as_deref().filter(|_| named),
        caching: request.prompt_caching,
    };
    serde_json::to_vec(&body).map(Bytes::from).map_err(|_| Refused::Json)
}

struct Body<'a> {
    extra: &'a Map<String, Value>,
    model: &'a str,
    max_tokens: u32,
    system: Option<&'a str>,
    messages: Vec<super::conversation::Turn<'a>>,
    tools: Vec<Tool<'a>>,
    tool_choice: Option<Choice<'a>>,
    temperature: Option<f32>,
    stop_sequences: &'a [String],
    thinking: Option<super::thinking::Thinking>,
    output_config: OutputConfig<'a>,
    user_id: Option<&'a str>,
    caching: bool,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Fields { map: serializer.serialize_map(None)?, extra: self.extra };
        fields.put("model", self.model)?;
        fields.put("max_tokens", &self.max_tokens)?;
        fields.put("stream", &true)?;
        if let Some(text) = self.system {
            match self.caching {
                true => fields.put("system", &[Block::marked_text(text)])?,
                false => fields.put("system", text)?,
            }
        }
        if !self.tools.is_empty() {
            fields.put("tools", &self.tools)?;
        }
        fields.some("tool_choice", self.tool_choice.as_ref())?;
        fields.some("temperature", self.temperature.as_ref())?;
        if !self.stop_sequences.is_empty() {
            fields.put("stop_sequences", self.stop_sequences)?;
        }
        fields.some("thinking", self.thinking.as_ref())?;
        if self.output_config.effort.is_some() || self.output_config.format.is_some() {
            fields.put("output_config", &self.output_config)?;
        }
        if let Some(user_id) = self.user_id {
            fields.put("metadata", &Metadata { user_id })?;
        }
        fields.put("messages", &self.messages)?;
        for (name, value) in self.extra {
            fields.map.serialize_entry(name, value)?;
        }
        fields.map.end()
    }
}

/// Writes the fields that the host does not set itself.
struct Fields<'a, M> {
    map: M,
    extra: &'a Map<String, Value>,
}

impl<M: SerializeMap> Fields<'_, M> {
    fn put<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), M::Error> {
        if self.extra.contains_key(name) {
            return Ok(());
        }
        self.map.serialize_entry(name, value)
    }

    fn some<T: Serialize>(&mut self, name: &str, value: Option<&T>) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.put(name, value))
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<super::conversation::Mark>,
}

/// The tools. Without a system prompt the last of them carries the cache marker.
fn tools<'a>(request: &'a ChatRequest, schemas: Vec<Cow<'a, Value>>) -> Vec<Tool<'a>> {
    let described = request.tools.iter().zip(schemas);
    let mut tools: Vec<_> = described
        .map(|(tool, input_schema)| Tool {
            name: &tool.name,
            description: &tool.description,
            input_schema,
            cache_control: None,
        })
        .collect();
    let no_system = request.system.as_deref().is_none_or(|text| text.trim().is_empty());
    if let (true, true, Some(last)) = (request.prompt_caching, no_system, tools.last_mut()) {
        last.cache_control = Some(super::conversation::Mark::Ephemeral);
    }
    tools
}

#[derive(Serialize)]
struct Choice<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disable_parallel_tool_use: bool,
}

fn choice(request: &ChatRequest) -> Option<Choice<'_>> {
    let alone = request.parallel_tool_calls == Some(false);
    let (kind, name) = match &request.tool_choice {
        ToolChoice::Auto if alone => ("auto", None),
        ToolChoice::Auto => return None,
        // It has no field for parallel calls: there are none.
        ToolChoice::None => {
            return Some(Choice { r#type: "none", name: None, disable_parallel_tool_use: false });
        }
        ToolChoice::Required => ("any", None),
        ToolChoice::Named(name) => ("tool", Some(name.as_str())),
    };
    Some(Choice { r#type: kind, name, disable_parallel_tool_use: alone })
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    schema: &'a Value,
}

#[derive(Serialize)]
struct Metadata<'a> {
    user_id: &'a str,
}

#[cfg(test)]
mod tests;
