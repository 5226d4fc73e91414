//! Which compositions can be put on a wire.

use super::{Answer, Behaviour, Cut, Gzip, How, Insert, Needs, Point, Tls};

impl Behaviour {
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
        if let Some(tls) = self.failed_handshake() {
            return self.check_handshake(tls);
        }
        let compressed = self.gzip.is_some_and(|gzip| gzip != Gzip::Lie);
        if !compressed && self.inserts.iter().any(|(_, insert)| *insert == Insert::CorruptGzip) {
            return Err(BehaviourError::NotCompressed);
        }
        if self.cut.is_some() && self.hang_up.is_some() {
            return Err(BehaviourError::HangUpAfterCut);
        }
        if !self.carries_content() || self.document {
            self.check_plain_body()?;
        }
        if self.needs() != Needs::Http1 && !self.http1.is_empty() {
            return Err(BehaviourError::NotHttp1);
        }
        for (point, _) in &self.inserts {
            if !point.is_between_events() {
                return Err(BehaviourError::InsertOutsideStream(*point));
            }
        }
        match self.cut {
            Some(Cut {
                point: Point::BeforeStatus | Point::InsideHeaders,
                how: How::CleanEnd,
                ..
            }) => Err(BehaviourError::CleanEndWithoutStatus),
            Some(Cut { point: Point::BeforeStatus | Point::InsideHeaders, how, .. })
                if how.is_of_the_body() =>
            {
                Err(BehaviourError::BodyFaultWithoutStatus(how))
            }
            _ => Ok(()),
        }
    }

    /// Nothing is answered, so nothing about an answer can be set.
    fn check_handshake(&self, tls: Tls) -> Result<(), BehaviourError> {
        if tls == Tls::Good {
            return Err(BehaviourError::GoodHandshake);
        }
        let set = self.cut.is_some()
            || self.gzip.is_some()
            || self.hang_up.is_some()
            || self.omit_terminal
            || !self.inserts.is_empty()
            || !self.http1.is_empty()
            || !self.headers.is_empty();
        if set { Err(BehaviourError::NoAnswer) } else { Ok(()) }
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
        if self.omit_terminal && !self.carries_content() {
            return Err(BehaviourError::NoTerminal);
        }
        match self.points().find(|point| point.needs_stream()) {
            Some(point) => Err(BehaviourError::NoEvents(point)),
            None => Ok(()),
        }
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
    /// A fault of the body where no body has begun.
    #[error("there is no body before the status line to end by {0}: use `Point::AfterHeaders`")]
    BodyFaultWithoutStatus(How),
    /// A handshake that does not fail, as a fault.
    #[error("a good handshake is no fault: choose it for the server, by `Serving::tls`")]
    GoodHandshake,
    /// Something about an answer, where the handshake fails.
    #[error("the handshake fails, so nothing is answered: set no more than a delay")]
    NoAnswer,
    /// A corruption of compressed bytes, where nothing is compressed.
    #[error("nothing is compressed that could be corrupted: add `.gzip(Gzip::Flushed)`")]
    NotCompressed,
    /// A cut and a hang-up after the answer.
    #[error("an answer that breaks has no end to hang up after: leave out the cut or the hang-up")]
    HangUpAfterCut,
    /// An oddity of HTTP/1.1 beside a fault of another protocol.
    #[error(
        "an oddity of HTTP/1.1 cannot be seen over TLS faults or HTTP/2: leave out one of them"
    )]
    NotHttp1,
    /// A change of events that are not in the answer.
    #[error("no event of the answer is {0}, so nothing can be changed there")]
    NothingToEdit(String),
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
