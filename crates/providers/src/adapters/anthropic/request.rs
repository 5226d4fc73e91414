//! A request in the words of the Messages API.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::{
    Affinity, DIALECT, Options,
    conversation::{Block, Mark, Turns},
    schema::{self, Refused},
    thinking::{asked, default_limit},
};
use crate::{
    ChatRequest, ToolChoice, ToolDefinition,
    rendering::{Fields, Key},
    tool_list::WrittenFor,
};

/// The host that is known to take `metadata.user_id`.
const ANTHROPIC: &str = "api.anthropic.com";

/// Writes the body of a streaming request. Equal requests give equal bytes.
///
/// # Errors
///
/// [`Refused`] names what the API would not take.
pub(super) fn body(request: &ChatRequest, options: Options, host: &str) -> Result<Bytes, Refused> {
    let system = request.system.as_deref().filter(|text| !text.trim().is_empty());
    // Without a system prompt the last of the tools carries the cache marker.
    let by = WrittenFor { dialect: DIALECT, marked: request.prompt_caching && system.is_none() };
    let tools = request.tools.written(by, |list| tools(list, by.marked))?;
    if let ToolChoice::Named(name) = &request.tool_choice
        && !request.tools.iter().any(|tool| tool.name == *name)
        // A tool of the server's own is declared there.
        && !request.extra_body.contains_key("tools")
    {
        return Err(Refused::Choice(name.clone()));
    }
    if let Some(format) = &request.response_format {
        schema::check_format(format)?;
    }
    let limit = request
        .max_output_tokens
        .or(options.default_limit)
        .unwrap_or_else(|| default_limit(&request.model));
    let forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
    let thinking = match request.reasoning_effort.as_deref() {
        Some(effort) if !effort.is_empty() => asked(effort, &request.model, limit, forced)?,
        _ => super::thinking::Asked::default(),
    };
    written(request, options, host, &Prepared { system, tools: &tools, limit, thinking })
        .map_err(|_| Refused::Json)
}

/// What a request comes to in this API.
struct Prepared<'a> {
    system: Option<&'a str>,
    tools: &'a [u8],
    limit: u32,
    thinking: super::thinking::Asked<'a>,
}

fn written(
    request: &ChatRequest,
    options: Options,
    host: &str,
    prepared: &Prepared<'_>,
) -> serde_json::Result<Bytes> {
    let Prepared { system, tools, limit, thinking } = *prepared;
    let mut fields = Fields::new(&request.extra_body);
    fields.put("model", &request.model)?;
    fields.put("max_tokens", &limit)?;
    fields.put("stream", &true)?;
    match request.prompt_caching {
        true => fields.put_some("system", system.map(|text| [Block::marked_text(text)]))?,
        false => fields.put_some("system", system)?,
    }
    fields.put_written("tools", tools)?;
    let offered = !tools.is_empty() || fields.theirs("tools").is_some();
    fields.put_some("tool_choice", choice(request).filter(|_| offered))?;
    fields.put_some("temperature", request.temperature)?;
    fields.put_some("stop_sequences", (!request.stop.is_empty()).then_some(&request.stop))?;
    fields.put_some("thinking", thinking.thinking)?;
    let format = request
        .response_format
        .as_ref()
        .map(|format| Format { r#type: "json_schema", schema: &format.schema });
    let output = OutputConfig { effort: thinking.effort, format };
    let says = output.effort.is_some() || output.format.is_some();
    fields.put_some("output_config", says.then_some(output))?;
    let named = match options.affinity {
        Affinity::ByHost => host == ANTHROPIC,
        Affinity::UserId => true,
        Affinity::Header(_) | Affinity::Off => false,
    };
    let user_id = request.session_id.as_deref().filter(|_| named);
    fields.put_some("metadata", user_id.map(|user_id| Metadata { user_id }))?;
    fields.messages("messages", None::<()>)?;
    let (model, marks) = (request.model.clone(), request.prompt_caching);
    let key = Key { dialect: DIALECT, server: "", model, options: [marks, false, false] };
    let turns = Turns { model: &request.model, marks };
    fields.end(&[])?.around(&request.messages, key, &turns)
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

/// The tools as a list, the last of them marked if it has to be; nothing if there are
/// none.
fn tools(tools: &[ToolDefinition], marked: bool) -> Result<Vec<u8>, Refused> {
    let described = tools.iter().zip(schema::checked(tools)?);
    let mut tools: Vec<_> = described
        .map(|(tool, input_schema)| Tool {
            name: &tool.name,
            description: &tool.description,
            input_schema,
            cache_control: None,
        })
        .collect();
    let Some(last) = tools.last_mut() else { return Ok(Vec::new()) };
    last.cache_control = marked.then_some(Mark::Ephemeral);
    serde_json::to_vec(&tools).map_err(|_| Refused::Json)
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
