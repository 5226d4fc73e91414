//! The fields of an event that we read; everything else is skipped unread.
//!
//! Nothing here allocates for a text delta without escapes.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use turnbuckle_errors::Usage;

use crate::loose::{Count, List, Object, Says, Text};

/// An event of a stream, or a whole message: they share no field but `type` and
/// `usage`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    pub(super) r#type: Text<'a>,
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) delta: Object<Delta<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    /// The message of `message_start`. An error of some gateways is a text here.
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    pub(super) usage: Option<Box<Object<WireUsage>>>,
    /// The blocks of a whole message.
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
    error: Says,
    detail: Says,
    errors: Says,
}

/// Which text of a delta an event gives that gives nothing besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gives {
    Text,
    Thinking,
    Input,
}

impl<'a> Event<'a> {
    /// The text of an event that gives nothing besides.
    pub(super) fn only_text(&self) -> Option<(Gives, &'a str)> {
        let tells_more = self.usage.is_some() || self.is_error(&self.r#type.0);
        if tells_more || self.r#type.0 != "content_block_delta" {
            return None;
        }
        let Object(delta) = &self.delta;
        match &*delta.r#type.0 {
            "text_delta" => Some((Gives::Text, delta.text.borrowed()?)),
            "thinking_delta" => Some((Gives::Thinking, delta.thinking.borrowed()?)),
            "input_json_delta" => Some((Gives::Input, delta.partial_json.borrowed()?)),
            _ => None,
        }
    }

    /// Whether it is an error, wholly or among other things.
    pub(super) fn is_error(&self, kind: &str) -> bool {
        // FastAPI servers send `detail`, Cloudflare `errors`, and some gateways
        // nothing but a `message`.
        let nothing_else = kind.is_empty() && self.content.is_none();
        let text_alone = self.message.is_some_and(|message| message.get().starts_with('"'));
        let told = self.detail.0 || self.errors.0 || text_alone;
        self.error.0 || kind == "error" || (nothing_else && told)
    }
}

/// The `delta` of `content_block_delta` and of `message_delta`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) r#type: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow)]
    pub(super) signature: Text<'a>,
    #[serde(borrow)]
    pub(super) partial_json: Text<'a>,
    #[serde(borrow)]
    pub(super) citation: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
}

impl<'a> Delta<'a> {
    /// With nothing but this text.
    pub(super) fn of(gives: Gives, text: Cow<'a, str>) -> Self {
        let mut delta = Self::default();
        let (kind, field) = match gives {
            Gives::Text => ("text_delta", &mut delta.text),
            Gives::Thinking => ("thinking_delta", &mut delta.thinking),
            Gives::Input => ("input_json_delta", &mut delta.partial_json),
        };
        *field = Text(text);
        delta.r#type = Text(Cow::Borrowed(kind));
        delta
    }
}

/// An event of which only the delta is wanted, as it stands.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawDelta<'a> {
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
}

/// The message in `message_start`. Some servers put whole blocks into it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
    pub(super) usage: Object<WireUsage>,
}

/// A block as it begins, or whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(borrow)]
    pub(super) r#type: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    pub(super) citations: Says,
    pub(super) caller: Says,
}

impl<'a> Block<'a> {
    pub(super) fn input_is_text(&self) -> bool {
        self.input.is_some_and(|input| input.get().starts_with('"'))
    }

    /// The input's text, where it is more than the empty object that stands for an
    /// input to come. A few gateways send it as a text.
    pub(super) fn whole_input(&self) -> Cow<'a, str> {
        match self.input.map(RawValue::get) {
            None | Some("null") => Cow::Borrowed(""),
            Some(text) if text.starts_with('"') => {
                serde_json::from_str::<Text<'a>>(text).unwrap_or_default().0
            }
            Some(object) => {
                let inside = object.trim_start_matches('{').trim_end_matches('}');
                Cow::Borrowed(if inside.trim().is_empty() { "" } else { object })
            }
        }
    }
}

/// The blocks of a list, each as it stands.
pub(super) fn blocks(content: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str::<List<&RawValue>>(content.get()).unwrap_or_default().0
}

/// Token counts, as far as they are told. Later events overlay earlier ones.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct WireUsage {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    output_tokens_details: Object<OutputDetails>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Count,
}

impl WireUsage {
    /// Takes over what a later report tells.
    pub(super) fn overlay(&mut self, later: &Self) {
        let set = |known: &mut Count, told: Count| *known = Count(told.0.or(known.0));
        set(&mut self.input_tokens, later.input_tokens);
        set(&mut self.output_tokens, later.output_tokens);
        set(&mut self.cache_read_input_tokens, later.cache_read_input_tokens);
        set(&mut self.cache_creation_input_tokens, later.cache_creation_input_tokens);
        set(
            &mut self.output_tokens_details.0.thinking_tokens,
            later.output_tokens_details.0.thinking_tokens,
        );
    }

    /// The counts made disjoint: this API counts cached tokens beside the input and
    /// thinking into the output.
    pub(super) fn read(&self) -> Usage {
        let reasoning = self.output_tokens_details.0.thinking_tokens.0;
        let output = self.output_tokens.0;
        Usage {
            input_tokens: self.input_tokens.0,
            output_tokens: output
                .map(|output| output.checked_sub(reasoning.unwrap_or(0)).unwrap_or(output)),
            cached_tokens: self.cache_read_input_tokens.0,
            cache_write_tokens: self.cache_creation_input_tokens.0,
            reasoning_tokens: reasoning,
        }
    }
}
