//! The tools of one message: reads beside each other, changes in order, every
//! call with exactly one result, results in call order.

use futures_util::future::join_all;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_providers::{Arguments, ToolCall, ToolResult};
use turnbuckle_tools::{
    Admitted, Call, Effect, Progress, PromptTools, ToolContext, ToolError, ToolOutcome,
};

use crate::{
    EventKind, Record, ToolCallSummary,
    turn::{Turn, aborted},
};

/// What a running batch reports, in the order in which it happens.
enum Moment {
    /// These calls may change something, are admitted, and wait for the journal.
    Admitted(Vec<usize>, oneshot::Sender<()>),
    Begun(usize),
    /// The call has said something since it was last asked.
    Said(usize),
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
        let outcomes = self.play(tools, &calls).await?;
        self.account.timing.tools += began.elapsed();
        let mut results = Vec::with_capacity(calls.len());
        for (call, outcome) in calls.iter().zip(outcomes) {
            let outcome = outcome.unwrap_or_else(not_run);
            results.push(self.settle(call, &outcome).await?);
        }
        Ok(results)
    }

    /// Runs the batch and shows what happens. A call that never began has no outcome.
    async fn play(
        &mut self,
        tools: &PromptTools,
        calls: &[Call],
    ) -> Result<Vec<Option<ToolOutcome>>, Failure> {
        let (report, mut moments) = mpsc::unbounded_channel();
        let context = ToolContext::new(self.cancel.clone());
        let progress: Vec<_> = (0..calls.len()).map(|at| progress(at, &report)).collect();
        let batch = Batch { tools, calls, context: &context, progress: &progress, report };
        let work = batch.run();
        tokio::pin!(work);
        let mut outcomes: Vec<Option<ToolOutcome>> = calls.iter().map(|_| None).collect();
        let mut working = true;
        let mut unwritten = None;
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
                Some(Moment::Admitted(starting, go)) => {
                    match self.note_starts(calls, &starting).await {
                        Ok(()) => drop(go.send(())),
                        // Changes do not begin; reads that run come to their end first.
                        Err(failure) => unwritten = Some(failure),
                    }
                }
                Some(Moment::Begun(at)) => self.show_start(calls, at).await,
                Some(Moment::Said(at)) => {
                    // What a call left running says after its end belongs to nobody.
                    if let Some(None) = outcomes.get(at) {
                        self.show_progress(calls, &progress, at).await;
                    }
                }
                Some(Moment::Ended(at, outcome)) => {
                    self.show_end(calls, at, &outcome).await;
                    if let Some(slot) = outcomes.get_mut(at) {
                        *slot = Some(outcome);
                    }
                }
                None => return unwritten.map_or(Ok(outcomes), Err),
            }
        }
    }

    /// Before anything changes: what begins is in the journal, durably.
    async fn note_starts(&mut self, calls: &[Call], starting: &[usize]) -> Result<(), Failure> {
        for call in starting.iter().filter_map(|at| calls.get(*at)) {
            self.note(Record::ToolStart { call_id: call.id.clone(), name: call.name.clone() })
                .await?;
        }
        self.sync().await
    }

    async fn show_start(&mut self, calls: &[Call], at: usize) {
        if let Some(call) = calls.get(at) {
            self.emit(EventKind::ToolExecutionStart {
                tool_call_id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.input.clone().ok().map(Box::new),
            })
            .await;
        }
    }

    async fn show_progress(&mut self, calls: &[Call], progress: &[Progress], at: usize) {
        let said = progress.get(at).and_then(Progress::take);
        if let (Some(call), Some(said)) = (calls.get(at), said) {
            self.emit(EventKind::ToolExecutionUpdate {
                tool_call_id: call.id.clone(),
                text: said.text,
                skipped_bytes: said.skipped,
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
            images: Vec::new(),
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
            images: result.images.clone(),
        })
        .await?;
        Ok(result)
    }
}

/// The calls of one message, on their way.
struct Batch<'a> {
    tools: &'a PromptTools,
    calls: &'a [Call],
    context: &'a ToolContext,
    /// What each call says while it runs.
    progress: &'a [Progress],
    report: mpsc::UnboundedSender<Moment>,
}

impl Batch<'_> {
    /// Reads run beside each other and beside the changes; changes one by one.
    async fn run(self) {
        let is_read = |call: &Call| self.tools.effect(call) == Effect::Read;
        let (reads, changes): (Vec<_>, Vec<_>) =
            self.calls.iter().enumerate().partition(|(_, call)| is_read(call));
        let reads = reads.into_iter().map(|(at, call)| self.read(at, call));
        tokio::join!(join_all(reads), self.change(changes));
    }

    async fn read(&self, at: usize, call: &Call) {
        if let Some(admitted) = self.admit(at, call).await {
            self.play(at, call, admitted).await;
        }
    }

    /// All of them are asked for first, then noted with one sync, then run.
    async fn change(&self, calls: Vec<(usize, &Call)>) {
        let mut starting = Vec::new();
        for (at, call) in calls {
            if let Some(admitted) = self.admit(at, call).await {
                starting.push((at, call, admitted));
            }
        }
        let (go, noted) = oneshot::channel();
        let places = starting.iter().map(|(at, ..)| *at).collect();
        if starting.is_empty() || self.report.send(Moment::Admitted(places, go)).is_err() {
            return;
        }
        // Without a journal that holds them, none runs.
        if noted.await.is_err() {
            return;
        }
        for (at, call, admitted) in starting {
            self.play(at, call, admitted).await;
        }
    }

    /// A call that may not run is shown to begin and end at once.
    async fn admit(&self, at: usize, call: &Call) -> Option<Admitted> {
        if self.context.cancel.is_cancelled() {
            return None;
        }
        match self.tools.admit(call, self.context).await {
            Ok(admitted) => Some(admitted),
            Err(outcome) => {
                self.tell(Moment::Begun(at));
                self.tell(Moment::Ended(at, outcome));
                None
            }
        }
    }

    async fn play(&self, at: usize, call: &Call, admitted: Admitted) {
        if self.context.cancel.is_cancelled() {
            return;
        }
        self.tell(Moment::Begun(at));
        let mut context = self.context.clone();
        if let Some(progress) = self.progress.get(at) {
            context = context.with_progress(progress.clone());
        }
        let outcome = self.tools.run(call, admitted, &context).await;
        self.tell(Moment::Ended(at, outcome));
    }

    /// The reader lives as long as the batch does.
    fn tell(&self, moment: Moment) {
        let _ = self.report.send(moment);
    }
}

/// What the call at this place says; it does not keep the batch open.
fn progress(at: usize, report: &mpsc::UnboundedSender<Moment>) -> Progress {
    let report = report.downgrade();
    Progress::new(move || {
        if let Some(report) = report.upgrade() {
            let _ = report.send(Moment::Said(at));
        }
    })
}

fn to_call(asked: &ToolCall) -> Call {
    let input = asked.arguments.value().ok_or_else(|| match &asked.arguments {
        Arguments::Whole(raw) | Arguments::Broken(raw) => raw.clone(),
    });
    Call { id: asked.id.clone(), name: asked.name.clone(), input }
}

fn not_run() -> ToolOutcome {
    let error = ToolError::new(ErrorCode::TurnAborted, aborted().message().as_str());
    ToolOutcome { result: Err(error), started: false }
}
