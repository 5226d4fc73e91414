//! Permission questions on a terminal.

use std::{io::Write as _, thread};

use async_trait::async_trait;
use tokio::sync::{Mutex, mpsc};
use turnbuckle_tools::{Answer, ApprovalRequest, Approver};

/// Asks on standard error and reads the answer from standard input, one
/// question at a time. `y` is a yes to this call, `a` to the tool for the
/// session; anything else is a no, and only what is typed after the question counts.
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
        anstream::eprint!("\n{question}\n{}", choices(request));
        let _ = std::io::stderr().flush();
        lines.recv().await.map_or(Answer::Deny, |line| answer(&line))
    }
}

/// What may be typed, and what it means for this question.
pub(crate) fn choices(request: &ApprovalRequest) -> String {
    let place = if request.outside.is_some() { "in that folder " } else { "" };
    // The name comes from the host's tools, and with MCP from others.
    let tool = crate::output::printable(&request.tool);
    format!("Allow this? [y]es, [a]lways {tool} {place}in this session, [N]o: ")
}

/// What was typed, as an answer.
pub(crate) fn answer(line: &str) -> Answer {
    match line.trim() {
        "y" | "Y" | "yes" => Answer::Allow,
        "a" | "A" | "always" => Answer::AllowForSession,
        _ => Answer::Deny,
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

#[cfg(test)]
mod tests {
    use turnbuckle_tools::Effect;

    use super::*;

    #[test]
    fn only_a_clear_yes_allows() {
        for (line, expected) in [
            ("y\n", Answer::Allow),
            (" yes ", Answer::Allow),
            ("a\n", Answer::AllowForSession),
            ("always", Answer::AllowForSession),
            ("", Answer::Deny),
            ("n", Answer::Deny),
            ("yy", Answer::Deny),
            ("all", Answer::Deny),
        ] {
            assert_eq!(answer(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_question_says_what_always_means() {
        let mut request = ApprovalRequest {
            call_id: "1".to_owned(),
            tool: "Edit".to_owned(),
            effect: Effect::Mutate,
            description: "change".to_owned(),
            outside: None,
        };
        let inside = "Allow this? [y]es, [a]lways Edit in this session, [N]o: ";
        assert_eq!(choices(&request), inside);
        request.outside = Some("/etc".into());
        let outside = "Allow this? [y]es, [a]lways Edit in that folder in this session, [N]o: ";
        assert_eq!(choices(&request), outside);
    }
}
