//! What a host sees of a running prompt.
//!
//! Serialised, an [`Event`] is one line of the app's NDJSON: `type` in
//! snake_case, fields in camelCase.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;
use turnbuckle_errors::{Failure, Phase, Usage};
use turnbuckle_providers::{AssistantMessage, FinishReason, ToolCall};

use crate::{
    compaction::CompactionReason,
    inbox::Said,
    outcome::{Outcome, RetrySummary},
    recovery::Budget,
};

/// One event, with where and when it happened.
///
/// Deltas are by far the most; what is large in a rare event is boxed, so that a
/// delta is cheap to hand on.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// The session it belongs to.
    pub session_id: Arc<str>,
    /// The step of the prompt, from 1; 0 before the first.
    pub turn: u32,
    /// Its place in this run, gapless from 1.
    pub seq: u64,
    /// When; serialised in RFC 3339. Deltas that came together share one stamp.
    #[serde(serialize_with = "rfc3339")]
    pub ts: Timestamp,
}

/// What happened. Content events carry content exactly; failures are safe text,
/// and cannot be anything else:
///
/// ```compile_fail
/// use turnbuckle_runtime::EventKind;
///
/// let from_outside = String::from("key sk-proj-abcdefgh12345678 refused");
/// let event = EventKind::Error { failure: from_outside, retries: Vec::new() };
/// ```
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum EventKind {
    /// The prompt began.
    AgentStart,
    /// A step began.
    TurnStart,
    /// The first stream event of the step came.
    MessageStart {
        /// The message; it keeps this id over all attempts.
        message_id: Arc<str>,
        /// Which attempt of the step streams, from 1.
        attempt: u32,
    },
    /// More of the message.
    MessageUpdate {
        /// The message.
        message_id: Arc<str>,
        /// What kind of delta it is.
        kind: DeltaKind,
        /// The delta.
        delta: String,
    },
    /// What was shown of the message is void; it is told anew from here.
    MessageRestart {
        /// The message.
        message_id: Arc<str>,
        /// Which attempt of the step streams now.
        attempt: u32,
        /// What ended the attempt whose part is void.
        failure: Failure,
    },
    /// An attempt failed, and another one follows after a wait.
    RetryScheduled {
        /// One id for all the retries of a step.
        retry_id: String,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// The budget that pays.
        budget: Budget,
        /// The wait in milliseconds.
        delay_ms: u64,
        /// Where the attempt stood.
        phase: Phase,
        /// What ended it.
        failure: Failure,
    },
    /// The wait is over; the request goes out now.
    RetryStarted {
        /// The id of the retries of this step.
        retry_id: String,
    },
    /// The message is at its end, whole or failed.
    MessageEnd {
        /// The message.
        message_id: Arc<str>,
        /// What it says; of a failed one, what was last shown.
        message: Box<ShownMessage>,
        /// Why it ended.
        finish: MessageFinish,
        /// What it cost, where known.
        usage: Box<Usage>,
        /// What ended it, if it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        /// If it failed: the attempts before the last one.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        retries: Vec<RetrySummary>,
    },
    /// The history is about to be made smaller, because it grew too large for the
    /// model.
    CompactionStart {
        /// The compaction.
        compaction_id: String,
        /// Why.
        reason: CompactionReason,
        /// How many messages the next request would hold.
        messages: usize,
        /// How many tokens it would have, by estimate.
        tokens: u64,
    },
    /// The history was made smaller, or was left as it was. Every start has one end.
    CompactionEnd {
        /// The compaction.
        compaction_id: String,
        /// Whether it is smaller now.
        ok: bool,
        /// How many messages the next request will hold.
        messages: usize,
        /// How many tokens it will have, by estimate.
        tokens: u64,
        /// Why not.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
    /// A tool begins.
    ToolExecutionStart {
        /// The call.
        tool_call_id: String,
        /// The tool.
        name: String,
        /// Its arguments, or `null` if they are not whole.
        arguments: Option<Box<Value>>,
    },
    /// A running tool says more. Only tools that take long do so.
    ToolExecutionUpdate {
        /// The call.
        tool_call_id: String,
        /// What it says, after what it said before: content, exact.
        text: String,
        /// How many bytes before it were left out, because the host reads slowly.
        #[serde(skip_serializing_if = "is_zero")]
        skipped_bytes: u64,
    },
    /// A tool ended. Every start has one end.
    ToolExecutionEnd {
        /// The call.
        tool_call_id: String,
        /// Whether it did what was asked.
        ok: bool,
        /// Why not.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        /// What it changed, as a diff for people.
        #[serde(skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
    },
    /// A message that the host sent into the running prompt was taken in; the
    /// next request holds it.
    UserMessage {
        /// The message.
        text: String,
        /// How it came.
        said: Said,
    },
    /// A step ended.
    TurnEnd,
    /// The prompt failed. At most one, just before the end.
    Error {
        /// With this.
        failure: Failure,
        /// The attempts of the failed step before the last one.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        retries: Vec<RetrySummary>,
    },
    /// The prompt ended. Exactly one, always the last.
    AgentEnd {
        /// How.
        outcome: Outcome,
        /// What ended it, unless it completed.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        /// The attempts of the failed step before the last one.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        retries: Vec<RetrySummary>,
    },
}

/// Written only when an event is: most hosts drop most stamps.
fn rfc3339<S: Serializer>(when: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(when)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// A message as a host sees it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownMessage {
    /// The visible text.
    pub text: String,
    /// The reasoning, where the provider shows it.
    pub reasoning: String,
    /// The tools it asked for.
    pub tool_calls: Vec<ShownCall>,
}

/// A tool call as a host sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, or `null` if they are not whole.
    pub arguments: Option<Value>,
}

impl From<&AssistantMessage> for ShownMessage {
    fn from(message: &AssistantMessage) -> Self {
        let call = |call: &ToolCall| ShownCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.value(),
        };
        Self {
            text: message.text.clone(),
            reasoning: message.reasoning.clone(),
            tool_calls: message.tool_calls.iter().map(call).collect(),
        }
    }
}

/// What kind of delta a `message_update` carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeltaKind {
    /// Visible text.
    Text,
    /// Reasoning.
    Reasoning,
    /// The arguments of a tool call, as text.
    ToolCall,
}

/// Why a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageFinish {
    /// The model was done.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model wants tools to be run.
    ToolCalls,
    /// A safety filter cut it.
    ContentFilter,
    /// It failed.
    Error,
    /// The prompt was cancelled.
    Aborted,
}

impl From<FinishReason> for MessageFinish {
    fn from(reason: FinishReason) -> Self {
        match reason {
            FinishReason::Length => Self::Length,
            FinishReason::ToolCalls => Self::ToolCalls,
            FinishReason::ContentFilter => Self::ContentFilter,
            _ => Self::Stop,
        }
    }
}

/// The events of a run that could not begin: they open and close it, so that a
/// reader of the event stream sees one `agent_end` whatever happens.
#[must_use]
pub fn refused_run(failure: &Failure) -> [Event; 3] {
    use crate::{SystemWorld, World as _};
    let session_id: Arc<str> = SystemWorld.new_id().into();
    let event = |seq, kind| Event {
        kind,
        session_id: Arc::clone(&session_id),
        turn: 0,
        seq,
        ts: SystemWorld.now(),
    };
    let ended = EventKind::AgentEnd {
        outcome: Outcome::Failed,
        failure: Some(failure.clone()),
        retries: Vec::new(),
    };
    [
        event(1, EventKind::AgentStart),
        event(2, EventKind::Error { failure: failure.clone(), retries: Vec::new() }),
        event(3, ended),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Above this size every move of an event is a call of `memcpy`, and each
    /// delta is moved some ten times.
    #[test]
    fn an_event_stays_small() {
        assert!(size_of::<Event>() <= 128, "{} bytes", size_of::<Event>());
    }
}
