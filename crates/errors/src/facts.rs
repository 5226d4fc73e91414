//! What was seen, in order of arrival: the input of the classifier.

mod body;
mod flattened;
mod report;

use std::{fmt, time::Duration};

pub use body::{BodyShape, ErrorBody};
pub(crate) use flattened::{Flattened, without_error_names};
pub use report::{BadReport, REPORT_FIELDS};

use crate::Phase;

/// Everything known about a failed attempt, as plain data.
///
/// Facts are kept in the order in which they arrived, because the first one
/// that is conclusive decides: a 401 whose body is then cut is still a 401.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    phase: Phase,
    seen: Vec<Fact>,
    retry_after: Option<Duration>,
    should_retry: Option<bool>,
    provider: Option<String>,
}

impl Facts {
    /// Nothing seen yet, in `phase`.
    #[must_use]
    pub const fn new(phase: Phase) -> Self {
        Self { phase, seen: Vec::new(), retry_after: None, should_retry: None, provider: None }
    }

    /// Adds what was seen next.
    #[must_use]
    pub fn with(mut self, fact: Fact) -> Self {
        self.seen.push(fact);
        self
    }

    /// Sets the wait that the response headers ask for.
    #[must_use]
    pub const fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }

    /// Sets what `x-should-retry` says.
    #[must_use]
    pub const fn with_should_retry(mut self, should: Option<bool>) -> Self {
        self.should_retry = should;
        self
    }

    /// Names the provider, where that is known. It decides only where two
    /// providers mean different things by the same words and type nothing.
    #[must_use]
    pub fn with_provider(mut self, name: impl Into<String>) -> Self {
        self.provider = Some(name.into());
        self
    }

    /// The provider's name, where it is known.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    /// Where the attempt stood.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// What was seen, in order of arrival.
    #[must_use]
    pub fn seen(&self) -> &[Fact] {
        &self.seen
    }

    /// The wait that the response headers ask for.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// What `x-should-retry` says.
    #[must_use]
    pub const fn should_retry(&self) -> Option<bool> {
        self.should_retry
    }

    /// The HTTP status, if a response head came; of a flattened message, the
    /// one that it begins with.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.seen.iter().find_map(|fact| match fact {
            Fact::Status(status) => Some(status.status),
            Fact::Message(text) => Flattened::read(text)?.status,
            _ => None,
        })
    }

    /// The first text with which the provider, or a flattened error, told what
    /// happened. It is outside text: redact it before showing it.
    #[must_use]
    pub fn told_message(&self) -> Option<&str> {
        let ours = |fact: &&Fact| matches!(fact, Fact::Aborted | Fact::Clock(_));
        if self.seen.iter().any(|fact| ours(&fact)) {
            return None;
        }
        self.seen.iter().find_map(|fact| match fact {
            Fact::Status(StatusFact { body, .. }) | Fact::InBand(InBandError { body }) => {
                body.message.as_deref()
            }
            Fact::Message(text) => Some(text.as_str()),
            _ => None,
        })
    }
}

/// One thing that was seen. Its `Debug` does not show texts from outside.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Fact {
    /// Our own side cancelled the attempt.
    Aborted,
    /// One of our clocks expired.
    Clock(Clock),
    /// A response with a status outside 2xx.
    Status(StatusFact),
    /// An error inside a 2xx response.
    InBand(InBandError),
    /// The stream broke the rules of its dialect.
    Protocol(Protocol),
    /// The connection failed, by its typed cause.
    Transport(Transport),
    /// A flattened message of another stack, where nothing better is held.
    Message(String),
}

impl fmt::Debug for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted => f.write_str("Aborted"),
            Self::Clock(clock) => f.debug_tuple("Clock").field(clock).finish(),
            Self::Status(status) => f.debug_tuple("Status").field(status).finish(),
            Self::InBand(error) => f.debug_tuple("InBand").field(error).finish(),
            Self::Protocol(protocol) => f.debug_tuple("Protocol").field(protocol).finish(),
            Self::Transport(cause) => f.debug_tuple("Transport").field(cause).finish(),
            Self::Message(text) => f.debug_tuple("Message").field(&Unseen::new(text)).finish(),
        }
    }
}

/// A text from outside that is not to be shown: it prints as its length.
pub(crate) struct Unseen(usize);

impl Unseen {
    pub(crate) const fn new(text: &str) -> Self {
        Self(text.len())
    }
}

impl fmt::Debug for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes>", self.0)
    }
}

/// Our clocks; each names itself in the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Clock {
    /// From dialling to a connection.
    Connect,
    /// From sending the request to the first event that is not a comment.
    FirstEvent,
    /// Between two bytes of the answer.
    ByteIdle,
    /// Between two deltas of the answer.
    ProgressIdle,
}

impl Clock {
    /// The clock's name as the policy and the documentation spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::FirstEvent => "first_event",
            Self::ByteIdle => "byte_idle",
            Self::ProgressIdle => "progress_idle",
        }
    }
}

/// A response with a status outside 2xx.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StatusFact {
    /// The HTTP status.
    pub status: u16,
    /// What of its body could be read.
    pub body: ErrorBody,
}

impl StatusFact {
    /// A status and its body.
    #[must_use]
    pub const fn new(status: u16, body: ErrorBody) -> Self {
        Self { status, body }
    }
}

/// An error that came as an event of a 2xx stream, or as its whole body.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InBandError {
    /// The error itself.
    pub body: ErrorBody,
}

impl InBandError {
    /// An error inside a stream.
    #[must_use]
    pub const fn new(body: ErrorBody) -> Self {
        Self { body }
    }
}

/// How a stream can break the rules of its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// It ended cleanly, before the terminal event.
    EndedEarly,
    /// A 2xx response without any event.
    EmptyBody,
    /// An event that cannot be decoded.
    Undecodable,
    /// Tool arguments or text beyond what one answer may hold.
    AnswerTooLarge,
    /// A web page where a model's answer should be.
    Html,
    /// A line beyond the limit (16 MiB): this is no event stream.
    LineTooLong,
}

/// Why a connection failed, by type and not by its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// Nobody listens there.
    Refused,
    /// The host name has no address.
    Unresolved,
    /// There is no route, or the network is down.
    Unreachable,
    /// The TLS handshake or its certificate failed.
    Tls,
    /// TLS broke after its handshake: the request may have arrived.
    TlsBroken,
    /// The proxy would not connect us.
    Proxy,
    /// Connecting failed in another way.
    Connect,
    /// The peer reset the connection.
    Reset,
    /// The connection ended before the message did.
    Incomplete,
    /// A chunk of the body was malformed.
    BadChunk,
    /// The compressed body was malformed.
    BadCompression,
    /// The peer reset the HTTP/2 stream.
    Http2Reset(Http2Reason),
    /// The peer closed the HTTP/2 connection.
    Http2GoAway(Http2Reason),
    /// It failed in a way we have no name for.
    Other,
}

impl Transport {
    /// Whether the request cannot have reached the server.
    #[must_use]
    pub const fn before_the_request(self) -> bool {
        matches!(
            self,
            Self::Refused
                | Self::Unresolved
                | Self::Unreachable
                | Self::Tls
                | Self::Proxy
                | Self::Connect
        )
    }
}

/// An HTTP/2 error code (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Http2Reason(pub u32);
