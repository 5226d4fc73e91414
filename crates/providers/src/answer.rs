//! What one answer has given so far: the message in the making, and the events
//! that nobody has taken yet.

use std::{collections::VecDeque, ops::ControlFlow};

use serde_json::value::RawValue;
use turnbuckle_errors::{ErrorBody, Fact, InBandError, Protocol, Usage};

use crate::{
    Assembler, CompletedMessage, FinishReason, Native, PartialMessage, StreamEvent, TooLarge,
    assemble::WireCall,
};

/// Why decoding stops: the answer is over, or something went wrong.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stop {
    /// The dialect's last event came.
    Done,
    Failed(Fact),
}

impl Stop {
    pub(crate) const fn in_band(body: ErrorBody) -> Self {
        Self::Failed(Fact::InBand(InBandError::new(body)))
    }

    pub(crate) const fn protocol(broken: Protocol) -> Self {
        Self::Failed(Fact::Protocol(broken))
    }
}

impl From<TooLarge> for Stop {
    fn from(_: TooLarge) -> Self {
        Self::protocol(Protocol::AnswerTooLarge)
    }
}

/// The answer in the making. A dialect writes into it, a stream takes events out.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    assembler: Assembler,
    /// Set when the assembler has given its message away.
    last: Option<PartialMessage>,
    waiting: VecDeque<StreamEvent>,
    started: bool,
    progressed: bool,
    foreign: bool,
    events: u64,
    usage: Option<Usage>,
}

impl Answer {
    /// An event of the dialect came that is neither an error nor an end marker.
    pub(crate) fn event(&mut self) {
        self.events += 1;
        if !std::mem::replace(&mut self.started, true) {
            self.waiting.push_back(StreamEvent::Started);
        }
    }

    /// Reads the values of an event or a body by `one`: one value, or a list of them.
    /// Google wraps errors in a list, and whole streams where `alt=sse` got lost on the
    /// way; so do the gateways to it, in every dialect.
    pub(crate) fn each_value(
        &mut self,
        json: &str,
        mut one: impl FnMut(&mut Self, &str) -> ControlFlow<Stop>,
    ) -> ControlFlow<Stop> {
        let json = json.trim_start();
        if json.trim_end() == "null" {
            // It says nothing: a sign of life at most.
            return ControlFlow::Continue(());
        }
        // A struct could be read out of a list, too.
        let mut one = |answer: &mut Self, json: &str| match json.starts_with('{') {
            true => one(answer, json),
            false => answer.undecodable(),
        };
        if !json.starts_with('[') {
            return one(self, json);
        }
        let Ok(values) = serde_json::from_str::<Vec<&RawValue>>(json) else {
            return self.undecodable();
        };
        // The list is whole JSON, so what is no event in it was not cut either.
        self.foreign_event();
        values.iter().try_for_each(|value| one(self, value.get()))
    }

    /// An event that cannot be read takes nothing from an answer that is finished.
    pub(crate) fn undecodable(&self) -> ControlFlow<Stop> {
        match self.is_finished() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(Stop::protocol(Protocol::Undecodable)),
        }
    }

    /// JSON came that says nothing this dialect knows: no sign of an answer.
    #[cfg(any(feature = "openai-chat", feature = "gemini"))]
    pub(crate) const fn foreign_event(&mut self) {
        self.foreign = true;
    }

    /// Whether such JSON came, and no event of the dialect.
    pub(crate) const fn is_foreign(&self) -> bool {
        self.foreign && self.events == 0
    }

    /// Takes the visible text back, for a server that wrote its error there.
    #[cfg(feature = "openai-chat")]
    pub(crate) fn take_text(&mut self) -> String {
        self.waiting.retain(|event| !matches!(event, StreamEvent::Text(_)));
        self.assembler.take_text()
    }

    pub(crate) fn text(&mut self, delta: impl Into<String> + AsRef<str>) -> Result<(), TooLarge> {
        if !delta.as_ref().is_empty() {
            self.assembler.text(delta.as_ref())?;
            self.give(StreamEvent::Text(delta.into()));
        }
        Ok(())
    }

    #[cfg_attr(
        not(any(feature = "openai-chat", feature = "openai-responses")),
        expect(dead_code, reason = "the other dialects have no field for refusals")
    )]
    pub(crate) fn refusal(
        &mut self,
        delta: impl Into<String> + AsRef<str>,
    ) -> Result<(), TooLarge> {
        if !delta.as_ref().is_empty() {
            self.assembler.refusal(delta.as_ref())?;
            self.give(StreamEvent::Text(delta.into()));
        }
        Ok(())
    }

    pub(crate) fn reasoning(
        &mut self,
        delta: impl Into<String> + AsRef<str>,
    ) -> Result<(), TooLarge> {
        if !delta.as_ref().is_empty() {
            self.assembler.reasoning(delta.as_ref())?;
            self.give(StreamEvent::Reasoning(delta.into()));
        }
        Ok(())
    }

    pub(crate) fn tool_call(&mut self, piece: WireCall<'_>) -> Result<(), TooLarge> {
        let delta = self.assembler.tool_call(piece)?;
        self.give(StreamEvent::ToolCall(delta));
        Ok(())
    }

    /// All arguments of a call once more; see [`Assembler::retell_call`].
    #[cfg(feature = "openai-responses")]
    pub(crate) fn retell_call(&mut self, index: u64, arguments: &str) -> Result<(), TooLarge> {
        self.assembler.retell_call(index, arguments)
    }

    /// A call that can never be run; see [`Assembler::cut_call`].
    #[cfg(feature = "openai-responses")]
    pub(crate) fn cut_call(&mut self, index: u64) {
        self.assembler.cut_call(index);
    }

    /// The limit was reached; see [`Assembler::cut_free_text`].
    #[cfg(feature = "openai-chat")]
    pub(crate) fn cut_free_text(&mut self) {
        self.assembler.cut_free_text();
    }

    pub(crate) fn finish(&mut self, finish: FinishReason, raw: &str) {
        // Said again it is no progress: the grace after it must end.
        self.progressed |= !self.is_finished();
        self.assembler.finish(finish, Some(raw).filter(|raw| !raw.is_empty()));
    }

    /// The finish reason that counts in place of one that came before it.
    #[cfg(feature = "gemini")]
    pub(crate) fn finish_anew(&mut self, finish: FinishReason, raw: &str) {
        self.assembler.finish_anew(finish, Some(raw).filter(|raw| !raw.is_empty()));
    }

    /// Token counts. A later report replaces an earlier one, an empty one does not.
    pub(crate) fn usage(&mut self, usage: Usage) {
        if usage != Usage::default() {
            self.usage = Some(usage);
            self.assembler.usage(usage);
        }
    }

    /// The message in the provider's own words, to be sent back as it is.
    pub(crate) fn native(&mut self, native: Native) {
        self.assembler.native(native);
    }

    /// Something came that belongs to the answer and is not shown.
    #[cfg_attr(
        not(any(feature = "anthropic", feature = "gemini")),
        expect(dead_code, reason = "the other dialects show what they send")
    )]
    pub(crate) const fn progress(&mut self) {
        self.progressed = true;
    }

    /// What was accumulated so far, for a dialect that quotes from it.
    #[cfg_attr(
        not(any(feature = "anthropic", feature = "gemini")),
        expect(dead_code, reason = "the other dialects do not quote")
    )]
    pub(crate) const fn so_far(&self) -> &Assembler {
        &self.assembler
    }

    pub(crate) const fn is_finished(&self) -> bool {
        self.assembler.is_finished()
    }

    /// Whether any delta came, or the finish reason, since this was last asked.
    pub(crate) const fn take_progress(&mut self) -> bool {
        std::mem::replace(&mut self.progressed, false)
    }

    /// How many events of the dialect came.
    pub(crate) const fn events(&self) -> u64 {
        self.events
    }

    /// The token counts, if the provider reported any.
    pub(crate) const fn reported_usage(&self) -> Option<Usage> {
        self.usage
    }

    /// The next event for the consumer.
    pub(crate) fn take_event(&mut self) -> Option<StreamEvent> {
        self.waiting.pop_front()
    }

    /// Whether an event waits to be taken.
    pub(crate) fn has_event(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Drops the events that nobody has taken.
    pub(crate) fn clear_events(&mut self) {
        self.waiting.clear();
    }

    pub(crate) fn partial(&self) -> PartialMessage {
        self.last.clone().unwrap_or_else(|| self.assembler.partial())
    }

    /// The whole message, once, if the provider said that it ended.
    pub(crate) fn complete(&mut self) -> Option<CompletedMessage> {
        self.last = Some(self.assembler.partial());
        std::mem::take(&mut self.assembler).complete()
    }

    fn give(&mut self, event: StreamEvent) {
        self.progressed = true;
        self.waiting.push_back(event);
    }
}

/// How one provider's events read. Pure: it is given whole events and writes
/// what they say into an [`Answer`].
pub(crate) trait Dialect: Send {
    /// One event of the stream.
    fn event(&mut self, answer: &mut Answer, name: &str, data: &str) -> ControlFlow<Stop>;

    /// A whole JSON body in answer to a streaming request.
    fn document(&mut self, answer: &mut Answer, body: &str) -> ControlFlow<Stop>;

    /// The message in the provider's own words, once the answer is over. For a dialect
    /// whose answer may go on after its finish reason; others tell it with that.
    fn native(&mut self, answer: &Answer) -> Option<Native> {
        let _ = answer;
        None
    }
}
