//! Ctrl-C ends the prompt and not the program; a request to end ends both.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::signals::cancel_on_termination;

/// Who is to be cancelled by the next signal. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Interrupts {
    /// The prompt that runs.
    running: Arc<Mutex<Option<CancellationToken>>>,
    leave: CancellationToken,
}

impl Interrupts {
    /// Watches for signals from now on.
    pub(super) fn watch() -> Self {
        let interrupts = Self { running: Arc::default(), leave: CancellationToken::new() };
        #[cfg(unix)]
        tokio::spawn(interrupts.clone().watch_interrupts());
        cancel_on_termination(interrupts.leave.clone());
        interrupts
    }

    /// A prompt begins; it is cancelled by what this gives.
    pub(super) fn begin(&self) -> CancellationToken {
        let cancel = self.leave.child_token();
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(cancel.clone());
        cancel
    }

    /// The prompt has ended.
    pub(super) fn end(&self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Ends the prompt; between prompts, the chat.
    pub(super) fn interrupt(&self) {
        match &*self.running.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(running) => running.cancel(),
            None => self.leave.cancel(),
        }
    }

    /// Waits until the chat is to end.
    pub(super) async fn leave(&self) {
        self.leave.cancelled().await;
    }

    /// Whether a signal ended the chat.
    pub(super) fn left(&self) -> bool {
        self.leave.is_cancelled()
    }

    #[cfg(unix)]
    async fn watch_interrupts(self) {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut interrupts) = signal(SignalKind::interrupt()) else { return };
        while interrupts.recv().await.is_some() {
            self.interrupt();
        }
    }
}
