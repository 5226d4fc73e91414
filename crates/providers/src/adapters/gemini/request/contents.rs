//! The conversation as contents of parts.

use std::{mem, ops::Range};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::DIALECT;
use crate::{
    AssistantMessage, History, Image, Message, ToolCall, ToolResult, UserMessage,
    rendering::{Dialogue, element},
};

/// Stands for the signature of a call that another model made. Gemini 3 refuses the
/// calls of a turn without one; Google's own client sends this word for it.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Writes the contents for a model, by its name.
pub(super) struct Contents<'a>(pub(super) &'a str);

impl Dialogue for Contents<'_> {
    fn write(
        &self,
        history: &History,
        range: Range<usize>,
        out: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        let mut asked = Asked::default();
        let mut results: Vec<Part<'_>> = Vec::new();
        for message in history.range(range) {
            // All results of one message go back together.
            if let Message::Tool(result) = message {
                asked.answer(result, &mut results);
                continue;
            }
            flush(out, &mut results)?;
            match message {
                Message::User(said) => {
                    element(out, &Content { role: "user", parts: &of_user(said) })?;
                }
                Message::Assistant(said) => {
                    let parts = of_model(said, self.0);
                    asked = Asked::by(said, &parts);
                    // The API refuses a content without parts.
                    if !parts.is_empty() {
                        element(out, &Content { role: "model", parts: &parts })?;
                    }
                }
                Message::Tool(_) => {}
            }
        }
        flush(out, &mut results)
    }
}

fn flush(out: &mut Vec<u8>, results: &mut Vec<Part<'_>>) -> serde_json::Result<()> {
    if results.is_empty() {
        return Ok(());
    }
    let parts = mem::take(results);
    element(out, &Content { role: "user", parts: &parts })
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: &'a [Part<'a>],
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Text {
        text: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        inline_data: InlineData<'a>,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'static str>,
    },
    #[serde(rename_all = "camelCase")]
    Result {
        function_response: Response<'a>,
    },
    /// As the API wrote it.
    Exact(&'a RawValue),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    name: &'a str,
    args: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Outcome<'a>,
}

/// What the tool gave, in the words that the API's documentation suggests.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome<'a> {
    Output(&'a str),
    Error(&'a str),
}

fn of_user(said: &UserMessage) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = said.images.iter().map(image).collect();
    if !said.text.is_empty() || parts.is_empty() {
        parts.push(Part::Text { text: &said.text });
    }
    parts
}

fn image(image: &Image) -> Part<'_> {
    Part::Image { inline_data: InlineData { mime_type: &image.media_type, data: &image.base64 } }
}

/// What the model said: its own parts where it can read them, else text and calls.
fn of_model<'a>(said: &'a AssistantMessage, model: &str) -> Vec<Part<'a>> {
    let native = said.native_for(DIALECT, model).and_then(|parts| exact(parts, said));
    if let Some(parts) = native {
        return parts;
    }
    let mut parts = Vec::with_capacity(1 + said.tool_calls.len());
    if !said.text.is_empty() {
        parts.push(Part::Text { text: &said.text });
    }
    let signed = model.contains("gemini-3").then_some(NO_SIGNATURE);
    parts.extend(said.tool_calls.iter().enumerate().map(|(n, call)| Part::Call {
        function_call: Call { name: &call.name, args: args(call) },
        // The first call of a message carries it.
        thought_signature: signed.filter(|_| n == 0),
    }));
    parts
}

/// The arguments, which the API wants as an object.
fn args(call: &ToolCall) -> Option<&RawValue> {
    let json = call.arguments.as_json().trim();
    serde_json::from_str(if json.starts_with('{') { json } else { "{}" }).ok()
}

/// The parts as they were written; `None` if they are not the calls of this message.
fn exact<'a>(parts: &'a [String], said: &AssistantMessage) -> Option<Vec<Part<'a>>> {
    let read = |json: &'a String| serde_json::from_str::<&RawValue>(json).ok().map(Part::Exact);
    let exact: Vec<Part<'a>> = parts.iter().map(read).collect::<Option<_>>()?;
    let calls = exact.iter().filter(|part| part.call().is_some()).count();
    (!exact.is_empty() && calls == said.tool_calls.len()).then_some(exact)
}

/// A call inside of a part that is sent back as it came.
#[derive(Deserialize)]
struct WrittenCall<'a> {
    #[serde(borrow, default)]
    id: crate::loose::Text<'a>,
    #[serde(borrow, default)]
    name: crate::loose::Text<'a>,
}

impl<'a> Part<'a> {
    fn call(&self) -> Option<WrittenCall<'a>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Written<'a> {
            #[serde(borrow, alias = "function_call")]
            function_call: Option<WrittenCall<'a>>,
        }
        match self {
            Self::Exact(raw) => {
                let call = serde_json::from_str::<Written<'a>>(raw.get()).ok()?.function_call?;
                // An empty call only ended another one.
                (!call.id.is_empty() || !call.name.is_empty()).then_some(call)
            }
            _ => None,
        }
    }
}

/// The calls that wait for their results, in order.
#[derive(Default)]
struct Asked<'a> {
    calls: &'a [ToolCall],
    /// The ids that the API itself gave them. Our own ids may be others: many of its
    /// servers give none, and those of a session are kept apart.
    ids: Vec<Option<&'a str>>,
}

impl<'a> Asked<'a> {
    fn by(said: &'a AssistantMessage, parts: &[Part<'a>]) -> Self {
        let written = parts.iter().filter_map(Part::call);
        let ids = written.map(|call| match call.id.0 {
            std::borrow::Cow::Borrowed(id) if !id.is_empty() => Some(id),
            _ => None,
        });
        Self { calls: &said.tool_calls, ids: ids.collect() }
    }

    fn answer(&self, result: &'a ToolResult, parts: &mut Vec<Part<'a>>) {
        let place = self.calls.iter().position(|call| call.id == result.call_id);
        let call = place.and_then(|place| self.calls.get(place));
        let name = call.map_or(&*result.name, |call| &*call.name);
        let id = place.and_then(|place| *self.ids.get(place)?);
        let text = result.text.as_str();
        let response = if result.ok { Outcome::Output(text) } else { Outcome::Error(text) };
        parts.push(Part::Result { function_response: Response { id, name, response } });
        // Beside the result: models before Gemini 3 take no image inside of it.
        parts.extend(result.images.iter().map(image));
    }
}
