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
    cancel_on(cancel, true);
}

/// Cancels `cancel` at the first signal that is no Ctrl-C, where the system tells
/// them apart.
pub(crate) fn cancel_on_termination(cancel: CancellationToken) {
    cancel_on(cancel, cfg!(not(unix)));
}

fn cancel_on(cancel: CancellationToken, with_interrupt: bool) {
    tokio::spawn(async move {
        signal(with_interrupt).await;
        cancel.cancel();
        let first = Instant::now();
        loop {
            signal(with_interrupt).await;
            if first.elapsed() > PATIENCE {
                std::process::exit(i32::from(ABORTED));
            }
        }
    });
}

/// Waits for Ctrl-C, for the terminal to close, or for a request to end. It listens
/// from the call on, before it is awaited.
pub(crate) fn signalled() -> impl Future<Output = ()> {
    signal(true)
}

#[cfg(unix)]
fn signal(with_interrupt: bool) -> impl Future<Output = ()> {
    use std::{future::poll_fn, task::Poll};

    use tokio::signal::unix::{Signal, SignalKind, signal};

    let mut kinds = vec![SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
    kinds.extend(with_interrupt.then(SignalKind::interrupt));
    let mut signals: Vec<Signal> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    poll_fn(move |cx| {
        let came = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if came { Poll::Ready(()) } else { Poll::Pending }
    })
}

#[cfg(not(unix))]
async fn signal(with_interrupt: bool) {
    match with_interrupt {
        true => drop(tokio::signal::ctrl_c().await),
        false => std::future::pending::<()>().await,
    }
}
