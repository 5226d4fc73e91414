//! The messages of a request.

use std::{borrow::Cow, fmt, mem, ops::Range};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::super::native::Kept;
use crate::{
    AssistantMessage, ChatRequest, History, Image, Message, ToolCall, ToolResult, UserMessage,
    profiles::{AnswerSchema, Profile, ToolIds},
    rendering::{Dialogue, element},
};

/// The system prompt, which is the first message.
pub(super) fn system(request: &ChatRequest, profile: &Profile) -> Option<impl Serialize> {
    let marked = profile.cache_markers && request.prompt_caching;
    let said = request.system.as_deref().filter(|text| !text.is_empty());
    let format = request.response_format.as_ref();
    let text = match format.filter(|_| profile.answer_schema == AnswerSchema::ObjectOnly) {
        None => said.map(Cow::Borrowed),
        Some(format) => {
            let said = said.map(|said| format!("{said}\n\n")).unwrap_or_default();
            Some(Cow::Owned(format!(
                "{said}Answer with one JSON object and nothing else. It has to follow this \
                 JSON schema:\n{}",
                format.schema
            )))
        }
    };
    text.map(|text| Wire::of("system", Content::text(text, marked)))
}

/// The messages of the conversation.
pub(super) struct Messages<'a> {
    profile: &'a Profile,
    model: &'a str,
    /// The user message at which a cache may end, where one has to be marked.
    marked: Option<usize>,
}

impl<'a> Messages<'a> {
    pub(super) fn of(request: &'a ChatRequest, profile: &'a Profile, marks: bool) -> Self {
        let is_user = |message: &Message| matches!(message, Message::User(_));
        let marked = request.messages.iter().rposition(is_user).filter(|_| marks);
        Self { profile, model: &request.model, marked }
    }
}

impl Dialogue for Messages<'_> {
    fn marked_from(&self, history: &History) -> usize {
        self.marked.unwrap_or_else(|| history.len())
    }

    fn write(
        &self,
        history: &History,
        range: Range<usize>,
        out: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        let mut results: Vec<&ToolResult> = Vec::new();
        for (at, message) in range.clone().zip(history.range(range)) {
            if !matches!(message, Message::Tool(_)) {
                images_of_results(out, &mut results)?;
            }
            match message {
                Message::User(said) => element(out, &user(said, self.marked == Some(at)))?,
                Message::Assistant(said) => {
                    element(out, &assistant(said, self.profile, self.model))?;
                }
                Message::Tool(result) => {
                    results.extend((!result.images.is_empty()).then_some(result));
                    element(out, &tool(result, self.profile))?;
                }
            }
        }
        images_of_results(out, &mut results)
    }
}

/// The tool role takes text alone, so images go into a user message after the
/// results, which says whose they are.
fn images_of_results(out: &mut Vec<u8>, results: &mut Vec<&ToolResult>) -> serde_json::Result<()> {
    if results.is_empty() {
        return Ok(());
    }
    let mut parts = Vec::new();
    for result in mem::take(results) {
        let text = format!("Images in the result of {} (call {}):", result.name, result.call_id);
        parts.push(Part::text(text.into(), false));
        parts.extend(result.images.iter().map(Part::image));
    }
    element(out, &Wire::of("user", Content::Parts(parts)))
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

fn assistant<'a>(said: &'a AssistantMessage, profile: &Profile, model: &str) -> Wire<'a> {
    let kept = Kept::of(said, profile.name, model);
    let text = Content::text(Cow::Borrowed(&said.text), false);
    let mut wire = Wire::of("assistant", text);
    wire.tool_calls = said.tool_calls.iter().map(|call| Call::of(call, profile, &kept)).collect();
    wire.reasoning_details = kept.reasoning_details;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
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
            reasoning_details: None,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> Call<'a> {
    fn of(call: &'a ToolCall, profile: &Profile, kept: &Kept<'a>) -> Self {
        let function = Function { name: &call.name, arguments: call.arguments.as_json() };
        Self {
            id: id(&call.id, profile.tool_ids),
            r#type: "function",
            function,
            extra_content: kept.extra_content(&call.id),
        }
    }
}

/// The id of a call as the server takes it; always the same for the same id.
pub(super) fn id(id: &str, taken: ToolIds) -> Cow<'_, str> {
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
