//! How a prompt ended, and what it took.

use std::time::Duration;

use serde::{Serialize, Serializer};
use turnbuckle_errors::{Delivered, ErrorCode, Failure, Phase, Usage};

use crate::{event::MessageFinish, recovery::Budget};

/// How a prompt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The model gave its last answer.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Aborted,
}

/// How a prompt ended, and what it took. Serialised, it is the app's
/// `--output json`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptOutcome {
    /// Whether it completed.
    pub ok: bool,
    /// The text of the last message.
    pub text: String,
    /// The id of the last message.
    pub message_id: Option<String>,
    /// Why the last message ended.
    pub finish: Option<MessageFinish>,
    /// How the prompt ended.
    pub outcome: Outcome,
    /// Requests sent, over all steps.
    pub attempts: u32,
    /// Every retry, in order.
    pub retries: Vec<RetrySummary>,
    /// What ended it, unless it completed.
    pub failure: Option<Failure>,
    /// Token usage, failed attempts included where they reported it.
    pub usage: Usage,
    /// Every tool call, in order.
    pub tool_calls: Vec<ToolCallSummary>,
    /// Where the time went.
    pub timing: PromptTiming,
    /// The session.
    pub session_id: String,
}

/// One retry.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetrySummary {
    /// The id of the retries of its step.
    pub retry_id: String,
    /// The attempt of its step that failed, from 1.
    pub attempt: u32,
    /// The budget that paid.
    pub budget: Budget,
    /// Where the attempt stood.
    pub phase: Phase,
    /// What ended the attempt.
    pub code: ErrorCode,
    /// The wait before the next one.
    pub delay_ms: u64,
    /// Bytes of the answer that the failed attempt had received.
    pub bytes_received: u64,
    /// Its usage, where it was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether the server can have worked on it, and billed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Delivered>,
}

/// One tool call.
#[derive(Debug, Clone, Serialize)]
pub struct ToolCallSummary {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Whether it did what was asked.
    pub ok: bool,
}

/// Where the time of a prompt went. Serialised in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptTiming {
    /// From sending requests to their response heads.
    #[serde(rename = "providerWaitMs", serialize_with = "millis")]
    pub provider_wait: Duration,
    /// From response heads to the ends of the streams.
    #[serde(rename = "streamMs", serialize_with = "millis")]
    pub stream: Duration,
    /// Waiting between attempts.
    #[serde(rename = "backoffMs", serialize_with = "millis")]
    pub backoff: Duration,
    /// Running tools, permission questions included.
    #[serde(rename = "toolMs", serialize_with = "millis")]
    pub tools: Duration,
    /// The whole prompt.
    #[serde(rename = "totalMs", serialize_with = "millis")]
    pub total: Duration,
}

fn millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
