//! Whether a step can be served, and which of its settings would be ignored.

use super::Step;
use crate::{
    behaviour::{Answer, Behaviour, BehaviourError},
    dialect::{Ask, Chat, Dialect, Turn},
    plan,
    script::{error::ScriptError, parts::Place},
    shape,
};

impl Step {
    pub(in crate::script) fn check(&self, number: usize) -> Result<(), ScriptError> {
        let at = |key| self.lines.of(key).in_step(number);
        let behaviour = self.behaviour();
        if let Some((key, why)) = self.without_effect(&behaviour) {
            let behaviour = self.name().unwrap_or("this composition").to_owned();
            let at = at(key);
            return Err(ScriptError::NoEffect { at, key, behaviour, why });
        }
        let refuse = |problem: BehaviourError| {
            let at = at(key_at_fault(&problem));
            ScriptError::Behaviour { at, problem }
        };
        behaviour.check().map_err(refuse)?;
        if behaviour.carries_content() && !behaviour.document {
            let frames = Chat.frames(&self.content(), &Ask::probe(), Turn::FIRST);
            let frames = shape::events(&behaviour, Chat.api(), frames).map_err(refuse)?;
            plan::stream(&behaviour, frames).map_err(refuse)?;
        }
        Ok(())
    }

    /// The first setting that this behaviour would ignore, and why.
    fn without_effect(&self, behaviour: &Behaviour) -> Option<(&'static str, &'static str)> {
        const NO_CONTENT: &str = "it answers without the content of the step";
        const NO_EVENT: &str = "it does not break at a numbered event";
        const NO_CUT: &str = "it does not break";
        const NO_HTTP2: &str = "it does not break by HTTP/2";
        const NO_ANSWER: &str = "its handshake fails, so nothing is answered";
        const NO_ERROR: &str = "it is not an error response";
        let content = &self.content;
        let streams = behaviour.carries_content();
        let cuts = behaviour.cut.is_some();
        let is_error = matches!(behaviour.answer, Answer::Error(_));
        let by_http2 = behaviour.cut.is_some_and(|cut| cut.how.http2_code().is_some());
        let no_answer = behaviour.failed_handshake().is_some();
        [
            ("text", content.text.is_some() && !streams, NO_CONTENT),
            ("reasoning", content.reasoning.is_some() && !streams, NO_CONTENT),
            ("tool_call", !content.tool_calls.is_empty() && !streams, NO_CONTENT),
            ("usage", content.usage.is_some() && !streams, NO_CONTENT),
            ("finish", content.finish.is_some() && !streams, NO_CONTENT),
            ("chunk_chars", content.chunk_chars.is_some() && !streams, NO_CONTENT),
            ("event_delay_ms", self.delays.event.is_some() && !streams, NO_CONTENT),
            ("at_event", self.at_event.is_some() && !self.follows_at_event(), NO_EVENT),
            ("how", self.how.is_some() && !cuts, NO_CUT),
            ("http2_code", self.http2_code.is_some() && !by_http2, NO_HTTP2),
            ("status", self.parts.status.is_some() && no_answer, NO_ANSWER),
            ("gzip", self.gzip.is_some() && no_answer, NO_ANSWER),
            ("hang_up", self.hang_up.is_some() && no_answer, NO_ANSWER),
            ("headers", !self.headers.is_empty() && no_answer, NO_ANSWER),
            ("cut_delay_ms", self.delays.cut.is_some() && !cuts, NO_CUT),
            ("retry_after_ms", self.retry_after.is_some() && !is_error, NO_ERROR),
        ]
        .into_iter()
        .find_map(|(key, idle, why)| idle.then_some((key, why)))
    }

    /// Whether anything moves with `at_event`.
    fn follows_at_event(&self) -> bool {
        let moved = |place: &Place| place.is_at_an_event() && place.event.is_none();
        self.base().names_an_event()
            || self.parts.cut.as_ref().is_some_and(moved)
            || self.parts.inserts.iter().any(|(place, _)| moved(place))
    }
}

/// The key of a step that most likely made its behaviour impossible.
fn key_at_fault(error: &BehaviourError) -> &'static str {
    match error {
        BehaviourError::EventZero | BehaviourError::EventOutOfRange { .. } => "at_event",
        BehaviourError::CleanEndWithoutStatus | BehaviourError::BodyFaultWithoutStatus(_) => "how",
        BehaviourError::HangUpAfterCut => "hang_up",
        BehaviourError::NotCompressed => "gzip",
        BehaviourError::Header(..) => "headers",
        BehaviourError::NoWideCharacter => "text",
        BehaviourError::NoEvents(_) | BehaviourError::BodyOfStream => "cut",
        BehaviourError::InsertOutsideStream(_) => "insert",
        BehaviourError::NoTerminal => "without_terminal",
        BehaviourError::Status(_) => "status",
        _ => "behaviour",
    }
}
