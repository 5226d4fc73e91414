//! A request in the words of Chat Completions.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::{Map, Value, json};
use turnbuckle_errors::ErrorCode;

use crate::{
    AssistantMessage, ChatRequest, Image, Message, ToolCall, ToolChoice, ToolResult, UserMessage,
    profiles::{Affinity, AnswerSchema, EffortField, MaxTokensField, Profile, ToolIds},
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

/// The system prompt, then the conversation.
struct Messages<'a> {
    request: &'a ChatRequest,
    profile: &'a Profile,
}

impl<'a> Messages<'a> {
    fn system(&self) -> Option<Cow<'a, str>> {
        let said = self.request.system.as_deref().filter(|text| !text.is_empty());
        let format = self.request.response_format.as_ref();
        match format.filter(|_| self.profile.answer_schema == AnswerSchema::ObjectOnly) {
            None => said.map(Cow::Borrowed),
            Some(format) => {
                let said = said.map(|said| format!("{said}\n\n")).unwrap_or_default();
                Some(Cow::Owned(format!(
                    "{said}Answer with one JSON object and nothing else. It has to follow this \
                     JSON schema:\n{}",
                    format.schema
                )))
            }
        }
    }

    /// The user message at which a cache may end, where one has to be marked.
    fn marked(&self) -> Option<usize> {
        let marks = self.marks();
        let is_user = |message: &Message| matches!(message, Message::User(_));
        self.request.messages.iter().rposition(is_user).filter(|_| marks)
    }

    const fn marks(&self) -> bool {
        self.profile.cache_markers && self.request.prompt_caching
    }
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        if let Some(text) = self.system() {
            list.serialize_element(&Wire::of("system", Content::text(text, self.marks())))?;
        }
        let marked = self.marked();
        let mut results: Vec<&ToolResult> = Vec::new();
        for (at, message) in self.request.messages.iter().enumerate() {
            if !matches!(message, Message::Tool(_)) {
                images_of_results(&mut list, &mut results)?;
            }
            match message {
                Message::User(said) => list.serialize_element(&user(said, marked == Some(at)))?,
                Message::Assistant(said) => {
                    list.serialize_element(&assistant(said, self.profile))?;
                }
                Message::Tool(result) => {
                    results.extend((!result.images.is_empty()).then_some(result));
                    list.serialize_element(&tool(result, self.profile))?;
                }
            }
        }
        images_of_results(&mut list, &mut results)?;
        list.end()
    }
}

/// The tool role takes text alone, so images go into a user message after the
/// results, which says whose they are.
fn images_of_results<L: SerializeSeq>(
    list: &mut L,
    results: &mut Vec<&ToolResult>,
) -> Result<(), L::Error> {
    if results.is_empty() {
        return Ok(());
    }
    let mut parts = Vec::new();
    for result in results.drain(..) {
        let text = format!("Images in the result of {} (call {}):", result.name, result.call_id);
        parts.push(Part::text(text.into(), false));
        parts.extend(result.images.iter().map(Part::image));
    }
    list.serialize_element(&Wire::of("user", Content::Parts(parts)))
}

fn user(said: &UserMessage, marked: bool) -> Wire<'_> {
    if said.images.is_empty() {
        return Wire::of("user", Content::text(Cow::Borrowed(&said.text), marked));
    }
    let mut parts: Vec<Part<'_>> = said.images.iter().map(Part::image).collect();
    if !said.text.is_empty() {
        parts.push(Part::text(Cow::Borrowed(&said.text), marked));
    }
    Wire::of("user", Content::Parts(parts))
}

fn assistant<'a>(said: &'a AssistantMessage, profile: &Profile) -> Wire<'a> {
    let text = Content::text(Cow::Borrowed(&said.text), false);
    let mut wire = Wire::of("assistant", text);
    wire.tool_calls = said.tool_calls.iter().map(|call| Call::of(call, profile)).collect();
    if !wire.tool_calls.is_empty() {
        if said.text.is_empty() {
            wire.content = None;
        }
        // Elsewhere the reasoning stays here: the API has no field to take it back.
        let wanted = profile.wants_reasoning_back && !said.reasoning.is_empty();
        wire.reasoning_content = wanted.then_some(&said.reasoning);
    }
    wire
}

fn tool<'a>(result: &'a ToolResult, profile: &Profile) -> Wire<'a> {
    let text = match (result.text.as_str(), result.images.len()) {
        ("", 1..) => "(images alone; they follow in the next message)",
        (text, _) => text,
    };
    let content = match result.ok {
        true => Content::text(Cow::Borrowed(text), false),
        false => Content::Failed(text),
    };
    let id = Some(id(&result.call_id, profile.tool_ids));
    Wire { tool_call_id: id, ..Wire::of("tool", content) }
}

#[derive(Serialize)]
struct Wire<'a> {
    role: &'static str,
    /// `null` beside tool calls without text: some servers refuse an empty text.
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
}

impl<'a> Wire<'a> {
    const fn of(role: &'static str, content: Content<'a>) -> Self {
        Self {
            role,
            content: Some(content),
            reasoning_content: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }
}

enum Content<'a> {
    Text(Cow<'a, str>),
    /// The text of a tool that failed, which says so: the API has no field for it.
    Failed(&'a str),
    Parts(Vec<Part<'a>>),
}

impl<'a> Content<'a> {
    fn text(text: Cow<'a, str>, marked: bool) -> Self {
        match marked && !text.is_empty() {
            true => Self::Parts(vec![Part::text(text, true)]),
            false => Self::Text(text),
        }
    }
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Failed(text) => serializer.collect_str(&format_args!("[tool error] {text}")),
            Self::Parts(parts) => parts.serialize(serializer),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Marker>,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
    },
}

#[derive(Serialize)]
struct Marker {
    r#type: &'static str,
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: DataUri<'a>,
}

impl<'a> Part<'a> {
    fn text(text: Cow<'a, str>, marked: bool) -> Self {
        Self::Text { text, cache_control: marked.then_some(Marker { r#type: "ephemeral" }) }
    }

    const fn image(image: &'a Image) -> Self {
        Self::ImageUrl { image_url: ImageUrl { url: DataUri(image) } }
    }
}

/// An image as a URL, written without a copy of its own.
struct DataUri<'a>(&'a Image);

impl fmt::Display for DataUri<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data:{};base64,{}", self.0.media_type, self.0.base64)
    }
}

impl Serialize for DataUri<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> Call<'a> {
    fn of(call: &'a ToolCall, profile: &Profile) -> Self {
        let function = Function { name: &call.name, arguments: call.arguments.as_json() };
        Self { id: id(&call.id, profile.tool_ids), r#type: "function", function }
    }
}

/// The id of a call as the server takes it; always the same for the same id.
fn id(id: &str, taken: ToolIds) -> Cow<'_, str> {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let fits = id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric());
    if taken == ToolIds::Any || fits {
        return Cow::Borrowed(id);
    }
    // FNV-1a: nine letters hold most of its 64 bits.
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut letters = String::with_capacity(9);
    for _ in 0..9 {
        let at = usize::try_from(hash % 62).unwrap_or_default();
        letters.push(char::from(LETTERS.get(at).copied().unwrap_or(b'0')));
        hash /= 62;
    }
    Cow::Owned(letters)
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
