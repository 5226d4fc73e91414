//! Deltas to one message, each text accumulated once.

use std::collections::HashSet;

use turnbuckle_errors::Usage;

use crate::{
    Arguments, AssistantMessage, CompletedMessage, FinishReason, Native, PartialMessage, ToolCall,
    ToolCallDelta,
};

/// The most bytes of text, reasoning and arguments that one answer may hold.
///
/// Far above what any model writes (a million tokens are some 4 MiB); it bounds
/// the memory that a runaway server can claim.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// What a call counts for besides its arguments, so that no server can begin calls
/// without end: some thousand of them fill an answer.
const CALL_BYTES: usize = 64 * 1024;

/// The answer grew beyond [`MAX_ANSWER_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is larger than 64 MiB")]
pub struct TooLarge;

/// Puts the deltas of one attempt together. Each attempt gets a fresh one.
#[derive(Debug, Default)]
pub struct Assembler {
    text: String,
    reasoning: String,
    calls: Vec<CallInParts>,
    finish: Option<(FinishReason, Option<String>)>,
    refused: bool,
    refusal: String,
    usage: Usage,
    native: Option<Native>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct CallInParts {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
    free_text: bool,
    /// Where the last piece of the arguments begins.
    last_piece: usize,
    /// Each piece so far began with the whole of the one before.
    repeats: bool,
    /// The provider said that it is not whole.
    broken_off: bool,
}

/// A piece of a tool call as it came over the wire, before it is known which
/// call it belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub struct WireCall<'a> {
    /// The call's number in the message.
    pub index: Option<u64>,
    /// Its id. An empty one is none.
    pub id: Option<&'a str>,
    /// The tool's name. An empty one is none.
    pub name: Option<&'a str>,
    /// More of the arguments' text.
    pub arguments: &'a str,
    /// The arguments are free text (OpenAI's custom tools), not JSON.
    pub free_text: bool,
}

impl Assembler {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// More visible text.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] once the answer is above its bound.
    pub fn text(&mut self, delta: &str) -> Result<(), TooLarge> {
        self.grow(delta.len())?;
        self.text.push_str(delta);
        Ok(())
    }

    /// Takes the visible text back, for a server that wrote its error there.
    #[cfg(feature = "openai-chat")]
    pub(crate) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// More reasoning.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] once the answer is above its bound.
    pub fn reasoning(&mut self, delta: &str) -> Result<(), TooLarge> {
        self.grow(delta.len())?;
        self.reasoning.push_str(delta);
        Ok(())
    }

    /// More of a tool call; says which call of the message it belongs to.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] once the answer is above its bound.
    pub fn tool_call(&mut self, piece: WireCall<'_>) -> Result<ToolCallDelta, TooLarge> {
        self.grow(piece.arguments.len())?;
        let id = piece.id.filter(|id| !id.is_empty());
        let name = piece.name.filter(|name| !name.is_empty());
        let known = self.calls.len();
        let slot = self.slot(piece.index, id, name);
        if self.calls.len() > known {
            self.grow(CALL_BYTES)?;
        }
        let mut delta = ToolCallDelta {
            slot,
            arguments: piece.arguments.to_owned(),
            ..ToolCallDelta::default()
        };
        let Some(call) = self.calls.get_mut(slot) else { return Ok(delta) };
        if call.id.is_none() {
            call.id = id.map(str::to_owned);
            delta.id.clone_from(&call.id);
        }
        // Servers that repeat the name with every piece send it whole each time.
        if let (true, Some(name)) = (call.name.is_empty(), name) {
            name.clone_into(&mut call.name);
            delta.name = Some(name.to_owned());
        }
        call.append(piece.arguments);
        call.free_text |= piece.free_text;
        Ok(delta)
    }

    /// The provider told all arguments of the call with this index once more. They
    /// replace what its pieces gave.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] once the answer is above its bound.
    pub fn retell_call(&mut self, index: u64, arguments: &str) -> Result<(), TooLarge> {
        let slot = self.last_where(|call| call.index == Some(index));
        let Some(call) = slot.and_then(|slot| self.calls.get_mut(slot)) else { return Ok(()) };
        if call.arguments == arguments {
            return Ok(());
        }
        arguments.clone_into(&mut call.arguments);
        (call.last_piece, call.repeats) = (0, false);
        self.grow(arguments.len())
    }

    /// The provider broke the call with this index off, so it can never be run.
    pub fn cut_call(&mut self, index: u64) {
        let slot = self.last_where(|call| call.index == Some(index));
        if let Some(call) = slot.and_then(|slot| self.calls.get_mut(slot)) {
            call.broken_off = true;
        }
    }

    /// The limit was reached. Free text does not show whether it was cut, so the last
    /// call can never be run if it takes some.
    #[cfg(feature = "openai-chat")]
    pub(crate) fn cut_free_text(&mut self) {
        if let Some(call) = self.calls.last_mut() {
            call.broken_off |= call.free_text;
        }
    }

    /// The provider said why the message ended. The first word counts.
    pub fn finish(&mut self, finish: FinishReason, raw: Option<&str>) {
        self.finish.get_or_insert_with(|| (finish, raw.map(str::to_owned)));
    }

    /// The provider said anew why the message ended. This word counts, and not the
    /// one before it.
    #[cfg(feature = "gemini")]
    pub(crate) fn finish_anew(&mut self, finish: FinishReason, raw: Option<&str>) {
        self.finish = Some((finish, raw.map(str::to_owned)));
    }

    /// Whether the provider said why the message ended.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The text is the model's refusal.
    pub const fn refuse(&mut self) {
        self.refused = true;
    }

    /// More of a refusal that came in a field of its own. It is visible text,
    /// and is kept apart as well.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] once the answer is above its bound.
    pub fn refusal(&mut self, delta: &str) -> Result<(), TooLarge> {
        self.text(delta)?;
        self.refused = true;
        self.refusal.push_str(delta);
        Ok(())
    }

    /// Token counts came; a later report replaces an earlier one.
    pub const fn usage(&mut self, usage: Usage) {
        self.usage = usage;
    }

    /// The message in the provider's own words, to be sent back as it is.
    pub fn native(&mut self, native: Native) {
        self.native = Some(native);
    }

    /// The visible text so far.
    #[must_use]
    pub fn text_so_far(&self) -> &str {
        &self.text
    }

    /// The reasoning so far.
    #[must_use]
    pub fn reasoning_so_far(&self) -> &str {
        &self.reasoning
    }

    /// The arguments so far of the call in this place of the message.
    #[must_use]
    pub fn arguments_so_far(&self, slot: usize) -> Option<&str> {
        self.calls.get(slot).map(|call| call.arguments.as_str())
    }

    /// What came so far.
    #[must_use]
    pub fn partial(&self) -> PartialMessage {
        PartialMessage {
            text: self.text.clone(),
            reasoning: self.reasoning.clone(),
            tool_calls: self.calls.iter().enumerate().map(|(slot, call)| call.cut(slot)).collect(),
            usage: self.usage,
        }
    }

    /// The whole message, if the provider said that it ended.
    ///
    /// A normal end with a tool call in it reads `tool_calls`, whatever word the
    /// server used (several say `stop`).
    #[must_use]
    pub fn complete(self) -> Option<CompletedMessage> {
        let (mut finish, finish_raw) = self.finish?;
        if finish == FinishReason::Stop && !self.calls.is_empty() {
            finish = FinishReason::ToolCalls;
        }
        let cut_by_limit = finish == FinishReason::Length;
        Some(CompletedMessage {
            message: AssistantMessage {
                text: self.text,
                reasoning: self.reasoning,
                tool_calls: whole_calls(self.calls, cut_by_limit),
                native: self.native,
            },
            finish,
            finish_raw,
            refused: self.refused,
            refusal: self.refusal,
            usage: self.usage,
        })
    }

    const fn grow(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_ANSWER_BYTES { Err(TooLarge) } else { Ok(()) }
    }

    /// Finds the call that a piece belongs to, or begins one.
    ///
    /// An id that is known names its call. A new id with a name begins a call, even
    /// under an index that is taken: some servers number every parallel call 0.
    /// Without a name it goes on with the call of its index, for servers that
    /// invent an id per piece. Without an id the index decides, else the last call.
    ///
    /// One id under two indexes, each with a name, is two calls; so is one index
    /// with two names.
    fn slot(&mut self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> usize {
        let named = name.is_some();
        let known = match (id, index) {
            (Some(id), index) => self
                .last_where(|call| {
                    let elsewhere = index.is_some() && call.index.is_some() && call.index != index;
                    call.id.as_deref() == Some(id) && !(named && elsewhere)
                })
                .or_else(|| {
                    self.last_where(|call| {
                        index.is_some() && call.index == index && (call.id.is_none() || !named)
                    })
                }),
            (None, Some(index)) => self
                .calls
                .iter()
                .rposition(|call| call.index == Some(index))
                .filter(|slot| self.calls.get(*slot).is_some_and(|call| call.takes(name))),
            (None, None) if named => None,
            (None, None) => self.calls.len().checked_sub(1),
        };
        known.unwrap_or_else(|| {
            self.calls.push(CallInParts { index, repeats: true, ..CallInParts::default() });
            self.calls.len() - 1
        })
    }

    fn last_where(&self, fits: impl Fn(&CallInParts) -> bool) -> Option<usize> {
        self.calls.iter().rposition(fits)
    }
}

/// The calls of a complete message, each with an id of its own, so that each can
/// have exactly one result.
fn whole_calls(parts: Vec<CallInParts>, cut_by_limit: bool) -> Vec<ToolCall> {
    let last = parts.len().saturating_sub(1);
    let mut taken = HashSet::new();
    parts
        .into_iter()
        .enumerate()
        .map(|(slot, part)| {
            // The limit may have cut the last call before its arguments began.
            let never_began = cut_by_limit && slot == last && part.arguments.trim().is_empty();
            let mut call = part.whole(slot);
            if never_began {
                call.arguments = Arguments::Broken(String::new());
            }
            // An empty name would be refused each time the history is sent.
            if call.name.is_empty() {
                call.name = "unnamed".to_owned();
            }
            while !taken.insert(call.id.clone()) {
                call.id = format!("{}_{}", call.id, slot + 1);
            }
            call
        })
        .collect()
}

impl CallInParts {
    /// Whether a piece with this name can go on with this call.
    fn takes(&self, name: Option<&str>) -> bool {
        name.is_none_or(|name| self.name.is_empty() || self.name == name)
    }

    fn append(&mut self, piece: &str) {
        if !piece.is_empty() {
            let before = self.arguments.get(self.last_piece..).unwrap_or_default();
            self.repeats = self.repeats && piece.starts_with(before);
            self.last_piece = self.arguments.len();
            self.arguments.push_str(piece);
        }
    }

    /// The arguments as JSON. Qianfan sends all of them so far with each piece;
    /// then the last piece alone is whole.
    fn parsed(arguments: String, repeats: bool, last_piece: usize) -> Arguments {
        let arguments = Arguments::parse(arguments);
        match &arguments {
            Arguments::Broken(raw) if repeats && last_piece > 0 => {
                let last = raw.get(last_piece..).unwrap_or_default();
                match Arguments::parse(last.to_owned()) {
                    Arguments::Broken(_) => arguments,
                    whole => whole,
                }
            }
            _ => arguments,
        }
    }

    /// The call's id; a server that gives none gets one made from its place.
    fn id_or_made(id: Option<String>, slot: usize) -> String {
        id.unwrap_or_else(|| format!("call_{}", slot + 1))
    }

    fn cut(&self, slot: usize) -> ToolCall {
        ToolCall {
            id: Self::id_or_made(self.id.clone(), slot),
            name: self.name.clone(),
            arguments: Arguments::Broken(self.arguments.clone()),
        }
    }

    fn whole(self, slot: usize) -> ToolCall {
        ToolCall {
            id: Self::id_or_made(self.id, slot),
            name: self.name,
            arguments: match self.free_text {
                _ if self.broken_off => Arguments::Broken(self.arguments),
                true => Arguments::Whole(serde_json::Value::String(self.arguments).to_string()),
                false => Self::parsed(self.arguments, self.repeats, self.last_piece),
            },
        }
    }
}

#[cfg(test)]
mod tests;
