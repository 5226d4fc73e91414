//! A row of the index, as data.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One recorded body and what has to come of it.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Row {
    /// The body's file, below the folder of the index.
    pub file: String,
    /// The dialect: `chat`, `responses`, `anthropic` or `gemini`.
    pub protocol: String,
    /// Whose server sent it.
    #[serde(default)]
    pub provider: String,
    /// The status of the response.
    pub status: u16,
    /// Its headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The parts of `expect` that do not bind: `finish`, `error`, `text` or `all`.
    #[serde(default)]
    pub lenient: Vec<String>,
    /// What has to come of it.
    pub expect: Expected,
}

impl Row {
    /// Whether the body is an event stream.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.file.ends_with(".sse")
    }

    pub(super) fn binds(&self, part: &str) -> bool {
        !self.lenient.iter().any(|lenient| lenient == part || lenient == "all")
    }
}

/// What has to come of a body.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Expected {
    /// SHA-256 of the visible text without refusals, in hexadecimal.
    pub text_sha256: String,
    /// Its length in Unicode code points.
    pub text_chars: usize,
    /// The length of the reasoning.
    #[serde(default)]
    pub reasoning_chars: usize,
    /// The length of the refusal.
    #[serde(default)]
    pub refusal_chars: usize,
    /// The calls for the client to run.
    #[serde(default)]
    pub tool_calls: Vec<ExpectedCall>,
    /// The finish reason in our words, `error`, `none` or `other:<raw>`.
    pub finish: String,
    /// The wire's own word.
    #[serde(default)]
    pub finish_raw: Option<Value>,
    /// The token counts.
    #[serde(default)]
    pub usage: Option<ExpectedUsage>,
    /// The error, where the body is or holds one.
    #[serde(default)]
    pub error: Option<Value>,
}

/// A call, its arguments as JSON text.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct ExpectedCall {
    /// The tool's name.
    pub name: String,
    /// Its arguments; `None` if they were cut off.
    pub arguments_json: Option<Value>,
    /// The arguments that were cut off.
    #[serde(default)]
    pub arguments_raw: Option<String>,
}

/// Token counts as on the wire; `None` where not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[non_exhaustive]
pub struct ExpectedUsage {
    /// Tokens of the request.
    #[serde(default)]
    pub input: Option<u64>,
    /// Tokens of the answer.
    #[serde(default)]
    pub output: Option<u64>,
    /// Tokens from a cache.
    #[serde(default)]
    pub cached: Option<u64>,
    /// Tokens of reasoning.
    #[serde(default)]
    pub reasoning: Option<u64>,
    /// Tokens that the server's own tools gave the model to read.
    #[serde(default)]
    pub tool_prompt: Option<u64>,
    /// Tokens written to a cache.
    #[serde(default)]
    pub cache_write: Option<u64>,
}
