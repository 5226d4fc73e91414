//! The fields of an event that we read; everything else is skipped unread.
//!
//! Nothing here allocates for a piece of text without escapes. Items and whole
//! answers stay unread until something is asked of them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use turnbuckle_errors::Usage;

use crate::loose::{Count, List, Object, Says, Text};

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    pub(super) r#type: Text<'a>,
    #[serde(borrow)]
    pub(super) delta: Text<'a>,
    #[serde(borrow)]
    item_id: Text<'a>,
    output_index: Count,
    content_index: Count,
    summary_index: Count,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input: Text<'a>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) object: Text<'a>,
    error: Says,
    message: Says,
    detail: Says,
    errors: Says,
}

/// The delta events that give one text and nothing besides.
const ONLY_TEXT: [&str; 8] = [
    "response.output_text.delta",
    "response.function_call_arguments.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary.delta",
    "response.reasoning_text.delta",
    "response.reasoning.delta",
    "response.refusal.delta",
    "response.custom_tool_call_input.delta",
];

/// What is read of a delta event besides its text.
#[derive(Debug)]
pub(super) struct Around {
    pub(super) kind: &'static str,
    item_id: String,
    output_index: Count,
    content_index: Count,
    summary_index: Count,
}

impl Around {
    /// The event again, with another text, and with another item's id where that varies.
    pub(super) fn with<'a>(&'a self, delta: Cow<'a, str>, item_id: Option<&'a str>) -> Event<'a> {
        Event {
            delta: Text(delta),
            item_id: Text(Cow::Borrowed(item_id.unwrap_or(&self.item_id))),
            output_index: self.output_index,
            content_index: self.content_index,
            summary_index: self.summary_index,
            ..Event::default()
        }
    }
}

impl<'a> Event<'a> {
    /// The text of an event of this kind that gives nothing besides, and what stands
    /// around it.
    pub(super) fn only_text(&self, kind: &str) -> Option<(Around, &'a str)> {
        let kind = ONLY_TEXT.into_iter().find(|known| *known == kind)?;
        let text = self.delta.borrowed()?;
        let around = Around {
            kind,
            item_id: self.item_id.0.clone().into_owned(),
            output_index: self.output_index,
            content_index: self.content_index,
            summary_index: self.summary_index,
        };
        Some((around, text))
    }

    /// Whether it is an error, wholly or among other things.
    ///
    /// `kind` is its type, wherever that stood.
    pub(super) fn is_error(&self, kind: &str) -> bool {
        // vLLM types its errors `"object":"error"`; FastAPI servers send `detail`,
        // Cloudflare `errors`, and some gateways nothing but a `message`.
        let nothing_else = kind.is_empty() && self.object.is_empty();
        self.error.0
            || kind == "error"
            || self.object.0 == "error"
            || (nothing_else && (self.message.0 || self.detail.0 || self.errors.0))
    }

    /// Whether it tells no whole item, and no whole answer.
    pub(super) const fn has_no_item(&self) -> bool {
        self.item.is_none() && self.response.is_none()
    }

    /// The item that it belongs to.
    pub(super) fn place(&self) -> Place<'_> {
        Place { index: self.output_index.0, id: &self.item_id.0 }
    }

    pub(super) const fn content_part(&self) -> Parts {
        Parts::of(self.content_index.0)
    }

    pub(super) const fn summary_part(&self) -> Parts {
        Parts::of(self.summary_index.0)
    }

    /// The whole arguments, as the event that ends them tells them.
    pub(super) fn arguments(&self) -> Cow<'a, str> {
        text_of(self.arguments)
    }
}

/// Where an item stands in the answer. The index decides: Copilot gives an item a
/// new id with every event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: &'a str,
}

/// Which parts of an item have been taken, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Parts(u64);

impl Parts {
    /// A part by its number. Without one it may be any of them.
    const fn of(index: Option<u64>) -> Self {
        match index {
            None => Self(u64::MAX),
            Some(index) if index < 63 => Self(1 << index),
            Some(_) => Self(1 << 63),
        }
    }

    /// Adds `part`, and says whether it was new.
    pub(super) const fn take(&mut self, part: Self) -> bool {
        let new = self.0 & part.0 == 0;
        self.0 |= part.0;
        new
    }

    /// Adds the part at `place` of a whole item, and says whether it was new. By
    /// their count, since vLLM numbers the only part of a message 1.
    pub(super) const fn take_at(&mut self, place: usize) -> bool {
        let new = (self.0.count_ones() as usize) <= place;
        if new {
            self.0 |= self.0.wrapping_add(1);
        }
        new
    }
}

/// An answer, in its last event or as a whole document.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    incomplete_details: Object<IncompleteDetails<'a>>,
    error: Says,
    usage: Object<WireUsage>,
    #[serde(borrow)]
    pub(super) output: List<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct IncompleteDetails<'a> {
    #[serde(borrow)]
    reason: Text<'a>,
}

impl Response<'_> {
    pub(super) fn reason(&self) -> &str {
        &self.incomplete_details.0.reason.0
    }

    pub(super) fn is_error(&self) -> bool {
        self.error.0 || matches!(&*self.status.0, "failed" | "cancelled")
    }

    pub(super) fn reported_usage(&self) -> Usage {
        self.usage.0.read()
    }
}

/// An item of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item<'a> {
    #[serde(borrow)]
    pub(super) r#type: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) execution: Text<'a>,
    #[serde(borrow)]
    pub(super) content: List<Object<Part<'a>>>,
    #[serde(borrow)]
    pub(super) summary: List<Object<Part<'a>>>,
    pub(super) encrypted_content: Says,
}

impl<'a> Item<'a> {
    /// The arguments' text. A few gateways send the object itself.
    pub(super) fn arguments(&self) -> Cow<'a, str> {
        text_of(self.arguments)
    }
}

/// A part of an item's content or of its summary.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) r#type: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
}

/// A text that may have been sent as the value that it stands for.
fn text_of(raw: Option<&RawValue>) -> Cow<'_, str> {
    match raw.map(RawValue::get) {
        None | Some("null") => Cow::Borrowed(""),
        Some(text) if text.starts_with('"') => {
            serde_json::from_str::<Text<'_>>(text).unwrap_or_default().0
        }
        Some(value) => Cow::Borrowed(value),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    input_tokens: Count,
    output_tokens: Count,
    input_tokens_details: Object<InputDetails>,
    output_tokens_details: Object<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Count,
}

impl WireUsage {
    /// The counts made disjoint: this API counts cached tokens into the request and
    /// reasoning into the answer.
    fn read(&self) -> Usage {
        let cached = self.input_tokens_details.0.cached_tokens.0;
        let written = self.input_tokens_details.0.cache_write_tokens.0;
        let reasoning = self.output_tokens_details.0.reasoning_tokens.0;
        let of_a_cache = cached.unwrap_or(0).saturating_add(written.unwrap_or(0));
        Usage {
            input_tokens: self.input_tokens.0.map(|input| input.saturating_sub(of_a_cache)),
            // More reasoning than answer, as a few gateways report, was counted beside it.
            output_tokens: self
                .output_tokens
                .0
                .map(|output| output.checked_sub(reasoning.unwrap_or(0)).unwrap_or(output)),
            cached_tokens: cached,
            cache_write_tokens: written,
            reasoning_tokens: reasoning,
        }
    }
}
