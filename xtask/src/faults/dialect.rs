//! The APIs that client and server can speak.

use turnbuckle_faults::{Api, catalogue::Entry};

/// The API that client and server speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Dialect {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini.
    Gemini,
}

impl Dialect {
    pub(crate) const ALL: &[Self] = &[Self::Chat, Self::Responses, Self::Anthropic, Self::Gemini];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// Whether the dialect can show the fault at all.
    pub(crate) fn knows(self, entry: &Entry) -> bool {
        entry.apis.contains(&self.api())
    }

    pub(crate) const fn api(self) -> Api {
        match self {
            Self::Chat => Api::Chat,
            Self::Responses => Api::Responses,
            Self::Anthropic => Api::Anthropic,
            Self::Gemini => Api::Gemini,
        }
    }

    /// The header that carries the key, and what stands before the key in it.
    pub(crate) const fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::Chat | Self::Responses => ("authorization", "Bearer "),
            Self::Anthropic => ("x-api-key", ""),
            Self::Gemini => ("x-goog-api-key", ""),
        }
    }
}
