//! The blocks of an answer, and the message put together of them again in the
//! provider's own words.
//!
//! Text, thinking and arguments are not kept twice: a block says which part of the
//! accumulated text is its own.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use serde_json::value::RawValue;

use super::wire::Block as WireBlock;
use crate::{Assembler, FinishReason, MAX_ANSWER_BYTES, TooLarge, halves::Mender, loose::Fields};

/// What a block counts for besides its bytes, so that no server can begin blocks
/// without end: some thousand of them fill an answer.
const BLOCK_BYTES: usize = 16 * 1024;

/// The most fields that deltas may add to a block. None is known to add more than two.
const MAX_EXTRAS: usize = 64;

/// The blocks so far, in order of their beginning.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    list: Vec<Block>,
    bytes: usize,
    /// Something came that cannot be put into its place.
    lost: bool,
}

/// A block in the making.
#[derive(Debug)]
pub(super) struct Block {
    index: Option<u64>,
    /// The JSON that it began with.
    begun: String,
    pub(super) body: Body,
    /// Half a character at the end of what came.
    pub(super) half: Mender,
    /// Fields that came in deltas and are no part of the shown answer.
    extras: Vec<(String, Extra)>,
    /// A delta came, so that it is more than it began with.
    pub(super) grown: bool,
    pub(super) stopped: bool,
    /// It says something that text and calls cannot.
    opaque: bool,
}

#[derive(Debug)]
pub(super) enum Body {
    /// This part of the visible text.
    Text(Range<usize>),
    /// This part of the reasoning.
    Thinking(Range<usize>),
    Call {
        /// Its place among the calls.
        slot: usize,
        /// The input that came whole, until it is given out.
        whole: String,
    },
    /// What the provider runs or keeps itself, with the input that it wrote for it.
    Server(String),
}

#[derive(Debug)]
enum Extra {
    /// This JSON.
    Set(String),
    /// More of a text.
    Append(String),
    /// More items of a list, each as JSON.
    Push(Vec<String>),
}

impl Blocks {
    pub(super) fn begin(
        &mut self,
        index: Option<u64>,
        begun: &RawValue,
        wire: &WireBlock<'_>,
        body: Body,
    ) -> Result<(), TooLarge> {
        self.keep(begun.get().len() + BLOCK_BYTES)?;
        let opaque = match body {
            Body::Text(_) => wire.citations.0,
            Body::Call { .. } => wire.caller.0,
            Body::Thinking(_) | Body::Server(_) => true,
        };
        self.list.push(Block {
            index,
            begun: begun.get().to_owned(),
            body,
            half: Mender::default(),
            extras: Vec::new(),
            // An input as a text is not sent back as it came.
            grown: wire.input_is_text(),
            stopped: false,
            opaque,
        });
        Ok(())
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.list.iter_mut()
    }

    /// The newest block with this index; without an index the newest of all.
    pub(super) fn find(&mut self, index: Option<u64>) -> Option<&mut Block> {
        self.list.iter_mut().rev().find(|block| index.is_none() || block.index == index)
    }

    /// Whether `begun` only repeats an open block of this index, as it began.
    pub(super) fn repeats(&mut self, index: Option<u64>, begun: &RawValue) -> bool {
        index.is_some()
            && self
                .find(index)
                .is_some_and(|block| !block.stopped && !block.grown && block.begun == begun.get())
    }

    pub(super) fn all_stopped(&self) -> bool {
        self.list.iter().all(|block| block.stopped)
    }

    /// What came has no place: the message cannot be sent back as it was.
    pub(super) const fn lose(&mut self) {
        self.lost = true;
    }

    /// Counts bytes that are kept besides the shown answer.
    pub(super) const fn keep(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_ANSWER_BYTES { Err(TooLarge) } else { Ok(()) }
    }

    /// The parts to send back, where they say more than text and calls do; none
    /// where a piece of them is missing.
    pub(super) fn native(&self, said: &Assembler, finish: FinishReason) -> Option<Vec<String>> {
        let worth = self.list.iter().any(|block| block.opaque);
        if !worth || self.lost || !self.all_stopped() {
            return None;
        }
        let mut ids = HashSet::new();
        let last = self.list.len().saturating_sub(1);
        let mut parts = Vec::with_capacity(self.list.len());
        for (place, block) in self.list.iter().enumerate() {
            let cut = place == last && finish == FinishReason::Length;
            match block.whole(said, &mut ids)? {
                Whole::Part(part) => parts.push(part),
                // Signed thinking that was cut has no signature, and a cut input of the
                // provider's own tool cannot be read: both would be refused.
                Whole::Unsigned(_) | Whole::BadInput if cut => {}
                Whole::Unsigned(part) => parts.push(part),
                Whole::BadInput => return None,
                // The API refuses a text block without a word in it.
                Whole::Blank => {}
            }
        }
        (!parts.is_empty()).then_some(parts)
    }
}

enum Whole {
    Part(String),
    Unsigned(String),
    BadInput,
    Blank,
}

impl Block {
    /// A citation of the text in this block.
    pub(super) fn cite(&mut self, citation: &RawValue) {
        self.opaque = true;
        match self.extra("citations", || Extra::Push(Vec::new())) {
            Extra::Push(items) => items.push(citation.get().to_owned()),
            other => *other = Extra::Push(vec![citation.get().to_owned()]),
        }
    }

    /// The signature, whole.
    pub(super) fn sign(&mut self, signature: &str) {
        let json = text_json(signature);
        *self.extra("signature", || Extra::Set(String::new())) = Extra::Set(json);
    }

    /// A delta of a kind that we do not know: texts are appended, anything else
    /// replaces what was there. `compaction_delta` reads rightly this way. Says whether
    /// the block could keep it.
    pub(super) fn merge(&mut self, delta: &RawValue) -> bool {
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(delta.get()) else { return true };
        let told = || fields.0.iter().filter(|(name, _)| name != "type");
        if self.extras.len() + told().count() > MAX_EXTRAS {
            return false;
        }
        self.opaque = true;
        for (name, value) in told() {
            match serde_json::from_str::<String>(value.get()) {
                Ok(text) => match self.extra(name, || Extra::Append(String::new())) {
                    Extra::Append(so_far) => so_far.push_str(&text),
                    other => *other = Extra::Append(text),
                },
                Err(_) if value.get() == "null" => {}
                Err(_) => {
                    let json = value.get().to_owned();
                    *self.extra(name, || Extra::Set(String::new())) = Extra::Set(json);
                }
            }
        }
        true
    }

    fn extra(&mut self, name: &str, fresh: impl FnOnce() -> Extra) -> &mut Extra {
        let place = match self.extras.iter().position(|(known, _)| known == name) {
            Some(place) => place,
            None => {
                self.extras.push((name.to_owned(), fresh()));
                self.extras.len() - 1
            }
        };
        #[expect(clippy::indexing_slicing, reason = "the place was just found or made")]
        &mut self.extras[place].1
    }

    /// The block with all its deltas; `None` if it cannot be sent back.
    fn whole(&self, said: &Assembler, ids: &mut HashSet<String>) -> Option<Whole> {
        let begun: WireBlock<'_> = serde_json::from_str(&self.begun).ok()?;
        let mut changed = Vec::new();
        match &self.body {
            Body::Text(range) => {
                let text = said.text_so_far().get(range.clone())?;
                if text.trim().is_empty() {
                    return Some(Whole::Blank);
                }
                changed.push(("text", text_json(text)));
            }
            Body::Thinking(range) => {
                let thinking = said.reasoning_so_far().get(range.clone())?;
                changed.push(("thinking", text_json(thinking)));
            }
            Body::Call { slot, .. } => {
                // The assembler gave it another id or name than the block has.
                if begun.id.is_empty()
                    || begun.name.is_empty()
                    || !ids.insert(begun.id.0.into_owned())
                {
                    return None;
                }
                // A call that was cut is sent back with nothing, as it is rebuilt.
                let input = said.arguments_so_far(*slot)?;
                changed.push(("input", object_or_nothing(input).unwrap_or("{}").to_owned()));
            }
            Body::Server(input) if input.trim().is_empty() => {}
            Body::Server(input) => match object_or_nothing(input) {
                Some(object) => changed.push(("input", object.to_owned())),
                None => return Some(Whole::BadInput),
            },
        }
        // A block that came whole is sent back as it came.
        if !self.grown {
            return Some(Whole::Part(self.begun.clone()));
        }
        let fields: Fields<'_> = serde_json::from_str(&self.begun).ok()?;
        for (name, extra) in &self.extras {
            let before = fields.0.iter().find(|(known, _)| known == name);
            changed.push((name.as_str(), extra.over(before.map(|(_, value)| *value))));
        }
        let signed = ["signature", "data"].iter().any(|name| {
            let set =
                changed.iter().find(|(known, _)| known == name).map(|(_, json)| json.as_str());
            let before = fields.0.iter().find(|(known, _)| known == name);
            set.or(before.map(|(_, value)| value.get())).is_some_and(|json| json != "\"\"")
        });
        let part = write(&fields, &changed);
        Some(match self.body {
            Body::Thinking(_) if !signed => Whole::Unsigned(part),
            _ => Whole::Part(part),
        })
    }
}

impl Extra {
    /// The field's JSON, given what the block began with.
    fn over(&self, before: Option<&RawValue>) -> String {
        match self {
            Self::Set(json) => json.clone(),
            Self::Append(more) => {
                let before =
                    before.and_then(|json| serde_json::from_str::<String>(json.get()).ok());
                text_json(&(before.unwrap_or_default() + more))
            }
            Self::Push(items) => {
                let before = before.map(super::wire::blocks).unwrap_or_default();
                let mut all = before.iter().map(|item| item.get()).collect::<Vec<_>>();
                all.extend(items.iter().map(String::as_str));
                format!("[{}]", all.join(","))
            }
        }
    }
}

/// The fields in their order, some with another value, and then the new ones.
fn write(fields: &Fields<'_>, changed: &[(&str, String)]) -> String {
    let mut json = String::from("{");
    let mut put = |name: &str, value: &str| {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&text_json(name));
        json.push(':');
        json.push_str(value);
    };
    for (name, value) in &fields.0 {
        let set = changed.iter().find(|(known, _)| known == name);
        put(name, set.map_or(value.get(), |(_, value)| value));
    }
    for (name, value) in changed {
        if !fields.0.iter().any(|(known, _)| known == name) {
            put(name, value);
        }
    }
    json.push('}');
    json
}

fn text_json(text: &str) -> String {
    serde_json::Value::from(Cow::Borrowed(text)).to_string()
}

/// The text if it is one JSON object.
pub(super) fn object_or_nothing(text: &str) -> Option<&str> {
    let object: &RawValue = serde_json::from_str(text).ok()?;
    object.get().starts_with('{').then_some(object.get())
}
