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

mod check;
mod compose;
mod edit;
mod form;
mod how;
mod parts;
mod wire;

use std::{fmt, time::Duration};

use crate::content::Content;
pub use check::BehaviourError;
pub(crate) use edit::Edit;
pub use edit::{Api, Change, Spot};
pub use form::{Http1, Noise, Spelling};
pub use how::{How, Http2Code};
pub(crate) use parts::Cut;
pub use parts::{Answer, ErrorReply, Insert, Point};
pub use wire::{Gzip, HangUp, Needs, Protocol, Tls};

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
    pub(crate) gzip: Option<Gzip>,
    pub(crate) hang_up: Option<HangUp>,
    pub(crate) headers_delay: Duration,
    pub(crate) event_delay: Duration,
    /// What is said where the step says nothing.
    pub(crate) said: Content,
    pub(crate) edits: Vec<Edit>,
    pub(crate) spellings: Vec<Spelling>,
    pub(crate) http1: Vec<Http1>,
    pub(crate) left_out: Vec<String>,
    pub(crate) drip: Option<usize>,
    pub(crate) trailers: bool,
    pub(crate) document: bool,
    pub(crate) over: Option<Protocol>,
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

    /// A redirect of this status to the same server under another host name;
    /// what follows it is recorded with a path that begins with `/elsewhere`,
    /// so that the record shows whether the key went along.
    pub fn redirect(status: u16) -> Self {
        Self::answering(Answer::Redirect { status })
    }

    /// A TLS handshake that fails, so that no request comes. The step is dealt
    /// to the next connection rather than to the next request.
    pub fn handshake(tls: Tls) -> Self {
        Self::answering(Answer::Handshake(tls))
    }

    fn answering(answer: Answer) -> Self {
        Self {
            answer,
            status: None,
            headers: Vec::new(),
            inserts: Vec::new(),
            omit_terminal: false,
            cut: None,
            gzip: None,
            hang_up: None,
            headers_delay: Duration::ZERO,
            event_delay: Duration::ZERO,
            said: Content::default(),
            edits: Vec::new(),
            spellings: Vec::new(),
            http1: Vec::new(),
            left_out: Vec::new(),
            drip: None,
            trailers: false,
            document: false,
            over: None,
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

    /// Says that the body is compressed by gzip, and compresses it, or does not.
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

    /// Breaks by another HTTP/2 error code; without a cut by HTTP/2 this
    /// changes nothing.
    #[must_use]
    pub fn http2_code(mut self, code: Http2Code) -> Self {
        if let Some(cut) = &mut self.cut {
            cut.how = cut.how.with_code(code);
        }
        self
    }

    /// Waits this long before the status line (before the handshake, where
    /// that is the fault).
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

    /// The failed handshake, if it is one.
    pub(crate) fn failed_handshake(&self) -> Option<Tls> {
        match self.answer {
            Answer::Handshake(tls) => Some(tls),
            _ => None,
        }
    }

    /// What the server must speak for this to be seen.
    pub fn needs(&self) -> Needs {
        let by_cut = self.cut.map_or(Needs::Plain, |cut| cut.how.needs());
        let in_head = self.cut.is_some_and(|cut| cut.point == Point::InsideHeaders);
        let by_http1 = in_head || !self.http1.is_empty() || self.over == Some(Protocol::Http1);
        match (&self.answer, by_cut) {
            (Answer::Handshake(_), _) => Needs::Tls,
            (_, Needs::Plain) if self.over == Some(Protocol::Http2) => Needs::Http2,
            (_, Needs::Plain) if by_http1 => Needs::Http1,
            (_, Needs::Plain) => self.hang_up.map_or(Needs::Plain, HangUp::needs),
            (_, needs) => needs,
        }
    }

    fn describe_form(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.document {
            write!(f, " in one document")?;
        }
        for spelling in &self.spellings {
            write!(f, ", {spelling}")?;
        }
        for edit in &self.edits {
            write!(f, ", {edit}")?;
        }
        for oddity in &self.http1 {
            write!(f, ", {oddity}")?;
        }
        for name in &self.left_out {
            write!(f, ", no {name}")?;
        }
        if let Some(bytes) = self.drip {
            write!(f, ", {bytes} bytes at a time")?;
        }
        if self.trailers {
            write!(f, ", trailers")?;
        }
        Ok(())
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        let inserted = self.inserts.iter().map(|(point, _)| *point);
        inserted.chain(self.cut.map(|cut| cut.point))
    }

    pub(crate) fn effective_status(&self) -> u16 {
        self.status.unwrap_or(match &self.answer {
            Answer::Error(reply) => reply.status,
            Answer::Redirect { status } => *status,
            Answer::Dialect | Answer::Raw { .. } | Answer::Handshake(_) => 200,
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
            Answer::Redirect { .. } => {
                write!(f, "a redirect of status {} to another host", self.effective_status())?;
            }
            Answer::Handshake(tls) => return write!(f, "{tls}"),
        }
        if let Some(gzip) = self.gzip {
            write!(f, " {gzip}")?;
        }
        if self.omit_terminal {
            write!(f, " without its terminal event")?;
        }
        self.describe_form(f)?;
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
        if let Some(hang_up) = self.hang_up {
            write!(f, ", {hang_up}")?;
        }
        Ok(())
    }
}
