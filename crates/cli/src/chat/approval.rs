//! Permission questions in a chat, asked through the keyboard of the chat.

use async_trait::async_trait;
use turnbuckle_tools::{Answer, ApprovalRequest, Approver};

use super::{
    interrupt::Interrupts,
    keyboard::{Keyboard, Typed},
};
use crate::{
    approval::{answer, choices},
    output::printable,
};

/// As `run` asks; Ctrl-C is a no that ends the prompt too.
pub(super) struct AskInChat {
    keyboard: Keyboard,
    interrupts: Interrupts,
}

impl AskInChat {
    pub(super) const fn new(keyboard: Keyboard, interrupts: Interrupts) -> Self {
        Self { keyboard, interrupts }
    }
}

#[async_trait]
impl Approver for AskInChat {
    async fn answer(&self, request: &ApprovalRequest) -> Answer {
        anstream::eprintln!("\n{}", printable(&request.description));
        match self.keyboard.answer(choices(request)).await {
            Typed::Line(line) => answer(&line),
            Typed::Interrupt => {
                self.interrupts.interrupt();
                Answer::Deny
            }
            _ => Answer::Deny,
        }
    }
}
