//! What the model "says" in one step, apart from how it is put on a wire.

use std::time::Duration;

use serde_json::Value;

/// Said by a step that gives neither text nor tool calls. It holds characters
/// of two, three and four bytes, so that every step can be cut inside one.
pub const DEFAULT_TEXT: &str = "Le café est prêt — the kettle sang, 漢字 were drawn, \
     and 🦀 walked home before noon.";

/// Below this many words, a text is split by characters, so that there is
/// always a middle to cut.
const FEWEST_DELTAS: usize = 12;

/// The content of one answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Content {
    pub(crate) text: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) tool_calls: Vec<ToolCall>,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Option<Finish>,
    pub(crate) chunk_chars: Option<usize>,
}

impl Content {
    /// This content where it says something, else that one.
    pub(crate) fn over(mut self, other: &Self) -> Self {
        if self.tool_calls.is_empty() {
            self.tool_calls.clone_from(&other.tool_calls);
        }
        self.text = self.text.or_else(|| other.text.clone());
        self.reasoning = self.reasoning.or_else(|| other.reasoning.clone());
        self.usage = self.usage.or(other.usage);
        self.finish = self.finish.or(other.finish);
        self.chunk_chars = self.chunk_chars.or(other.chunk_chars);
        self
    }

    /// The visible text: the step's own, else the default unless tools are called.
    pub(crate) fn text(&self) -> &str {
        match &self.text {
            Some(text) => text,
            None if self.tool_calls.is_empty() => DEFAULT_TEXT,
            None => "",
        }
    }

    pub(crate) fn finish(&self) -> Finish {
        self.finish.unwrap_or(if self.tool_calls.is_empty() {
            Finish::Stop
        } else {
            Finish::ToolCalls
        })
    }

    pub(crate) fn deltas<'a>(&self, text: &'a str) -> Vec<&'a str> {
        match self.chunk_chars {
            Some(chars) => by_chars(text, chars),
            None => by_words(text),
        }
    }
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl ToolCall {
    /// A call of `name` with these arguments. Its id is given when it is
    /// sent: `call_1`, `call_2`, … over the life of the server's script.
    pub fn new(name: impl Into<String>, arguments: &Value) -> Self {
        Self::with_raw_arguments(name, arguments.to_string())
    }

    /// A call whose arguments are sent exactly as written, JSON or not.
    pub fn with_raw_arguments(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: None, name: name.into(), arguments: arguments.into() }
    }

    /// Fixes the id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}

/// The tokens a step says it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Tokens of the prompt that came from the provider's cache.
    pub cached: u64,
    /// Tokens of the answer spent on reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// This many tokens in and out, none cached, none for reasoning.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// It had said everything.
    Stop,
    /// It reached the limit of its output.
    Length,
    /// It wants tools to run.
    ToolCalls,
    /// The provider's filter stopped it.
    ContentFilter,
}

impl Finish {
    /// The words a script may use; those of OpenAI Chat Completions.
    pub const WORDS: &'static [&'static str] = &["stop", "length", "tool_calls", "content_filter"];

    /// The word of a script.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Stop, Self::Length, Self::ToolCalls, Self::ContentFilter];
        all.into_iter().find(|finish| finish.as_str() == word)
    }
}

/// The waits of one step; each is zero unless the step sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Delays {
    pub(crate) headers: Option<Duration>,
    pub(crate) event: Option<Duration>,
    pub(crate) cut: Option<Duration>,
}

/// One delta a word, each with the white space after it; a text of few words
/// is split into about [`FEWEST_DELTAS`] equal pieces instead.
fn by_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, tail) = rest.split_at(word_end(rest));
        words.push(word);
        rest = tail;
    }
    if words.len() >= FEWEST_DELTAS {
        return words;
    }
    by_chars(text, text.chars().count() / FEWEST_DELTAS)
}

/// Where the first word and the white space after it end.
fn word_end(text: &str) -> usize {
    let mut seen_space = false;
    for (at, c) in text.char_indices() {
        if seen_space && !c.is_whitespace() {
            return at;
        }
        seen_space |= c.is_whitespace();
    }
    text.len()
}

fn by_chars(text: &str, chars: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(chars.max(1)).map_or(rest.len(), |(at, _)| at);
        let (piece, tail) = rest.split_at(end);
        pieces.push(piece);
        rest = tail;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_text_has_fourteen_words_and_every_width_of_character() {
        let deltas = Content::default().deltas(DEFAULT_TEXT);
        assert!(deltas.len() >= 14, "{deltas:?}");
        for width in 1..=4 {
            assert!(DEFAULT_TEXT.chars().any(|c| c.len_utf8() == width), "{width}");
        }
    }

    #[test]
    fn deltas_join_to_the_text_however_it_is_split() {
        for text in ["", " ", "  lead", "a b", DEFAULT_TEXT, "漢字漢字", "one\n\ntwo  three "] {
            for chunk_chars in [None, Some(1), Some(6), Some(1000)] {
                let content = Content { chunk_chars, ..Content::default() };
                assert_eq!(content.deltas(text).concat(), text, "{chunk_chars:?}");
            }
        }
    }

    #[test]
    fn a_text_of_few_words_is_still_split_into_many_deltas() {
        let deltas = Content::default().deltas("The file says nothing of note.");
        assert!(deltas.len() >= 12, "{deltas:?}");
    }

    #[test]
    fn a_step_that_calls_tools_says_no_default_text_and_finishes_with_tool_calls() {
        let mut content = Content::default();
        assert_eq!((content.text(), content.finish()), (DEFAULT_TEXT, Finish::Stop));
        content.tool_calls.push(ToolCall::with_raw_arguments("Read", "{}"));
        assert_eq!((content.text(), content.finish()), ("", Finish::ToolCalls));
    }
}
