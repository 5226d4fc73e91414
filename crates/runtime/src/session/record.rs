//! What a journal holds.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnbuckle_providers::{AssistantMessage, FinishReason, Image, Usage};

use crate::compaction::Cut;

/// The version of the record format that this crate writes, and the newest that
/// it reads. It is raised by a change that an older reader would misread; a new
/// field or a new kind of record is none.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// One record of a session's journal: content, exact; failures as safe text.
///
/// A record of a kind that this crate does not know reads as
/// [`Record::Unknown`] and changes nothing; unknown fields are passed over.
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
        /// The folder that its tools work in, where the host said it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
        /// Where its first messages come from, if it is a fork.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<ForkedFrom>,
    },
    /// What the user said.
    User {
        /// It.
        text: String,
        /// The images beside it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
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
        /// The images beside it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
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
    /// The history was made smaller, after everything before this record. What it was
    /// stays in the journal.
    Compaction {
        /// The compaction's id.
        compaction_id: String,
        /// Which messages stay.
        cut: Cut,
        /// What takes the place of the others.
        digest: String,
    },
    /// A step ended.
    StepEnd,
    /// A prompt ended.
    PromptEnd {
        /// `completed`, `failed`, `aborted`, or `interrupted` where the process
        /// ended first.
        outcome: String,
        /// What ended it, in its wire shape.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Value>,
    },
    /// The file was damaged, and opened all the same.
    Repaired {
        /// The bytes of the torn last line, which was cut.
        cut_bytes: u64,
        /// The lines that cannot be read, from 1. They stay where they are, and
        /// are passed over.
        unreadable: Vec<u64>,
    },
    /// Something that this version does not know.
    #[serde(other)]
    Unknown,
}

/// Where the first messages of a fork come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkedFrom {
    /// The session.
    pub session_id: String,
    /// The last message that was taken over, from 1; 0 for none.
    pub message: usize,
}
