//! The seam between a turn and a model.

use std::{
    fmt,
    future::poll_fn,
    task::{Context, Poll},
};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use turnbuckle_diagnostics::AttemptTiming;
use turnbuckle_errors::Failure;

use crate::{ChatRequest, PartialMessage, StreamEvent};

/// A model behind an API.
#[async_trait]
pub trait Provider: Send + Sync {
    /// A short name for logs and reports, for example `openai-chat`.
    fn id(&self) -> &str;

    /// Makes one wire attempt and returns its stream once a 2xx response head
    /// came. It neither sleeps nor retries, and follows no redirect.
    ///
    /// Cancel safety: dropping the future closes the connection.
    ///
    /// # Errors
    ///
    /// Everything that can go wrong before the stream begins: the provider and
    /// transport codes, [`TIMEOUT`](turnbuckle_errors::ErrorCode::Timeout), and
    /// [`TURN_ABORTED`](turnbuckle_errors::ErrorCode::TurnAborted) once
    /// `attempt.cancel` is cancelled. The failure's phase is `request`.
    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure>;
}

/// What an attempt has to know besides its request.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AttemptContext {
    /// Cancelled when the prompt is.
    pub cancel: CancellationToken,
    /// Whether a pooled connection may not be used, because the last attempt
    /// failed on one.
    pub fresh_connection: bool,
}

impl AttemptContext {
    /// An attempt that ends with `cancel`.
    #[must_use]
    pub const fn new(cancel: CancellationToken, fresh_connection: bool) -> Self {
        Self { cancel, fresh_connection }
    }
}

/// What an adapter implements to yield the events of one answer.
pub trait PollEvents: Send {
    /// The next event; after `Finished` or a failure, `None` for ever.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<StreamEvent, Failure>>>;

    /// What came so far, to show what a failed attempt had received.
    fn partial(&self) -> PartialMessage;

    /// Where the time went so far.
    fn timing(&self) -> AttemptTiming;
}

/// The events of one answer.
pub struct EventStream(Box<dyn PollEvents>);

impl EventStream {
    /// Wraps an adapter's stream.
    #[must_use]
    pub fn new(events: impl PollEvents + 'static) -> Self {
        Self(Box::new(events))
    }

    /// The next event; `None` once the stream has ended.
    ///
    /// Cancel safety: nothing is lost when the future is dropped. Dropping the
    /// stream closes the connection.
    ///
    /// # Errors
    ///
    /// The failure that ended the stream, with the phase `stream`.
    pub async fn next(&mut self) -> Option<Result<StreamEvent, Failure>> {
        poll_fn(|cx| self.0.poll_event(cx)).await
    }

    /// What came so far. Meant for display; it can never be committed.
    #[must_use]
    pub fn partial(&self) -> PartialMessage {
        self.0.partial()
    }

    /// Where the time of this attempt went.
    #[must_use]
    pub fn timing(&self) -> AttemptTiming {
        self.0.timing()
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("timing", &self.timing()).finish_non_exhaustive()
    }
}
