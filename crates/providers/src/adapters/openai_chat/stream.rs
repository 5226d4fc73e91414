//! The events of a Chat Completions stream.

use std::ops::ControlFlow;

use serde_json::value::RawValue;
use turnbuckle_errors::Protocol;

use super::{
    facts::{Finish, finish, in_band},
    wire::{Call, Chunk, Delta, Function},
};
use crate::{
    TooLarge,
    answer::{Answer, Dialect, Stop},
    assemble::WireCall,
    loose::Object,
};

/// Reads chunks into an answer. The answer is complete once a finish reason was
/// seen; `[DONE]` only ends the stream.
#[derive(Debug, Default)]
pub(super) struct Chat {
    /// A delta came, so a whole message in a later chunk only repeats it.
    streamed: bool,
}

impl Dialect for Chat {
    fn event(&mut self, answer: &mut Answer, _: &str, data: &str) -> ControlFlow<Stop> {
        if data.trim() == "[DONE]" {
            return ControlFlow::Break(Stop::Done);
        }
        self.json(answer, data)
    }

    fn document(&mut self, answer: &mut Answer, body: &str) -> ControlFlow<Stop> {
        // Google's gateway wraps its errors in a list.
        match body.starts_with('[') {
            true => match serde_json::from_str::<Vec<&RawValue>>(body) {
                Ok(parts) => parts.iter().try_for_each(|part| self.json(answer, part.get())),
                Err(_) => ControlFlow::Break(Stop::protocol(Protocol::Undecodable)),
            },
            false => self.json(answer, body),
        }
    }
}

impl Chat {
    fn json(&mut self, answer: &mut Answer, json: &str) -> ControlFlow<Stop> {
        let chunk: Chunk<'_> = match serde_json::from_str(json) {
            Ok(chunk) => chunk,
            // The answer is whole already.
            Err(_) if answer.is_finished() => return ControlFlow::Continue(()),
            Err(_) => return ControlFlow::Break(Stop::protocol(Protocol::Undecodable)),
        };
        // What came with an error is dropped with the attempt, its cost is not.
        answer.usage(chunk.reported_usage());
        if chunk.is_error() {
            return ControlFlow::Break(in_band(json));
        }
        answer.event();
        self.chunk(answer, chunk)
    }

    fn chunk(&mut self, answer: &mut Answer, chunk: Chunk<'_>) -> ControlFlow<Stop> {
        let Some(choice) = chunk.choices.choice else { return ControlFlow::Continue(()) };
        let message = choice.message.filter(|_| !self.streamed);
        self.streamed |= choice.delta.is_some();
        let Some(Object(delta)) = choice.delta.or(message.map(|message| *message)) else {
            return finish_with(answer, &choice.finish_reason.0);
        };
        if !answer.is_finished()
            && let Err(too_large) = take(answer, delta)
        {
            return ControlFlow::Break(too_large.into());
        }
        finish_with(answer, &choice.finish_reason.0)
    }
}

fn take(answer: &mut Answer, mut delta: Delta<'_>) -> Result<(), TooLarge> {
    answer.reasoning(delta.take_reasoning())?;
    answer.text(delta.content.text.0)?;
    if let Some(others) = delta.content.others {
        answer.refusal(others.refusal.0)?;
    }
    answer.refusal(delta.refusal.0)?;
    for Object(call) in &delta.tool_calls.0 {
        take_call(answer, call)?;
    }
    match &delta.function_call {
        Some(legacy) if delta.tool_calls.0.is_empty() => take_legacy_call(answer, &legacy.0),
        _ => Ok(()),
    }
}

fn take_legacy_call(answer: &mut Answer, legacy: &Function<'_>) -> Result<(), TooLarge> {
    let arguments = legacy.arguments();
    // Snowflake sends an empty object where there is no call.
    if legacy.name.is_empty() && arguments.is_empty() {
        return Ok(());
    }
    answer.tool_call(WireCall {
        // There is never more than one.
        index: Some(0),
        name: Some(&legacy.name.0),
        arguments: &arguments,
        ..WireCall::default()
    })
}

fn take_call(answer: &mut Answer, call: &Call<'_>) -> Result<(), TooLarge> {
    let (function, custom) = (&call.function.0, &call.custom.0);
    let arguments = function.arguments();
    let free_text = !custom.name.is_empty() || !custom.input.is_empty();
    let says_nothing = call.id.is_empty() && function.name.is_empty() && arguments.is_empty();
    if says_nothing && !free_text {
        return Ok(());
    }
    answer.tool_call(WireCall {
        index: call.index.0,
        id: Some(&call.id.0),
        name: Some(if free_text { &custom.name.0 } else { &function.name.0 }),
        arguments: if free_text { &custom.input.0 } else { &arguments },
        free_text,
    })
}

fn finish_with(answer: &mut Answer, word: &str) -> ControlFlow<Stop> {
    if word.is_empty() {
        return ControlFlow::Continue(());
    }
    match finish(word) {
        Finish::Reason(reason) => {
            answer.finish(reason, word);
            ControlFlow::Continue(())
        }
        // A whole answer that is then called broken is broken: an error wins.
        Finish::Failed(stop) => ControlFlow::Break(stop),
    }
}

#[cfg(test)]
mod tests;
