//! The responses of a `streamGenerateContent` stream.

use std::ops::ControlFlow;

use serde_json::value::RawValue;

use super::{
    DIALECT,
    facts::{Finish, block_reason, finish, in_band},
    kept::Kept,
    pieces::CallInPieces,
    wire::{Around, Candidate, FunctionCall, Part, Response, raw_parts, signature_of},
};
use crate::{
    FinishReason, Native, TooLarge,
    answer::{Answer, Dialect, Stop},
    assemble::WireCall,
    halves::{self, Mender},
    loose::Object,
    template::{Template, Varying},
};

/// Every response tells the counts so far; the sum of them is not read.
const VARYING: &[Varying] = &[
    Varying::Number(&["usageMetadata", "candidatesTokenCount"]),
    Varying::Number(&["usageMetadata", "thoughtsTokenCount"]),
    Varying::Number(&["usageMetadata", "totalTokenCount"]),
    Varying::Text(&["responseId"]),
];

/// How deep wrapped responses may lie in each other.
const MAX_WRAPPING: u8 = 4;

/// Reads responses into an answer. It is complete once the candidate has a finish
/// reason, or the prompt was blocked.
///
/// The first servers of this API, and gateways after their model, write `STOP` into
/// every response, so what comes after a finish reason still belongs to the answer.
#[derive(Debug)]
pub(super) struct Responses {
    template: Template<Around>,
    /// The model that was asked; only it can read its own opaque parts.
    model: String,
    kept: Kept,
    text: Mender,
    reasoning: Mender,
    calls: u64,
    /// The call whose arguments come in pieces.
    open: Option<CallInPieces>,
    finish: Option<FinishReason>,
}

impl Responses {
    /// Every event is parsed.
    #[cfg(test)]
    pub(super) fn without_template(mut self) -> Self {
        self.template = Template::off();
        self
    }

    pub(super) fn new(model: &str) -> Self {
        Self {
            template: Template::new(VARYING),
            model: model.to_owned(),
            kept: Kept::default(),
            text: Mender::default(),
            reasoning: Mender::default(),
            calls: 0,
            open: None,
            finish: None,
        }
    }
}

impl Dialect for Responses {
    fn event(&mut self, answer: &mut Answer, _: &str, data: &str) -> ControlFlow<Stop> {
        if let Some((found, &around)) = self.template.read(data) {
            if let Some(usage) = around.usage {
                answer.usage(usage.with([found.value(0), found.value(1)]).read());
            }
            answer.event();
            return self.candidate(answer, around.with(found.delta), data, false);
        }
        // Gateways that mostly speak Chat Completions end this stream so, too.
        if data.trim() == "[DONE]" {
            return ControlFlow::Break(Stop::Done);
        }
        answer.each_value(data, |answer, json| self.json(answer, json, 0))
    }

    fn document(&mut self, answer: &mut Answer, body: &str) -> ControlFlow<Stop> {
        answer.each_value(body, |answer, json| self.json(answer, json, 0))
    }

    fn native(&mut self, answer: &Answer) -> Option<Native> {
        let so_far = answer.so_far();
        let kept = std::mem::take(&mut self.kept);
        let parts = kept.parts(so_far.text_so_far(), so_far.reasoning_so_far())?;
        let model = std::mem::take(&mut self.model);
        Some(Native { dialect: DIALECT.to_owned(), model, parts })
    }
}

impl Responses {
    fn json(&mut self, answer: &mut Answer, json: &str, depth: u8) -> ControlFlow<Stop> {
        // A struct could be read out of a list, too.
        let object = json.trim_start().starts_with('{');
        let mut spare = None;
        let read: Option<(Response<'_>, _, _)> = halves::read(json, &mut spare);
        let Some((response, json, marked)) = read.filter(|_| object) else {
            return answer.undecodable();
        };
        if let Some(Object(usage)) = &response.usage_metadata {
            // What came with an error is dropped with the attempt, its cost is not.
            answer.usage(usage.read());
        }
        if response.is_error() {
            return ControlFlow::Break(in_band(json));
        }
        if !response.is_ours() {
            return match response.response {
                Some(inner) if depth < MAX_WRAPPING => self.json(answer, inner.get(), depth + 1),
                _ => {
                    answer.foreign_event();
                    ControlFlow::Continue(())
                }
            };
        }
        answer.event();
        let blocked = response.prompt_feedback.as_ref().map(|feedback| &*feedback.0.block_reason.0);
        if let Some(word) = blocked.and_then(block_reason) {
            self.finish_with(answer, FinishReason::ContentFilter, &format!("blocked:{word}"));
            return ControlFlow::Continue(());
        }
        // What is wrapped is not the whole event.
        let only = response.only_text().filter(|_| depth == 0 && !marked);
        if let Some(candidate) = response.candidates.candidate {
            self.candidate(answer, candidate, json, marked)?;
        }
        if let Some((around, text)) = only {
            self.template.learn(json, text, around);
        }
        ControlFlow::Continue(())
    }

    fn candidate(
        &mut self,
        answer: &mut Answer,
        candidate: Candidate<'_>,
        json: &str,
        marked: bool,
    ) -> ControlFlow<Stop> {
        let Candidate { content: Object(content), finish_reason, .. } = candidate;
        let exact = content.parts.any_exact();
        if exact && marked {
            // What goes back byte for byte cannot be mended.
            self.kept.give_up();
        }
        let raw = if exact { raw_parts(json) } else { Vec::new() };
        for (place, part) in content.parts.into_iter().enumerate() {
            or_stop(self.part(answer, part, raw.get(place).copied(), marked))?;
        }
        match finish(&finish_reason.0) {
            Finish::Unsaid => {}
            Finish::Reason(reason) => {
                or_stop(self.close(answer, false))?;
                or_stop(self.rest(answer))?;
                self.finish_with(answer, reason, &finish_reason.0);
            }
            // An answer that is called broken is broken, also when it seems whole.
            Finish::BrokenOff(stop) => return ControlFlow::Break(stop),
        }
        ControlFlow::Continue(())
    }

    fn part(
        &mut self,
        answer: &mut Answer,
        part: Part<'_>,
        raw: Option<&RawValue>,
        marked: bool,
    ) -> Result<(), TooLarge> {
        if let Some(call) = part.function_call {
            self.rest(answer)?;
            return self.call(answer, &call, part.exact, raw, marked);
        }
        let thought = part.thought;
        let (before, mender) = match thought {
            true => (answer.so_far().reasoning_so_far().len(), &mut self.reasoning),
            false => (answer.so_far().text_so_far().len(), &mut self.text),
        };
        let text = mender.mend(part.text.0, marked);
        let to = before + text.len();
        match raw.filter(|_| part.exact) {
            Some(raw) => {
                answer.progress();
                self.kept.exact(raw.get().to_owned(), true)?;
            }
            None if thought => self.kept.thought(before..to),
            None => self.kept.text(before..to),
        }
        match thought {
            true => answer.reasoning(text),
            false => answer.text(text),
        }
    }

    /// Half a character at the end of the text stays alone.
    fn rest(&mut self, answer: &mut Answer) -> Result<(), TooLarge> {
        let (reasoning, text) = (self.reasoning.rest(), self.text.rest());
        let before = answer.so_far().reasoning_so_far().len();
        self.kept.thought(before..before + reasoning.len());
        answer.reasoning(reasoning)?;
        let before = answer.so_far().text_so_far().len();
        self.kept.text(before..before + text.len());
        answer.text(text)
    }

    fn call(
        &mut self,
        answer: &mut Answer,
        call: &FunctionCall<'_>,
        exact: bool,
        raw: Option<&RawValue>,
        marked: bool,
    ) -> Result<(), TooLarge> {
        let in_pieces = call.will_continue.0 || !call.partial_args.0.is_empty();
        if call.name.is_empty()
            && let Some(open) = &mut self.open
        {
            answer.progress();
            open.take(&call.partial_args.0, marked)?;
            return if call.will_continue.0 { Ok(()) } else { self.close(answer, true) };
        }
        if call.is_empty() && !in_pieces {
            return Ok(());
        }
        // One that never said that it was over was cut.
        self.close(answer, false)?;
        let index = self.calls;
        self.calls += 1;
        let arguments = halves::alone(call.arguments(), marked);
        answer.tool_call(WireCall {
            index: Some(index),
            id: Some(&call.id.0),
            // Without a name an id that is known would name an earlier call.
            name: Some(if call.name.is_empty() { "unnamed" } else { &call.name.0 }),
            arguments: if in_pieces { "" } else { &arguments },
            free_text: false,
        })?;
        if !in_pieces {
            let tells_more = exact || !call.id.is_empty();
            return match raw {
                Some(raw) => self.kept.exact(raw.get().to_owned(), tells_more),
                None => Ok(()),
            };
        }
        let signature = raw.filter(|_| exact).and_then(signature_of);
        let open = self.open.insert(CallInPieces::new(index, call, &arguments, signature));
        open.take(&call.partial_args.0, marked)?;
        if call.will_continue.0 { Ok(()) } else { self.close(answer, true) }
    }

    /// Tells the arguments of the call that came in pieces. A call that is not whole
    /// gets arguments that are not, so that nobody runs it.
    fn close(&mut self, answer: &mut Answer, whole: bool) -> Result<(), TooLarge> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.rest();
        let arguments = open.arguments(whole);
        answer.tool_call(WireCall {
            index: Some(open.index()),
            arguments: &arguments,
            ..WireCall::default()
        })?;
        match open.as_part().filter(|_| whole) {
            Some((part, tells_more)) => self.kept.exact(part, tells_more),
            None => {
                self.kept.give_up();
                Ok(())
            }
        }
    }

    /// A later word replaces a `STOP`, which may have stood in every response.
    fn finish_with(&mut self, answer: &mut Answer, reason: FinishReason, word: &str) {
        match self.finish {
            None => answer.finish(reason, word),
            Some(FinishReason::Stop) => answer.finish_anew(reason, word),
            Some(_) => return,
        }
        self.finish = Some(reason);
    }
}

fn or_stop(result: Result<(), TooLarge>) -> ControlFlow<Stop> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(too_large) => ControlFlow::Break(too_large.into()),
    }
}

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;
