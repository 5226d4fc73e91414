//! What other tasks hold of a running prompt.

use tokio_util::sync::CancellationToken;

use crate::inbox::{Inbox, NotRunning, Said};

/// Reaches a running prompt from anywhere. Cheap to clone; dropping it does
/// nothing.
#[derive(Debug, Clone)]
pub struct Remote {
    pub(crate) cancel: CancellationToken,
    pub(crate) inbox: Inbox,
}

impl Remote {
    pub(crate) fn new(cancel: CancellationToken) -> Self {
        Self { cancel, inbox: Inbox::default() }
    }

    /// Cancels the prompt. Its `agent_end` follows when everything has stopped.
    pub fn abort(&self) {
        self.cancel.cancel();
    }

    /// Says something to the model before the next request of the prompt, retries
    /// included. Running tools are not disturbed.
    ///
    /// If the model gives its answer before that, the prompt goes on with the
    /// message instead of ending.
    ///
    /// # Errors
    ///
    /// [`NotRunning`], with the message, if the prompt has ended.
    pub fn steer(&self, text: impl Into<String>) -> Result<(), NotRunning> {
        self.inbox.put(text.into(), Said::Steer)
    }

    /// Says something to the model once it has given its answer: the prompt goes
    /// on with it, with a fresh step limit and fresh guards, instead of ending.
    /// Follow-ups are taken in one by one.
    ///
    /// # Errors
    ///
    /// [`NotRunning`], with the message, if the prompt has ended.
    pub fn follow_up(&self, text: impl Into<String>) -> Result<(), NotRunning> {
        self.inbox.put(text.into(), Said::FollowUp)
    }

    /// Takes back the messages that the prompt has not taken in. After a failed
    /// or aborted prompt, these are the ones that the model never saw.
    #[must_use]
    pub fn take_back(&self) -> Vec<String> {
        self.inbox.take_all()
    }
}
