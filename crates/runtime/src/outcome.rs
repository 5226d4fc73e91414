//! How a prompt ended, and what it took.

use std::time::Duration;

use serde::{Serialize, Serializer};
use turnbuckle_errors::{Delivered, ErrorCode, Failure, Phase, Usage};

use crate::{
    event::MessageFinish,
    recovery::{Budget, Claim},
};

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
    /// Attempts made, over all steps. A compaction's own request is none.
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

/// One retry: the attempt that failed, and the wait after it. The attempt that
/// ended a step for good has no retry; it is in the failure's own details.
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
    /// The wait before the next one, as it was announced.
    pub delay_ms: u64,
    /// The wait as it was: shorter if the prompt was cancelled in it.
    pub waited_ms: u64,
    /// Bytes of the answer that the failed attempt had received.
    pub bytes_received: u64,
    /// Events of the stream that it had received.
    pub events_received: u64,
    /// From sending its request to the response head, or to its end without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_wait_ms: Option<u64>,
    /// From the response head to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_ms: Option<u64>,
    /// Its usage, where it was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether the server can have worked on it, and billed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Delivered>,
}

impl RetrySummary {
    pub(crate) fn of(retry_id: String, attempt: u32, claim: &Claim, failure: &Failure) -> Self {
        let details = failure.details();
        Self {
            retry_id,
            attempt,
            budget: claim.budget,
            phase: failure.phase().unwrap_or(Phase::Request),
            code: failure.code(),
            delay_ms: whole_millis(claim.delay),
            waited_ms: 0,
            bytes_received: details.bytes_received.unwrap_or(0),
            events_received: details.events_received.unwrap_or(0),
            provider_wait_ms: details.provider_wait_ms,
            stream_ms: details.stream_ms,
            usage: details.usage,
            delivered: details.delivered,
        }
    }
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
    serializer.serialize_u64(whole_millis(*time))
}

pub(crate) fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
