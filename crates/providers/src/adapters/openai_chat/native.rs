//! The opaque parts that two kinds of gateways want back: OpenRouter its
//! `reasoning_details`, and the gateways to Gemini the `extra_content` of a call,
//! which holds the thought signature.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::{AssistantMessage, MAX_ANSWER_BYTES, Native};

/// What wrote a message: this dialect, as the server of this profile speaks it.
pub(super) fn dialect(profile: &str) -> String {
    format!("openai-chat/{profile}")
}

/// Collects the opaque parts of one answer.
#[derive(Debug, Default)]
pub(super) struct Collector {
    details: Vec<Map<String, Value>>,
    /// The ids of calls, and what came beside them.
    extras: Vec<(String, String)>,
    bytes: usize,
}

/// One kept part, as the journal holds it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Part<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

impl Collector {
    /// A list of reasoning details. A stream cuts each into many of the same index
    /// and type, which are one again when they go back.
    pub(super) fn details(&mut self, raw: &RawValue) {
        if !self.has_room(raw.get().len()) {
            return;
        }
        let list: Vec<Map<String, Value>> = match serde_json::from_str(raw.get()) {
            Ok(list) => list,
            // With half a character in it, what would go back is not what came.
            Err(_) if raw.get().starts_with('[') => return self.spoil(),
            Err(_) => return,
        };
        for detail in list {
            match self.details.last_mut() {
                Some(last) if goes_on(last, &detail) => join(last, detail),
                _ => self.details.push(detail),
            }
        }
    }

    /// Keeps nothing of this answer: a part of it cannot be told byte for byte.
    pub(super) const fn spoil(&mut self) {
        self.bytes = usize::MAX;
    }

    /// What came beside the call with this id.
    pub(super) fn extra(&mut self, id: &str, raw: &RawValue) {
        let is_object = raw.get().starts_with('{');
        if is_object && !id.is_empty() && self.has_room(raw.get().len()) {
            self.extras.retain(|(known, _)| known != id);
            self.extras.push((id.to_owned(), raw.get().to_owned()));
        }
    }

    /// The parts, once, if there are any; none if they are too large to keep.
    pub(super) fn parts(&mut self) -> Option<Vec<String>> {
        let Self { details, extras, bytes } = std::mem::take(self);
        if bytes > MAX_ANSWER_BYTES || (details.is_empty() && extras.is_empty()) {
            return None;
        }
        let mut parts = Vec::new();
        if !details.is_empty() {
            let list = serde_json::value::to_raw_value(&details).ok()?;
            let part = Part { reasoning_details: Some(&list), ..Part::default() };
            parts.push(serde_json::to_string(&part).ok()?);
        }
        for (id, raw) in &extras {
            let extra_content = Some(serde_json::from_str(raw).ok()?);
            let part = Part { id: Some(id.into()), extra_content, ..Part::default() };
            parts.push(serde_json::to_string(&part).ok()?);
        }
        Some(parts)
    }

    const fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= MAX_ANSWER_BYTES
    }
}

/// Whether `next` is more of `last`: a signature ends a detail.
fn goes_on(last: &Map<String, Value>, next: &Map<String, Value>) -> bool {
    let same = |name: &str| last.get(name) == next.get(name);
    let is_open = last.get("signature").is_none_or(Value::is_null);
    is_open && last.contains_key("index") && same("index") && same("type")
}

fn join(last: &mut Map<String, Value>, next: Map<String, Value>) {
    for (name, value) in next {
        match (name.as_str(), last.get_mut(&name), value) {
            ("text" | "summary" | "data", Some(Value::String(whole)), Value::String(more)) => {
                whole.push_str(&more);
            }
            (_, Some(Value::Null) | None, value) => {
                last.insert(name, value);
            }
            _ => {}
        }
    }
}

/// The opaque parts of a message, if the same server and model wrote it.
#[derive(Debug, Default)]
pub(super) struct Kept<'a> {
    pub(super) reasoning_details: Option<&'a RawValue>,
    extras: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Kept<'a> {
    pub(super) fn of(said: &'a AssistantMessage, profile: &str, model: &str) -> Self {
        let mut kept = Self::default();
        let Some(parts) =
            said.native.as_ref().and_then(|_| said.native_for(&dialect(profile), model))
        else {
            return kept;
        };
        for part in parts {
            let Ok(part) = serde_json::from_str::<Part<'_>>(part) else { continue };
            kept.reasoning_details = kept.reasoning_details.or(part.reasoning_details);
            kept.extras.extend(part.id.zip(part.extra_content));
        }
        kept
    }

    pub(super) fn extra_content(&self, id: &str) -> Option<&'a RawValue> {
        self.extras.iter().find(|(known, _)| known == id).map(|(_, raw)| *raw)
    }
}

/// A message's own words, written by this server and model.
pub(super) fn native(parts: Vec<String>, profile: &str, model: &str) -> Native {
    Native { dialect: dialect(profile), model: model.to_owned(), parts }
}
