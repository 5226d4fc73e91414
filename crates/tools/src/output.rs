//! What a call gives back when it worked.

/// The result of a call that worked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ToolOutput {
    /// What the model gets to read: content, exact, bounded by the tool.
    pub text: String,
    /// What the call changed, for the guards.
    pub touched: Option<Touched>,
    /// A unified diff of the change, for people.
    pub diff: Option<String>,
}

impl ToolOutput {
    /// A result that is text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Says what the call changed.
    #[must_use]
    pub fn with_touched(mut self, touched: Touched) -> Self {
        self.touched = Some(touched);
        self
    }

    /// Adds a diff for people.
    #[must_use]
    pub fn with_diff(mut self, diff: impl Into<String>) -> Self {
        self.diff = Some(diff.into());
        self
    }
}

/// What a call changed, or tried to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Touched {
    /// An Edit of this file, by its canonical path within the workspace.
    Edit(String),
    /// A Write of this file, by its canonical path within the workspace.
    Write(String),
    /// A shell command that runs a patch program.
    PatchCommand(String),
    /// A shell command in which every patch program did its work, whatever came
    /// of the rest of it.
    PatchApplied(String),
}
