//! Ctrl-C, hang-up and termination: the first one cancels, and the run ends by
//! itself.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The exit code of a cancelled run, as shells expect it (128 + SIGINT).
pub(crate) const ABORTED: u8 = 130;

/// How long a cancelled run may take to end its children and tell its end. A
/// signal after it ends the process at once.
///
/// Children get 2 s between TERM and KILL; shells and drivers often send several
/// signals at once, and those must not cut the end off.
const PATIENCE: Duration = Duration::from_secs(6);

/// Cancels `cancel` at the first signal.
pub(crate) fn cancel_on_signal(cancel: CancellationToken) {
    tokio::spawn(async move {
        signalled().await;
        cancel.cancel();
        let first = Instant::now();
        loop {
            signalled().await;
            if first.elapsed() > PATIENCE {
                std::process::exit(i32::from(ABORTED));
            }
        }
    });
}

/// Waits for Ctrl-C, for the terminal to close, or for a request to end.
#[cfg(unix)]
pub(crate) async fn signalled() {
    use std::{future::poll_fn, task::Poll};

    use tokio::signal::unix::{Signal, SignalKind, signal};

    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ];
    let mut signals: Vec<Signal> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    poll_fn(|cx| {
        let came = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if came { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
pub(crate) async fn signalled() {
    let _ = tokio::signal::ctrl_c().await;
}
