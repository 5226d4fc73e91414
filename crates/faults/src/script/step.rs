//! One step: a behaviour, what is said, what is set differently, and whom it
//! is for.

mod check;

use std::time::Duration;

use serde_json::Value;

use super::{
    error::{At, ScriptError, unknown_behaviour},
    parts::Parts,
    when::Match,
};
use crate::{
    behaviour::{Answer, Behaviour, Gzip, HangUp, How, Http2Code},
    catalogue::{self, DEFAULT_EVENT, Entry},
    content::{Content, Delays, Finish, ToolCall, Usage},
    dialect::{Ask, Chat, Dialect, Turn},
};

/// What happens to one attempt: a behaviour, its content, its overrides.
#[derive(Debug, Clone)]
pub struct Step {
    choice: Choice,
    pub(super) parts: Parts,
    pub(super) when: Match,
    pub(super) probability: Option<f64>,
    pub(super) times: Option<usize>,
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
    /// Put together from the parts of the step alone.
    Composed,
    Built(Box<Behaviour>),
}

/// The lines of a step that was read from a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    pub(super) step: Option<At>,
    pub(super) keys: Vec<(&'static str, At)>,
}

impl Lines {
    /// Where this key stands, else where the step does; nowhere when it was
    /// built in code.
    pub(super) fn of(&self, key: &str) -> At {
        let found = self.keys.iter().find(|(known, _)| *known == key);
        found.map(|(_, at)| at).or(self.step.as_ref()).cloned().unwrap_or_default()
    }
}

impl Step {
    /// As a number of times: never used up.
    pub const ALWAYS: usize = usize::MAX;

    /// A step with a behaviour of the [`catalogue`].
    ///
    /// # Errors
    ///
    /// [`ScriptError::UnknownBehaviour`] with the nearest name there is.
    pub fn named(name: &str) -> Result<Self, ScriptError> {
        match catalogue::find(name) {
            Some(entry) => Ok(Self::of(Choice::Named(entry))),
            None => Err(unknown_behaviour(name, At::default())),
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

    /// A whole answer, to be changed by the parts of the step.
    pub(super) fn composed() -> Self {
        Self::of(Choice::Composed)
    }

    fn of(choice: Choice) -> Self {
        Self {
            choice,
            parts: Parts::default(),
            when: Match::default(),
            probability: None,
            times: None,
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

    /// Is dealt only to requests that are like this; others pass it by, and it
    /// waits for one.
    #[must_use]
    pub fn when(mut self, when: Match) -> Self {
        self.when = when;
        self
    }

    /// Is dealt only when the dice say so, once in so many times; else it is
    /// used up, and the request goes on to the next step. What lies outside 0
    /// to 1 counts as the nearer of the two.
    #[must_use]
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = Some(probability.clamp(0.0, 1.0));
        self
    }

    /// Is dealt this many times before the next step comes; 0 counts as 1, and
    /// [`Step::ALWAYS`] for ever.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = Some(times.max(1));
        self
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

    /// Adds a response header; one of the same name is replaced.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// The name of its behaviour; `None` when it was built in code.
    pub fn name(&self) -> Option<&'static str> {
        match &self.choice {
            Choice::Named(entry) => Some(entry.name),
            Choice::Composed | Choice::Built(_) => None,
        }
    }

    /// Whether it holds a behaviour that only code can say.
    pub(super) fn is_built_in_code(&self) -> bool {
        matches!(self.choice, Choice::Built(_))
    }

    /// Its name for a person who reads a list of steps.
    pub(crate) fn label(&self) -> &'static str {
        match &self.choice {
            Choice::Named(entry) => entry.name,
            Choice::Composed => "(composed)",
            Choice::Built(_) => "(built in code)",
        }
    }

    /// The behaviour with this step's overrides in it.
    pub fn behaviour(&self) -> Behaviour {
        let mut behaviour = self.base();
        if !self.parts.is_empty() {
            let event = self.at_event.unwrap_or_else(|| self.middle_event());
            behaviour = self.parts.add_to(behaviour, event);
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

    /// The behaviour before the parts and overrides of the step, but its
    /// event: a named fault in a short answer moves to its middle.
    fn base(&self) -> Behaviour {
        let behaviour = self.chosen();
        if !behaviour.names_an_event() {
            return behaviour;
        }
        match (self.at_event, &self.choice) {
            (Some(number), _) => behaviour.at_event(number),
            (None, Choice::Built(_)) => behaviour,
            (None, _) => behaviour.at_event(self.middle_event()),
        }
    }

    /// The event at which a fault strikes unless the step says otherwise.
    fn middle_event(&self) -> usize {
        let frames = Chat.frames(&self.content(), &Ask::probe(), Turn::FIRST);
        let before_terminal = frames.iter().position(|f| f.terminal).unwrap_or(frames.len());
        DEFAULT_EVENT.min(before_terminal.div_ceil(2)).max(1)
    }

    /// What is said: the step's own content, else that of its behaviour.
    pub(crate) fn content(&self) -> Content {
        self.content.clone().over(&self.chosen().said)
    }

    fn chosen(&self) -> Behaviour {
        match &self.choice {
            Choice::Named(entry) => entry.behaviour(),
            Choice::Composed => Behaviour::whole(),
            Choice::Built(behaviour) => behaviour.as_ref().clone(),
        }
    }

    pub(crate) fn is_for(&self) -> &Match {
        &self.when
    }

    pub(crate) fn chance(&self) -> Option<f64> {
        self.probability
    }

    /// How often it is dealt before the next step comes.
    pub(crate) fn plays(&self) -> usize {
        self.times.unwrap_or(1)
    }

    /// Whether its fault is the handshake, so that no request comes.
    pub(crate) fn fails_handshake(&self) -> bool {
        self.behaviour().failed_handshake().is_some()
    }
}

impl PartialEq for Step {
    /// Equal when they are served alike, wherever they were written.
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
            && self.content == other.content
            && self.behaviour() == other.behaviour()
            && self.when == other.when
            && self.probability == other.probability
            && self.plays() == other.plays()
    }
}
