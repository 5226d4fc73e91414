//! One call of a tool, and how it ended.

use serde_json::Value;

use crate::{ToolError, ToolOutput};

/// What the model asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The id that pairs the call with its result.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// Its input; or, if that is not whole JSON, what the model wrote.
    pub input: Result<Value, String>,
}

/// How a call ended. Every call has exactly one.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// What the model gets to read.
    pub result: Result<ToolOutput, ToolError>,
    /// Whether the tool itself was started, so that it may have had an effect.
    pub started: bool,
}

impl ToolOutcome {
    /// Whether the tool did what was asked.
    #[must_use]
    pub const fn ok(&self) -> bool {
        self.result.is_ok()
    }

    /// The text that goes back to the model.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.result {
            Ok(output) => &output.text,
            Err(error) => &error.text,
        }
    }
}
