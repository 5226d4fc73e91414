//! A conversation as this API takes it: turns of user and assistant, each a list of
//! blocks.

use std::{borrow::Cow, ops::Range};

use serde::Serialize;
use serde_json::value::RawValue;

use super::{DIALECT, blocks::object_or_nothing};
use crate::{
    AssistantMessage, History, Image, Message, ToolCall, ToolResult, UserMessage,
    rendering::{Dialogue, element},
};

/// The longest name that a call in the history may have.
const MAX_NAME: usize = 128;

/// How many turns of the user carry a cache marker: the newest, for the next
/// request, and the one before, which this request may find in the cache.
const MARKED_TURNS: usize = 2;

#[derive(Debug, Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Part<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Ours(Block<'a>),
    /// As the provider wrote it.
    Native(&'a RawValue),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Mark>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Mark>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a RawValue,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Mark>,
    },
}

/// What a tool gave: a text, or a list where images stand beside it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(&'a str),
    List(Vec<Block<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "base64")]
pub(super) struct Source<'a> {
    media_type: &'a str,
    data: &'a str,
}

/// The marker of the end of what should be cached.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Mark {
    Ephemeral,
}

impl<'a> Block<'a> {
    pub(super) const fn marked_text(text: &'a str) -> Self {
        Self::Text { text, cache_control: Some(Mark::Ephemeral) }
    }

    const fn text(text: &'a str) -> Self {
        Self::Text { text, cache_control: None }
    }

    fn image(image: &'a Image) -> Self {
        let source = Source { media_type: &image.media_type, data: &image.base64 };
        Self::Image { source, cache_control: None }
    }

    const fn mark(&mut self) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => *cache_control = Some(Mark::Ephemeral),
            Self::ToolUse { .. } => {}
        }
    }
}

/// Writes the conversation in turns. What the user and the tools said after an
/// answer is one turn, because all results of an answer have to come in one.
pub(super) struct Turns<'a> {
    pub(super) model: &'a str,
    /// Whether the newest turns of the user carry cache markers.
    pub(super) marks: bool,
}

impl Dialogue for Turns<'_> {
    /// An answer that comes to nothing does not keep the turns around it apart.
    fn opens(&self, said: &AssistantMessage) -> bool {
        let says = !said.text.trim().is_empty() || !said.tool_calls.is_empty();
        says && said.native.as_ref().is_none_or(|native| !native.parts.is_empty())
    }

    fn marked_from(&self, history: &History) -> usize {
        if !self.marks {
            return history.len();
        }
        // Turns that are sure to be some: the marks are on them or behind them.
        let (mut turns, mut inside) = (0, false);
        for (at, message) in history.iter().enumerate().rev() {
            let speaks = match message {
                Message::User(said) => !said.text.trim().is_empty() || !said.images.is_empty(),
                Message::Tool(_) => true,
                Message::Assistant(said) => {
                    if inside && turns == MARKED_TURNS && self.opens(said) {
                        return at + 1;
                    }
                    inside &= !self.opens(said);
                    false
                }
            };
            if speaks && !inside {
                turns += 1;
                inside = true;
            }
        }
        0
    }

    fn write(
        &self,
        history: &History,
        range: Range<usize>,
        out: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        let last = range.end == history.len();
        let mut turns: Vec<Turn<'_>> = Vec::with_capacity(range.len());
        for message in history.range(range) {
            let (role, content) = match message {
                Message::User(said) => ("user", user(said)),
                Message::Tool(result) => ("user", vec![Part::Ours(tool(result))]),
                Message::Assistant(said) => ("assistant", assistant(said, self.model)),
            };
            match turns.last_mut() {
                Some(last) if last.role == "user" && role == "user" => last.content.extend(content),
                // The API takes no empty turn.
                _ if content.is_empty() => {}
                _ => turns.push(Turn { role, content }),
            }
        }
        if self.marks && last {
            let users = turns.iter_mut().rev().filter(|turn| turn.role == "user");
            for turn in users.take(MARKED_TURNS) {
                if let Some(Part::Ours(block)) = turn.content.last_mut() {
                    block.mark();
                }
            }
        }
        turns.iter().try_for_each(|turn| element(out, turn))
    }
}

fn user(said: &UserMessage) -> Vec<Part<'_>> {
    let images = said.images.iter().map(|image| Part::Ours(Block::image(image)));
    // The API refuses a text block without a word in it.
    let text = Some(&said.text).filter(|text| !text.trim().is_empty());
    images.chain(text.map(|text| Part::Ours(Block::text(text)))).collect()
}

fn tool(result: &ToolResult) -> Block<'_> {
    let text = match &*result.text {
        // An error without a word is refused.
        "" if !result.ok => "the tool failed and said nothing",
        text => text,
    };
    let content = match result.images.is_empty() {
        true => Content::Text(text),
        false => {
            let words = Some(text).filter(|text| !text.trim().is_empty());
            let images = result.images.iter().map(Block::image);
            Content::List(words.map(Block::text).into_iter().chain(images).collect())
        }
    };
    Block::ToolResult {
        tool_use_id: plain(&result.call_id),
        content,
        is_error: !result.ok,
        cache_control: None,
    }
}

/// An answer in the provider's own words, if these are of this dialect and model;
/// else its text and calls. Its reasoning is then left out: unsigned, it would be
/// refused.
fn assistant<'a>(said: &'a AssistantMessage, model: &str) -> Vec<Part<'a>> {
    let native = said.native_for(DIALECT, model).and_then(|parts| {
        let parts = parts.iter().map(|part| serde_json::from_str(part).ok().map(Part::Native));
        parts.collect::<Option<Vec<_>>>()
    });
    if let Some(parts) = native {
        return parts;
    }
    let text = Some(&said.text).filter(|text| !text.trim().is_empty());
    let text = text.map(|text| Part::Ours(Block::text(text)));
    text.into_iter().chain(said.tool_calls.iter().filter_map(call)).collect()
}

fn call(call: &ToolCall) -> Option<Part<'_>> {
    // The API takes nothing but an object.
    let input = object_or_nothing(call.arguments.as_json()).unwrap_or("{}");
    Some(Part::Ours(Block::ToolUse {
        id: plain(&call.id),
        name: plain(&call.name),
        input: serde_json::from_str(input).ok()?,
    }))
}

/// An id or a name in the letters that the API takes: those of another provider may
/// hold more.
fn plain(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.len() <= MAX_NAME && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let mut plain: String = id.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    plain.truncate(MAX_NAME);
    if plain.is_empty() {
        plain.push('_');
    }
    Cow::Owned(plain)
}
