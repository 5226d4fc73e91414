//! What lies below one exchange: TLS, the protocol, compression, and the life
//! of the connection.

use std::fmt;

/// What the server does in the TLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tls {
    /// Shows a certificate for its names, signed by its own authority, which
    /// [`FaultServer::ca_pem`](crate::FaultServer::ca_pem) gives out.
    Good,
    /// Shows a certificate signed by an authority that nobody gives out.
    UnknownAuthority,
    /// Shows a certificate for `wrong.invalid`.
    WrongName,
    /// Shows a certificate that was valid in the year 2001.
    Expired,
    /// Reads the client's first message, then sends a FIN.
    HandshakeCut,
    /// Reads the client's first message and never answers it.
    Silence,
    /// Answers the client's first message by a fatal alert, `handshake_failure`.
    Alert,
    /// Answers the client's first message in plain HTTP.
    NoTls,
    /// Shows a certificate that will be valid in the year 3000.
    NotYetValid,
}

impl Tls {
    /// The words a script may use.
    pub const WORDS: &'static [&'static str] = &[
        "good",
        "unknown_authority",
        "wrong_name",
        "expired",
        "handshake_cut",
        "silence",
        "alert",
        "no_tls",
        "not_yet_valid",
    ];

    /// The word of a script.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::UnknownAuthority => "unknown_authority",
            Self::WrongName => "wrong_name",
            Self::Expired => "expired",
            Self::HandshakeCut => "handshake_cut",
            Self::Silence => "silence",
            Self::Alert => "alert",
            Self::NoTls => "no_tls",
            Self::NotYetValid => "not_yet_valid",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let all = [
            Self::Good,
            Self::UnknownAuthority,
            Self::WrongName,
            Self::Expired,
            Self::HandshakeCut,
            Self::Silence,
            Self::Alert,
            Self::NoTls,
            Self::NotYetValid,
        ];
        all.into_iter().find(|tls| tls.as_str() == word)
    }
}

impl fmt::Display for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "a good TLS handshake",
            Self::UnknownAuthority => "a certificate of an unknown authority",
            Self::WrongName => "a certificate for another name",
            Self::Expired => "an expired certificate",
            Self::HandshakeCut => "an end of file in the TLS handshake",
            Self::Silence => "silence in the TLS handshake",
            Self::Alert => "a fatal alert in the TLS handshake",
            Self::NoTls => "plain HTTP in place of a TLS handshake",
            Self::NotYetValid => "a certificate that is not valid yet",
        })
    }
}

/// What the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: over TLS by ALPN, else to clients that know it beforehand.
    Http2,
}

impl Protocol {
    /// The words a script may use.
    pub const WORDS: &'static [&'static str] = &["http1", "http2"];

    /// The word of a script.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Http2 => "http2",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::Http1, Self::Http2].into_iter().find(|protocol| protocol.as_str() == word)
    }
}

/// What a server must speak for a behaviour to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Needs {
    /// Nothing special: every server plays it.
    Plain,
    /// HTTP/1.1, with or without TLS.
    Http1,
    /// TLS, so the client must trust the server's authority.
    Tls,
    /// HTTP/2. A client that speaks it by ALPN alone must trust the server's
    /// authority.
    Http2,
}

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gzip {
    /// Each event can be read as soon as it is sent.
    Flushed,
    /// Compressed bytes leave when the compressor has a block full, as a proxy
    /// does that does not flush; a short answer comes all at its end.
    Held,
    /// The header says gzip, and the body is plain.
    Lie,
    /// The body is compressed, and no header says so.
    Unlabelled,
    /// The body is compressed, and its last bytes, length and checksum, are not sent.
    NoTrailer,
}

impl Gzip {
    /// The words a script may use.
    pub const WORDS: &'static [&'static str] =
        &["flushed", "held", "lie", "unlabelled", "no_trailer"];

    /// The word of a script.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flushed => "flushed",
            Self::Held => "held",
            Self::Lie => "lie",
            Self::Unlabelled => "unlabelled",
            Self::NoTrailer => "no_trailer",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Flushed, Self::Held, Self::Lie, Self::Unlabelled, Self::NoTrailer];
        all.into_iter().find(|gzip| gzip.as_str() == word)
    }
}

impl fmt::Display for Gzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flushed => "by gzip",
            Self::Held => "by gzip without flushes",
            Self::Lie => "that says gzip and is plain",
            Self::Unlabelled => "by gzip that no header tells of",
            Self::NoTrailer => "by gzip without its trailer",
        })
    }
}

/// How a connection is given up after a whole answer, without a word in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HangUp {
    /// A FIN right after the answer.
    AtOnce,
    /// A reset when the next request has come. That request is recorded and
    /// uses up no step.
    OnReuse,
    /// GOAWAY with NO_ERROR right after the answer, then a FIN. HTTP/2 only.
    GoAway,
}

impl HangUp {
    /// The words a script may use.
    pub const WORDS: &'static [&'static str] = &["at_once", "on_reuse", "goaway"];

    /// What a server must speak for it to be seen.
    pub(crate) fn needs(self) -> Needs {
        match self {
            Self::AtOnce | Self::OnReuse => Needs::Http1,
            Self::GoAway => Needs::Http2,
        }
    }

    /// The word of a script.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AtOnce => "at_once",
            Self::OnReuse => "on_reuse",
            Self::GoAway => "goaway",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::AtOnce, Self::OnReuse, Self::GoAway]
            .into_iter()
            .find(|hang_up| hang_up.as_str() == word)
    }
}

impl fmt::Display for HangUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtOnce => "then an unannounced end of file",
            Self::OnReuse => "then a reset of the next request",
            Self::GoAway => "then a graceful GOAWAY",
        })
    }
}
