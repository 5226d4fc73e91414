//! A transport that plays bytes, waits and breaks which a test wrote down.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use turnbuckle_errors::Transport;

use crate::transport::{HttpRequest, HttpResponse, HttpTransport, ResponseHead, TransportError};

/// Plays one [`ScriptedResponse`] per request, without a socket, so that its waits
/// may run on paused time. A request beyond the script is refused.
#[derive(Debug, Clone, Default)]
pub struct ScriptedTransport {
    shared: Arc<Mutex<Shared>>,
    open: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Shared {
    script: VecDeque<ScriptedResponse>,
    sent: Vec<HttpRequest>,
}

impl ScriptedTransport {
    /// A transport that plays `script`, one response per request.
    #[must_use]
    pub fn new(script: impl IntoIterator<Item = ScriptedResponse>) -> Self {
        let shared = Shared { script: script.into_iter().collect(), sent: Vec::new() };
        Self { shared: Arc::new(Mutex::new(shared)), open: Arc::default() }
    }

    /// The requests so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.lock().sent.clone()
    }

    /// How many bodies are open: neither read to their end nor dropped.
    #[must_use]
    pub fn open_bodies(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl HttpTransport for ScriptedTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let next = {
            let mut shared = self.lock();
            shared.sent.push(request);
            shared.script.pop_front()
        };
        let Some(ScriptedResponse { status, headers, before, mut steps }) = next else {
            return Err(TransportError::new(Transport::Refused, None));
        };
        for step in before {
            match step {
                Step::Wait(time) => tokio::time::sleep(time).await,
                Step::Break(cause) => return Err(TransportError::new(cause, None)),
                Step::Bytes(_) => {}
                Step::Hang => std::future::pending().await,
            }
        }
        steps.push_back(Step::Bytes(Bytes::new()));
        let guard = OpenBody::new(Arc::clone(&self.open));
        let body = stream::unfold((steps, guard), |(mut steps, guard)| async move {
            loop {
                let item = match steps.pop_front()? {
                    Step::Wait(time) => {
                        tokio::time::sleep(time).await;
                        continue;
                    }
                    Step::Hang => std::future::pending().await,
                    Step::Bytes(bytes) if bytes.is_empty() => return None,
                    Step::Bytes(bytes) => Ok(bytes),
                    Step::Break(cause) => Err(TransportError::new(cause, None)),
                };
                return Some((item, (steps, guard)));
            }
        });
        Ok(HttpResponse::new(ResponseHead::new(status, headers), body.boxed()))
    }
}

struct OpenBody(Arc<AtomicUsize>);

impl OpenBody {
    fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for OpenBody {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What one request gets.
#[derive(Debug, Clone, Default)]
pub struct ScriptedResponse {
    status: u16,
    headers: Vec<(String, String)>,
    /// Before the head.
    before: VecDeque<Step>,
    steps: VecDeque<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    Bytes(Bytes),
    Wait(Duration),
    Break(Transport),
    Hang,
}

impl ScriptedResponse {
    /// A response with this status and, so far, an empty body.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// No response: the connection fails.
    #[must_use]
    pub fn refused(cause: Transport) -> Self {
        Self { before: [Step::Break(cause)].into(), ..Self::default() }
    }

    /// No response, and no end of it.
    #[must_use]
    pub fn silent() -> Self {
        Self { before: [Step::Hang].into(), ..Self::default() }
    }

    /// Waits before the head, by tokio's clock.
    #[must_use]
    pub fn after(mut self, time: Duration) -> Self {
        self.before.push_back(Step::Wait(time));
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds bytes of the body, in one piece.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Bytes>) -> Self {
        self.steps.push_back(Step::Bytes(bytes.into()));
        self
    }

    /// Adds an event of a stream with this data.
    #[must_use]
    pub fn event(self, data: &str) -> Self {
        self.bytes(format!("data: {data}\n\n"))
    }

    /// Waits between two bytes of the body, by tokio's clock.
    #[must_use]
    pub fn wait(mut self, time: Duration) -> Self {
        self.steps.push_back(Step::Wait(time));
        self
    }

    /// Breaks the connection.
    #[must_use]
    pub fn broken(mut self, cause: Transport) -> Self {
        self.steps.push_back(Step::Break(cause));
        self
    }

    /// Falls silent for ever.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.steps.push_back(Step::Hang);
        self
    }
}
