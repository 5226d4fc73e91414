//! Work that ends when the prompt is cancelled.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Poll, ready},
};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// What `work` gives; `None`, and it is dropped, if `cancel` comes first. In the
/// same instant the cancellation wins.
pub(crate) async fn unless_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Option<T> {
    unless(cancel, pin!(cancel.cancelled()), work).await
}

/// The same with a wait for the cancellation that lasts over many pieces of
/// work, so that it is not set up for each of them.
pub(crate) async fn unless<T>(
    cancel: &CancellationToken,
    mut cancelled: Pin<&mut WaitForCancellationFuture<'_>>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        if cancel.is_cancelled() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        ready!(cancelled.as_mut().poll(cx));
        Poll::Ready(None)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cancellation_wins_over_what_is_ready_in_the_same_instant() {
        let cancel = CancellationToken::new();
        assert_eq!(unless_cancelled(&cancel, async { 1 }).await, Some(1));
        let same = Duration::from_millis(5);
        let timer = async {
            tokio::time::sleep(same).await;
            cancel.cancel();
        };
        // Polled after it, as one task is that wakes for both.
        let work = unless_cancelled(&cancel, tokio::time::sleep(same));
        let ((), ended) = tokio::join!(biased; timer, work);
        assert_eq!(ended, None);
        assert_eq!(unless_cancelled(&cancel, async { 1 }).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn it_wakes_from_work_that_never_ends() {
        let cancel = CancellationToken::new();
        let later = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            later.cancel();
        });
        let mut cancelled = pin!(cancel.cancelled());
        for _ in 0..3 {
            assert_eq!(unless(&cancel, cancelled.as_mut(), async { 1 }).await, Some(1));
        }
        let ended = unless(&cancel, cancelled.as_mut(), std::future::pending::<()>()).await;
        assert_eq!(ended, None);
    }
}
