//! The parts a behaviour is put together from.

use std::{fmt, time::Duration};

use super::{Api, How, Noise, Tls};

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// The content of the step, in the dialect of the request.
    Dialect,
    /// An error response in the dialect of the request.
    Error(ErrorReply),
    /// Bytes of our own.
    Raw {
        /// The value of `content-type`.
        content_type: String,
        /// The body.
        body: Vec<u8>,
    },
    /// A redirect to the same server under another host name.
    Redirect {
        /// The status, 301, 302, 303, 307 or 308.
        status: u16,
    },
    /// Nothing: the TLS handshake fails.
    Handshake(Tls),
}

/// An error as a provider words it: a response of its own, or an event inside
/// a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorReply {
    /// The HTTP status; not used inside a stream.
    pub status: u16,
    /// The provider's `type`, e.g. `invalid_request_error`.
    pub kind: String,
    /// The provider's `code`, if it sends one.
    pub code: Option<String>,
    /// The message. `{key}` stands for the key the client sent.
    pub message: String,
    /// Headers that come with it.
    pub headers: Vec<(String, String)>,
}

impl ErrorReply {
    /// An error of this status, `type` and message, without a code.
    pub fn new(status: u16, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status, kind: kind.into(), code: None, message: message.into(), headers: Vec::new() }
    }

    /// Sets the provider's `code`.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Asks the client to wait, in both spellings OpenAI sends:
    /// `retry-after-ms`, and `retry-after` in whole seconds, rounded up.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.headers.retain(|(name, _)| !name.starts_with("retry-after"));
        let millis = delay.as_millis();
        self.headers.push(("retry-after-ms".into(), millis.to_string()));
        self.headers.push(("retry-after".into(), millis.div_ceil(1000).to_string()));
        self
    }
}

/// Where in the exchange something happens. Events are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Point {
    /// The request was read; nothing was answered.
    BeforeStatus,
    /// After half the bytes of the response head. HTTP/1.1 only.
    InsideHeaders,
    /// After the blank line that ends the response head.
    AfterHeaders,
    /// Before this event.
    BeforeEvent(usize),
    /// After this event and its blank line.
    AfterEvent(usize),
    /// After half the bytes of this event.
    InsideEvent(usize),
    /// After the first byte of a character of several bytes; the middle one
    /// of the events that hold such a character is taken.
    InsideCharacter,
    /// Before the event that completes the answer (Chat: the finish reason).
    BeforeTerminal,
    /// Right after the event that completes the answer.
    AfterTerminal,
    /// After the last byte of the body, before its HTTP end.
    AtEnd,
    /// After half the bytes of a body which is not a stream.
    InsideBody,
}

impl Point {
    pub(super) fn event(self) -> Option<usize> {
        match self {
            Self::BeforeEvent(n) | Self::AfterEvent(n) | Self::InsideEvent(n) => Some(n),
            _ => None,
        }
    }

    pub(super) fn moved_to(self, number: usize) -> Self {
        match self {
            Self::BeforeEvent(_) => Self::BeforeEvent(number),
            Self::AfterEvent(_) => Self::AfterEvent(number),
            Self::InsideEvent(_) => Self::InsideEvent(number),
            other => other,
        }
    }

    pub(crate) fn needs_stream(self) -> bool {
        !matches!(
            self,
            Self::BeforeStatus
                | Self::InsideHeaders
                | Self::AfterHeaders
                | Self::AtEnd
                | Self::InsideBody
        )
    }

    pub(super) fn is_between_events(self) -> bool {
        matches!(
            self,
            Self::AfterHeaders
                | Self::BeforeEvent(_)
                | Self::AfterEvent(_)
                | Self::BeforeTerminal
                | Self::AfterTerminal
                | Self::AtEnd
        )
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforeStatus => write!(f, "before the status line"),
            Self::InsideHeaders => write!(f, "inside the headers"),
            Self::AfterHeaders => write!(f, "after the headers"),
            Self::BeforeEvent(n) => write!(f, "before event {n}"),
            Self::AfterEvent(n) => write!(f, "after event {n}"),
            Self::InsideEvent(n) => write!(f, "inside event {n}"),
            Self::InsideCharacter => write!(f, "inside a character"),
            Self::BeforeTerminal => write!(f, "before the terminal event"),
            Self::AfterTerminal => write!(f, "after the terminal event"),
            Self::AtEnd => write!(f, "at the end of the body"),
            Self::InsideBody => write!(f, "inside the body"),
        }
    }
}

/// A place to break, the way, and the wait before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) point: Point,
    pub(crate) how: How,
    pub(crate) after: Duration,
}

/// Something foreign said inside a stream.
///
/// Against a request with `stream: false` there is no stream to say it in:
/// an error or a malformed event then replaces the body, and a huge line is
/// left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Insert {
    /// An error event in the dialect of the request.
    Error(ErrorReply),
    /// An event whose data is not JSON.
    Malformed,
    /// One valid event on one line, whose text is this many bytes long. It is
    /// sent in pieces and never held whole.
    HugeLine(usize),
    /// Bytes that no inflater accepts, in the middle of a body compressed by
    /// gzip.
    CorruptGzip,
    /// These bytes, whatever they are.
    Bytes(Vec<u8>),
    /// These bytes in this API alone.
    In(Api, Vec<u8>),
    /// An event, or a comment, that says nothing.
    Noise(Noise),
    /// The same for ever, with this wait after each; nothing follows it.
    Endless(Noise, Duration),
}

impl Insert {
    /// The bytes it adds to a stream; no more than this.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::HugeLine(bytes) => bytes + 1024,
            Self::Error(reply) => reply.message.len() + 1024,
            Self::Bytes(bytes) | Self::In(_, bytes) => bytes.len(),
            Self::Malformed | Self::CorruptGzip | Self::Noise(_) | Self::Endless(..) => 1024,
        }
    }

    pub(crate) fn replaces_a_document(&self) -> bool {
        matches!(self, Self::Error(_) | Self::Malformed)
    }
}

impl fmt::Display for Insert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(reply) => write!(f, "a {} event", reply.kind),
            Self::Malformed => write!(f, "an event that is not JSON"),
            Self::HugeLine(bytes) => write!(f, "a line of {bytes} bytes"),
            Self::CorruptGzip => write!(f, "corrupt compressed bytes"),
            Self::Bytes(bytes) => write!(f, "{}", shown(bytes)),
            Self::In(api, bytes) => write!(f, "{} ({})", shown(bytes), api.as_str()),
            Self::Noise(noise) => write!(f, "{noise}"),
            Self::Endless(noise, _) => write!(f, "{noise} for ever"),
        }
    }
}

/// The beginning of some bytes, as one line.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 60;
    let begin = String::from_utf8_lossy(bytes.get(..MOST).unwrap_or(bytes)).into_owned();
    let more = if bytes.len() > MOST { "…" } else { "" };
    format!("{begin:?}{more}")
}
