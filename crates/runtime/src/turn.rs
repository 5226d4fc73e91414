//! One prompt, from `agent_start` to `agent_end`.
//!
//! Read it aloud: note what the user said; step after step, ask the model and
//! run the tools it asks for; stop at an answer, a failure, or the step limit.

use std::{future::Future, pin::Pin};

use serde_json::Value;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::{ErrorCode, Failure, Origin, SafeText, Usage};
use turnbuckle_providers::{FinishReason, Message, UserMessage};
use turnbuckle_tools::{PromptTools, STOP_GRACE};

use crate::{
    Event, EventKind, MessageFinish, Outcome, PromptOutcome, PromptTiming, Record, Remote,
    RetrySummary, Said, Session, StoreError, ToolCallSummary,
    builder::Parts,
    callback::{broke_down, contained_work},
    emit::Emitter,
    inbox::Inbox,
    session::FORMAT_VERSION,
};

/// What a prompt begins with.
pub(crate) enum Opening {
    /// The user says something.
    Say(UserMessage),
    /// Nothing: the history is to be answered.
    GoOn,
}

/// A prompt on its way; drives itself when polled.
pub(crate) type Run<'s> = Pin<Box<dyn Future<Output = PromptOutcome> + Send + 's>>;

/// The state of one running prompt.
pub(crate) struct Turn<'s> {
    pub(crate) session: &'s mut Session,
    pub(crate) emitter: Emitter,
    pub(crate) cancel: CancellationToken,
    pub(crate) account: Account,
    inbox: Inbox,
    /// Steps so far, over everything that the user said.
    steps: u32,
}

/// A prompt that has ended, and has not said so.
pub(crate) struct Ending {
    emitter: Emitter,
    account: Account,
    session_id: String,
    outcome: Outcome,
    failure: Option<Failure>,
    began: Instant,
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
    pub(crate) fn new(session: &'s mut Session, host: mpsc::Sender<Event>, remote: Remote) -> Self {
        session.close_open();
        let parts = &session.runtime.parts;
        let emitter = Emitter::new(host, parts.watcher.clone(), parts.world.clone(), &session.id);
        let Remote { cancel, inbox } = remote;
        Self { session, emitter, cancel, account: Account::default(), inbox, steps: 0 }
    }

    pub(crate) fn run(self, opening: Opening) -> Run<'s> {
        Box::pin(async move { self.work(opening).await.tell().await })
    }

    /// Everything but saying that it is over: the session is free after it.
    pub(crate) async fn work(mut self, opening: Opening) -> Ending {
        let began = Instant::now();
        self.emit(EventKind::AgentStart).await;
        let ended = contained_work("turn", self.all_answers(opening)).await;
        let ended = ended.unwrap_or_else(|| Err(self.fault()));
        self.inbox.close();
        self.end(ended.err(), began).await
    }

    /// Answer after answer, as long as the user has more to say.
    async fn all_answers(&mut self, opening: Opening) -> Result<(), Failure> {
        match opening {
            Opening::Say(said) => self.note_user(said).await?,
            Opening::GoOn => self.check_open_question()?,
        }
        loop {
            self.all_steps().await?;
            if self.cancel.is_cancelled() && !self.inbox.is_empty() {
                return Err(aborted());
            }
            let Some((text, said)) = self.inbox.after_answer() else { return Ok(()) };
            self.take_in(text, said).await?;
        }
    }

    async fn all_steps(&mut self) -> Result<(), Failure> {
        let tools = self.parts().tools.begin_prompt();
        for _ in 0..self.parts().max_steps {
            self.steps += 1;
            self.emitter.begin_turn(self.steps);
            self.emit(EventKind::TurnStart).await;
            let ended = contained_work("turn", self.step(&tools)).await;
            let ended = ended.unwrap_or_else(|| Err(self.fault()));
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

    /// Takes in what the user said to steer, just before a request is made.
    pub(crate) async fn take_steering(&mut self) -> Result<(), Failure> {
        while let Some(text) = self.inbox.steering() {
            self.take_in(text, Said::Steer).await?;
        }
        Ok(())
    }

    async fn take_in(&mut self, text: String, said: Said) -> Result<(), Failure> {
        self.note_user(text.clone().into()).await?;
        self.emit(EventKind::UserMessage { text, said }).await;
        Ok(())
    }

    fn check_open_question(&self) -> Result<(), Failure> {
        let message = match self.session.transcript.messages().last() {
            None => "there is nothing to go on with: nothing was said yet",
            Some(Message::Assistant(_)) => {
                "there is nothing to go on with: the history ends with an answer"
            }
            Some(_) => return Ok(()),
        };
        Err(Failure::new(ErrorCode::InvalidRequest, message).with_origin(Origin::Host))
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
        self.session.open.clear();
        if let Some(failure) = tools.ended() {
            return Err(failure);
        }
        let goes_on = asked_tools || paused;
        if goes_on && self.cancel.is_cancelled() {
            return Err(aborted());
        }
        Ok(if goes_on { Next::Ask } else { Next::Done })
    }

    async fn end(mut self, failure: Option<Failure>, began: Instant) -> Ending {
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
        let (emitter, account) = (self.emitter, self.account);
        Ending { emitter, account, session_id: self.session.id.clone(), outcome, failure, began }
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
        let append = self.session.store.append(&record);
        let written = stored("SessionStore::append", append, &self.cancel).await;
        self.written(written)?;
        if matches!(
            record,
            Record::Assistant { .. } | Record::ToolStart { .. } | Record::ToolResult { .. }
        ) {
            self.session.open.push(record);
        }
        Ok(())
    }

    /// Makes the journal durable up to here.
    pub(crate) async fn sync(&mut self) -> Result<(), Failure> {
        let synced = stored("SessionStore::sync", self.session.store.sync(), &self.cancel).await;
        self.written(synced)
    }

    fn written(&mut self, written: Option<Result<(), StoreError>>) -> Result<(), Failure> {
        let failure = match written {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => error.failure(),
            None => broke_down("the session store broke down (a fault in it)"),
        };
        self.session.closed = true;
        Err(failure)
    }

    /// Where a part of ours, or of the host's that no seam contains, panicked:
    /// history and journal may differ now, so that nothing may follow.
    fn fault(&mut self) -> Failure {
        self.session.closed = true;
        Failure::new(ErrorCode::Internal, "the turn broke down (a fault in it)")
    }

    async fn note_user(&mut self, said: UserMessage) -> Result<(), Failure> {
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
        let UserMessage { text, images } = said.clone();
        self.note(Record::User { text, images }).await?;
        self.session.transcript.commit_user(said);
        Ok(())
    }

    async fn note_step_end(&mut self) -> Result<(), Failure> {
        self.note(Record::StepEnd).await?;
        self.sync().await
    }

    /// What cannot be noted any more is lost, and the failure that closed the
    /// journal is on its way to the host already. A journal begins with what the user
    /// said: before that there is nothing that could end.
    async fn note_prompt_end(&mut self, outcome: Outcome, failure: Option<&Failure>) {
        if !self.session.begun {
            return;
        }
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

impl Ending {
    /// Says that the prompt is over: everything of it has stopped.
    pub(crate) async fn tell(self) -> PromptOutcome {
        let Self { mut emitter, mut account, session_id, outcome, failure, began } = self;
        let retries = account.open_retries();
        emitter.finish(EventKind::AgentEnd { outcome, failure: failure.clone(), retries }).await;
        account.timing.total = began.elapsed();
        account.told(session_id, outcome, failure)
    }
}

/// The outcome of a prompt whose executor was shut down under it.
pub(crate) fn lost(session_id: String) -> PromptOutcome {
    let failure = Failure::new(ErrorCode::Internal, "the executor of the prompt was shut down");
    Account::default().told(session_id, Outcome::Failed, Some(failure.with_origin(Origin::Host)))
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

/// What the store says; `None` if it panicked, or gives no answer within [`STOP_GRACE`]
/// after a cancellation.
async fn stored<T>(
    callback: &'static str,
    work: impl Future<Output = T>,
    cancel: &CancellationToken,
) -> Option<T> {
    let overdue = async {
        cancel.cancelled().await;
        tokio::time::sleep(STOP_GRACE).await;
        tracing::error!(callback, "the session store gives no answer; the session is closed");
    };
    tokio::select! {
        biased;
        done = contained_work(callback, work) => done,
        () = overdue => None,
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
