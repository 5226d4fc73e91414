//! One wire attempt: the request, its clocks, and the stream of its answer.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream::BoxStream};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use turnbuckle_diagnostics::AttemptTiming;
use turnbuckle_errors::{Clock, Fact, Failure, Phase, Redact};

use crate::{
    AttemptContext, Clocks, EventStream, PartialMessage, PollEvents, StreamEvent,
    answer::Dialect,
    facts::{MAX_ERROR_BODY_BYTES, Seen, status_fact},
    intake::{End, Intake},
    transport::{HttpRequest, HttpResponse, HttpTransport, ResponseHead, TransportError},
    watchdog::{Expired, Watchdog},
};

/// How many pieces without an event are taken in one poll; then others may run.
const PIECES_PER_POLL: u32 = 64;

type Body = BoxStream<'static, Result<Bytes, TransportError>>;

/// What every attempt of an adapter is made with.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) transport: Arc<dyn HttpTransport>,
    pub(crate) clocks: Clocks,
    pub(crate) redact: Arc<dyn Redact>,
    /// The kind of server, by the name of its profile.
    pub(crate) provider: &'static str,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("transport", &self.transport)
            .field("clocks", &self.clocks)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

impl Wire {
    /// Sends `request` and returns the stream of its answer once a 2xx head came.
    ///
    /// # Errors
    ///
    /// The failure of the request phase.
    pub(crate) async fn open(
        &self,
        mut request: HttpRequest,
        attempt: AttemptContext,
        dialect: impl Dialect + 'static,
    ) -> Result<EventStream, Failure> {
        let AttemptContext { cancel, fresh_connection } = attempt;
        request.fresh_connection = fresh_connection;
        let began = Instant::now();
        let opened = match cancel.run_until_cancelled(self.respond(request, began)).await {
            // A cancellation in the same instant wins.
            Some(opened) if !cancel.is_cancelled() => opened,
            _ => Err(Refused::by(Fact::Aborted)),
        };
        match opened {
            Ok(response) => {
                let (status, wait) = (response.head.status, began.elapsed());
                tracing::debug!(status, ?wait, "the response head came");
                Ok(EventStream::new(AnswerStream::new(self, response, dialect, began, cancel)))
            }
            Err(refused) => {
                let mut timing = refused.timing;
                timing.ended(began.elapsed());
                Err(Seen {
                    phase: Phase::Request,
                    provider: Some(self.provider),
                    head: refused.head.as_ref(),
                    fact: refused.fact,
                    broken: refused.broken.as_ref(),
                    usage: None,
                    timing: &timing,
                    redact: &*self.redact,
                }
                .into_failure())
            }
        }
    }

    async fn respond(&self, request: HttpRequest, began: Instant) -> Result<HttpResponse, Refused> {
        let response = match timeout(self.clocks.first_event, self.transport.send(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(broken)) => {
                return Err(Refused { broken: Some(broken), ..Refused::default() });
            }
            Err(_) => return Err(Refused::by(Fact::Clock(Clock::FirstEvent))),
        };
        if response.head.is_success() {
            return Ok(response);
        }
        Err(self.read_refusal(response, began).await)
    }

    /// Reads the body of an error answer, as far as bounds and connection allow.
    async fn read_refusal(&self, response: HttpResponse, began: Instant) -> Refused {
        let HttpResponse { head, mut body } = response;
        let mut timing = AttemptTiming::default();
        timing.headers(began.elapsed());
        let mut read = Vec::new();
        let mut broken = None;
        let reading = async {
            while let Some(piece) = body.next().await {
                match piece {
                    Ok(bytes) => {
                        timing.bytes(bytes.len(), began.elapsed());
                        let room = MAX_ERROR_BODY_BYTES.saturating_sub(read.len());
                        read.extend(bytes.iter().take(room));
                    }
                    Err(error) => broken = Some(error),
                }
                if broken.is_some() || read.len() >= MAX_ERROR_BODY_BYTES {
                    break;
                }
            }
        };
        // A body that does not end in time is judged by what came of it.
        let _ = timeout(self.clocks.error_body, reading).await;
        let fact = Some(status_fact(&head, &read));
        Refused { head: Some(head), fact, broken, timing }
    }
}

/// Why an attempt has no stream.
#[derive(Default)]
struct Refused {
    head: Option<ResponseHead>,
    fact: Option<Fact>,
    broken: Option<TransportError>,
    timing: AttemptTiming,
}

impl Refused {
    fn by(fact: Fact) -> Self {
        Self { fact: Some(fact), ..Self::default() }
    }
}

/// The events of one answer, as they come from the socket.
struct AnswerStream<D> {
    intake: Intake<D>,
    /// Dropped, and with it the connection, as soon as the answer is over.
    body: Option<Body>,
    watchdog: Watchdog,
    cancel: CancellationToken,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    began: Instant,
    over: bool,
}

impl<D: Dialect> AnswerStream<D> {
    fn new(
        wire: &Wire,
        response: HttpResponse,
        dialect: D,
        began: Instant,
        cancel: CancellationToken,
    ) -> Self {
        let HttpResponse { head, body } = response;
        let waited = began.elapsed();
        Self {
            intake: Intake::new(head, dialect, Arc::clone(&wire.redact), waited)
                .at_provider(wire.provider),
            body: Some(body),
            watchdog: Watchdog::new(wire.clocks, waited),
            cancelled: Box::pin(cancel.clone().cancelled_owned()),
            cancel,
            began,
            over: false,
        }
    }

    /// Waits for the socket until there is an event to give, or an end.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..PIECES_PER_POLL {
            let Some(body) = &mut self.body else { return Poll::Ready(()) };
            match Pin::new(body).poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => self.take_bytes(&bytes),
                Poll::Ready(Some(Err(broken))) => {
                    self.body = None;
                    self.intake.body_ended(Some(broken));
                }
                Poll::Ready(None) => {
                    self.body = None;
                    self.intake.body_ended(None);
                }
                Poll::Pending => {
                    let end = ready!(self.poll_wait(cx));
                    self.body = None;
                    self.intake.end_by(end);
                }
            }
            if self.intake.has_ended() {
                return Poll::Ready(());
            }
            if self.intake.decoder.answer.has_event() {
                return Poll::Ready(());
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Nothing can be read: waits for a clock, or to be cancelled.
    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let now = Instant::now();
        self.intake.timing.ended(now - self.began);
        if self.cancelled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(End::Failed(Some(Fact::Aborted), None));
        }
        self.watchdog.poll_expired(cx, now).map(|expired| match expired {
            Expired::Clock(clock) => End::Failed(Some(Fact::Clock(clock)), None),
            Expired::Grace => End::Complete,
        })
    }

    /// The answer is whole: reads on to the end of the body for a moment, since an
    /// HTTP/1.1 connection that is dropped before it cannot be used again.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.watchdog.closing();
        while let Some(body) = &mut self.body {
            match Pin::new(body).poll_next(cx) {
                // A server that goes on talking after its end marker is left there.
                Poll::Ready(_) => self.body = None,
                Poll::Pending => {
                    let end = ready!(self.poll_wait(cx));
                    self.body = None;
                    self.intake.end_by(end);
                }
            }
        }
        Poll::Ready(())
    }

    fn take_bytes(&mut self, bytes: &Bytes) {
        let now = Instant::now();
        self.watchdog.bytes(now);
        self.intake.bytes(bytes, now - self.began);
        let decoder = &mut self.intake.decoder;
        if decoder.has_begun() {
            self.watchdog.first_event();
        }
        if decoder.answer.take_progress() {
            self.watchdog.progress();
        }
        if decoder.answer.is_finished() {
            self.watchdog.finished();
        }
    }
}

impl<D: Dialect> PollEvents for AnswerStream<D> {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<StreamEvent, Failure>>> {
        if self.over {
            return Poll::Ready(None);
        }
        loop {
            if self.cancel.is_cancelled() {
                self.body = None;
                self.intake.abort();
            }
            if let Some(event) = self.intake.decoder.answer.take_event() {
                return Poll::Ready(Some(Ok(event)));
            }
            if self.intake.is_complete() {
                ready!(self.poll_close(cx));
            }
            if let Some(last) = self.intake.conclude() {
                self.body = None;
                self.over = true;
                let finished = last.map(|message| StreamEvent::Finished(Box::new(message)));
                return Poll::Ready(Some(finished));
            }
            ready!(self.poll_body(cx));
        }
    }

    fn partial(&self) -> PartialMessage {
        self.intake.decoder.answer.partial()
    }

    fn timing(&self) -> AttemptTiming {
        self.intake.timing
    }
}

#[cfg(test)]
#[cfg(feature = "openai-chat")]
mod tests;
