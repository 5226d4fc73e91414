//! Changes to the events of an answer: the shapes in which one API differs from
//! what its documentation says.

use std::fmt;

/// The API in whose words an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini.
    Gemini,
}

impl Api {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Chat, Self::Responses, Self::Anthropic, Self::Gemini];

    /// Its name in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

/// Which events of a stream are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spot {
    /// All of them.
    Every,
    /// The first one.
    First,
    /// The last one.
    Last,
    /// Those that complete the answer.
    Terminal,
    /// All whose bytes hold this text.
    Holding(&'static str),
    /// The first whose bytes hold this text.
    FirstHolding(&'static str),
    /// The second whose bytes hold this text.
    SecondHolding(&'static str),
}

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// This text in it becomes that one.
    Replace(&'static str, &'static str),
    /// It is left out.
    Drop,
    /// It is sent twice.
    Twice,
    /// It comes after the one that follows it.
    AfterNext,
    /// These bytes come before it.
    After(&'static str),
}

/// A change of events in one API, or in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) api: Option<Api>,
    pub(crate) spot: Spot,
    pub(crate) change: Change,
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.change {
            Change::Replace(from, to) => write!(f, "{from:?} for {to:?} in {}", self.spot)?,
            Change::Drop => write!(f, "{} left out", self.spot)?,
            Change::Twice => write!(f, "{} sent twice", self.spot)?,
            Change::AfterNext => write!(f, "{} after the next", self.spot)?,
            Change::After(text) => write!(f, "{text:?} before {}", self.spot)?,
        }
        match self.api {
            Some(api) => write!(f, " ({})", api.as_str()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => f.write_str("every event"),
            Self::First => f.write_str("the first event"),
            Self::Last => f.write_str("the last event"),
            Self::Terminal => f.write_str("the terminal event"),
            Self::Holding(text) => write!(f, "each event with {text:?}"),
            Self::FirstHolding(text) => write!(f, "the first event with {text:?}"),
            Self::SecondHolding(text) => write!(f, "the second event with {text:?}"),
        }
    }
}
