//! What a journal holds.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnbuckle_providers::{AssistantMessage, FinishReason, Usage};

/// The version of the record format that this crate writes.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// One record of a session's journal: content, exact; failures as safe text.
///
/// A record of an unknown kind, written by a newer version, reads as
/// [`Record::Unknown`] and changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Record {
    /// The first record of every journal.
    Session {
        /// The version of the format.
        version: u32,
        /// The session's id.
        session_id: String,
        /// When it began, in RFC 3339.
        created: String,
    },
    /// What the user said.
    User {
        /// It.
        text: String,
    },
    /// A complete message of the model. A failed attempt never gets here.
    Assistant {
        /// The message's id.
        message_id: String,
        /// What it says.
        message: AssistantMessage,
        /// Why it ended.
        finish: FinishReason,
        /// What it cost.
        usage: Usage,
    },
    /// A tool that may change something is about to run. Synced before it does.
    ToolStart {
        /// The call.
        call_id: String,
        /// The tool.
        name: String,
    },
    /// A tool ended.
    ToolResult {
        /// The call.
        call_id: String,
        /// The tool.
        name: String,
        /// Whether it did what was asked.
        ok: bool,
        /// What the model gets to read.
        text: String,
    },
    /// An attempt failed, and another one follows after a wait.
    RetryScheduled {
        /// One id for all retries of a step.
        retry_id: String,
        /// The attempt that failed.
        attempt: u32,
        /// The wait in milliseconds.
        delay_ms: u64,
        /// What ended it, in its wire shape.
        failure: Value,
    },
    /// The wait was over.
    RetryStarted {
        /// The id of the retries of the step.
        retry_id: String,
    },
    /// A step ended.
    StepEnd,
    /// A prompt ended.
    PromptEnd {
        /// `completed`, `failed` or `aborted`.
        outcome: String,
        /// What ended it, in its wire shape.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Value>,
    },
    /// Something that this version does not know.
    #[serde(other)]
    Unknown,
}
