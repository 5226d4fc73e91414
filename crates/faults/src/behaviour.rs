//! What the server does with one request, as a value.
//!
//! A fault is three answers to three questions: *what* is answered
//! ([`Answer`], status, headers), *where* the exchange breaks ([`Point`]) and
//! *how* ([`How`]). Keeping them apart means that a new fault is a new
//! combination and no new code in the server.
//!
//! ```
//! use std::time::Duration;
//! use turnbuckle_faults::{Behaviour, How, Point};
//!
//! let cut = Behaviour::whole()
//!     .cut(Point::InsideEvent(3), How::Reset)
//!     .after(Duration::from_millis(20));
//! assert_eq!(cut.to_string(), "an answer, then after 20 ms a reset inside event 3");
//! ```

mod parts;

use std::{fmt, time::Duration};

pub(crate) use parts::Cut;
pub use parts::{Answer, ErrorReply, How, Insert, Point};

/// One behaviour: what is answered, where it breaks, how, and how slowly.
///
/// Built by chaining. A composition that cannot be put on a wire is refused
/// by [`Behaviour::check`], which a [`Script`](crate::Script) calls for each
/// of its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Behaviour {
    pub(crate) answer: Answer,
    pub(crate) status: Option<u16>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) inserts: Vec<(Point, Insert)>,
    pub(crate) omit_terminal: bool,
    pub(crate) cut: Option<Cut>,
    pub(crate) headers_delay: Duration,
    pub(crate) event_delay: Duration,
}

impl Behaviour {
    /// A whole answer in the dialect of the request: streamed, or one JSON
    /// document when the request says `stream: false`.
    pub fn whole() -> Self {
        Self::answering(Answer::Dialect)
    }

    /// An error response in the dialect of the request.
    pub fn error(reply: ErrorReply) -> Self {
        Self::answering(Answer::Error(reply))
    }

    /// A body that is no dialect at all, sent with status 200 unless
    /// [`Behaviour::status`] says otherwise.
    pub fn raw(content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self::answering(Answer::Raw { content_type: content_type.into(), body: body.into() })
    }

    fn answering(answer: Answer) -> Self {
        Self {
            answer,
            status: None,
            headers: Vec::new(),
            inserts: Vec::new(),
            omit_terminal: false,
            cut: None,
            headers_delay: Duration::ZERO,
            event_delay: Duration::ZERO,
        }
    }

    /// Sends this status instead of the answer's own.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds a response header; one of the same name is replaced.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into().to_ascii_lowercase();
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// Breaks the exchange at `point`. A second cut replaces the first: an
    /// exchange breaks once.
    #[must_use]
    pub fn cut(mut self, point: Point, how: How) -> Self {
        let after = self.cut.map_or(Duration::ZERO, |cut| cut.after);
        self.cut = Some(Cut { point, how, after });
        self
    }

    /// Breaks in another way at the point already chosen; without a cut this
    /// changes nothing.
    #[must_use]
    pub fn how(mut self, how: How) -> Self {
        if let Some(cut) = &mut self.cut {
            cut.how = how;
        }
        self
    }

    /// Waits this long at the breaking point before it breaks; without a cut
    /// this changes nothing.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        if let Some(cut) = &mut self.cut {
            cut.after = delay;
        }
        self
    }

    /// Says something foreign at `point` of a streamed answer, and goes on.
    #[must_use]
    pub fn insert(mut self, point: Point, insert: Insert) -> Self {
        self.inserts.push((point, insert));
        self
    }

    /// Leaves out the event that completes the answer (for Chat: the one with
    /// the finish reason) and sends everything around it.
    #[must_use]
    pub fn without_terminal(mut self) -> Self {
        self.omit_terminal = true;
        self
    }

    /// Waits this long before the status line.
    #[must_use]
    pub fn headers_delay(mut self, delay: Duration) -> Self {
        self.headers_delay = delay;
        self
    }

    /// Waits this long between two events of a stream.
    #[must_use]
    pub fn event_delay(mut self, delay: Duration) -> Self {
        self.event_delay = delay;
        self
    }

    /// Moves every point which names an event to event `number` (from 1).
    #[must_use]
    pub fn at_event(mut self, number: usize) -> Self {
        if let Some(cut) = &mut self.cut {
            cut.point = cut.point.moved_to(number);
        }
        for (point, _) in &mut self.inserts {
            *point = point.moved_to(number);
        }
        self
    }

    /// Whether any point names an event, so that
    /// [`at_event`](Self::at_event) has an effect.
    pub fn names_an_event(&self) -> bool {
        self.points().any(|point| point.event().is_some())
    }

    /// Whether the answer carries the content of its step.
    pub fn carries_content(&self) -> bool {
        matches!(self.answer, Answer::Dialect)
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        let inserted = self.inserts.iter().map(|(point, _)| *point);
        inserted.chain(self.cut.map(|cut| cut.point))
    }

    /// Whether this composition can be put on a wire.
    ///
    /// # Errors
    ///
    /// One [`BehaviourError`] for the first part that makes no sense; each
    /// names what to write instead.
    pub fn check(&self) -> Result<(), BehaviourError> {
        self.check_status()?;
        for (name, value) in &self.headers {
            check_header(name, value)?;
        }
        if let Answer::Error(reply) = &self.answer {
            for (name, value) in &reply.headers {
                check_header(name, value)?;
            }
        }
        if self.points().any(|point| point.event() == Some(0)) {
            return Err(BehaviourError::EventZero);
        }
        if !self.carries_content() {
            self.check_plain_body()?;
        }
        for (point, _) in &self.inserts {
            if !point.is_between_events() {
                return Err(BehaviourError::InsertOutsideStream(*point));
            }
        }
        match self.cut {
            Some(Cut { point: Point::BeforeStatus, how: How::CleanEnd, .. }) => {
                Err(BehaviourError::CleanEndWithoutStatus)
            }
            _ => Ok(()),
        }
    }

    fn check_status(&self) -> Result<(), BehaviourError> {
        let status = self.effective_status();
        // 1xx, 204 and 304 have no body, so nothing after the headers could be broken.
        if !(200..=599).contains(&status) || status == 204 || status == 304 {
            return Err(BehaviourError::Status(status));
        }
        Ok(())
    }

    fn check_plain_body(&self) -> Result<(), BehaviourError> {
        if self.omit_terminal {
            return Err(BehaviourError::NoTerminal);
        }
        match self.points().find(|point| point.needs_stream()) {
            Some(point) => Err(BehaviourError::NoEvents(point)),
            None => Ok(()),
        }
    }

    pub(crate) fn effective_status(&self) -> u16 {
        self.status.unwrap_or(match &self.answer {
            Answer::Error(reply) => reply.status,
            Answer::Dialect | Answer::Raw { .. } => 200,
        })
    }
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.answer {
            Answer::Dialect => write!(f, "an answer")?,
            Answer::Error(_) => write!(f, "an error of status {}", self.effective_status())?,
            Answer::Raw { content_type, .. } => {
                write!(f, "a {content_type} body of status {}", self.effective_status())?;
            }
        }
        if self.omit_terminal {
            write!(f, " without its terminal event")?;
        }
        for (point, insert) in &self.inserts {
            write!(f, ", with {insert} {point}")?;
        }
        if let Some(cut) = &self.cut {
            write!(f, ", then ")?;
            if !cut.after.is_zero() {
                write!(f, "after {} ms ", cut.after.as_millis())?;
            }
            write!(f, "{} {}", cut.how, cut.point)?;
        }
        Ok(())
    }
}

/// Why a composition makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BehaviourError {
    /// A point names event 0.
    #[error("there is no event 0: events are counted from 1")]
    EventZero,
    /// A point inside a stream, with a body that is not one.
    #[error(
        "nothing is streamed, so there is no place {0}: use `Point::InsideBody`, \
         or start from `Behaviour::whole()`"
    )]
    NoEvents(Point),
    /// The terminal event is left out of a body that has none.
    #[error(
        "nothing is streamed, so no terminal event can be left out: start from `Behaviour::whole()`"
    )]
    NoTerminal,
    /// An insertion at a point which is not between two events.
    #[error(
        "an event cannot be said {0}: choose a point between two events, e.g. `Point::AfterEvent(3)`"
    )]
    InsertOutsideStream(Point),
    /// A clean end where HTTP knows none.
    #[error("HTTP has no clean end before the status line: use `How::Fin` or `How::Reset`")]
    CleanEndWithoutStatus,
    /// A status without a body.
    #[error("status {0} carries no body: choose one of 200 to 599 except 204 and 304")]
    Status(u16),
    /// A header that cannot be written, or that the server writes itself.
    #[error("header `{0}` cannot be set: {1}")]
    Header(String, &'static str),
    /// The point lies behind the content of the step.
    #[error("event {at} does not exist: the answer has {events} events up to its terminal one")]
    EventOutOfRange {
        /// The event named.
        at: usize,
        /// How many there are.
        events: usize,
    },
    /// A cut inside a character, and every character is one byte long.
    #[error("the answer has no character of several bytes to cut: put one into `text`, e.g. `é`")]
    NoWideCharacter,
    /// A cut inside the body of a streamed answer.
    #[error(
        "a streamed answer is cut at an event: use `Point::InsideEvent` rather than `Point::InsideBody`"
    )]
    BodyOfStream,
}

fn check_header(name: &str, value: &str) -> Result<(), BehaviourError> {
    const OURS: [&str; 3] = ["content-length", "transfer-encoding", "connection"];
    let refuse = |why| Err(BehaviourError::Header(name.to_owned(), why));
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return refuse("its name is not a token of HTTP");
    }
    if value.chars().any(char::is_control) {
        return refuse("its value holds a control character");
    }
    if OURS.contains(&name.to_ascii_lowercase().as_str()) {
        return refuse("the server frames the body itself");
    }
    Ok(())
}
