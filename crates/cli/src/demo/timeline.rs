//! The story of a run in plain words.

use std::collections::HashMap;

use tokio::time::Instant;
use turnbuckle_runtime::{Event, EventKind, MessageFinish, PromptOutcome, recovery::Budget};

use crate::output::{describe_call, seconds};

/// Collects one line for each thing that happened.
pub(crate) struct Timeline {
    began: Instant,
    lines: Vec<String>,
    calls: HashMap<String, String>,
    diff: String,
    requests: usize,
    answers: usize,
    restarts: usize,
}

impl Timeline {
    pub(crate) fn begin() -> Self {
        Self {
            began: Instant::now(),
            lines: Vec::new(),
            calls: HashMap::new(),
            diff: String::new(),
            requests: 0,
            answers: 0,
            restarts: 0,
        }
    }

    pub(crate) fn note(&mut self, event: &Event) {
        match &event.kind {
            EventKind::TurnStart => self.request("asked the model"),
            EventKind::RetryStarted { .. } => self.request("asked again"),
            EventKind::RetryScheduled { budget, delay_ms, failure, .. } => {
                let what = match budget {
                    Budget::Capacity => "the provider was at its limit",
                    Budget::Stream => "the answer broke off in the middle",
                    _ => "the request failed",
                };
                let code = failure.code();
                self.line(&format!(
                    "{what} ({code}); waited {} [{budget} budget]",
                    seconds(*delay_ms)
                ));
            }
            EventKind::MessageRestart { .. } => {
                self.restarts += 1;
                self.line("dropped the broken part; the same message starts over");
            }
            EventKind::ToolExecutionStart { tool_call_id, name, arguments } => {
                let call = describe_call(name, arguments.as_deref());
                self.calls.insert(tool_call_id.clone(), call);
            }
            EventKind::ToolExecutionEnd { tool_call_id, ok, diff, .. } => {
                let call = self.calls.remove(tool_call_id).unwrap_or_default();
                self.line(&format!("tool: {call} — {}", if *ok { "done" } else { "failed" }));
                self.diff.push_str(diff.as_deref().unwrap_or_default());
            }
            EventKind::MessageEnd { finish: MessageFinish::Stop, message, .. } => {
                self.answers += 1;
                self.line(&format!(
                    "the answer is whole: {} characters",
                    message.text.chars().count()
                ));
            }
            EventKind::Error { failure, .. } => self.line(&format!("failed: {failure}")),
            _ => {}
        }
    }

    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The changes of all edits.
    pub(crate) fn diff(&self) -> &str {
        &self.diff
    }

    /// One answer, one capacity wait, one restart: the whole point in a line.
    pub(crate) fn summary(&self, outcome: &PromptOutcome) -> String {
        let waits = outcome.retries.iter().filter(|retry| retry.budget == Budget::Capacity).count();
        [
            counted(self.answers, "answer"),
            counted(waits, "capacity wait"),
            counted(self.restarts, "restart"),
            counted(outcome.tool_calls.len(), "tool call"),
            counted(self.requests, "request"),
        ]
        .join(", ")
    }

    fn request(&mut self, what: &str) {
        self.requests += 1;
        self.line(&format!("{what} (request {})", self.requests));
    }

    fn line(&mut self, what: &str) {
        let at = self.began.elapsed().as_secs_f64();
        self.lines.push(format!("{at:>5.2} s  {what}"));
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
