//! One step: a behaviour, what is said, and what is set differently.

use std::time::Duration;

use serde_json::Value;

use super::error::{At, ScriptError, unknown_behaviour};
use crate::{
    behaviour::{Answer, Behaviour, BehaviourError, Gzip, HangUp, How, Http2Code},
    catalogue::{self, DEFAULT_EVENT, Entry},
    content::{Content, Delays, Finish, ToolCall, Usage},
    dialect::{Ask, Chat, Dialect, Turn},
    plan, shape,
};

/// What happens to one attempt: a behaviour, its content, its overrides.
#[derive(Debug, Clone)]
pub struct Step {
    choice: Choice,
    pub(super) content: Content,
    pub(super) delays: Delays,
    pub(super) at_event: Option<usize>,
    pub(super) how: Option<How>,
    pub(super) http2_code: Option<Http2Code>,
    pub(super) gzip: Option<Gzip>,
    pub(super) hang_up: Option<HangUp>,
    pub(super) retry_after: Option<Duration>,
    pub(super) headers: Vec<(String, String)>,
    /// Where it was written: its own line, then those of its keys.
    pub(super) lines: Lines,
}

#[derive(Debug, Clone)]
enum Choice {
    Named(&'static Entry),
    Built(Box<Behaviour>),
}

/// The lines of a step that was read from a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    pub(super) step: Option<usize>,
    pub(super) keys: Vec<(&'static str, usize)>,
}

impl Lines {
    fn of(&self, key: &str) -> Option<usize> {
        let found = self.keys.iter().find(|(known, _)| *known == key);
        found.map(|(_, line)| *line).or(self.step)
    }
}

impl Step {
    /// A step with a behaviour of the [`catalogue`].
    ///
    /// # Errors
    ///
    /// [`ScriptError::UnknownBehaviour`] with the nearest name there is.
    pub fn named(name: &str) -> Result<Self, ScriptError> {
        match catalogue::find(name) {
            Some(entry) => Ok(Self::of(Choice::Named(entry))),
            None => Err(unknown_behaviour(name, None)),
        }
    }

    /// A step with a behaviour built in code.
    pub fn with(behaviour: Behaviour) -> Self {
        Self::of(Choice::Built(Box::new(behaviour)))
    }

    /// A step with a behaviour of the catalogue, as is.
    pub fn from_entry(entry: &'static Entry) -> Self {
        Self::of(Choice::Named(entry))
    }

    fn of(choice: Choice) -> Self {
        Self {
            choice,
            content: Content::default(),
            delays: Delays::default(),
            at_event: None,
            how: None,
            http2_code: None,
            gzip: None,
            hang_up: None,
            retry_after: None,
            headers: Vec::new(),
            lines: Lines::default(),
        }
    }

    /// Says this text instead of [`DEFAULT_TEXT`](crate::DEFAULT_TEXT); an
    /// empty one says nothing.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.content.text = Some(text.into());
        self
    }

    /// Reasons with this text before the answer.
    #[must_use]
    pub fn reasoning(mut self, reasoning: impl Into<String>) -> Self {
        self.content.reasoning = Some(reasoning.into());
        self
    }

    /// Adds a tool call after the text.
    #[must_use]
    pub fn tool_call(self, name: impl Into<String>, arguments: &Value) -> Self {
        self.call(ToolCall::new(name, arguments))
    }

    /// Adds a tool call with an id or raw arguments of its own.
    #[must_use]
    pub fn call(mut self, call: ToolCall) -> Self {
        self.content.tool_calls.push(call);
        self
    }

    /// Reports this usage instead of a made-up one.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.content.usage = Some(usage);
        self
    }

    /// Finishes for this reason instead of `tool_calls` with, `stop` without
    /// tool calls.
    #[must_use]
    pub fn finish(mut self, finish: Finish) -> Self {
        self.content.finish = Some(finish);
        self
    }

    /// Puts this many characters into each text delta instead of a word; 0
    /// counts as 1.
    #[must_use]
    pub fn chunk_chars(mut self, chars: usize) -> Self {
        self.content.chunk_chars = Some(chars.max(1));
        self
    }

    /// Waits before the status line.
    #[must_use]
    pub fn headers_delay(mut self, delay: Duration) -> Self {
        self.delays.headers = Some(delay);
        self
    }

    /// Waits between two events.
    #[must_use]
    pub fn event_delay(mut self, delay: Duration) -> Self {
        self.delays.event = Some(delay);
        self
    }

    /// Waits at the breaking point.
    #[must_use]
    pub fn cut_delay(mut self, delay: Duration) -> Self {
        self.delays.cut = Some(delay);
        self
    }

    /// Moves the fault to this event, counted from 1.
    #[must_use]
    pub fn at_event(mut self, number: usize) -> Self {
        self.at_event = Some(number);
        self
    }

    /// Breaks in this way instead of the behaviour's own.
    #[must_use]
    pub fn how(mut self, how: How) -> Self {
        self.how = Some(how);
        self
    }

    /// Breaks by this error code of HTTP/2 instead of INTERNAL_ERROR.
    #[must_use]
    pub fn http2_code(mut self, code: Http2Code) -> Self {
        self.http2_code = Some(code);
        self
    }

    /// Compresses the body, or says so.
    #[must_use]
    pub fn gzip(mut self, gzip: Gzip) -> Self {
        self.gzip = Some(gzip);
        self
    }

    /// Gives up the connection after the answer without having said so.
    #[must_use]
    pub fn hang_up(mut self, hang_up: HangUp) -> Self {
        self.hang_up = Some(hang_up);
        self
    }

    /// Asks the client to wait this long.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The name of its behaviour; `None` when it was built in code.
    pub fn name(&self) -> Option<&'static str> {
        match &self.choice {
            Choice::Named(entry) => Some(entry.name),
            Choice::Built(_) => None,
        }
    }

    /// The behaviour with this step's overrides in it.
    pub fn behaviour(&self) -> Behaviour {
        let mut behaviour = match &self.choice {
            Choice::Named(entry) => self.within_content(entry.behaviour()),
            Choice::Built(behaviour) => behaviour.as_ref().clone(),
        };
        if let Some(number) = self.at_event {
            behaviour = behaviour.at_event(number);
        }
        if let Some(how) = self.how {
            behaviour = behaviour.how(how);
        }
        if let Some(code) = self.http2_code {
            behaviour = behaviour.http2_code(code);
        }
        if let Some(gzip) = self.gzip {
            behaviour = behaviour.gzip(gzip);
        }
        if let Some(hang_up) = self.hang_up {
            behaviour = behaviour.hang_up(hang_up);
        }
        if let (Some(delay), Answer::Error(reply)) = (self.retry_after, &mut behaviour.answer) {
            *reply = reply.clone().retry_after(delay);
        }
        if let Some(delay) = self.delays.headers {
            behaviour = behaviour.headers_delay(delay);
        }
        if let Some(delay) = self.delays.event {
            behaviour = behaviour.event_delay(delay);
        }
        if let Some(delay) = self.delays.cut {
            behaviour = behaviour.after(delay);
        }
        for (name, value) in &self.headers {
            behaviour = behaviour.header(name, value);
        }
        behaviour
    }

    /// The line of its `[[step]]`, if it was read from a file.
    pub(super) fn line(&self) -> Option<usize> {
        self.lines.step
    }

    /// What is said: the step's own content, else that of its behaviour.
    pub(crate) fn content(&self) -> Content {
        self.content.clone().over(&self.chosen().said)
    }

    fn chosen(&self) -> Behaviour {
        match &self.choice {
            Choice::Named(entry) => entry.behaviour(),
            Choice::Built(behaviour) => behaviour.as_ref().clone(),
        }
    }

    /// A named fault in a short answer moves to its middle.
    fn within_content(&self, behaviour: Behaviour) -> Behaviour {
        if !behaviour.names_an_event() {
            return behaviour;
        }
        let frames = Chat.frames(&self.content(), &Ask::probe(), Turn::FIRST);
        let before_terminal = frames.iter().position(|f| f.terminal).unwrap_or(frames.len());
        behaviour.at_event(DEFAULT_EVENT.min(before_terminal.div_ceil(2)).max(1))
    }

    pub(super) fn check(&self, number: usize) -> Result<(), ScriptError> {
        let at = |key| At { step: number, line: self.lines.of(key) };
        let behaviour = self.behaviour();
        if let Some((key, why)) = self.without_effect(&behaviour) {
            let behaviour = self.name().unwrap_or("a behaviour built in code").to_owned();
            let at = at(key);
            return Err(ScriptError::NoEffect { at, key, behaviour, why });
        }
        let refuse = |source: BehaviourError| {
            let at = at(key_at_fault(&source));
            ScriptError::Behaviour { at, source }
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
            ("at_event", self.at_event.is_some() && !behaviour.names_an_event(), NO_EVENT),
            ("how", self.how.is_some() && !cuts, NO_CUT),
            ("http2_code", self.http2_code.is_some() && !by_http2, NO_HTTP2),
            ("gzip", self.gzip.is_some() && no_answer, NO_ANSWER),
            ("hang_up", self.hang_up.is_some() && no_answer, NO_ANSWER),
            ("headers", !self.headers.is_empty() && no_answer, NO_ANSWER),
            ("cut_delay_ms", self.delays.cut.is_some() && !cuts, NO_CUT),
            ("retry_after_ms", self.retry_after.is_some() && !is_error, NO_ERROR),
        ]
        .into_iter()
        .find_map(|(key, idle, why)| idle.then_some((key, why)))
    }
}

impl PartialEq for Step {
    /// Equal when they are served alike, wherever they were written.
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
            && self.content == other.content
            && self.behaviour() == other.behaviour()
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
        _ => "behaviour",
    }
}
