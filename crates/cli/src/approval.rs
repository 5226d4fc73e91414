//! Permission questions on a terminal.

use std::io::Write as _;

use async_trait::async_trait;
use tokio::sync::Mutex;
use turnbuckle_tools::{Answer, ApprovalRequest, Approver};

/// Asks on standard error and reads the answer from standard input, one
/// question at a time. Anything but `y` is a no.
#[derive(Debug, Default)]
pub(crate) struct AskOnTerminal {
    one_at_a_time: Mutex<()>,
}

#[async_trait]
impl Approver for AskOnTerminal {
    async fn answer(&self, request: &ApprovalRequest) -> Answer {
        let _turn = self.one_at_a_time.lock().await;
        let question = crate::output::printable(&request.description);
        anstream::eprint!("\n{question}\nAllow this? [y/N] ");
        let _ = std::io::stderr().flush();
        // The thread may outlive a question that nobody answers; the process does not wait for it.
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        match line.await {
            Ok(Ok(line)) if matches!(line.trim(), "y" | "Y" | "yes") => Answer::Allow,
            _ => Answer::Deny,
        }
    }
}
