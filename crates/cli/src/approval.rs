//! Permission questions on a terminal.

use std::{io::Write as _, thread};

use async_trait::async_trait;
use tokio::sync::{Mutex, mpsc};
use turnbuckle_tools::{Answer, ApprovalRequest, Approver};

/// Asks on standard error and reads the answer from standard input, one
/// question at a time. Anything but `y` is a no, and only what is typed after
/// the question counts.
#[derive(Debug, Default)]
pub(crate) struct AskOnTerminal {
    /// One reader for the process: a question that was given up leaves no other
    /// one behind, which would swallow the next answer.
    keyboard: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
}

#[async_trait]
impl Approver for AskOnTerminal {
    async fn answer(&self, request: &ApprovalRequest) -> Answer {
        let mut keyboard = self.keyboard.lock().await;
        let lines = keyboard.get_or_insert_with(read_lines);
        forget_what_was_typed(lines);
        let question = crate::output::printable(&request.description);
        anstream::eprint!("\n{question}\nAllow this? [y/N] ");
        let _ = std::io::stderr().flush();
        match lines.recv().await {
            Some(line) if matches!(line.trim(), "y" | "Y" | "yes") => Answer::Allow,
            _ => Answer::Deny,
        }
    }
}

fn read_lines() -> mpsc::UnboundedReceiver<String> {
    let (tell, lines) = mpsc::unbounded_channel();
    // It waits for the keyboard as long as the process lives; nobody waits for it.
    thread::spawn(move || {
        let typed = std::io::stdin().lines().map_while(Result::ok);
        for line in typed {
            if tell.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// Keys pressed before a question are no answer to it.
fn forget_what_was_typed(lines: &mut mpsc::UnboundedReceiver<String>) {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // Standard input may be no terminal; then nothing is queued there.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }
    while lines.try_recv().is_ok() {}
}
