//! What is known of the servers that models are reached through, as data.
//!
//! ```
//! use turnbuckle_providers::profiles::{self, Dialect};
//!
//! let profile = profiles::by_name("openrouter").unwrap();
//! assert_eq!(profile.dialect, Dialect::OpenAiChat);
//! assert_eq!(profile.key.variable, Some("OPENROUTER_API_KEY"));
//! ```

mod table;

use std::time::Duration;

pub use self::table::*;

/// One kind of server: where it is, how it takes its key, and what sets it apart
/// from the others that speak its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// Its name on command lines and in reports, for example `openrouter`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Where its API is; `None` where every user has an address of their own.
    pub base_url: Option<&'static str>,
    /// How it takes its key.
    pub key: Key,
    /// The dialect it is spoken to in, unless another is asked for.
    pub dialect: Dialect,
    /// The field in which it reads the limit of the answer.
    pub output_cap: MaxTokensField,
    /// Whether it may be asked for token counts in a stream (`stream_options`).
    pub usage_in_stream: bool,
    /// Where its models' reasoning appears.
    pub reasoning: ReasoningIn,
    /// Whether a `<think>` at the start of the text means reasoning. Elsewhere it
    /// is text like any other.
    pub think_tags: bool,
    /// Whether it wants the reasoning back beside the tool calls that came of it,
    /// as `reasoning_content`.
    pub wants_reasoning_back: bool,
    /// How its errors come, besides an HTTP status. All ways are read everywhere.
    pub errors: &'static [ErrorsIn],
    /// How the session id is sent, so that a request finds the cache of the last.
    pub affinity: Affinity,
    /// A shorter clock between two bytes, where the server is known to send pings.
    pub byte_idle: Option<Duration>,
    /// Which ids of tool calls it takes.
    pub tool_ids: ToolIds,
    /// How it is asked for an answer that follows a JSON schema.
    pub answer_schema: AnswerSchema,
    /// How it is told how much to think.
    pub effort: EffortField,
    /// Whether it takes Anthropic's cache markers in messages.
    pub cache_markers: bool,
    /// What else is worth knowing, in a sentence or two.
    pub notes: &'static str,
}

/// How a server takes its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Key {
    /// The environment variable that customarily holds it.
    pub variable: Option<&'static str>,
    /// Whether nothing works without one.
    pub required: bool,
    /// The header that carries it.
    pub header: &'static str,
    /// What stands before it in the header.
    pub prefix: &'static str,
}

/// The wire of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// OpenAI Chat Completions.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini.
    Gemini,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// The name, which is that of the adapter's feature too.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The dialect of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == name)
    }
}

/// The field in which a server reads the limit of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MaxTokensField {
    /// `max_tokens`, which nearly every server knows.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's reasoning models insist on.
    MaxCompletionTokens,
    /// `generationConfig.maxOutputTokens` of Gemini.
    MaxOutputTokens,
}

impl MaxTokensField {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxOutputTokens => "maxOutputTokens",
        }
    }
}

/// Whether and how the session id is sent, so that a request finds the cache of
/// the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Affinity {
    /// As `prompt_cache_key` to `api.openai.com`, and to nobody else: strict servers
    /// refuse fields that they do not know.
    #[default]
    ByHost,
    /// As `prompt_cache_key`.
    PromptCacheKey,
    /// In this header.
    Header(&'static str),
    /// Not at all.
    Off,
}

/// Where a model's reasoning appears. An adapter reads all of them everywhere,
/// `<think>` aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningIn {
    /// Nowhere: the server keeps it.
    Hidden,
    /// In `reasoning_content` of a delta.
    ReasoningContent,
    /// In `reasoning` of a delta.
    Reasoning,
    /// In parts of the content with a type of their own.
    Parts,
    /// In the text, between `<think>` and `</think>`.
    ThinkTags,
    /// Wherever the server behind it puts it.
    Various,
}

impl ReasoningIn {
    /// A word for tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
            Self::Parts => "parts",
            Self::ThinkTags => "<think>",
            Self::Various => "various",
        }
    }
}

/// How an error comes once the answer has begun with status 200.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorsIn {
    /// An event whose data is `{"error":{…}}`, perhaps beside `choices`.
    Chunk,
    /// An event named `error`.
    NamedEvent,
    /// A line `error: {…}`, which is no field of event streams.
    ErrorLine,
    /// A word such as `error` in the place of the finish reason.
    FinishWord,
    /// A list with the error in it.
    List,
}

impl ErrorsIn {
    /// A word for tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::NamedEvent => "event: error",
            Self::ErrorLine => "error:",
            Self::FinishWord => "finish word",
            Self::List => "list",
        }
    }
}

/// Which ids of tool calls a server takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolIds {
    /// Any.
    Any,
    /// Nine letters or digits; others are sent as nine that are always the same
    /// for the same id.
    NineAlphanumeric,
}

/// How a server is asked for an answer that follows a JSON schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerSchema {
    /// It takes the schema.
    Schema,
    /// It only knows that the answer is to be some JSON object; the schema goes
    /// into the system prompt.
    ObjectOnly,
}

/// How a server is told how much to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EffortField {
    /// `"reasoning_effort": "high"`.
    ReasoningEffort,
    /// `"reasoning": {"effort": "high"}`.
    ReasoningObject,
}

/// The profile of this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Profile> {
    ALL.into_iter().find(|profile| profile.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_profile_can_be_named_and_reached() {
        let mut names = HashSet::new();
        for profile in ALL {
            assert!(names.insert(profile.name), "{} stands twice", profile.name);
            assert_eq!(by_name(profile.name), Some(profile));
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(profile.name.chars().all(plain), "{}", profile.name);
            let secure = |url: &str| {
                url.starts_with("https://")
                    || (url.starts_with("http://localhost:") && !profile.key.required)
            };
            assert!(profile.base_url.is_none_or(secure), "{}", profile.name);
            assert!(!profile.key.required || profile.key.variable.is_some(), "{}", profile.name);
            assert!(!profile.notes.is_empty() && !profile.errors.is_empty(), "{}", profile.name);
        }
        assert_eq!(ALL.len(), 23);
        assert_eq!(by_name("nobody"), None);
    }

    #[test]
    fn a_dialect_comes_back_by_its_name() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::by_name(dialect.as_str()), Some(dialect));
        }
    }

    #[test]
    fn only_servers_that_are_known_to_ping_have_a_shorter_clock() {
        let pinging: Vec<&str> =
            ALL.iter().filter(|p| p.byte_idle.is_some()).map(|p| p.name).collect();
        assert_eq!(pinging, ["deepseek", "openrouter", "anthropic"]);
    }
}
