//! A provider that knows which of its requests are still open.

use std::{
    future::Future as _,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use async_trait::async_trait;
use turnbuckle_diagnostics::AttemptTiming;
use turnbuckle_errors::Failure;
use turnbuckle_providers::{
    AttemptContext, ChatRequest, EventStream, PartialMessage, PollEvents, Provider, StreamEvent,
    testing::{ScriptedAttempt, ScriptedProvider},
};

/// Plays a script; an attempt beyond it never gets a response.
#[derive(Clone)]
pub(crate) struct Watched {
    script: ScriptedProvider,
    length: usize,
    asked: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

/// Counts itself as open for as long as it lives.
struct Open(Arc<AtomicUsize>);

impl Watched {
    pub(crate) fn new(script: impl IntoIterator<Item = ScriptedAttempt>) -> Self {
        let script: Vec<_> = script.into_iter().collect();
        let length = script.len();
        let (asked, open) = Default::default();
        Self { script: ScriptedProvider::new(script), length, asked, open }
    }

    /// Requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Requests whose connection is still open.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> Vec<ChatRequest> {
        self.script.requests()
    }
}

impl Open {
    fn one(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Provider for Watched {
    fn id(&self) -> &str {
        "watched"
    }

    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        let open = Open::one(&self.open);
        if self.asked.fetch_add(1, Ordering::Relaxed) >= self.length {
            std::future::pending::<()>().await;
        }
        let stream = self.script.open(request, attempt).await?;
        Ok(EventStream::new(Stream { stream, _open: open }))
    }
}

struct Stream {
    stream: EventStream,
    _open: Open,
}

impl PollEvents for Stream {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<StreamEvent, Failure>>> {
        pin!(self.stream.next()).poll(cx)
    }

    fn partial(&self) -> PartialMessage {
        self.stream.partial()
    }

    fn timing(&self) -> AttemptTiming {
        self.stream.timing()
    }
}
