//! Where in a step something happened, and who reported it.

use serde::Serialize;

/// Where an attempt stood when it failed.
///
/// The border is the response head: everything up to a 2xx status line and its
/// headers is [`Phase::Request`], everything after it is [`Phase::Stream`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Phase {
    /// Connecting, sending, and waiting for the response head; an answer with
    /// a status outside 2xx belongs here too.
    Request,
    /// From a 2xx response head to the end of the answer.
    Stream,
}

impl Phase {
    /// The wire name: `request` or `stream`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Stream => "stream",
        }
    }
}

/// Which part of the system reports a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Origin {
    /// The model provider said so.
    Provider,
    /// The connection to it broke.
    Transport,
    /// The turn loop itself.
    Runtime,
    /// A tool.
    Tool,
    /// The program that embeds the runtime: its configuration, its files.
    Host,
}

impl Origin {
    /// The wire name, for example `transport`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Transport => "transport",
            Self::Runtime => "runtime",
            Self::Tool => "tool",
            Self::Host => "host",
        }
    }
}

/// Whether the server can have worked on the request, and billed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Delivered {
    /// The request cannot have reached the server.
    No,
    /// It was sent, and nothing came back that tells.
    Unknown,
    /// At least one byte of a response came.
    Yes,
}
