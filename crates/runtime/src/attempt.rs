//! One attempt: one request, and its stream to the end.

use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use turnbuckle_errors::{ErrorCode, Failure, Origin, Phase, Recovery, Usage};
use turnbuckle_providers::{
    AssistantMessage, AttemptContext, ChatRequest, CompletedMessage, EventStream, FinishReason,
    Message, PartialMessage, StreamEvent,
};

use crate::{
    DeltaKind, EventKind, ShownMessage,
    builder::Parts,
    callback::{broke_down, contained, contained_work},
    cancel::{unless, unless_cancelled},
    turn::{Turn, aborted},
};

/// What a model that ended in silence is told, once, as a trailing user message.
/// It is sent and never stored.
const NUDGE: &str = "Your last reply was empty. Please answer with text, or call a tool.";

const FAULTY_PROVIDER: &str = "the provider broke down (a fault in it)";

/// How many events of a stream are shown before a cancellation is looked for again:
/// far less than a person could notice.
const BURST: usize = 32;

/// What reading a burst came to.
enum Pulled {
    /// There may be more.
    More,
    /// The host has no room; events queue.
    Full,
    /// The stream is at its end.
    End(Result<Box<CompletedMessage>, Failure>),
}

/// How one attempt asks.
pub(crate) struct Ask {
    /// Which attempt of the step it is, from 1.
    pub(crate) attempt: u32,
    /// Whether the request ends with a nudge.
    pub(crate) nudge: bool,
    /// Whether a pooled connection may not be used.
    pub(crate) fresh_connection: bool,
}

impl Ask {
    pub(crate) const fn first() -> Self {
        Self { attempt: 1, nudge: false, fresh_connection: false }
    }

    /// How the next attempt asks, after `failure`. A nudge stays: what made it
    /// necessary may come back.
    pub(crate) fn again(&self, failure: &Failure) -> Self {
        Self {
            attempt: self.attempt.saturating_add(1),
            nudge: self.nudge || failure.code().recovery() == Recovery::Nudge,
            fresh_connection: failure.origin() == Origin::Transport,
        }
    }
}

/// What the host has been shown of the step's message, over all attempts.
pub(crate) struct Shown {
    id: Arc<str>,
    /// The attempt whose part the host sees.
    attempt: Option<u32>,
    /// How far that part was shown.
    extent: Extent,
    /// That part, once its attempt has failed, and what it cost.
    part: ShownMessage,
    usage: Usage,
    /// What made that part void; told when the next one begins.
    void: Option<Failure>,
}

/// How much of a message was shown: bytes of text and reasoning, and calls.
#[derive(Default)]
struct Extent {
    text: usize,
    reasoning: usize,
    calls: usize,
}

impl Shown {
    pub(crate) fn new(id: String) -> Self {
        Self {
            id: id.into(),
            attempt: None,
            extent: Extent::default(),
            part: ShownMessage::default(),
            usage: Usage::default(),
            void: None,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn into_id(self) -> String {
        self.id.as_ref().to_owned()
    }

    /// The part that the host sees is void, if it sees one.
    pub(crate) fn void(&mut self, failure: Failure) {
        if self.attempt.is_some() && self.void.is_none() {
            self.void = Some(failure);
        }
    }

    /// What the host has seen last, if it has seen the message begin.
    pub(crate) fn part(&self) -> Option<(ShownMessage, Usage)> {
        self.attempt?;
        Some((self.part.clone(), self.usage))
    }

    /// The event that opens the part of `attempt`, unless it is open already.
    fn open(&mut self, attempt: u32) -> Option<EventKind> {
        let message_id = Arc::clone(&self.id);
        match (self.attempt.replace(attempt), self.void.take()) {
            (None, _) => Some(EventKind::MessageStart { message_id, attempt }),
            (Some(_), Some(failure)) => {
                self.extent = Extent::default();
                Some(EventKind::MessageRestart { message_id, attempt, failure })
            }
            (Some(_), None) => None,
        }
    }

    /// Keeps what `attempt` showed, now that it has failed. What was received and
    /// not shown any more is left out.
    fn keep(&mut self, attempt: u32, received: PartialMessage) {
        if self.attempt != Some(attempt) {
            return;
        }
        let PartialMessage { mut text, mut reasoning, mut tool_calls, usage, .. } = received;
        text.truncate(self.extent.text);
        reasoning.truncate(self.extent.reasoning);
        tool_calls.truncate(self.extent.calls);
        self.part =
            ShownMessage::from(&AssistantMessage { text, reasoning, tool_calls, native: None });
        self.usage = usage;
    }
}

impl Turn<'_> {
    /// Makes one attempt. Whatever it had received is dropped if it fails, but
    /// for what the host was shown.
    pub(crate) async fn attempt(
        &mut self,
        ask: &Ask,
        shown: &mut Shown,
    ) -> Result<CompletedMessage, Failure> {
        if self.cancel.is_cancelled() {
            return Err(aborted());
        }
        self.take_steering().await?;
        let parts = self.parts();
        let bytes = self.weigh();
        let request = self.request(&parts, ask.nudge);
        self.account.attempts += 1;
        let context = AttemptContext::new(self.cancel.clone(), ask.fresh_connection);
        let opening = contained_work("Provider::open", async {
            parts.provider.open(&request, context).await
        });
        let opened =
            unless_cancelled(&self.cancel, opening).await.unwrap_or_else(|| Some(Err(aborted())));
        // It is as large as the history, and nobody needs it any more.
        drop(request);
        let opened = opened.unwrap_or_else(|| Err(broke_down(FAULTY_PROVIDER)));
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(failure) => {
                self.charge_refused(&failure);
                return Err(failure);
            }
        };
        let read = self.read(ask.attempt, &mut stream, shown);
        let ended = contained_work("PollEvents::poll_event", read).await;
        let ended =
            ended.unwrap_or_else(|| Err(broke_down(FAULTY_PROVIDER).with_phase(Phase::Stream)));
        let timing = contained("PollEvents::timing", || stream.timing()).unwrap_or_default();
        self.account.timing.provider_wait += timing.provider_wait();
        self.account.timing.stream += timing.stream();
        match ended {
            Ok(completed) => {
                self.account.usage.add(completed.usage());
                self.session.meter.counted(bytes, completed.usage());
                match unusable(&completed, self.has_just_delivered(&parts)) {
                    None => Ok(completed),
                    Some(failure) => {
                        // All of it was shown.
                        shown.part = ShownMessage::from(completed.message());
                        shown.usage = *completed.usage();
                        Err(failure.with_details(|details| timing.describe(details)))
                    }
                }
            }
            Err(failure) => {
                let received = contained("PollEvents::partial", || stream.partial());
                let received = received.unwrap_or_default();
                self.account.usage.add(&received.usage);
                let reported = (received.usage != Usage::default()).then_some(received.usage);
                shown.keep(ask.attempt, received);
                Err(failure.with_details(|details| details.usage = details.usage.or(reported)))
            }
        }
    }

    /// Reads the stream to its end and shows what comes.
    async fn read(
        &mut self,
        attempt: u32,
        stream: &mut EventStream,
        shown: &mut Shown,
    ) -> Result<CompletedMessage, Failure> {
        let cancel = self.cancel.clone();
        let mut cancelled = pin!(cancel.cancelled());
        loop {
            let pull = poll_fn(|cx| self.pull(cx, attempt, stream, shown));
            match unless(&cancel, cancelled.as_mut(), pull).await {
                None => return Err(aborted().with_phase(Phase::Stream)),
                Some(Pulled::End(ended)) => return ended.map(|completed| *completed),
                Some(Pulled::More) => {}
                Some(Pulled::Full) => self.emitter.settle(&cancel).await,
            }
        }
    }

    /// Shows what the stream has ready, a burst at a time: what it takes to wait, to
    /// look for a cancellation and to read the clock is paid once for each burst.
    fn pull(
        &mut self,
        cx: &mut Context<'_>,
        attempt: u32,
        stream: &mut EventStream,
        shown: &mut Shown,
    ) -> Poll<Pulled> {
        let mut now = None;
        for _ in 0..BURST {
            let event = match ready!(pin!(stream.next()).poll(cx)) {
                Some(Ok(event)) => event,
                Some(Err(failure)) => return Poll::Ready(Pulled::End(Err(failure))),
                // The contract of a stream rules this out; it is no success.
                None => {
                    let early = "the stream ended without an end";
                    let failure = Failure::new(ErrorCode::Internal, early);
                    return Poll::Ready(Pulled::End(Err(failure)));
                }
            };
            let now = *now.get_or_insert_with(|| self.emitter.now());
            let mut room = true;
            if let Some(opening) = shown.open(attempt) {
                room &= self.emitter.offer(opening, now);
            }
            let extent = &mut shown.extent;
            let delta = match event {
                StreamEvent::Text(delta) => {
                    extent.text += delta.len();
                    Some((DeltaKind::Text, delta))
                }
                StreamEvent::Reasoning(delta) => {
                    extent.reasoning += delta.len();
                    Some((DeltaKind::Reasoning, delta))
                }
                StreamEvent::ToolCall(piece) => {
                    extent.calls = extent.calls.max(piece.slot + 1);
                    Some((DeltaKind::ToolCall, piece.arguments))
                }
                StreamEvent::Finished(completed) => {
                    return Poll::Ready(Pulled::End(Ok(completed)));
                }
                _ => None,
            };
            if let Some((kind, delta)) = delta {
                let message_id = Arc::clone(&shown.id);
                room &=
                    self.emitter.offer(EventKind::MessageUpdate { message_id, kind, delta }, now);
            }
            if !room {
                return Poll::Ready(Pulled::Full);
            }
        }
        Poll::Ready(Pulled::More)
    }

    /// The one place where a request is made of the history.
    pub(crate) fn request(&self, parts: &Parts, nudge: bool) -> ChatRequest {
        let mut request = parts.request.clone();
        request.session_id = Some(self.session.id.clone());
        // Both are shared, with what the provider has written of them already.
        request.messages = self.session.transcript.messages().clone();
        request.tools = parts.offered.clone();
        if nudge {
            request.messages.push(Message::User(NUDGE.into()));
        }
        request
    }

    /// Whether the model's last calls handed something over to the user.
    fn has_just_delivered(&self, parts: &Parts) -> bool {
        if parts.delivering.is_empty() {
            return false;
        }
        let results =
            self.session.transcript.messages().iter().rev().map_while(|last| match last {
                Message::Tool(result) => Some(result),
                _ => None,
            });
        results.into_iter().any(|result| result.ok && parts.delivering.contains(&result.name))
    }

    /// An attempt that never got a stream has only waited.
    fn charge_refused(&mut self, failure: &Failure) {
        let waited = failure.details().provider_wait_ms.unwrap_or(0);
        self.account.timing.provider_wait += std::time::Duration::from_millis(waited);
    }
}

/// Why a whole message cannot be used, if it cannot. Silence can be, where the model
/// has just `delivered`.
fn unusable(completed: &CompletedMessage, delivered: bool) -> Option<Failure> {
    let message = completed.message();
    let silent = message.text.trim().is_empty() && message.tool_calls.is_empty();
    let failure = match completed.finish() {
        FinishReason::ContentFilter => {
            Failure::new(ErrorCode::ContentFiltered, "a safety filter cut the answer")
        }
        // Cut by the limit before its first word: not silence, the host must see it.
        FinishReason::Length => return None,
        // The provider wants to go on, whatever it said so far.
        FinishReason::Pause => return None,
        _ if silent && !delivered => Failure::new(
            ErrorCode::EmptyModelResponse,
            "the model ended without text and without a tool call",
        ),
        _ => return None,
    };
    let usage = *completed.usage();
    Some(failure.with_phase(Phase::Stream).with_details(|details| details.usage = Some(usage)))
}
