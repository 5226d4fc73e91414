//! What the user says into a running prompt, and when it has to be taken in.

use std::collections::VecDeque;

use crate::play::PlayedPrompt;

/// One message that a running prompt took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) text: String,
    /// Whether it waits for the answer, and does not steer.
    pub(crate) follows: bool,
    /// Requests that had been made by then.
    pub(crate) after: usize,
}

/// The messages of one prompt that are not taken in yet.
pub(crate) struct Mail {
    steering: VecDeque<Sent>,
    following: VecDeque<Sent>,
}

impl Mail {
    pub(crate) fn of(prompt: &PlayedPrompt) -> Self {
        let (following, steering) = prompt.sent.iter().cloned().partition(|sent| sent.follows);
        Self { steering, following }
    }

    /// What has to be in the request with this number, and was not in one before.
    pub(crate) fn before_request(&mut self, number: usize) -> Vec<String> {
        let due = self.steering.iter().take_while(|sent| sent.after <= number).count();
        self.steering.drain(..due).map(|sent| sent.text).collect()
    }

    /// Whether the prompt goes on after the answer to the request with this number;
    /// what is taken in then, unless the next request takes in what steers.
    pub(crate) fn after_answer(&mut self, number: usize) -> Option<Option<String>> {
        let waits = |sent: Option<&Sent>| sent.is_some_and(|sent| sent.after <= number + 1);
        if waits(self.steering.front()) {
            return Some(None);
        }
        waits(self.following.front())
            .then(|| self.following.pop_front())
            .map(|sent| sent.map(|sent| sent.text))
    }

    /// What could have been taken in without a request that shows it.
    pub(crate) fn rest(self, answered: bool) -> Vec<String> {
        let steered = !self.steering.is_empty();
        let follows = self.following.into_iter().take(usize::from(answered && !steered));
        self.steering.into_iter().chain(follows).map(|sent| sent.text).collect()
    }
}
