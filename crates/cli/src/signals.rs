//! Ctrl-C and termination: the first one cancels, the second one leaves.

use tokio_util::sync::CancellationToken;

/// The exit code of a cancelled run, as shells expect it (128 + SIGINT).
pub(crate) const ABORTED: u8 = 130;

/// Cancels `cancel` at the first signal; at the second the process ends at once.
pub(crate) fn cancel_on_signal(cancel: CancellationToken) {
    tokio::spawn(async move {
        signalled().await;
        cancel.cancel();
        signalled().await;
        std::process::exit(i32::from(ABORTED));
    });
}

/// Waits for Ctrl-C, or for a request to end.
pub(crate) async fn signalled() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
