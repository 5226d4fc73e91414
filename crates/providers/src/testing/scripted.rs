//! A provider that plays what a test wrote down.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use turnbuckle_diagnostics::AttemptTiming;
use turnbuckle_errors::{ErrorCode, Failure, Phase, Usage};

use crate::{
    Assembler, AttemptContext, ChatRequest, EventStream, FinishReason, Native, PartialMessage,
    PollEvents, Provider, StreamEvent, assemble::WireCall,
};

/// A provider that plays one [`ScriptedAttempt`] per call and records what it
/// was asked. A call beyond the script fails with `INTERNAL`.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use turnbuckle_providers::{AttemptContext, ChatRequest, Provider};
/// use turnbuckle_providers::testing::{ScriptedAttempt, ScriptedProvider};
///
/// let provider = ScriptedProvider::new([ScriptedAttempt::answer(["Hello, ", "world"])]);
/// let mut stream = provider.open(&ChatRequest::new("m"), AttemptContext::default()).await.unwrap();
/// while stream.next().await.is_some() {}
/// assert_eq!(stream.partial().text, "Hello, world");
/// # });
/// ```
#[derive(Debug, Clone, Default)]
pub struct ScriptedProvider {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    script: VecDeque<ScriptedAttempt>,
    asked: Vec<(ChatRequest, AttemptContext)>,
}

impl ScriptedProvider {
    /// A provider that plays `script`, one attempt per call.
    #[must_use]
    pub fn new(script: impl IntoIterator<Item = ScriptedAttempt>) -> Self {
        let shared = Shared { script: script.into_iter().collect(), asked: Vec::new() };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    /// The requests so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.lock().asked.iter().map(|(request, _)| request.clone()).collect()
    }

    /// For each request, whether it asked for a fresh connection.
    #[must_use]
    pub fn fresh_connections(&self) -> Vec<bool> {
        self.lock().asked.iter().map(|(_, attempt)| attempt.fresh_connection).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Provider for ScriptedProvider {
    fn id(&self) -> &str {
        "scripted"
    }

    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        let next = {
            let mut shared = self.lock();
            shared.asked.push((request.clone(), attempt.clone()));
            shared.script.pop_front()
        };
        let Some(next) = next else {
            return Err(Failure::new(ErrorCode::Internal, "the script has no attempt left"));
        };
        if let Some(failure) = next.refused {
            return Err(failure);
        }
        Ok(EventStream::new(ScriptedStream::new(next.steps, attempt.cancel)))
    }
}

/// What one call of a [`ScriptedProvider`] does.
#[derive(Debug, Clone, Default)]
pub struct ScriptedAttempt {
    refused: Option<Failure>,
    steps: VecDeque<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    Text(String),
    Reasoning(String),
    Refusal(String),
    Native(Native),
    Call { id: String, name: String, arguments: String },
    Usage(Usage),
    Wait(Duration),
    Finish(FinishReason),
    Fail(Failure),
    Hang,
}

impl ScriptedAttempt {
    /// An answer that ends well.
    #[must_use]
    pub fn answer<'a>(deltas: impl IntoIterator<Item = &'a str>) -> Self {
        deltas.into_iter().fold(Self::default(), Self::text).finish(FinishReason::Stop)
    }

    /// An attempt that fails before its stream begins.
    #[must_use]
    pub fn refused(failure: Failure) -> Self {
        Self { refused: Some(failure.with_phase(Phase::Request)), ..Self::default() }
    }

    /// Some text, then this failure.
    #[must_use]
    pub fn cut<'a>(deltas: impl IntoIterator<Item = &'a str>, failure: Failure) -> Self {
        deltas.into_iter().fold(Self::default(), Self::text).fail(failure)
    }

    /// Adds visible text.
    #[must_use]
    pub fn text(self, delta: &str) -> Self {
        self.then(Step::Text(delta.to_owned()))
    }

    /// Adds reasoning.
    #[must_use]
    pub fn reasoning(self, delta: &str) -> Self {
        self.then(Step::Reasoning(delta.to_owned()))
    }

    /// Adds visible text that the provider marks as a refusal.
    #[must_use]
    pub fn refusal(self, delta: &str) -> Self {
        self.then(Step::Refusal(delta.to_owned()))
    }

    /// Gives the message in the provider's own words.
    #[must_use]
    pub fn native(self, native: Native) -> Self {
        self.then(Step::Native(native))
    }

    /// Adds a tool call.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, arguments: &str) -> Self {
        self.then(Step::Call { id: id.into(), name: name.into(), arguments: arguments.into() })
    }

    /// Reports token usage.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Self {
        self.then(Step::Usage(usage))
    }

    /// Waits, by tokio's clock.
    #[must_use]
    pub fn wait(self, time: Duration) -> Self {
        self.then(Step::Wait(time))
    }

    /// Ends the answer well.
    #[must_use]
    pub fn finish(self, reason: FinishReason) -> Self {
        self.then(Step::Finish(reason))
    }

    /// Ends the answer with a failure of its stream.
    #[must_use]
    pub fn fail(self, failure: Failure) -> Self {
        self.then(Step::Fail(failure.with_phase(Phase::Stream)))
    }

    /// Falls silent for ever.
    #[must_use]
    pub fn hang(self) -> Self {
        self.then(Step::Hang)
    }

    fn then(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }
}

struct ScriptedStream {
    steps: VecDeque<Step>,
    assembler: Assembler,
    partial: PartialMessage,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    sleep: Option<Pin<Box<Sleep>>>,
    began: Instant,
    timing: AttemptTiming,
    started: bool,
    ended: bool,
}

impl ScriptedStream {
    fn new(steps: VecDeque<Step>, cancel: CancellationToken) -> Self {
        let mut timing = AttemptTiming::default();
        timing.headers(Duration::ZERO);
        Self {
            steps,
            assembler: Assembler::new(),
            partial: PartialMessage::default(),
            cancelled: Box::pin(cancel.cancelled_owned()),
            sleep: None,
            began: Instant::now(),
            timing,
            started: false,
            ended: false,
        }
    }

    fn end(
        &mut self,
        last: Result<StreamEvent, Failure>,
    ) -> Poll<Option<Result<StreamEvent, Failure>>> {
        self.ended = true;
        self.partial = self.assembler.partial();
        Poll::Ready(Some(last))
    }

    fn fail(&mut self, failure: Failure) -> Poll<Option<Result<StreamEvent, Failure>>> {
        let failure = failure.with_details(|details| self.timing.describe(details));
        self.end(Err(failure))
    }

    fn play(
        &mut self,
        step: Step,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<StreamEvent, Failure>>> {
        let event = match step {
            Step::Text(delta) => self.assembler.text(&delta).map(|()| StreamEvent::Text(delta)),
            Step::Reasoning(delta) => {
                self.assembler.reasoning(&delta).map(|()| StreamEvent::Reasoning(delta))
            }
            Step::Refusal(delta) => {
                self.assembler.refusal(&delta).map(|()| StreamEvent::Text(delta))
            }
            Step::Native(native) => {
                self.assembler.native(native);
                return self.poll_event(cx);
            }
            Step::Call { id, name, arguments } => {
                let piece = WireCall {
                    id: Some(&id),
                    name: Some(&name),
                    arguments: &arguments,
                    ..WireCall::default()
                };
                self.assembler.tool_call(piece).map(StreamEvent::ToolCall)
            }
            Step::Usage(usage) => {
                self.assembler.usage(usage);
                return self.poll_event(cx);
            }
            Step::Wait(time) => {
                self.sleep = Some(Box::pin(tokio::time::sleep(time)));
                return self.poll_event(cx);
            }
            Step::Finish(reason) => {
                self.assembler.finish(reason, Some(reason.as_str()));
                self.partial = self.assembler.partial();
                let message = std::mem::take(&mut self.assembler).complete();
                self.ended = true;
                return Poll::Ready(
                    message.map(|message| Ok(StreamEvent::Finished(Box::new(message)))),
                );
            }
            Step::Fail(failure) => return self.fail(failure),
            Step::Hang => {
                self.steps.push_front(Step::Hang);
                return Poll::Pending;
            }
        };
        self.timing.event();
        match event {
            Ok(event) => Poll::Ready(Some(Ok(event))),
            Err(_) => self
                .fail(Failure::new(ErrorCode::ProviderProtocolMismatch, "the answer is too large")),
        }
    }
}

impl PollEvents for ScriptedStream {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<StreamEvent, Failure>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.timing.ended(self.began.elapsed());
        if self.cancelled.as_mut().poll(cx).is_ready() {
            let aborted = Failure::new(ErrorCode::TurnAborted, "the prompt was cancelled");
            return self.fail(aborted.with_phase(Phase::Stream));
        }
        if let Some(sleep) = &mut self.sleep {
            std::task::ready!(sleep.as_mut().poll(cx));
            self.sleep = None;
            self.timing.ended(self.began.elapsed());
        }
        let delta_next = matches!(
            self.steps.front(),
            Some(
                Step::Text(_)
                    | Step::Reasoning(_)
                    | Step::Refusal(_)
                    | Step::Call { .. }
                    | Step::Finish(_)
            )
        );
        if delta_next && !self.started {
            self.started = true;
            return Poll::Ready(Some(Ok(StreamEvent::Started)));
        }
        match self.steps.pop_front() {
            Some(step) => self.play(step, cx),
            None => {
                let early = "the stream ended before its terminal event";
                self.fail(Failure::new(ErrorCode::StreamFailed, early).with_phase(Phase::Stream))
            }
        }
    }

    fn partial(&self) -> PartialMessage {
        if self.ended { self.partial.clone() } else { self.assembler.partial() }
    }

    fn timing(&self) -> AttemptTiming {
        self.timing
    }
}
