//! What a host reads: gapless, every start with its end, one clean story.

use turnbuckle_runtime::{DeltaKind, Event, EventKind, ShownMessage};

use super::Findings;
use crate::play::PlayedPrompt;

const GAPLESS: &str = "event numbers are gapless from 1";
const FIRST: &str = "agent_start is the first event, and there is one";
const STEPS: &str = "every turn_start has its turn_end, in order";
const MESSAGES: &str = "every message_start has its message_end, one message a step";
const VOID: &str = "what a failed attempt showed is void before the next one shows";
const TOOLS: &str = "every tool_execution_start has its tool_execution_end, once a call";
const RETRIES: &str = "every retry_scheduled has its retry_started, unless the prompt was ended";
const COMPACTIONS: &str = "every compaction_start has its compaction_end, one a step";
const FOLDED: &str = "what the deltas add up to is what the message says";
const SHOWN: &str = "the outcome tells the last message";

pub(super) fn check(prompt: &PlayedPrompt, findings: &mut Findings) {
    let mut reader = Reader::default();
    for ((_, event), seq) in prompt.events.iter().zip(1..) {
        findings.equal(GAPLESS, event.seq, seq);
        let first = matches!(event.kind, EventKind::AgentStart);
        findings.equal(FIRST, first, seq == 1);
        reader.read(event, findings);
    }
    if let Some(outcome) = &prompt.outcome {
        findings.holds(STEPS, !reader.open, || "a step was left open".into());
        let (id, shown) = reader.last.unwrap_or_default();
        findings.equal(SHOWN, outcome.text.as_str(), shown.text.as_str());
        findings.equal(SHOWN, outcome.message_id.as_deref().unwrap_or_default(), &*id);
        let unstarted = prompt.aborted_ms.is_none() && !prompt.full;
        let retry = reader.left_retry;
        findings
            .holds(RETRIES, retry.is_none() || !unstarted, || format!("{retry:?} never started"));
    }
}

/// Reads the events like a host that shows them.
#[derive(Default)]
struct Reader {
    /// Whether a step is open.
    open: bool,
    steps: u32,
    /// Whether the message of the step has begun.
    begun: bool,
    message: Option<(String, ShownMessage)>,
    /// A compaction that runs, and how many the step began.
    compaction: Option<String>,
    compactions: u32,
    /// What is shown is void, and has to be told anew.
    void: bool,
    tools: Vec<String>,
    /// Calls that have begun, over the whole prompt.
    seen: Vec<String>,
    retry: Option<String>,
    /// A wait that was not over when its step ended.
    left_retry: Option<String>,
    last: Option<(String, ShownMessage)>,
}

impl Reader {
    fn read(&mut self, event: &Event, findings: &mut Findings) {
        match &event.kind {
            EventKind::TurnStart => {
                self.steps += 1;
                findings.holds(STEPS, !self.open, || "a step begins inside of one".into());
                findings.equal(STEPS, event.turn, self.steps);
                (self.open, self.begun, self.void) = (true, false, false);
                self.compactions = 0;
            }
            EventKind::TurnEnd => {
                findings.holds(STEPS, self.open, || "a step ends that has not begun".into());
                findings.holds(MESSAGES, self.message.is_none(), || {
                    format!("the step ends before its message {:?}", self.message)
                });
                findings.holds(TOOLS, self.tools.is_empty(), || format!("left: {:?}", self.tools));
                findings.holds(COMPACTIONS, self.compaction.is_none(), || {
                    format!("{:?} did not end", self.compaction)
                });
                self.left_retry = self.retry.take();
                self.open = false;
            }
            EventKind::RetryScheduled { retry_id, .. } => {
                let waits = self.retry.replace(retry_id.clone());
                findings.holds(RETRIES, self.open && waits.is_none(), || {
                    format!("{retry_id} while {waits:?} waits")
                });
            }
            EventKind::RetryStarted { retry_id } => {
                let waited = self.retry.take();
                findings.equal(RETRIES, waited.as_ref(), Some(retry_id));
                self.void = self.message.is_some();
            }
            EventKind::CompactionStart { compaction_id, .. } => {
                self.compactions += 1;
                let runs = self.compaction.replace(compaction_id.clone());
                let fits = self.open && runs.is_none() && self.compactions == 1;
                findings.holds(COMPACTIONS, fits, || format!("{compaction_id} beside {runs:?}"));
            }
            EventKind::CompactionEnd { compaction_id, .. } => {
                let ran = self.compaction.take();
                findings.equal(COMPACTIONS, ran.as_ref(), Some(compaction_id));
            }
            EventKind::ToolExecutionStart { tool_call_id, .. } => {
                let once = !self.seen.contains(tool_call_id);
                findings.holds(TOOLS, once && self.open && self.message.is_none(), || {
                    format!("{tool_call_id} begins, again or out of place")
                });
                self.seen.push(tool_call_id.clone());
                self.tools.push(tool_call_id.clone());
            }
            EventKind::ToolExecutionEnd { tool_call_id, .. } => {
                let at = self.tools.iter().position(|id| id == tool_call_id);
                findings.holds(TOOLS, at.is_some(), || format!("{tool_call_id} had not begun"));
                if let Some(at) = at {
                    self.tools.remove(at);
                }
            }
            EventKind::AgentEnd { .. } | EventKind::Error { .. } => {
                findings.holds(STEPS, !self.open, || "the prompt ends inside a step".into());
            }
            _ => self.read_message(event, findings),
        }
    }

    fn read_message(&mut self, event: &Event, findings: &mut Findings) {
        match &event.kind {
            EventKind::MessageStart { message_id, .. } => {
                findings.holds(MESSAGES, self.open && !self.begun, || {
                    format!("{message_id} begins out of place")
                });
                self.begun = true;
                self.message = Some((message_id.to_string(), ShownMessage::default()));
            }
            EventKind::MessageRestart { message_id, .. } => {
                findings.holds(VOID, self.void, || format!("{message_id} begins anew for nothing"));
                self.void = false;
                findings.equal(MESSAGES, self.id(), &**message_id);
                self.message = Some((message_id.to_string(), ShownMessage::default()));
            }
            EventKind::MessageUpdate { message_id, kind, delta } => {
                findings.holds(VOID, !self.void, || format!("{delta} follows what is void"));
                findings.equal(MESSAGES, self.id(), &**message_id);
                if let Some((_, shown)) = &mut self.message {
                    match kind {
                        DeltaKind::Text => shown.text.push_str(delta),
                        DeltaKind::Reasoning => shown.reasoning.push_str(delta),
                        _ => {}
                    }
                }
            }
            EventKind::MessageEnd { message_id, message, failure, .. } => {
                findings.equal(MESSAGES, self.id(), &**message_id);
                if let Some((_, shown)) = self.message.take() {
                    findings.equal(FOLDED, &message.text, &shown.text);
                    findings.equal(FOLDED, &message.reasoning, &shown.reasoning);
                }
                let half = message.tool_calls.iter().find(|call| call.arguments.is_some());
                findings.holds(VOID, failure.is_none() || half.is_none(), || {
                    format!("a failed message shows a whole call: {half:?}")
                });
                self.last = Some((message_id.to_string(), (**message).clone()));
            }
            _ => {}
        }
    }

    fn id(&self) -> &str {
        self.message.as_ref().map_or("", |(id, _)| id)
    }
}
