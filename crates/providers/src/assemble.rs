//! Deltas to one message, each text accumulated once.

use turnbuckle_errors::Usage;

use crate::{
    Arguments, AssistantMessage, CompletedMessage, FinishReason, PartialMessage, ToolCall,
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
    bytes: usize,
}

#[derive(Debug, Default)]
struct CallInParts {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
    free_text: bool,
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
        let slot = self.slot(piece.index, id, name.is_some());
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
        call.arguments.push_str(piece.arguments);
        call.free_text |= piece.free_text;
        Ok(delta)
    }

    /// The provider said why the message ended. The first word counts.
    pub fn finish(&mut self, finish: FinishReason, raw: Option<&str>) {
        self.finish.get_or_insert_with(|| (finish, raw.map(str::to_owned)));
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
        let calls = self.calls.into_iter().enumerate();
        Some(CompletedMessage {
            message: AssistantMessage {
                text: self.text,
                reasoning: self.reasoning,
                tool_calls: calls.map(|(slot, call)| call.whole(slot)).collect(),
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
    fn slot(&mut self, index: Option<u64>, id: Option<&str>, named: bool) -> usize {
        let known = match (id, index) {
            (Some(id), index) => {
                self.last_where(|call| call.id.as_deref() == Some(id)).or_else(|| {
                    self.last_where(|call| {
                        index.is_some() && call.index == index && (call.id.is_none() || !named)
                    })
                })
            }
            (None, Some(index)) => self.last_where(|call| call.index == Some(index)),
            (None, None) if named => None,
            (None, None) => self.calls.len().checked_sub(1),
        };
        known.unwrap_or_else(|| {
            self.calls.push(CallInParts { index, ..CallInParts::default() });
            self.calls.len() - 1
        })
    }

    fn last_where(&self, fits: impl Fn(&CallInParts) -> bool) -> Option<usize> {
        self.calls.iter().rposition(fits)
    }
}

impl CallInParts {
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
                true => Arguments::Whole(serde_json::Value::String(self.arguments).to_string()),
                false => Arguments::parse(self.arguments),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece<'a>(
        index: Option<u64>,
        id: &'a str,
        name: &'a str,
        arguments: &'a str,
    ) -> WireCall<'a> {
        WireCall { index, id: Some(id), name: Some(name), arguments, free_text: false }
    }

    #[track_caller]
    fn check(pieces: &[WireCall<'_>], expected: &[(&str, &str, &str)]) {
        let mut assembler = Assembler::new();
        for piece in pieces {
            assembler.tool_call(*piece).unwrap();
        }
        assembler.finish(FinishReason::Stop, Some("stop"));
        let message = assembler.complete().unwrap();
        assert_eq!(message.finish(), FinishReason::ToolCalls);
        let calls: Vec<_> = message
            .message()
            .tool_calls
            .iter()
            .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_json()))
            .collect();
        assert_eq!(calls, expected);
    }

    #[test]
    fn pieces_find_their_call_by_index_id_or_order() {
        // As OpenAI sends them.
        check(
            &[
                piece(Some(0), "a", "f", ""),
                piece(Some(1), "b", "g", "{}"),
                piece(Some(0), "", "", r#"{"x"#),
                piece(Some(0), "", "", r#"":1}"#),
            ],
            &[("a", "f", r#"{"x":1}"#), ("b", "g", "{}")],
        );
        // Every parallel call numbered 0, each with its own id.
        check(
            &[piece(Some(0), "a", "f", "{}"), piece(Some(0), "b", "f", "{}")],
            &[("a", "f", "{}"), ("b", "f", "{}")],
        );
        // Id and name repeated with each piece.
        check(&[piece(Some(0), "a", "f", "{"), piece(Some(0), "a", "f", "}")], &[("a", "f", "{}")]);
        // No index and no id after the first piece.
        check(&[piece(None, "a", "f", "{"), piece(None, "", "", "}")], &[("a", "f", "{}")]);
        // No index and no id at all: a name begins a call.
        check(
            &[piece(None, "", "f", "{}"), piece(None, "", "g", "{}")],
            &[("call_1", "f", "{}"), ("call_2", "g", "{}")],
        );
        // Another id with every piece, and a name only with the first.
        check(&[piece(Some(0), "a", "f", "{"), piece(Some(0), "b", "", "}")], &[("a", "f", "{}")]);
        // The id comes after the first piece.
        check(&[piece(Some(0), "", "f", "{"), piece(Some(0), "a", "", "}")], &[("a", "f", "{}")]);
    }

    #[test]
    fn without_a_finish_reason_there_is_no_message() {
        let mut assembler = Assembler::new();
        assembler.text("all of it").unwrap();
        assert_eq!(assembler.partial().text, "all of it");
        assert_eq!(assembler.complete(), None);
    }

    #[test]
    fn a_length_finish_stays_a_length_finish() {
        let mut assembler = Assembler::new();
        assembler.tool_call(piece(Some(0), "a", "f", r#"{"x"#)).unwrap();
        assembler.finish(FinishReason::Length, Some("length"));
        let message = assembler.complete().unwrap();
        assert_eq!(message.finish(), FinishReason::Length);
        assert_eq!(message.message().tool_calls[0].arguments, Arguments::Broken(r#"{"x"#.into()));
    }

    #[test]
    fn a_refusal_is_visible_text_and_kept_apart() {
        let mut assembler = Assembler::new();
        assembler.text("Well. ").unwrap();
        assembler.refusal("I can").unwrap();
        assembler.refusal("not.").unwrap();
        assembler.finish(FinishReason::Stop, Some("stop"));
        let message = assembler.complete().unwrap();
        assert_eq!(message.message().text, "Well. I cannot.");
        assert_eq!(message.refusal_text(), Some("I cannot."));
        assert!(message.is_refusal());
    }

    #[test]
    fn free_text_arguments_become_a_json_string() {
        let mut assembler = Assembler::new();
        for arguments in ["4 \"", "+ 4"] {
            assembler
                .tool_call(WireCall { arguments, free_text: true, ..piece(Some(0), "a", "f", "") })
                .unwrap();
        }
        assembler.finish(FinishReason::ToolCalls, None);
        let message = assembler.complete().unwrap();
        assert_eq!(message.message().tool_calls[0].arguments.as_json(), r#""4 \"+ 4""#);
    }

    #[test]
    fn an_answer_is_bounded() {
        let mut assembler = Assembler::new();
        let mebibyte = "x".repeat(1024 * 1024);
        for _ in 0..64 {
            assembler.text(&mebibyte).unwrap();
        }
        assert_eq!(assembler.reasoning("x"), Err(TooLarge));

        let mut assembler = Assembler::new();
        let begun = (0..).take_while(|_| assembler.tool_call(piece(None, "", "f", "")).is_ok());
        assert_eq!(begun.count(), 1024);
    }
}
