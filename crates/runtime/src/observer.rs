//! For hosts that want to watch without reading the event stream, and to have a
//! word in retries.

use std::{sync::Arc, time::Duration};

use turnbuckle_errors::Failure;

use crate::{Event, callback::contained, recovery::Budget};

/// Watches running prompts, for logs and metrics, and may hold retries back.
///
/// Called inside the turn: be quick, and never block. A callback that panics is
/// logged and counts as one that did nothing.
pub trait TurnObserver: Send + Sync {
    /// Told of every event, before the host reads it. A call that blocks holds up
    /// its own prompt for as long as it does.
    fn on_event(&self, event: &Event) {
        let _ = event;
    }

    /// Asked before a retry is announced and paid for by the shared quota. The
    /// answer may veto or delay it; there is no answer that adds a retry or makes a
    /// wait shorter.
    ///
    /// Called on a thread where blocking is allowed. After [`ON_RETRY_LIMIT`] without
    /// an answer, or a panic, the retry goes ahead as planned.
    fn on_retry(&self, retry: &PlannedRetry) -> RetryVerdict {
        let _ = retry;
        RetryVerdict::Go
    }
}

/// How long the turn waits for [`TurnObserver::on_retry`]. Long enough to ask
/// another process, and less than most waits that it decides about.
pub const ON_RETRY_LIMIT: Duration = Duration::from_secs(2);

/// A retry that the policy allows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlannedRetry {
    /// The session.
    pub session_id: String,
    /// The attempt of the step that failed, from 1.
    pub attempt: u32,
    /// The budget that pays.
    pub budget: Budget,
    /// The wait before the next attempt.
    pub delay: Duration,
    /// What ended the attempt.
    pub failure: Failure,
}

/// What a host says to a planned retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RetryVerdict {
    /// As planned.
    #[default]
    Go,
    /// This much later than planned.
    Delay(Duration),
    /// Not at all: the step ends with the failure.
    Veto,
}

/// The observer of a host, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Watcher(Option<Arc<dyn TurnObserver>>);

impl Watcher {
    pub(crate) fn new(observer: Arc<dyn TurnObserver>) -> Self {
        Self(Some(observer))
    }

    /// Asks the host; a panic or silence is a [`RetryVerdict::Go`].
    pub(crate) async fn judge(&self, retry: PlannedRetry) -> RetryVerdict {
        let Some(observer) = self.0.clone() else { return RetryVerdict::Go };
        let asked = tokio::task::spawn_blocking(move || observer.on_retry(&retry));
        match tokio::time::timeout(ON_RETRY_LIMIT, asked).await {
            Ok(Ok(verdict)) => verdict,
            // What a panic says is outside text, and stays out of the log.
            Ok(Err(_)) => {
                tracing::error!("the observer panicked in on_retry; the retry goes ahead");
                RetryVerdict::Go
            }
            Err(_) => {
                tracing::error!("the observer's on_retry gives no answer; the retry goes ahead");
                RetryVerdict::Go
            }
        }
    }
}

impl Watcher {
    /// Tells the host, if it listens.
    pub(crate) fn tell(&self, event: &Event) {
        if let Some(observer) = &self.0 {
            let _ = contained("TurnObserver::on_event", || observer.on_event(event));
        }
    }
}
