//! What the user says while a prompt runs.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;

/// How a message came into a running prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Said {
    /// To steer: before the next request.
    Steer,
    /// To follow up: when the model had given its answer.
    FollowUp,
}

/// The prompt has ended, and takes no message any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the prompt has ended, and the message was not taken")]
pub struct NotRunning {
    /// The message, given back.
    pub text: String,
}

/// Messages on their way into one prompt.
///
/// It closes in the same moment in which it is found empty at the prompt's end,
/// so that no message is taken and then forgotten.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inbox(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    steering: VecDeque<String>,
    following: VecDeque<String>,
    closed: bool,
}

impl Inbox {
    pub(crate) fn put(&self, text: String, said: Said) -> Result<(), NotRunning> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(NotRunning { text });
        }
        match said {
            Said::Steer => waiting.steering.push_back(text),
            Said::FollowUp => waiting.following.push_back(text),
        }
        Ok(())
    }

    /// The next steering message.
    pub(crate) fn steering(&self) -> Option<String> {
        self.lock().steering.pop_front()
    }

    /// What comes after the model's answer: a steering message that came too late
    /// to steer, else the next follow-up. Closes if there is none.
    pub(crate) fn after_answer(&self) -> Option<(String, Said)> {
        let mut waiting = self.lock();
        let steering = waiting.steering.pop_front().map(|text| (text, Said::Steer));
        let next =
            steering.or_else(|| waiting.following.pop_front().map(|text| (text, Said::FollowUp)));
        waiting.closed |= next.is_none();
        next
    }

    pub(crate) fn is_empty(&self) -> bool {
        let waiting = self.lock();
        waiting.steering.is_empty() && waiting.following.is_empty()
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
    }

    /// What was never taken in, oldest first, steering before follow-ups.
    pub(crate) fn take_all(&self) -> Vec<String> {
        let mut waiting = self.lock();
        let Waiting { steering, following, .. } = &mut *waiting;
        steering.drain(..).chain(following.drain(..)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
