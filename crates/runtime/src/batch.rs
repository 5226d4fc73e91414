//! The tools of one message: reads beside each other, changes in order, every
//! call with exactly one result, results in call order.

use futures_util::future::join_all;
use tokio::{sync::mpsc, time::Instant};
use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_providers::{ToolCall, ToolResult};
use turnbuckle_tools::{Call, Effect, PromptTools, ToolContext, ToolError, ToolOutcome};

use crate::{
    EventKind, Record, ToolCallSummary,
    turn::{Turn, aborted},
};

/// What a running batch reports, in the order in which it happens.
enum Moment {
    Begun(usize),
    Ended(usize, ToolOutcome),
}

impl Turn<'_> {
    /// Runs the calls of a complete message.
    ///
    /// After a cancellation no further call begins, and the running ones are
    /// waited for: they end their children.
    pub(crate) async fn run_tools(
        &mut self,
        tools: &PromptTools,
        asked: &[ToolCall],
    ) -> Result<Vec<ToolResult>, Failure> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let began = Instant::now();
        let calls: Vec<Call> = asked.iter().map(to_call).collect();
        self.note_starts(tools, &calls).await?;
        let outcomes = self.play(tools, &calls, asked).await;
        self.account.timing.tools += began.elapsed();
        let mut results = Vec::with_capacity(calls.len());
        for (call, outcome) in calls.iter().zip(outcomes) {
            let outcome = outcome.unwrap_or_else(not_run);
            results.push(self.settle(call, &outcome).await?);
        }
        Ok(results)
    }

    /// Before anything may change: what begins is in the journal, durably.
    async fn note_starts(&mut self, tools: &PromptTools, calls: &[Call]) -> Result<(), Failure> {
        let mut changes = false;
        for call in calls.iter().filter(|call| tools.effect(call) > Effect::Read) {
            changes = true;
            self.note(Record::ToolStart { call_id: call.id.clone(), name: call.name.clone() })
                .await?;
        }
        if changes { self.sync().await } else { Ok(()) }
    }

    /// Runs the batch and shows what happens. A call that never began has no outcome.
    async fn play(
        &mut self,
        tools: &PromptTools,
        calls: &[Call],
        asked: &[ToolCall],
    ) -> Vec<Option<ToolOutcome>> {
        let (report, mut moments) = mpsc::unbounded_channel();
        let context = ToolContext::new(self.cancel.clone());
        let work = run_batch(tools, calls, &context, report);
        tokio::pin!(work);
        let mut outcomes: Vec<Option<ToolOutcome>> = calls.iter().map(|_| None).collect();
        let mut working = true;
        loop {
            let moment = tokio::select! {
                biased;
                moment = moments.recv() => moment,
                () = &mut work, if working => {
                    working = false;
                    continue;
                }
            };
            match moment {
                Some(Moment::Begun(at)) => self.show_start(asked, at).await,
                Some(Moment::Ended(at, outcome)) => {
                    self.show_end(calls, at, &outcome).await;
                    if let Some(slot) = outcomes.get_mut(at) {
                        *slot = Some(outcome);
                    }
                }
                None => return outcomes,
            }
        }
    }

    async fn show_start(&mut self, asked: &[ToolCall], at: usize) {
        if let Some(call) = asked.get(at) {
            self.emit(EventKind::ToolExecutionStart {
                tool_call_id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            })
            .await;
        }
    }

    async fn show_end(&mut self, calls: &[Call], at: usize, outcome: &ToolOutcome) {
        let Some(call) = calls.get(at) else { return };
        let redact = self.parts().redact.clone();
        let (failure, diff) = match &outcome.result {
            Ok(output) => (None, output.diff.clone()),
            Err(error) => (Some(error.failure(&*redact)), None),
        };
        self.emit(EventKind::ToolExecutionEnd {
            tool_call_id: call.id.clone(),
            ok: outcome.ok(),
            failure,
            diff,
        })
        .await;
    }

    async fn settle(&mut self, call: &Call, outcome: &ToolOutcome) -> Result<ToolResult, Failure> {
        let result = ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            text: outcome.text().to_owned(),
            ok: outcome.ok(),
        };
        self.account.tool_calls.push(ToolCallSummary {
            id: call.id.clone(),
            name: call.name.clone(),
            ok: outcome.ok(),
        });
        self.note(Record::ToolResult {
            call_id: result.call_id.clone(),
            name: result.name.clone(),
            ok: result.ok,
            text: result.text.clone(),
        })
        .await?;
        Ok(result)
    }
}

/// Reads run beside each other and beside the changes; changes one by one.
async fn run_batch(
    tools: &PromptTools,
    calls: &[Call],
    context: &ToolContext,
    report: mpsc::UnboundedSender<Moment>,
) {
    let report = &report;
    let run = async |at: usize, call: &Call| {
        if context.cancel.is_cancelled() {
            return;
        }
        let _ = report.send(Moment::Begun(at));
        let outcome = tools.call(call, context).await;
        let _ = report.send(Moment::Ended(at, outcome));
    };
    let is_read = |call: &Call| tools.effect(call) == Effect::Read;
    let reads =
        calls.iter().enumerate().filter(|(_, call)| is_read(call)).map(|(at, call)| run(at, call));
    let changes = async {
        for (at, call) in calls.iter().enumerate().filter(|(_, call)| !is_read(call)) {
            run(at, call).await;
        }
    };
    tokio::join!(join_all(reads), changes);
}

fn to_call(asked: &ToolCall) -> Call {
    Call { id: asked.id.clone(), name: asked.name.clone(), input: asked.arguments.value() }
}

fn not_run() -> ToolOutcome {
    let error = ToolError::new(ErrorCode::TurnAborted, aborted().message().as_str());
    ToolOutcome { result: Err(error), started: false }
}
