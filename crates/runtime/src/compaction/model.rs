//! One request to the session's model, for a digest.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use turnbuckle_errors::{ErrorCode, Failure, Usage};
use turnbuckle_providers::{
    AttemptContext, ChatRequest, CompletedMessage, EventStream, FinishReason, Message, Provider,
    StreamEvent,
};

use crate::callback::contained;

/// One request to the session's model. Asking uses it up: a compaction makes one
/// attempt and no more, so that retries cannot multiply.
pub struct CompactionModel<'a> {
    provider: &'a dyn Provider,
    request: ChatRequest,
    cancel: CancellationToken,
    spent: &'a Spent,
}

/// What a compaction has taken.
#[derive(Debug, Default)]
pub(super) struct Spent(Mutex<Taken>);

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken {
    pub(super) usage: Usage,
    pub(super) provider_wait: Duration,
    pub(super) stream: Duration,
}

impl Spent {
    fn add(&self, usage: &Usage, provider_wait: Duration, stream: Duration) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.usage.add(usage);
        taken.provider_wait += provider_wait;
        taken.stream += stream;
    }

    pub(super) fn taken(&self) -> Taken {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> CompactionModel<'a> {
    /// `request` says everything but the system prompt and the messages.
    pub(super) const fn new(
        provider: &'a dyn Provider,
        request: ChatRequest,
        cancel: CancellationToken,
        spent: &'a Spent,
    ) -> Self {
        Self { provider, request, cancel, spent }
    }

    /// What the model says to `text` under `instructions`, without tools.
    ///
    /// Cancel safety: dropping the future closes the connection.
    ///
    /// # Errors
    ///
    /// [`CONTEXT_COMPACTION_FAILED`](ErrorCode::ContextCompactionFailed) if the
    /// attempt fails, which is then its cause, or if the answer is blank, cut, or a
    /// refusal.
    pub async fn ask(mut self, instructions: &str, text: String) -> Result<String, Failure> {
        self.request.system = Some(instructions.to_owned());
        self.request.messages = [Message::User(text.into())].into_iter().collect();
        let context = AttemptContext::new(self.cancel.clone(), false);
        let mut answer = match self.provider.open(&self.request, context).await {
            Ok(stream) => Answer { stream, ended: None, spent: self.spent },
            Err(failure) => {
                let waited = failure.details().provider_wait_ms.unwrap_or(0);
                self.spent.add(&Usage::default(), Duration::from_millis(waited), Duration::ZERO);
                return Err(because_of(&failure));
            }
        };
        let ended = whole(&mut answer.stream).await;
        answer.ended = ended.as_ref().ok().map(|completed| *completed.usage());
        drop(answer);
        usable(ended.map_err(|failure| because_of(&failure))?)
    }
}

impl fmt::Debug for CompactionModel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactionModel")
            .field("provider", &self.provider.id())
            .finish_non_exhaustive()
    }
}

/// An answer on its way. However it ends, dropped on a cancellation too, what it
/// took is accounted for.
struct Answer<'a> {
    stream: EventStream,
    /// What the whole answer cost.
    ended: Option<Usage>,
    spent: &'a Spent,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        // A stream that has just panicked may do so again, and a panic while another one
        // unwinds would take the process.
        let partial = || contained("PollEvents::partial", || self.stream.partial().usage);
        let usage = self.ended.or_else(partial).unwrap_or_default();
        let timing = contained("PollEvents::timing", || self.stream.timing()).unwrap_or_default();
        self.spent.add(&usage, timing.provider_wait(), timing.stream());
    }
}

async fn whole(stream: &mut EventStream) -> Result<CompletedMessage, Failure> {
    while let Some(event) = stream.next().await {
        if let StreamEvent::Finished(completed) = event? {
            return Ok(*completed);
        }
    }
    Err(Failure::new(ErrorCode::Internal, "the stream ended without an end"))
}

fn usable(completed: CompletedMessage) -> Result<String, Failure> {
    let why = match completed.finish() {
        FinishReason::Length => "the summary was cut by the output limit",
        FinishReason::ContentFilter => "a safety filter cut the summary",
        _ if completed.is_refusal() => "the model refused to summarise",
        _ if completed.message().text.trim().is_empty() => "the summary came back blank",
        _ => return Ok(completed.into_message().text),
    };
    Err(Failure::new(ErrorCode::ContextCompactionFailed, why))
}

fn because_of(failure: &Failure) -> Failure {
    let causes = [failure.message()].into_iter().chain(&failure.details().causes);
    Failure::new(ErrorCode::ContextCompactionFailed, "the request for a summary failed")
        .with_cause_code(failure.code())
        .with_causes(causes.cloned().collect())
}
