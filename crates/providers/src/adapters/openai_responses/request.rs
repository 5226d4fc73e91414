//! A request in the words of Responses.

use std::{borrow::Cow, collections::HashSet};

use bytes::Bytes;
use serde::{
    Deserialize, Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::{Map, Value, value::RawValue};
use turnbuckle_errors::ErrorCode;

use super::{DIALECT, EncryptedReasoning, Options, strict::is_strict};
use crate::{
    AssistantMessage, ChatRequest, Image, Message, ToolChoice, ToolDefinition, ToolResult,
    UserMessage,
    profiles::Affinity,
    schema::{self, BadSchema},
};

/// The host that is known to take `prompt_cache_key`.
const OPENAI: &str = "api.openai.com";
/// OpenAI refuses a longer `prompt_cache_key`.
const MAX_CACHE_KEY_CHARS: usize = 64;

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
    let tools = request.tools.iter().map(Tool::of).collect::<Result<Vec<_>, Unfit>>()?;
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
    let body = Body { request, options, host, tools };
    Ok(Bytes::from(serde_json::to_vec(&body)?))
}

struct Body<'a> {
    request: &'a ChatRequest,
    options: &'a Options,
    host: &'a str,
    tools: Vec<Tool<'a>>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, options, .. } = *self;
        let mut fields =
            Fields { map: serializer.serialize_map(None)?, extra: &request.extra_body };
        fields.put("model", &request.model)?;
        let system = request.system.as_deref().filter(|text| !text.is_empty());
        fields.put_some("instructions", system)?;
        fields.put("input", &Input(request))?;
        fields.put_some("tools", (!self.tools.is_empty()).then_some(&self.tools))?;
        fields.put_some("tool_choice", Choice::of(&request.tool_choice))?;
        fields.put_some("parallel_tool_calls", request.parallel_tool_calls)?;
        fields.put_some("max_output_tokens", request.max_output_tokens)?;
        fields.put_some("temperature", request.temperature)?;
        fields.put_some("reasoning", self.reasoning())?;
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
        fields.put_some("prompt_cache_key", self.cache_key())?;
        fields.end()
    }
}

impl Body<'_> {
    fn reasoning(&self) -> Option<Reasoning<'_>> {
        let effort = self.request.reasoning_effort.as_deref();
        let summary = self.options.reasoning_summary.as_deref();
        // Models that do not reason refuse the field, even when it is empty.
        (effort.is_some() || summary.is_some()).then_some(Reasoning { effort, summary })
    }

    fn cache_key(&self) -> Option<&str> {
        let keyed = match self.options.affinity {
            Affinity::ByHost => self.host == OPENAI,
            Affinity::PromptCacheKey => true,
            _ => false,
        };
        let id = self.request.session_id.as_deref().filter(|_| keyed)?;
        let end = id.char_indices().nth(MAX_CACHE_KEY_CHARS).map_or(id.len(), |(at, _)| at);
        id.get(..end)
    }
}

/// The fields of a body; those of the host win over ours.
struct Fields<'a, M> {
    map: M,
    extra: &'a Map<String, Value>,
}

impl<M: SerializeMap> Fields<'_, M> {
    fn put(&mut self, name: &str, value: &impl Serialize) -> Result<(), M::Error> {
        match self.extra.contains_key(name) {
            true => Ok(()),
            false => self.map.serialize_entry(name, value),
        }
    }

    fn put_some(&mut self, name: &str, value: Option<impl Serialize>) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.put(name, &value))
    }

    fn end(mut self) -> Result<M::Ok, M::Error> {
        for (name, value) in self.extra {
            self.map.serialize_entry(name, value)?;
        }
        self.map.end()
    }
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

/// The conversation as a list of items.
struct Input<'a>(&'a ChatRequest);

impl Serialize for Input<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut custom = HashSet::new();
        for message in &self.0.messages {
            match message {
                Message::User(said) => list.serialize_element(&Wire::user(said))?,
                Message::Assistant(said) => match native(said, &self.0.model) {
                    Some(parts) => {
                        for part in parts {
                            custom.extend(kind_and_call(part, "custom_tool_call"));
                            list.serialize_element(part)?;
                        }
                    }
                    None => rebuilt(said, &mut list)?,
                },
                Message::Tool(result) => {
                    list.serialize_element(&Wire::result(result, &custom))?;
                }
            }
        }
        list.end()
    }
}

/// The message's own parts, if they are this model's and still JSON.
fn native<'a>(said: &'a AssistantMessage, model: &str) -> Option<Vec<&'a RawValue>> {
    let parts = said.native_for(DIALECT, model)?;
    let raw = parts.iter().map(|part| serde_json::from_str(part).ok());
    let mut raw: Vec<&RawValue> = raw.collect::<Option<_>>()?;
    // OpenAI refuses reasoning that the limit cut off before what it led to.
    while raw.last().is_some_and(|part| kind_and_call(part, "reasoning").is_some()) {
        raw.pop();
    }
    (!raw.is_empty()).then_some(raw)
}

/// The id of the call that an item of this kind is, empty for what is no call.
fn kind_and_call(part: &RawValue, kind: &str) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Item {
        r#type: String,
        call_id: String,
    }
    // Most parts need not be read for that.
    if !part.get().contains(kind) {
        return None;
    }
    let item: Item = serde_json::from_str(part.get()).ok()?;
    (item.r#type == kind).then_some(item.call_id)
}

/// A message by its text and calls. Its reasoning stays here: without its opaque
/// parts no server of this API takes it back.
fn rebuilt<L: SerializeSeq>(said: &AssistantMessage, list: &mut L) -> Result<(), L::Error> {
    if !said.text.is_empty() {
        let content = vec![Part::OutputText { text: &said.text }];
        list.serialize_element(&Wire::Message { role: "assistant", content })?;
    }
    for call in &said.tool_calls {
        list.serialize_element(&Wire::FunctionCall {
            call_id: &call.id,
            name: &call.name,
            arguments: call.arguments.as_json(),
        })?;
    }
    Ok(())
}

/// An item that we write ourselves.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Wire<'a> {
    Message { role: &'static str, content: Vec<Part<'a>> },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: &'a str },
    FunctionCallOutput { call_id: &'a str, output: Output<'a> },
    CustomToolCallOutput { call_id: &'a str, output: Output<'a> },
}

impl<'a> Wire<'a> {
    fn user(said: &'a UserMessage) -> Self {
        let mut content: Vec<Part<'a>> = said.images.iter().map(Part::image).collect();
        if !said.text.is_empty() || content.is_empty() {
            content.push(Part::InputText { text: Told { text: &said.text, failed: false } });
        }
        Self::Message { role: "user", content }
    }

    fn result(result: &'a ToolResult, custom: &HashSet<String>) -> Self {
        let text = Told { text: &result.text, failed: !result.ok };
        let output = match result.images.as_slice() {
            [] => Output::Text(text),
            images => {
                let parts = std::iter::once(Part::InputText { text });
                Output::Parts(parts.chain(images.iter().map(Part::image)).collect())
            }
        };
        let call_id = &*result.call_id;
        match custom.contains(call_id) {
            true => Self::CustomToolCallOutput { call_id, output },
            false => Self::FunctionCallOutput { call_id, output },
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Told<'a>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText { text: Told<'a> },
    OutputText { text: &'a str },
    InputImage { image_url: DataUrl<'a> },
}

impl<'a> Part<'a> {
    const fn image(image: &'a Image) -> Self {
        Self::InputImage { image_url: DataUrl(image) }
    }
}

/// A text; that of a failed tool says so, since the API has no field for it.
struct Told<'a> {
    text: &'a str,
    failed: bool,
}

impl Serialize for Told<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.failed {
            true => serializer.collect_str(&format_args!("[tool error] {}", self.text)),
            false => serializer.serialize_str(self.text),
        }
    }
}

struct DataUrl<'a>(&'a Image);

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Image { media_type, base64 } = self.0;
        serializer.collect_str(&format_args!("data:{media_type};base64,{base64}"))
    }
}

#[cfg(test)]
mod tests;
