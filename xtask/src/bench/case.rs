//! What is measured: a dialect, a shape of answer, and how much of it.

use std::{fmt, str::FromStr};

use anyhow::{Context as _, Result, bail};

/// The dialects that are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    Chat,
    Anthropic,
    Responses,
    Gemini,
}

impl Dialect {
    pub(super) const ALL: [Self; 4] = [Self::Chat, Self::Anthropic, Self::Responses, Self::Gemini];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
        }
    }

    /// The last part of the path of a request.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Anthropic => "messages",
            Self::Responses => "responses",
            Self::Gemini => "models/a-model:streamGenerateContent?alt=sse",
        }
    }
}

/// What an answer consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    /// So many small pieces of text, in HTTP chunks of 16 KiB.
    Long,
    /// The same, each event in an HTTP chunk of its own.
    Apart,
    /// One event with so many bytes of text.
    Big,
    /// One tool call in so many fragments.
    Fragments,
    /// So many requests, each with the calls and results of those before it.
    Rounds,
    /// So many answers of one word, one after the other.
    First,
    /// So many streams at once, each with a piece of text every 100 ms.
    Paced,
    /// So many streams at once, which wait after their first text.
    Rest,
}

impl Shape {
    const ALL: [Self; 8] = [
        Self::Long,
        Self::Apart,
        Self::Big,
        Self::Fragments,
        Self::Rounds,
        Self::First,
        Self::Paced,
        Self::Rest,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Long => "long",
            Self::Apart => "apart",
            Self::Big => "big",
            Self::Fragments => "fragments",
            Self::Rounds => "rounds",
            Self::First => "first",
            Self::Paced => "paced",
            Self::Rest => "rest",
        }
    }
}

/// One thing to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    pub(super) dialect: Dialect,
    pub(super) shape: Shape,
    pub(super) size: usize,
}

/// `chat-long-300000`, which is also the first segment of the path that asks the
/// server for it.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.dialect.name(), self.shape.name(), self.size)
    }
}

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.splitn(3, '-');
        let mut part = || parts.next().unwrap_or_default();
        let (dialect, shape, size) = (part(), part(), part());
        let Some(dialect) = Dialect::ALL.into_iter().find(|known| known.name() == dialect) else {
            bail!("`{text}` names no dialect; write it like chat-long-300000");
        };
        let Some(shape) = Shape::ALL.into_iter().find(|known| known.name() == shape) else {
            bail!("`{text}` names no shape of answer; write it like chat-long-300000");
        };
        let size = size
            .parse()
            .with_context(|| format!("`{text}` ends in no number; write it like chat-long-300000"));
        Ok(Self { dialect, shape, size: size? })
    }
}

/// Who reads the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(super) enum Reader {
    /// The adapter, through the public stream.
    Ours,
    /// The yardstick.
    L2,
}

impl Reader {
    pub(super) const BOTH: [Self; 2] = [Self::Ours, Self::L2];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::L2 => "l2",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_can_be_told_to_another_process() {
        for dialect in Dialect::ALL {
            for shape in Shape::ALL {
                let case = Case { dialect, shape, size: 17 };
                assert_eq!(case.to_string().parse::<Case>().unwrap(), case);
            }
        }
    }

    #[test]
    fn a_case_that_is_none_says_how_one_is_written() {
        for text in ["", "chat", "chat-long", "chat-long-x", "chat-lnog-3", "x-long-3"] {
            let error = text.parse::<Case>().unwrap_err().to_string();
            assert!(error.contains("write it like chat-long-300000"), "{error}");
        }
    }
}
