//! The conversation as a list of items.

use std::ops::Range;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::DIALECT;
use crate::{
    AssistantMessage, History, Image, Message, ToolResult, UserMessage,
    rendering::{Dialogue, element},
};

/// Writes the items for a model, by its name.
pub(super) struct Input<'a>(pub(super) &'a str);

impl Dialogue for Input<'_> {
    fn write(
        &self,
        history: &History,
        range: Range<usize>,
        out: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        for (at, message) in range.clone().zip(history.range(range)) {
            match message {
                Message::User(said) => element(out, &Wire::user(said))?,
                Message::Assistant(said) => match native(said, self.0) {
                    Some(parts) => parts.into_iter().try_for_each(|part| element(out, part))?,
                    None => rebuilt(said, out)?,
                },
                Message::Tool(result) => {
                    let custom = self.is_custom(history, at, &result.call_id);
                    element(out, &Wire::result(result, custom))?;
                }
            }
        }
        Ok(())
    }
}

impl Input<'_> {
    /// Whether the call with this id, somewhere before a message, was one of a custom
    /// tool.
    fn is_custom(&self, history: &History, before: usize, id: &str) -> bool {
        let asked = history.range(0..before).rev().find_map(|message| match message {
            Message::Assistant(said) if said.tool_calls.iter().any(|call| call.id == id) => {
                Some(said)
            }
            _ => None,
        });
        let parts = asked.and_then(|said| native(said, self.0)).unwrap_or_default();
        parts.into_iter().any(|part| {
            kind_and_call(part, "custom_tool_call").is_some_and(|call_id| call_id == id)
        })
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
fn rebuilt(said: &AssistantMessage, out: &mut Vec<u8>) -> serde_json::Result<()> {
    if !said.text.is_empty() {
        let content = vec![Part::OutputText { text: &said.text }];
        element(out, &Wire::Message { role: "assistant", content })?;
    }
    for call in &said.tool_calls {
        let (call_id, name) = (&*call.id, &*call.name);
        element(out, &Wire::FunctionCall { call_id, name, arguments: call.arguments.as_json() })?;
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

    fn result(result: &'a ToolResult, custom: bool) -> Self {
        let text = Told { text: &result.text, failed: !result.ok };
        let output = match result.images.as_slice() {
            [] => Output::Text(text),
            images => {
                let parts = std::iter::once(Part::InputText { text });
                Output::Parts(parts.chain(images.iter().map(Part::image)).collect())
            }
        };
        let call_id = &*result.call_id;
        match custom {
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
