//! What a tool is.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{Progress, ToolError, ToolOutput};

/// Something a model can do to the machine.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Its name, its description for the model, and the schema of its input.
    fn spec(&self) -> &ToolSpec;

    /// What a call with this input does to the machine. Input that the tool
    /// cannot take counts as the strongest effect the tool has.
    fn effect(&self, input: &Value) -> Effect;

    /// What the call will do, in one sentence for a person who is asked to
    /// permit it. It is content: it may quote the input.
    fn describe(&self, input: &Value) -> String {
        format!("{} {input}", self.spec().name)
    }

    /// The place outside the workspace that a call with this input would use, if
    /// it would use one. Whoever permits it lets the call go there, and nowhere
    /// else: see [`ToolContext::outside`].
    async fn outside(&self, input: &Value) -> Option<Outside> {
        let _ = input;
        None
    }

    /// Runs one call.
    ///
    /// Cancel safety: the future may be dropped at any await, and must then stop
    /// what it started. It should also end soon after `context.cancel` is
    /// cancelled.
    ///
    /// # Errors
    ///
    /// Whatever the model should read and repair, with one of the tool codes.
    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, ToolError>;
}

/// How a tool introduces itself to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name that the model calls.
    pub name: String,
    /// What it does and its limits, for the model.
    pub description: String,
    /// The JSON schema of its input.
    pub input_schema: Value,
}

/// A place outside the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// Where the path of the call leads, with all links followed.
    pub path: PathBuf,
    /// The folder that must be opened for it.
    pub folder: PathBuf,
    /// The arguments with that path in full: what was asked about is what runs.
    pub input: Value,
}

/// What a call does to the machine, from weakest to strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// It only looks.
    Read,
    /// It changes files of the workspace.
    Mutate,
    /// It runs programs, which may do anything.
    Execute,
}

/// What a call may lean on while it runs.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ToolContext {
    /// Cancelled when the prompt is.
    pub cancel: CancellationToken,
    progress: Option<Progress>,
    outside: Option<PathBuf>,
}

impl ToolContext {
    /// A context that ends with `cancel`, and whose progress nobody reads.
    #[must_use]
    pub const fn new(cancel: CancellationToken) -> Self {
        Self { cancel, progress: None, outside: None }
    }

    /// Says who reads the progress of the call.
    #[must_use]
    pub fn with_progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Leaves out this many bytes of the progress.
    #[cfg(feature = "builtin")]
    pub(crate) fn skip_progress(&self, bytes: usize) {
        if let Some(progress) = &self.progress {
            progress.skip(bytes);
        }
    }

    /// Whether somebody reads the progress of the call, so that it is worth making.
    #[cfg(feature = "builtin")]
    pub(crate) const fn is_watched(&self) -> bool {
        self.progress.is_some()
    }

    /// The folder outside the workspace that this call was permitted to use.
    #[must_use]
    pub fn outside(&self) -> Option<&Path> {
        self.outside.as_deref()
    }

    /// Lets a call use a folder: only the door does, once it was permitted.
    pub(crate) fn with_outside(mut self, folder: Option<PathBuf>) -> Self {
        self.outside = folder;
        self
    }

    /// Shows the host more of what happens, before the call ends: content,
    /// exact. The model does not see it.
    ///
    /// Never waits, and is cheap while nobody reads. What is said faster than
    /// the host reads is put together; of more than
    /// [`MAX_PROGRESS`](crate::MAX_PROGRESS) bytes the newest stay.
    pub fn progress(&self, text: &str) {
        if let Some(progress) = &self.progress {
            progress.say(text);
        }
    }
}
