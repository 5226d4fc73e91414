//! Faults that are planted into what was seen of a run, where planting them into
//! the run itself would take another runtime.

use turnbuckle_runtime::{Event, EventKind};

use super::Sabotage;
use crate::{
    play::{Played, PlayedPrompt, Role},
    script::Act,
};

impl Sabotage {
    /// Changes what was seen as if the runtime had this fault.
    pub(crate) fn tamper(self, played: &mut Played) {
        match self {
            Self::StaleConnection => {
                played.asked.iter_mut().for_each(|asked| asked.fresh_connection = false);
            }
            Self::OtherSession => {
                played.asked.iter_mut().for_each(|asked| asked.session_id = None);
            }
            Self::TwoAtOnce => played.asked.iter_mut().skip(1).for_each(|asked| asked.beside = 1),
            Self::Early => {
                played.asked.iter_mut().for_each(|asked| {
                    asked.at_ms = asked.at_ms.saturating_sub(100);
                });
            }
            Self::ToolAfterAbort => {
                played.tool_runs.iter_mut().for_each(|run| run.after_abort = true);
            }
            Self::SkipTool => {
                if let Some(run) = played.tool_runs.first_mut() {
                    run.what.push('?');
                }
            }
            Self::WrongTool => {
                played.tool_runs.iter_mut().for_each(|run| run.act = Act::Denied);
            }
            _ => played.prompts.iter_mut().for_each(|prompt| self.tamper_prompt(prompt)),
        }
    }

    fn tamper_prompt(self, prompt: &mut PlayedPrompt) {
        match (self, &mut prompt.outcome) {
            (Self::RefuseGoOn, _) if prompt.role == Role::GoneOn => {
                prompt.asked.start = prompt.asked.end;
            }
            (Self::SlowEnd, _) => prompt.ended_ms += 101,
            (Self::LeaveTask, _) => prompt.left_running = 1,
            (Self::HideUsage, Some(outcome)) => outcome.usage.input_tokens = None,
            (Self::HideRetries, Some(outcome)) => outcome.retries.clear(),
            (Self::Miscount, _) => {
                for (_, event) in &mut prompt.events {
                    if let EventKind::Error { failure, .. } = &mut event.kind {
                        let more = failure.details().retry_attempt.map(|attempt| attempt + 1);
                        *failure = failure.clone().with_details(|d| d.retry_attempt = more);
                    }
                }
            }
            (Self::RetryForEver, _) => retry_for_ever(&mut prompt.events),
            _ => {}
        }
    }
}

/// Tells each wait a dozen times, each of them as long as the longest.
fn retry_for_ever(events: &mut Vec<(u64, Event)>) {
    let mut more = Vec::with_capacity(events.len());
    for (at, event) in events.drain(..) {
        match event.kind {
            EventKind::RetryScheduled { .. } | EventKind::RetryStarted { .. } => {
                let mut event = event;
                if let EventKind::RetryScheduled { delay_ms, .. } = &mut event.kind {
                    *delay_ms = 65_000;
                }
                more.extend(std::iter::repeat_n((at, event), 12));
            }
            _ => more.push((at, event)),
        }
    }
    *events = more;
}
