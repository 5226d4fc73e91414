//! The fields of a response that we read; everything else is skipped unread.
//!
//! Nothing here allocates for a response with one text part without escapes. The
//! exact JSON of a part is looked up in a second pass ([`raw_parts`]), for the few
//! parts that have to be sent back as they came.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use turnbuckle_errors::Usage;

use crate::loose::{Count, List, Object, Says, Text, nothing_for};

/// A response: an event of a stream, or a whole document; they are alike.
///
/// Gateways that go through a Python SDK write the names with underscores.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) candidates: Candidate0<'a>,
    #[serde(alias = "usage_metadata")]
    pub(super) usage_metadata: Option<Object<WireUsage>>,
    #[serde(borrow, alias = "prompt_feedback")]
    pub(super) prompt_feedback: Option<Box<Object<PromptFeedback<'a>>>>,
    error: Says,
    #[serde(alias = "model_version")]
    model_version: Says,
    #[serde(alias = "response_id")]
    response_id: Says,
    message: Says,
    detail: Says,
    errors: Says,
    /// Google's Code Assist, and gateways in front of it, wrap each response.
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
}

/// What is read of a response with one text and nothing besides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around {
    thought: bool,
    pub(super) usage: Option<WireUsage>,
}

impl Around {
    /// The candidate again, with another text.
    pub(super) fn with(self, text: Cow<'_, str>) -> Candidate<'_> {
        let part = Part { text: Text(text), thought: self.thought, ..Part::default() };
        let parts = Parts { first: Some(part), more: Vec::new() };
        Candidate { content: Object(Content { parts }), ..Candidate::default() }
    }
}

impl<'a> Response<'a> {
    /// The text of a response that gives nothing besides but token counts.
    pub(super) fn only_text(&self) -> Option<(Around, &'a str)> {
        let candidate = self.candidates.candidate.as_ref()?;
        let Parts { first, more } = &candidate.content.0.parts;
        let part = first.as_ref().filter(|part| !part.exact && part.function_call.is_none())?;
        let tells_more = !more.is_empty()
            || !candidate.finish_reason.is_empty()
            || self.prompt_feedback.is_some()
            || self.is_error();
        let usage = self.usage_metadata.as_ref().map(|usage| usage.0);
        let around = Around { thought: part.thought, usage };
        part.text.borrowed().filter(|_| !tells_more).map(|text| (around, text))
    }
}

impl Response<'_> {
    /// Whether it says anything of an answer.
    pub(super) const fn is_ours(&self) -> bool {
        self.candidates.present
            || self.usage_metadata.is_some()
            || self.prompt_feedback.is_some()
            || self.model_version.0
            || self.response_id.0
    }

    /// Whether it is an error, wholly or among other things.
    pub(super) const fn is_error(&self) -> bool {
        self.error.0 || (!self.is_ours() && (self.message.0 || self.detail.0 || self.errors.0))
    }
}

/// What the server says of the prompt.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow, alias = "block_reason")]
    pub(super) block_reason: Text<'a>,
}

/// Candidate 0 of `candidates`, and whether there were any.
#[derive(Debug, Default)]
pub(super) struct Candidate0<'a> {
    pub(super) present: bool,
    pub(super) candidate: Option<Candidate<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    index: Count,
    #[serde(borrow)]
    pub(super) content: Object<Content<'a>>,
    #[serde(borrow, alias = "finish_reason")]
    pub(super) finish_reason: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Candidate0<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Candidate0<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of candidates")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut found = Candidate0 { present: true, candidate: None };
                let mut place = 0;
                while let Some(Object(one)) = list.next_element::<Object<Candidate<'de>>>()? {
                    if found.candidate.is_none() && one.index.0.unwrap_or(place) == 0 {
                        found.candidate = Some(one);
                    }
                    place += 1;
                }
                Ok(found)
            }

            nothing_for!(Candidate0::default(); bool number text null object);
        }
        deserializer.deserialize_any(Read)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    pub(super) parts: Parts<'a>,
}

/// The parts of a content; most events have one.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    first: Option<Part<'a>>,
    more: Vec<Part<'a>>,
}

impl<'a> Parts<'a> {
    /// Whether a part has to be sent back as it came.
    pub(super) fn any_exact(&self) -> bool {
        self.first.iter().chain(&self.more).any(|part| part.exact || part.function_call.is_some())
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = Part<'a>> {
        self.first.into_iter().chain(self.more)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Parts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Parts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of parts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut parts = Parts { first: list.next_element()?, more: Vec::new() };
                while let Some(part) = list.next_element()? {
                    parts.more.push(part);
                }
                Ok(parts)
            }

            nothing_for!(Parts::default(); bool number text null object);
        }
        deserializer.deserialize_any(Read)
    }
}

/// One part. A field that is not named here makes it one to keep as it came.
#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    pub(super) text: Text<'a>,
    pub(super) thought: bool,
    pub(super) function_call: Option<Box<FunctionCall<'a>>>,
    pub(super) signed: bool,
    /// It holds what text and calls do not say: a signature, code that the server
    /// ran, an image, something that is not known yet.
    pub(super) exact: bool,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Field {
    Text,
    Thought,
    #[serde(alias = "function_call")]
    FunctionCall,
    #[serde(alias = "thought_signature")]
    ThoughtSignature,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Part<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Part<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a part")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut part = Part::default();
                while let Some(field) = map.next_key::<Field>()? {
                    match field {
                        Field::Text => part.text = map.next_value()?,
                        Field::Thought => part.thought = map.next_value::<Says>()?.0,
                        Field::FunctionCall => {
                            let Calls(call) = map.next_value()?;
                            part.function_call = call;
                        }
                        Field::ThoughtSignature => part.signed |= map.next_value::<Says>()?.0,
                        Field::Other => part.exact |= map.next_value::<Says>()?.0,
                    }
                }
                part.exact |= part.signed;
                Ok(part)
            }

            nothing_for!(Part::default(); bool number text null list);
        }
        deserializer.deserialize_any(Read)
    }
}

/// A call that is an object; anything else is none.
struct Calls<'a>(Option<Box<FunctionCall<'a>>>);

impl<'de: 'a, 'a> Deserialize<'de> for Calls<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Calls<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a function call")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                FunctionCall::deserialize(map).map(|call| Calls(Some(Box::new(call))))
            }

            nothing_for!(Calls(None); bool number text null list);
        }
        deserializer.deserialize_any(Read)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    /// Vertex AI streams arguments in pieces where it was asked to.
    #[serde(borrow, alias = "partial_args")]
    pub(super) partial_args: List<Object<PartialArg<'a>>>,
    #[serde(alias = "will_continue")]
    pub(super) will_continue: Says,
}

impl<'a> FunctionCall<'a> {
    /// Whether it says nothing at all: the end of a call that came in pieces.
    pub(super) fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.args.is_none()
    }

    /// The arguments' text; a few gateways send it as a text in a text.
    pub(super) fn arguments(&self) -> Cow<'a, str> {
        match self.args.map(RawValue::get) {
            None | Some("null") => Cow::Borrowed(""),
            Some(text) if text.starts_with('"') => {
                serde_json::from_str::<Text<'a>>(text).map(|text| text.0).unwrap_or_default()
            }
            Some(value) => Cow::Borrowed(value),
        }
    }
}

/// A value, or a piece of a text, for one place in the arguments.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PartialArg<'a> {
    #[serde(borrow, alias = "json_path")]
    pub(super) json_path: Text<'a>,
    #[serde(borrow, alias = "string_value")]
    pub(super) string_value: Option<&'a RawValue>,
    #[serde(borrow, alias = "number_value")]
    pub(super) number_value: Option<&'a RawValue>,
    #[serde(borrow, alias = "bool_value")]
    pub(super) bool_value: Option<&'a RawValue>,
    #[serde(borrow, alias = "null_value")]
    pub(super) null_value: Option<&'a RawValue>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WireUsage {
    #[serde(alias = "prompt_token_count")]
    prompt_token_count: Count,
    #[serde(alias = "cached_content_token_count")]
    cached_content_token_count: Count,
    #[serde(alias = "candidates_token_count")]
    candidates_token_count: Count,
    #[serde(alias = "thoughts_token_count")]
    thoughts_token_count: Count,
    #[serde(alias = "tool_use_prompt_token_count")]
    tool_use_prompt_token_count: Count,
}

impl WireUsage {
    /// With other counts of the answer, where they varied.
    pub(super) fn with(mut self, [candidates, thoughts]: [Option<&str>; 2]) -> Self {
        let set = |count: &mut Count, digits: Option<&str>| {
            if let Some(number) = digits.and_then(|digits| digits.parse().ok()) {
                *count = Count(Some(number));
            }
        };
        set(&mut self.candidates_token_count, candidates);
        set(&mut self.thoughts_token_count, thoughts);
        self
    }

    /// The counts made disjoint: cached tokens are counted into the prompt, reasoning
    /// beside the answer. What the server's own tools gave the model to read is read
    /// as part of the request.
    pub(super) fn read(&self) -> Usage {
        let cached = self.cached_content_token_count.0;
        let prompt = self.prompt_token_count.0.map(|all| all.saturating_sub(cached.unwrap_or(0)));
        let tools = self.tool_use_prompt_token_count.0.unwrap_or(0);
        Usage {
            input_tokens: prompt.map(|prompt| prompt.saturating_add(tools)),
            output_tokens: self.candidates_token_count.0,
            cached_tokens: cached,
            reasoning_tokens: self.thoughts_token_count.0,
            ..Usage::default()
        }
    }
}

/// The exact JSON of each part of candidate 0, in the order of [`Parts`].
pub(super) fn raw_parts(json: &str) -> Vec<&RawValue> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Outer<'a> {
        #[serde(borrow)]
        candidates: List<Object<Inner<'a>>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Inner<'a> {
        index: Count,
        #[serde(borrow)]
        content: Object<Listed<'a>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Listed<'a> {
        #[serde(borrow)]
        parts: List<&'a RawValue>,
    }
    let outer: Outer<'_> = serde_json::from_str(json).unwrap_or_default();
    let found = (0..)
        .zip(outer.candidates.0)
        .find(|(place, Object(candidate))| candidate.index.0.unwrap_or(*place) == 0);
    found.map(|(_, Object(candidate))| candidate.content.0.parts.0).unwrap_or_default()
}

/// The opaque reasoning of a part that is kept, as the server spelled it.
pub(super) fn signature_of(part: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Signed<'a> {
        #[serde(borrow, alias = "thought_signature")]
        thought_signature: Option<&'a RawValue>,
    }
    serde_json::from_str::<Signed<'_>>(part.get()).ok()?.thought_signature
}
