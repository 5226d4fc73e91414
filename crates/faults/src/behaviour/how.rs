//! The ways in which an exchange breaks.

use std::fmt;

use super::wire::Needs;

/// How an exchange breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum How {
    /// A TCP RST: the client's next read fails with "connection reset".
    Reset,
    /// A TCP FIN: the client reads an end of file in the middle of the body.
    /// Over TLS it is announced by `close_notify`.
    Fin,
    /// A proper HTTP end of a body which is not complete in its dialect; the
    /// connection lives on.
    CleanEnd,
    /// The connection stays open and nothing more is sent.
    Silence,
    /// The head announces by `content-length` more than the body holds; then a
    /// FIN. HTTP/1.1 only.
    ShortBody,
    /// A chunk whose size is no number; then a FIN. HTTP/1.1 only.
    BadChunk,
    /// A FIN without `close_notify`. TLS only.
    FinWithoutNotify,
    /// Bytes that are no TLS record, then a FIN. TLS only.
    BadRecord,
    /// A frame that HTTP/2 forbids (DATA on stream 0), then a FIN. HTTP/2 only.
    BadFrame,
    /// RST_STREAM with this code; the connection lives on. HTTP/2 only.
    RstStream(Http2Code),
    /// GOAWAY with this code, then a FIN. It says that this request was not
    /// processed, whatever was answered. HTTP/2 only.
    GoAway(Http2Code),
    /// GOAWAY with this code, then a FIN. It says that this request was
    /// processed, so a client waits for the rest. HTTP/2 only.
    GoAwayAccepted(Http2Code),
}

impl How {
    /// The words a script may use.
    pub const WORDS: &'static [&'static str] = &[
        "reset",
        "fin",
        "clean_end",
        "silence",
        "short_body",
        "bad_chunk",
        "fin_without_notify",
        "bad_record",
        "bad_frame",
        "rst_stream",
        "goaway",
        "goaway_accepted",
    ];

    /// The word of a script.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Fin => "fin",
            Self::CleanEnd => "clean_end",
            Self::Silence => "silence",
            Self::ShortBody => "short_body",
            Self::BadChunk => "bad_chunk",
            Self::FinWithoutNotify => "fin_without_notify",
            Self::BadRecord => "bad_record",
            Self::BadFrame => "bad_frame",
            Self::RstStream(_) => "rst_stream",
            Self::GoAway(_) => "goaway",
            Self::GoAwayAccepted(_) => "goaway_accepted",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let all = [
            Self::Reset,
            Self::Fin,
            Self::CleanEnd,
            Self::Silence,
            Self::ShortBody,
            Self::BadChunk,
            Self::FinWithoutNotify,
            Self::BadRecord,
            Self::BadFrame,
            Self::RstStream(Http2Code::InternalError),
            Self::GoAway(Http2Code::InternalError),
            Self::GoAwayAccepted(Http2Code::InternalError),
        ];
        all.into_iter().find(|how| how.as_str() == word)
    }

    /// The HTTP/2 error code it carries, if it is one of HTTP/2.
    pub fn http2_code(self) -> Option<Http2Code> {
        match self {
            Self::RstStream(code) | Self::GoAway(code) | Self::GoAwayAccepted(code) => Some(code),
            _ => None,
        }
    }

    pub(super) fn with_code(self, code: Http2Code) -> Self {
        match self {
            Self::RstStream(_) => Self::RstStream(code),
            Self::GoAway(_) => Self::GoAway(code),
            Self::GoAwayAccepted(_) => Self::GoAwayAccepted(code),
            other => other,
        }
    }

    pub(super) fn needs(self) -> Needs {
        match self {
            Self::ShortBody | Self::BadChunk => Needs::Http1,
            Self::FinWithoutNotify | Self::BadRecord => Needs::Tls,
            Self::BadFrame | Self::RstStream(_) | Self::GoAway(_) | Self::GoAwayAccepted(_) => {
                Needs::Http2
            }
            Self::Reset | Self::Fin | Self::CleanEnd | Self::Silence => Needs::Plain,
        }
    }

    /// Whether it is a fault of the body's framing, so that there must be one.
    pub(super) fn is_of_the_body(self) -> bool {
        matches!(self, Self::ShortBody | Self::BadChunk)
    }

    /// Whether what was sent before it stands in whole chunks.
    pub(crate) fn ends_between_chunks(self) -> bool {
        matches!(self, Self::CleanEnd | Self::BadChunk)
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset => f.write_str("a reset"),
            Self::Fin => f.write_str("an end of file"),
            Self::CleanEnd => f.write_str("a clean end"),
            Self::Silence => f.write_str("silence"),
            Self::ShortBody => f.write_str("an end of file short of the content-length"),
            Self::BadChunk => f.write_str("a malformed chunk"),
            Self::FinWithoutNotify => f.write_str("an end of file without close_notify"),
            Self::BadRecord => f.write_str("bytes that are no TLS record"),
            Self::BadFrame => f.write_str("a frame that HTTP/2 forbids"),
            Self::RstStream(code) => write!(f, "RST_STREAM({})", code.as_str()),
            Self::GoAway(code) => write!(f, "GOAWAY({})", code.as_str()),
            Self::GoAwayAccepted(code) => {
                write!(f, "GOAWAY({}), the request accepted,", code.as_str())
            }
        }
    }
}

/// An error code of HTTP/2 (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Http2Code {
    /// Nothing is wrong; graceful shutdowns send it.
    NoError = 0,
    /// The client broke the protocol.
    ProtocolError = 1,
    /// The server broke down.
    InternalError = 2,
    /// Flow control was not respected.
    FlowControlError = 3,
    /// SETTINGS were not acknowledged in time.
    SettingsTimeout = 4,
    /// A frame came for a closed stream.
    StreamClosed = 5,
    /// A frame had a wrong size.
    FrameSizeError = 6,
    /// The request was refused before anything was done with it.
    RefusedStream = 7,
    /// The stream is no longer wanted.
    Cancel = 8,
    /// The compression of headers is out of step.
    CompressionError = 9,
    /// A tunnel broke.
    ConnectError = 10,
    /// The client asks too much.
    EnhanceYourCalm = 11,
    /// The TLS of the connection is too weak.
    InadequateSecurity = 12,
    /// HTTP/1.1 is wanted.
    Http11Required = 13,
}

impl Http2Code {
    /// The words a script may use, those of the RFC.
    pub const WORDS: &'static [&'static str] = &[
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];

    const ALL: [Self; 14] = [
        Self::NoError,
        Self::ProtocolError,
        Self::InternalError,
        Self::FlowControlError,
        Self::SettingsTimeout,
        Self::StreamClosed,
        Self::FrameSizeError,
        Self::RefusedStream,
        Self::Cancel,
        Self::CompressionError,
        Self::ConnectError,
        Self::EnhanceYourCalm,
        Self::InadequateSecurity,
        Self::Http11Required,
    ];

    /// All of them, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    /// Its name in the RFC.
    pub fn as_str(self) -> &'static str {
        let index = usize::try_from(self.value()).unwrap_or_default();
        Self::WORDS.get(index).copied().unwrap_or("UNKNOWN")
    }

    /// The number on the wire.
    pub const fn value(self) -> u32 {
        self as u32
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_back() {
        for word in How::WORDS {
            assert_eq!(How::from_word(word).unwrap().as_str(), *word);
        }
        for (number, word) in Http2Code::WORDS.iter().enumerate() {
            let code = Http2Code::from_word(word).unwrap();
            assert_eq!((code.as_str(), code.value() as usize), (*word, number));
        }
    }
}
