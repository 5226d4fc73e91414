//! What a call gives back when it did not work: something the model can repair.

use std::fmt;

use turnbuckle_errors::{ErrorCode, Failure, Origin, Redact, SafeText};

use crate::Touched;

/// Why a call did not work.
///
/// Its text is content: the model reads it as the result of its call, exact and
/// bounded by the tool. Diagnostics get it through [`ToolError::failure`] only.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolError {
    /// One of the tool codes.
    pub code: ErrorCode,
    /// What happened and what to do instead, for the model.
    pub text: String,
    /// What the call tried to change, for the guards.
    pub touched: Option<Touched>,
}

impl ToolError {
    /// An error with its text for the model.
    #[must_use]
    pub fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), touched: None }
    }

    /// Says what the call tried to change.
    #[must_use]
    pub fn with_touched(mut self, touched: Touched) -> Self {
        self.touched = Some(touched);
        self
    }

    /// The same as a diagnostic, redacted and bounded.
    #[must_use]
    pub fn failure(&self, redact: &dyn Redact) -> Failure {
        Failure::new(self.code, SafeText::redacted(&self.text, redact)).with_origin(Origin::Tool)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text)
    }
}

impl std::error::Error for ToolError {}
