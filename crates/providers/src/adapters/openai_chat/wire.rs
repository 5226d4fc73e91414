//! The fields of a chunk that we read; everything else is skipped unread.
//!
//! Nothing here allocates for a chunk of text without escapes. What is rare is
//! boxed, because a chunk is moved several times while it is read.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use turnbuckle_errors::Usage;

use super::usage::WireUsage;
use crate::halves;
use crate::loose::{Count, List, Object, Says, Text, nothing_for};

/// A chunk of a stream, or a whole completion: they differ in one field.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) choices: Choice0<'a>,
    pub(super) usage: Object<WireUsage>,
    x_groq: Option<Box<Object<XGroq>>>,
    error: Says,
    #[serde(borrow)]
    object: Text<'a>,
    message: Says,
    detail: Says,
    errors: Says,
    error_type: Says,
    error_message: Says,
    status_code: Count,
}

/// What a chunk gives that gives only one text, and where it stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gives {
    Text,
    Reasoning,
    /// More arguments of the call with this index.
    Arguments(Option<u64>),
}

impl<'a> Chunk<'a> {
    /// The text of a chunk that gives nothing besides.
    pub(super) fn only_text(&self) -> Option<(Gives, &'a str)> {
        let choice = self.choices.choice.as_ref()?;
        let tells_more = self.is_error()
            || self.reported_usage() != Usage::default()
            || choice.message.is_some()
            || !choice.finish_reason.is_empty();
        choice.delta.as_ref().filter(|_| !tells_more)?.0.only_text()
    }

    /// Whether it says anything of an answer; a chunk without choices may.
    pub(super) fn is_ours(&self) -> bool {
        self.choices.present
            || self.object.0.starts_with("chat.completion")
            || self.reported_usage() != Usage::default()
    }

    /// Whether it is an error, wholly or among other things.
    pub(super) fn is_error(&self) -> bool {
        // vLLM types its errors `"object":"error"`; FastAPI servers send `detail`,
        // Cloudflare `errors`, some gateways nothing but a `message`; and one relay
        // wrote `error_type`, `error_message` and `status_code` beside `choices: null`.
        let nothing_else = !self.choices.present;
        self.error.0
            || self.object.0 == "error"
            || (nothing_else && (self.message.0 || self.detail.0 || self.errors.0))
            || (nothing_else && (self.error_type.0 || self.error_message.0))
            || (nothing_else && self.status_code.0.is_some_and(|status| status >= 400))
    }

    /// The token counts, wherever they stand: at the top, in the choice (Moonshot),
    /// or in Groq's own object.
    pub(super) fn reported_usage(&self) -> Usage {
        let usage = self.usage.0.read();
        if usage != Usage::default() {
            return usage;
        }
        let in_choice = self.choices.choice.as_ref().and_then(|choice| choice.usage.as_ref());
        let in_x_groq = self.x_groq.as_ref().map(|x_groq| &x_groq.0.usage);
        match in_choice.map(|usage| &**usage).or(in_x_groq) {
            Some(elsewhere) => elsewhere.0.read(),
            None => usage,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct XGroq {
    usage: Object<WireUsage>,
}

/// Choice 0 of `choices`, and whether there were any.
#[derive(Debug, Default)]
pub(super) struct Choice0<'a> {
    pub(super) present: bool,
    pub(super) choice: Option<Choice<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    index: Count,
    #[serde(borrow)]
    pub(super) delta: Option<Object<Delta<'a>>>,
    /// What a whole completion has in place of `delta`. Perplexity sends both, and
    /// here all of the text so far.
    #[serde(borrow)]
    pub(super) message: Option<Box<Object<Delta<'a>>>>,
    #[serde(borrow)]
    pub(super) finish_reason: Text<'a>,
    usage: Option<Box<Object<WireUsage>>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Choice0<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Choice0<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of choices")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut found = Choice0 { present: true, choice: None };
                let mut place = 0;
                while let Some(Object(choice)) = list.next_element::<Object<Choice<'de>>>()? {
                    if found.choice.is_none() && choice.index.0.unwrap_or(place) == 0 {
                        found.choice = Some(choice);
                    }
                    place += 1;
                }
                Ok(found)
            }

            nothing_for!(Choice0::default(); bool number text null object);
        }
        deserializer.deserialize_any(Read)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) content: Content<'a>,
    /// DeepSeek, Qwen, Moonshot, xAI, vLLM.
    #[serde(borrow)]
    reasoning_content: Text<'a>,
    /// OpenRouter, Groq, Ollama, newer vLLM.
    #[serde(borrow)]
    reasoning: Text<'a>,
    /// GitHub Copilot's name for it.
    #[serde(borrow)]
    reasoning_text: Text<'a>,
    /// OpenRouter, beside `reasoning` or in its place.
    #[serde(borrow)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: List<Object<Call<'a>>>,
    /// The call of the days before `tool_calls`.
    #[serde(borrow)]
    pub(super) function_call: Option<Box<Object<Function<'a>>>>,
}

impl<'a> Delta<'a> {
    pub(super) fn of(gives: Gives, text: Cow<'a, str>) -> Self {
        let mut delta = Self::default();
        match gives {
            Gives::Text => delta.content.text = Text(text),
            Gives::Reasoning => delta.reasoning_content = Text(text),
            // They are no text of a field that can be borrowed.
            Gives::Arguments(_) => {}
        }
        delta
    }

    fn only_text(&self) -> Option<(Gives, &'a str)> {
        let tells_more = self.content.others.is_some()
            || self.reasoning_details.is_some()
            || !self.refusal.is_empty()
            || self.function_call.is_some();
        if tells_more {
            return None;
        }
        if let [Object(call)] = &*self.tool_calls.0 {
            let silent = self.content.text.is_empty()
                && self.reasoning_content.is_empty()
                && self.reasoning.is_empty()
                && self.reasoning_text.is_empty();
            return call.only_arguments().filter(|_| silent);
        }
        if !self.tool_calls.0.is_empty() {
            return None;
        }
        // The first of the fields that says anything is the one that counts.
        let fields = [&self.reasoning_content, &self.reasoning, &self.reasoning_text];
        let reasoning = fields.into_iter().find(|field| !field.is_empty());
        match reasoning {
            Some(field) if self.content.text.is_empty() => {
                Some((Gives::Reasoning, field.borrowed()?))
            }
            Some(_) => None,
            None => Some((Gives::Text, self.content.text.borrowed()?)),
        }
    }

    /// The reasoning, from the one field that has it: several servers send it twice.
    pub(super) fn take_reasoning(&mut self) -> Cow<'a, str> {
        let fields = [&mut self.reasoning_content, &mut self.reasoning, &mut self.reasoning_text];
        for field in fields {
            if !field.is_empty() {
                return std::mem::take(field).0;
            }
        }
        if let Some(others) = &mut self.content.others
            && !others.thinking.is_empty()
        {
            return std::mem::take(&mut others.thinking).0;
        }
        let mut joined = Text::default();
        let details = self.reasoning_details.map(RawValue::get);
        let details: List<Object<ReasoningDetail<'a>>> =
            details.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
        for Object(detail) in details.0 {
            joined.append(detail.text);
            joined.append(detail.summary);
        }
        joined.0
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReasoningDetail<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    summary: Text<'a>,
}

impl<'a> Text<'a> {
    /// Adds a text; borrowed as long as there is only one.
    fn append(&mut self, more: Self) {
        if self.is_empty() {
            *self = more;
        } else if !more.is_empty() {
            self.0.to_mut().push_str(&more.0);
        }
    }
}

/// `content`: a text, or a list of parts (Mistral sends thinking this way).
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub(super) text: Text<'a>,
    pub(super) others: Option<Box<OtherParts<'a>>>,
}

/// What is no text in a list of parts.
#[derive(Debug, Default)]
pub(super) struct OtherParts<'a> {
    thinking: Text<'a>,
    pub(super) refusal: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    thinking: Thinking<'a>,
    #[serde(borrow)]
    reasoning: Text<'a>,
    #[serde(borrow)]
    refusal: Text<'a>,
    r#type: Kind,
}

/// A part whose `text` is reasoning says so by its type.
#[derive(Debug, Default, Deserialize)]
enum Kind {
    #[serde(rename = "thinking", alias = "reasoning", alias = "reasoning_content")]
    Thinking,
    #[default]
    #[serde(other)]
    Other,
}

/// `thinking` of a part: a text, or a list of text parts.
#[derive(Debug, Default)]
struct Thinking<'a>(Text<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content { text: Text(Cow::Borrowed(text)), ..Content::default() })
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content { text: Text(Cow::Owned(text.to_owned())), ..Content::default() })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut text = Text::default();
                let mut others = OtherParts::default();
                while let Some(Object(part)) = list.next_element::<Object<Part<'de>>>()? {
                    match part.r#type {
                        Kind::Thinking => others.thinking.append(part.text),
                        Kind::Other => text.append(part.text),
                    }
                    others.thinking.append(part.thinking.0);
                    others.thinking.append(part.reasoning);
                    others.refusal.append(part.refusal);
                }
                Ok(Content { text, others: Some(Box::new(others)) })
            }

            nothing_for!(Content::default(); bool number null object);
        }
        deserializer.deserialize_any(Read)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Thinking<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The same two shapes as `content`, one level down.
        Content::deserialize(deserializer).map(|inner| Self(inner.text))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Call<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) function: Object<Function<'a>>,
    #[serde(borrow)]
    pub(super) custom: Object<Custom<'a>>,
    /// Gateways to Gemini put the thought signature there.
    #[serde(borrow)]
    pub(super) extra_content: Option<&'a RawValue>,
}

impl<'a> Call<'a> {
    fn only_arguments(&self) -> Option<(Gives, &'a str)> {
        let (function, custom) = (&self.function.0, &self.custom.0);
        let tells_more = !self.id.is_empty()
            || !function.name.is_empty()
            || !custom.name.is_empty()
            || !custom.input.is_empty()
            || self.extra_content.is_some();
        let quoted = function.arguments.filter(|_| !tells_more)?.get();
        let text = quoted.strip_prefix('"')?.strip_suffix('"')?;
        // Without escapes the text is what stands there.
        (!text.contains('\\')).then_some((Gives::Arguments(self.index.0), text))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl<'a> Function<'a> {
    /// The arguments' text, and whether halves of characters had to be marked in
    /// it. A few gateways send the object itself.
    pub(super) fn arguments(&self) -> (Cow<'a, str>, bool) {
        match self.arguments.map(RawValue::get) {
            None | Some("null") => (Cow::Borrowed(""), false),
            Some(text) if text.starts_with('"') => match serde_json::from_str::<Text<'a>>(text) {
                Ok(text) => (text.0, false),
                // It is whole JSON, so only halves can be wrong with it.
                Err(_) => halves::mark(text).map_or_else(Default::default, |marked| {
                    let text: String = serde_json::from_str(&marked.json).unwrap_or_default();
                    (Cow::Owned(text), marked.marks)
                }),
            },
            Some(value) => (Cow::Borrowed(value), false),
        }
    }
}

/// A tool that takes free text (OpenAI).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Custom<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) input: Text<'a>,
}
