//! The outer form of a response: its head, the framing of its body, and the
//! spelling of its events.

use std::{fmt, time::Duration};

/// An oddity of HTTP/1.1 around a response. Several can stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Http1 {
    /// An informational response of this status comes before the real one.
    Informational(u16),
    /// Informational responses come for ever, and no real one.
    InformationalForEver,
    /// The head is HTTP/1.0 and announces no length: the body ends with the connection.
    UntilClose,
    /// A stream is sent with its exact `content-length`.
    ExactLength,
    /// This many bytes of nothing follow the end of the response.
    BytesBeyond(usize),
    /// The status line is none.
    NoStatusLine,
    /// The head comes one byte at a time, with this wait after each.
    SlowHead(Duration),
    /// A header of this many bytes.
    HugeHeader(usize),
    /// Header lines come for ever.
    EndlessHead,
    /// Each chunk says more about itself than its size.
    ChunkExtensions,
    /// Two lengths that contradict each other are announced.
    TwoLengths,
}

impl fmt::Display for Http1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Informational(status) => write!(f, "a {status} response before it"),
            Self::InformationalForEver => write!(f, "informational responses for ever"),
            Self::UntilClose => write!(f, "HTTP/1.0 without a length"),
            Self::ExactLength => write!(f, "an exact content-length"),
            Self::BytesBeyond(bytes) => write!(f, "{bytes} bytes beyond its end"),
            Self::NoStatusLine => write!(f, "no status line"),
            Self::SlowHead(pause) => write!(f, "a head of one byte in {} ms", pause.as_millis()),
            Self::HugeHeader(bytes) => write!(f, "a header of {bytes} bytes"),
            Self::EndlessHead => write!(f, "headers for ever"),
            Self::ChunkExtensions => write!(f, "chunk extensions"),
            Self::TwoLengths => write!(f, "two lengths"),
        }
    }
}

/// An unusual but lawful spelling of server-sent events. Several can stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spelling {
    /// Lines end with CR LF.
    CrLf,
    /// Lines end with CR alone.
    Cr,
    /// The stream begins with a byte order mark.
    ByteOrderMark,
    /// No space follows the colon of a field.
    NoSpace,
    /// Each event has `id:`, `retry:` and a field nobody knows.
    MoreFields,
    /// The data of an event stands on several lines.
    ManyLines,
    /// A comment and blank lines stand between two events.
    Comments,
    /// The stream ends without the blank line of its last event, and without the end of its line.
    NoLastNewline,
}

impl Spelling {
    /// These events in this spelling.
    pub(crate) fn write(self, frames: &mut [Vec<u8>]) {
        let count = frames.len();
        for (index, bytes) in frames.iter_mut().enumerate() {
            let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
            *bytes = match self {
                Self::CrLf => text.replace('\n', "\r\n"),
                Self::Cr => text.replace('\n', "\r"),
                Self::ByteOrderMark if index == 0 => format!("\u{feff}{text}"),
                Self::NoSpace => text.replace("data: ", "data:").replace("event: ", "event:"),
                Self::MoreFields => format!("id: {index}\nretry: 10\nx-unknown: 1\n{text}"),
                Self::ManyLines => text.replacen("data: {", "data: {\ndata: ", 1),
                Self::Comments => format!(":\n: keep-alive\n\n\n{text}"),
                Self::NoLastNewline if index + 1 == count => text.trim_end().to_owned(),
                Self::ByteOrderMark | Self::NoLastNewline => continue,
            }
            .into_bytes();
        }
    }
}

impl fmt::Display for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CrLf => "lines ended by CR LF",
            Self::Cr => "lines ended by CR",
            Self::ByteOrderMark => "a byte order mark",
            Self::NoSpace => "no space after a colon",
            Self::MoreFields => "id, retry and unknown fields",
            Self::ManyLines => "data on several lines",
            Self::Comments => "comments between events",
            Self::NoLastNewline => "no newline at its end",
        })
    }
}

/// What a server says that has nothing to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Noise {
    /// A comment.
    Comment,
    /// An event of the API that holds nothing: Anthropic's `ping`, elsewhere an
    /// empty delta or an event of a type that nobody knows.
    Ping,
    /// A delta of text.
    Delta,
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Comment => "comments",
            Self::Ping => "empty events",
            Self::Delta => "deltas",
        })
    }
}
