//! The events of a Chat Completions stream.

use std::{borrow::Cow, ops::ControlFlow};

use super::{
    facts::{Finish, broken_off, error_in, finish, in_band},
    native::{Collector, native},
    think::Splitter,
    wire::{Call, Chunk, Delta, Function, Gives},
};
use crate::{
    FinishReason, TooLarge,
    answer::{Answer, Dialect, Stop},
    assemble::WireCall,
    halves::{self, Mender},
    loose::Object,
    template::{Template, Varying},
};

/// OpenAI pads its chunks, Mistral does in `p`; Groq's tools name each chunk anew; a few
/// servers tell the second. None of it is read.
const VARYING: &[Varying] = &[
    Varying::Text(&["id"]),
    Varying::Number(&["created"]),
    Varying::Text(&["obfuscation"]),
    Varying::Text(&["p"]),
];

/// Reads chunks into an answer. The answer is complete once a finish reason was
/// seen; `[DONE]` only ends the stream.
#[derive(Debug)]
pub(super) struct Chat {
    template: Template<Gives>,
    /// A delta came, so a whole message in a later chunk only repeats it.
    streamed: bool,
    text: Mender,
    reasoning: Mender,
    arguments: Mender,
    /// The index of the call whose arguments wait for half a character.
    waiting_call: Option<u64>,
    /// Where the server means reasoning by `<think>`.
    think: Option<Splitter>,
    opaque: Collector,
    /// The profile and the model that are asked, whose opaque parts are kept.
    origin: Option<(&'static str, String)>,
}

impl Default for Chat {
    fn default() -> Self {
        Self {
            template: Template::new(VARYING),
            streamed: false,
            text: Mender::default(),
            reasoning: Mender::default(),
            arguments: Mender::default(),
            waiting_call: None,
            think: None,
            opaque: Collector::default(),
            origin: None,
        }
    }
}

impl Dialect for Chat {
    fn event(&mut self, answer: &mut Answer, _: &str, data: &str) -> ControlFlow<Stop> {
        if let Some((found, &gives)) = self.template.read(data) {
            answer.event();
            let Gives::Arguments(index) = gives else {
                return self.delta(answer, Delta::of(gives, found.delta), "", false);
            };
            self.streamed = true;
            let piece = WireCall { index, ..WireCall::default() };
            return match answer.is_finished() {
                true => ControlFlow::Continue(()),
                false => or_stop(self.piece_of_call(answer, piece, found.delta, false)),
            };
        }
        if data.trim() == "[DONE]" {
            return ControlFlow::Break(Stop::Done);
        }
        answer.each_value(data, |answer, json| self.json(answer, json))
    }

    fn document(&mut self, answer: &mut Answer, body: &str) -> ControlFlow<Stop> {
        answer.each_value(body, |answer, json| self.json(answer, json))
    }
}

impl Chat {
    /// Every event is parsed.
    #[cfg(test)]
    pub(super) fn without_template(mut self) -> Self {
        self.template = Template::off();
        self
    }

    /// For a server that means reasoning by a `<think>` at the start of its text.
    pub(super) fn with_think_tags() -> Self {
        Self { think: Some(Splitter::default()), ..Self::default() }
    }

    /// Keeps the opaque parts, for the server of this profile and this model.
    pub(super) fn asking(mut self, profile: &'static str, model: &str) -> Self {
        self.origin = Some((profile, model.to_owned()));
        self
    }

    /// A chunk, or a list of them: Google's gateway wraps its errors so, in a body
    /// as in an event.
    fn json(&mut self, answer: &mut Answer, json: &str) -> ControlFlow<Stop> {
        let mut spare = None;
        let read: Option<(Chunk<'_>, _, _)> = halves::read(json, &mut spare);
        let Some((chunk, json, marked)) = read else { return answer.undecodable() };
        let only = chunk.only_text().filter(|_| !marked);
        self.read(answer, json, chunk, marked)?;
        if let Some((gives, text)) = only {
            self.template.learn(json, text, gives);
        }
        ControlFlow::Continue(())
    }

    fn read(
        &mut self,
        answer: &mut Answer,
        json: &str,
        chunk: Chunk<'_>,
        marked: bool,
    ) -> ControlFlow<Stop> {
        // What came with an error is dropped with the attempt, its cost is not.
        answer.usage(chunk.reported_usage());
        if chunk.is_error() {
            return ControlFlow::Break(in_band(json));
        }
        if !chunk.is_ours() {
            answer.foreign_event();
            return ControlFlow::Continue(());
        }
        answer.event();
        self.chunk(answer, chunk, marked)
    }

    fn chunk(&mut self, answer: &mut Answer, chunk: Chunk<'_>, marked: bool) -> ControlFlow<Stop> {
        let Some(choice) = chunk.choices.choice else { return ControlFlow::Continue(()) };
        let message = choice.message.filter(|_| !self.streamed);
        let word = &choice.finish_reason.0;
        match choice.delta {
            Some(Object(delta)) => self.delta(answer, delta, word, marked),
            None => self.message(answer, message.map(|message| message.0), word, marked),
        }
    }

    /// A piece of the message.
    fn delta(
        &mut self,
        answer: &mut Answer,
        delta: Delta<'_>,
        word: &str,
        marked: bool,
    ) -> ControlFlow<Stop> {
        self.streamed = true;
        self.message(answer, Some(delta), word, marked)
    }

    /// A message, or a piece of one, and the word of its end.
    fn message(
        &mut self,
        answer: &mut Answer,
        message: Option<Delta<'_>>,
        word: &str,
        marked: bool,
    ) -> ControlFlow<Stop> {
        let taken = match message {
            Some(delta) if !answer.is_finished() => self.take(answer, delta, marked),
            _ => Ok(()),
        };
        let taken = match word.is_empty() {
            true => taken,
            false => taken.and_then(|()| self.rest(answer)),
        };
        match taken {
            Ok(()) => finish_with(answer, word),
            Err(too_large) => ControlFlow::Break(too_large.into()),
        }
    }

    fn take(
        &mut self,
        answer: &mut Answer,
        mut delta: Delta<'_>,
        marked: bool,
    ) -> Result<(), TooLarge> {
        match delta.reasoning_details {
            Some(_) if marked => self.opaque.spoil(),
            Some(details) => self.opaque.details(details),
            None => {}
        }
        answer.reasoning(self.reasoning.mend(delta.take_reasoning(), marked))?;
        let text = self.text.mend(delta.content.text.0, marked);
        match &mut self.think {
            None => answer.text(text)?,
            Some(splitter) => {
                let split = splitter.take(text);
                answer.reasoning(split.reasoning)?;
                answer.text(split.text)?;
            }
        }
        if let Some(others) = delta.content.others {
            answer.refusal(self.text.mend(others.refusal.0, marked))?;
        }
        answer.refusal(self.text.mend(delta.refusal.0, marked))?;
        for Object(call) in &delta.tool_calls.0 {
            self.take_call(answer, call, marked)?;
        }
        match &delta.function_call {
            Some(legacy) if delta.tool_calls.0.is_empty() => {
                self.take_legacy_call(answer, &legacy.0, marked)
            }
            _ => Ok(()),
        }
    }

    /// The answer ends: gives out what waited for more of it.
    fn rest(&mut self, answer: &mut Answer) -> Result<(), TooLarge> {
        if answer.is_finished() {
            return Ok(());
        }
        answer.reasoning(self.reasoning.rest())?;
        let half = self.text.rest();
        match &mut self.think {
            None => answer.text(half)?,
            Some(splitter) => {
                for split in [splitter.take(Cow::Borrowed(half)), splitter.rest()] {
                    answer.reasoning(split.reasoning)?;
                    answer.text(split.text)?;
                }
            }
        }
        if let (Some((profile, model)), Some(parts)) = (&self.origin, self.opaque.parts()) {
            answer.native(native(parts, profile, model));
        }
        self.rest_of_call(answer)
    }

    fn take_legacy_call(
        &mut self,
        answer: &mut Answer,
        legacy: &Function<'_>,
        marked: bool,
    ) -> Result<(), TooLarge> {
        let (arguments, marked_here) = legacy.arguments();
        // Snowflake sends an empty object where there is no call.
        if legacy.name.is_empty() && arguments.is_empty() {
            return Ok(());
        }
        let arguments = self.arguments.mend(arguments, marked || marked_here);
        // There is never more than one.
        self.waiting_call = Some(0);
        answer.tool_call(WireCall {
            index: Some(0),
            name: Some(&legacy.name.0),
            arguments: &arguments,
            ..WireCall::default()
        })
    }

    fn take_call(
        &mut self,
        answer: &mut Answer,
        call: &Call<'_>,
        marked: bool,
    ) -> Result<(), TooLarge> {
        let (function, custom) = (&call.function.0, &call.custom.0);
        let (arguments, marked_here) = function.arguments();
        let free_text = !custom.name.is_empty() || !custom.input.is_empty();
        let says_nothing = call.id.is_empty() && function.name.is_empty() && arguments.is_empty();
        if says_nothing && !free_text {
            return Ok(());
        }
        if let Some(extra) = call.extra_content {
            self.opaque.extra(&call.id.0, extra);
        }
        let name = if free_text { &custom.name.0 } else { &function.name.0 };
        let arguments = if free_text { Cow::Borrowed(&*custom.input.0) } else { arguments };
        let piece = WireCall {
            index: call.index.0,
            id: Some(&call.id.0),
            name: Some(name),
            arguments: "",
            free_text,
        };
        self.piece_of_call(answer, piece, arguments, marked || marked_here)
    }

    /// More of a call's arguments, and perhaps of its names.
    fn piece_of_call(
        &mut self,
        answer: &mut Answer,
        piece: WireCall<'_>,
        arguments: Cow<'_, str>,
        marked: bool,
    ) -> Result<(), TooLarge> {
        let named = piece.name.is_some_and(|name| !name.is_empty());
        if self.arguments.holds() && (named || piece.index != self.waiting_call) {
            self.rest_of_call(answer)?;
        }
        let arguments = self.arguments.mend(arguments, marked);
        self.waiting_call = piece.index;
        answer.tool_call(WireCall { arguments: &arguments, ..piece })
    }

    /// Half a character at the end of a call's arguments stays alone.
    fn rest_of_call(&mut self, answer: &mut Answer) -> Result<(), TooLarge> {
        let arguments = self.arguments.rest();
        if arguments.is_empty() {
            return Ok(());
        }
        answer.tool_call(WireCall { index: self.waiting_call, arguments, ..WireCall::default() })
    }
}

fn or_stop(taken: Result<(), TooLarge>) -> ControlFlow<Stop> {
    match taken {
        Ok(()) => ControlFlow::Continue(()),
        Err(too_large) => ControlFlow::Break(too_large.into()),
    }
}

fn finish_with(answer: &mut Answer, word: &str) -> ControlFlow<Stop> {
    if word.is_empty() {
        return ControlFlow::Continue(());
    }
    match finish(word) {
        Finish::Reason(reason) => {
            if reason == FinishReason::Length && !answer.is_finished() {
                answer.cut_free_text();
            }
            answer.finish(reason, word);
            ControlFlow::Continue(())
        }
        // A whole answer that is then called broken is broken: an error wins.
        Finish::BrokenOff(kind) => {
            let written = answer.partial().text;
            ControlFlow::Break(match error_in(&written, kind) {
                Some(stop) => {
                    answer.take_text();
                    stop
                }
                None => broken_off(kind, word),
            })
        }
    }
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod tests;
