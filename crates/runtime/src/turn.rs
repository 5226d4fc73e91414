//! One prompt, from `agent_start` to `agent_end`.
//!
//! Read it aloud: note what the user said; step after step, ask the model and
//! run the tools it asks for; stop at an answer, a failure, or the step limit.

use std::{future::Future, pin::Pin};

use serde_json::Value;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::{ErrorCode, Failure, SafeText, Usage};
use turnbuckle_providers::FinishReason;
use turnbuckle_tools::PromptTools;

use crate::{
    Event, EventKind, MessageFinish, Outcome, PromptOutcome, PromptTiming, Record, RetrySummary,
    Session, ToolCallSummary, builder::Parts, emit::Emitter, session::FORMAT_VERSION,
};

/// A prompt on its way; drives itself when polled.
pub(crate) type Run<'s> = Pin<Box<dyn Future<Output = PromptOutcome> + Send + 's>>;

/// The state of one running prompt.
pub(crate) struct Turn<'s> {
    pub(crate) session: &'s mut Session,
    pub(crate) emitter: Emitter,
    pub(crate) cancel: CancellationToken,
    pub(crate) account: Account,
}

/// What the prompt has taken so far.
#[derive(Default)]
pub(crate) struct Account {
    pub(crate) attempts: u32,
    pub(crate) retries: Vec<RetrySummary>,
    /// How many of them belong to steps that went well.
    pub(crate) healed: usize,
    pub(crate) usage: Usage,
    pub(crate) tool_calls: Vec<ToolCallSummary>,
    pub(crate) timing: PromptTiming,
    pub(crate) last: Option<LastMessage>,
}

/// The last message that ended.
pub(crate) struct LastMessage {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) finish: MessageFinish,
}

/// What follows a step.
pub(crate) enum Next {
    /// The model gets to see tool results, or paused, and is asked again.
    Ask,
    /// The model gave its answer.
    Done,
}

impl<'s> Turn<'s> {
    pub(crate) fn new(
        session: &'s mut Session,
        host: mpsc::Sender<Event>,
        cancel: CancellationToken,
    ) -> Self {
        let parts = &session.runtime.parts;
        let emitter = Emitter::new(host, parts.watcher.clone(), parts.world.clone(), &session.id);
        Self { session, emitter, cancel, account: Account::default() }
    }

    pub(crate) fn run(mut self, text: String) -> Run<'s> {
        Box::pin(async move {
            let began = Instant::now();
            self.emit(EventKind::AgentStart).await;
            let ended = self.all_steps(text).await;
            self.end(ended.err(), began).await
        })
    }

    async fn all_steps(&mut self, text: String) -> Result<(), Failure> {
        self.note_user(text).await?;
        let tools = self.parts().tools.begin_prompt();
        for step in 1..=self.parts().max_steps {
            self.emitter.begin_turn(step);
            self.emit(EventKind::TurnStart).await;
            let ended = self.step(&tools).await;
            let noted = self.note_step_end().await;
            self.emit(EventKind::TurnEnd).await;
            match ended? {
                Next::Done => return noted,
                Next::Ask => noted?,
            }
        }
        let limit = u64::from(self.parts().max_steps);
        let message = SafeText::compose(&[
            "the prompt took all of its ".into(),
            limit.into(),
            " steps".into(),
        ]);
        Err(Failure::new(ErrorCode::TurnLimitReached, message))
    }

    /// One step: a complete message of the model, and the tools it asks for.
    async fn step(&mut self, tools: &PromptTools) -> Result<Next, Failure> {
        let (message_id, completed) = self.ask().await?;
        let record = Record::Assistant {
            message_id,
            message: completed.message().clone(),
            finish: completed.finish(),
            usage: *completed.usage(),
        };
        self.note(record).await?;
        let asked_tools = !completed.message().tool_calls.is_empty();
        // The provider's own tools took long; it goes on when it is asked again.
        let paused = completed.finish() == FinishReason::Pause;
        let results = self.run_tools(tools, &completed.message().tool_calls).await?;
        if self.session.transcript.commit(completed, results).is_err() {
            return Err(Failure::new(ErrorCode::Internal, "tool calls and results do not pair"));
        }
        if let Some(failure) = tools.ended() {
            return Err(failure);
        }
        let goes_on = asked_tools || paused;
        if goes_on && self.cancel.is_cancelled() {
            return Err(aborted());
        }
        Ok(if goes_on { Next::Ask } else { Next::Done })
    }

    async fn end(mut self, failure: Option<Failure>, began: Instant) -> PromptOutcome {
        let outcome = match &failure {
            None => Outcome::Completed,
            Some(failure) if failure.code() == ErrorCode::TurnAborted => Outcome::Aborted,
            Some(_) => Outcome::Failed,
        };
        self.note_prompt_end(outcome, failure.as_ref()).await;
        if let (Outcome::Failed, Some(failure)) = (outcome, &failure) {
            let retries = self.account.open_retries();
            self.emit(EventKind::Error { failure: failure.clone(), retries }).await;
        }
        let ended = EventKind::AgentEnd {
            outcome,
            failure: failure.clone(),
            retries: self.account.open_retries(),
        };
        self.emitter.finish(ended).await;
        self.account.timing.total = began.elapsed();
        self.account.told(self.session.id.clone(), outcome, failure)
    }

    pub(crate) fn parts(&self) -> std::sync::Arc<Parts> {
        std::sync::Arc::clone(&self.session.runtime.parts)
    }

    pub(crate) async fn emit(&mut self, kind: EventKind) {
        self.emitter.emit(kind, &self.cancel).await;
    }

    /// Appends to the journal. Once that failed, the session takes nothing more.
    pub(crate) async fn note(&mut self, record: Record) -> Result<(), Failure> {
        if self.session.closed {
            let closed = "the session is closed because its journal could not be written";
            return Err(Failure::new(ErrorCode::Internal, closed));
        }
        let written = self.session.store.append(&record).await;
        written.map_err(|error| {
            self.session.closed = true;
            error.failure()
        })
    }

    /// Makes the journal durable up to here.
    pub(crate) async fn sync(&mut self) -> Result<(), Failure> {
        let synced = self.session.store.sync().await;
        synced.map_err(|error| {
            self.session.closed = true;
            error.failure()
        })
    }

    async fn note_user(&mut self, text: String) -> Result<(), Failure> {
        if !self.session.begun {
            let created = self.parts().world.now().to_string();
            let session_id = self.session.id.clone();
            let workspace = self.session.workspace.clone();
            let version = FORMAT_VERSION;
            self.note(Record::Session {
                version,
                session_id,
                created,
                workspace,
                forked_from: None,
            })
            .await?;
            self.session.begun = true;
        }
        self.note(Record::User { text: text.clone(), images: Vec::new() }).await?;
        self.session.transcript.commit_user(text);
        Ok(())
    }

    async fn note_step_end(&mut self) -> Result<(), Failure> {
        self.note(Record::StepEnd).await?;
        self.sync().await
    }

    /// What cannot be noted any more is lost, and the failure that closed the
    /// journal is on its way to the host already.
    async fn note_prompt_end(&mut self, outcome: Outcome, failure: Option<&Failure>) {
        let name = match outcome {
            Outcome::Completed => "completed",
            Outcome::Failed => "failed",
            Outcome::Aborted => "aborted",
        };
        let failure = failure.and_then(|failure| serde_json::to_value(failure).ok());
        let record = Record::PromptEnd { outcome: name.to_owned(), failure };
        if self.note(record).await.is_ok() {
            let _ = self.sync().await;
        }
    }
}

impl Account {
    /// The retries of a step that has failed.
    pub(crate) fn open_retries(&self) -> Vec<RetrySummary> {
        self.retries.get(self.healed..).unwrap_or_default().to_vec()
    }

    fn told(self, session_id: String, outcome: Outcome, failure: Option<Failure>) -> PromptOutcome {
        let (message_id, text, finish) = match self.last {
            Some(last) => (Some(last.id), last.text, Some(last.finish)),
            None => (None, String::new(), None),
        };
        PromptOutcome {
            ok: outcome == Outcome::Completed,
            text,
            message_id,
            finish,
            outcome,
            attempts: self.attempts,
            retries: self.retries,
            failure,
            usage: self.usage,
            tool_calls: self.tool_calls,
            timing: self.timing,
            session_id,
        }
    }
}

/// The failure of a cancelled prompt.
pub(crate) fn aborted() -> Failure {
    Failure::new(ErrorCode::TurnAborted, "the prompt was cancelled")
}

/// A failure in its wire shape, for the journal.
pub(crate) fn wire(failure: &Failure) -> Value {
    serde_json::to_value(failure).unwrap_or(Value::Null)
}
