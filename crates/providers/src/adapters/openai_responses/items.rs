//! The items of an answer: which of them and which of their parts have come, and
//! how they go back to the server.

use serde_json::value::RawValue;

use super::wire::{Item, Parts, Place};
use crate::{Arguments, MAX_ANSWER_BYTES, TooLarge, halves::Mender};

/// The most items of one answer. The longest seen has some forty.
pub(super) const MAX_ITEMS: usize = 4096;

/// The items in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Items {
    list: Vec<Slot>,
    /// Where the last event belonged, which is nearly always where the next does.
    last: usize,
    native_bytes: usize,
}

/// One item, and what was taken of it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    index: Option<u64>,
    id: String,
    pub(super) kind: Kind,
    pub(super) call_id: String,
    pub(super) content: Parts,
    pub(super) summary: Parts,
    /// Whether the call was begun with a name.
    pub(super) named: bool,
    /// Whether any arguments came.
    pub(super) has_arguments: bool,
    /// Arguments that came when the item began. Most servers send none there.
    pub(super) spare_arguments: String,
    /// Half a character at the end of what came.
    pub(super) half: Mender,
    native: Native,
}

/// What an item is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    Message,
    Reasoning,
    /// A call for us to run.
    Call,
    /// Such a call with free text in place of arguments.
    CustomCall,
    /// The server's own business.
    #[default]
    Other,
}

/// An item in the server's own words.
#[derive(Debug, Default)]
enum Native {
    /// It has not come whole.
    #[default]
    Missing,
    /// The server would not take it back.
    Unfit,
    Whole {
        json: String,
        role: Role,
    },
}

/// What an item needs around it to be taken back.
#[derive(Debug)]
enum Role {
    Free,
    /// The result of this call has to be there.
    Awaits(String),
    /// It is the result of this call.
    Answers(String),
}

impl Kind {
    pub(super) fn of(word: &str) -> Self {
        match word {
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "function_call" => Self::Call,
            "custom_tool_call" => Self::CustomCall,
            _ => Self::Other,
        }
    }

    pub(super) const fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::CustomCall)
    }
}

impl Items {
    /// The item that an event belongs to; a new one if nothing of it came yet.
    pub(super) fn at(&mut self, place: Place<'_>) -> Result<usize, TooLarge> {
        if self.list.get(self.last).is_some_and(|slot| slot.is_at(place)) {
            return Ok(self.last);
        }
        match self.list.iter().rposition(|slot| slot.is_at(place)) {
            Some(at) => {
                self.last = at;
                Ok(at)
            }
            None => self.append(place),
        }
    }

    /// The item that begins here. One without index and id is new by that.
    pub(super) fn begin(&mut self, place: Place<'_>) -> Result<usize, TooLarge> {
        match (place.index, place.id) {
            (None, "") => self.append(place),
            _ => self.at(place),
        }
    }

    /// The item that the last event tells again, if it came before.
    pub(super) fn known(&self, item: &Item<'_>, position: usize) -> Option<usize> {
        let kind = Kind::of(&item.r#type.0);
        let by = |fits: &dyn Fn(usize, &Slot) -> bool| {
            (0..self.list.len())
                .rev()
                .find(|at| self.list.get(*at).is_some_and(|slot| fits(*at, slot)))
        };
        let position = u64::try_from(position).ok();
        by(&|_, slot| !item.id.is_empty() && slot.id == item.id.0)
            .or_else(|| {
                by(&|_, slot| {
                    !item.call_id.is_empty() && slot.call_id == item.call_id.0 && slot.kind == kind
                })
            })
            .or_else(|| {
                by(&|at, slot| {
                    slot.index.or(u64::try_from(at).ok()) == position
                        && slot.kind == kind
                        // Two calls in one place are not the same call.
                        && (slot.call_id.is_empty() || item.call_id.is_empty())
                })
            })
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Slot> {
        self.list.get_mut(at)
    }

    pub(super) fn any(&self, kind: Kind) -> bool {
        self.list.iter().any(|slot| slot.kind == kind)
    }

    /// Every item with its number.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Slot)> {
        (0..).zip(&mut self.list)
    }

    /// Keeps an item that came whole, in the server's own words.
    pub(super) fn keep(
        &mut self,
        at: usize,
        item: &Item<'_>,
        raw: &RawValue,
    ) -> Result<(), TooLarge> {
        self.native_bytes = self.native_bytes.saturating_add(raw.get().len());
        if self.native_bytes > MAX_ANSWER_BYTES {
            return Err(TooLarge);
        }
        if let Some(slot) = self.list.get_mut(at) {
            slot.native = Native::of(item, raw);
        }
        Ok(())
    }

    /// Whether the item has come whole.
    pub(super) fn is_whole(&self, at: usize) -> bool {
        self.list.get(at).is_some_and(Slot::is_whole)
    }

    /// The message in the server's own words, if the server would take it back.
    /// Otherwise it is better told by its text and calls.
    pub(super) fn native_parts(self) -> Option<Vec<String>> {
        let mut list = self.list;
        list.sort_by_key(|slot| slot.index.unwrap_or(u64::MAX));
        let mut calls: Vec<&str> =
            list.iter().filter(|slot| slot.kind.is_call()).map(|slot| &*slot.call_id).collect();
        let count = calls.len();
        calls.sort_unstable();
        calls.dedup();
        if calls.len() < count {
            return None;
        }
        let mut parts = Vec::with_capacity(list.len());
        for slot in list {
            match slot.native {
                Native::Whole { json, role } => parts.push((json, role)),
                Native::Missing | Native::Unfit => return None,
            }
        }
        let answered = |call: &String| {
            parts.iter().any(|(_, role)| matches!(role, Role::Answers(id) if id == call))
        };
        if parts.iter().any(|(_, role)| matches!(role, Role::Awaits(call) if !answered(call))) {
            return None;
        }
        let parts: Vec<String> = parts.into_iter().map(|(json, _)| json).collect();
        (!parts.is_empty()).then_some(parts)
    }

    /// A new item.
    pub(super) fn append(&mut self, place: Place<'_>) -> Result<usize, TooLarge> {
        if self.list.len() >= MAX_ITEMS {
            return Err(TooLarge);
        }
        let slot = Slot { index: place.index, id: place.id.to_owned(), ..Slot::default() };
        self.list.push(slot);
        self.last = self.list.len() - 1;
        Ok(self.last)
    }
}

impl Slot {
    /// An event that names no item goes on with the last.
    fn is_at(&self, place: Place<'_>) -> bool {
        match (self.index, place.index) {
            (Some(ours), Some(theirs)) => ours == theirs,
            (_, None) if place.id.is_empty() => true,
            _ => !place.id.is_empty() && self.id == place.id,
        }
    }

    /// Whether it has come whole.
    pub(super) const fn is_whole(&self) -> bool {
        !matches!(self.native, Native::Missing)
    }

    /// The item itself came: what it is, and by which names it is known.
    pub(super) fn describe(&mut self, item: &Item<'_>) {
        if self.id.is_empty() {
            self.id = item.id.0.clone().into_owned();
        }
        if self.call_id.is_empty() {
            self.call_id = item.call_id.0.clone().into_owned();
        }
        if self.kind == Kind::Other {
            self.kind = Kind::of(&item.r#type.0);
        }
    }
}

impl Native {
    fn of(item: &Item<'_>, raw: &RawValue) -> Self {
        match Role::of(item) {
            Some(role) => Self::Whole { json: raw.get().to_owned(), role },
            None => Self::Unfit,
        }
    }
}

impl Role {
    /// `None` for an item that the server would not take back.
    fn of(item: &Item<'_>) -> Option<Self> {
        let call_id = || item.call_id.0.clone().into_owned();
        let named = !item.call_id.is_empty() && !item.name.is_empty();
        let whole = item.status.0 != "incomplete";
        match &*item.r#type.0 {
            "function_call" => {
                let arguments = Arguments::parse(item.arguments().into_owned());
                let usable = named && whole && matches!(arguments, Arguments::Whole(_));
                usable.then_some(Self::Free)
            }
            "custom_tool_call" => (named && whole).then_some(Self::Free),
            // OpenAI refuses the id of reasoning that it did not store.
            "reasoning" => {
                let readable = item.encrypted_content.0 || !item.content.0.is_empty();
                readable.then_some(Self::Free)
            }
            // Tools of OpenAI that the client has to run, which we cannot.
            "local_shell_call" | "shell_call" | "computer_call" | "apply_patch_call" => {
                Some(Self::Awaits(call_id()))
            }
            "tool_search_call" if item.execution.0 == "client" => Some(Self::Awaits(call_id())),
            word if word.ends_with("_output") => Some(Self::Answers(call_id())),
            "" => None,
            _ => Some(Self::Free),
        }
    }
}
