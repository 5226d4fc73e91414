//! What a model is told of a command that ran.

use std::{os::unix::process::ExitStatusExt as _, process::ExitStatus, time::Duration};

use rustix::process::Signal;
use turnbuckle_errors::ErrorCode;

use super::{
    LISTED, MAX_LIMIT, output,
    process::{End, Finished, Job},
};
use crate::{ToolError, ToolOutput};

/// The result for the model. It claims no more than was done.
///
/// # Errors
///
/// `TOOL_FAILED` for an exit code that is not 0 and for a signal,
/// `TOOL_TIMEOUT`, `TURN_ABORTED`.
pub(super) fn report(finished: &Finished, job: &Job<'_>) -> Result<ToolOutput, ToolError> {
    let (code, how) = how(finished, job.limit);
    let rest = rest(finished);
    let output = output::render(&finished.stdout, &finished.stderr);
    let text = format!("{how} (cwd: {})\n{rest}{output}", job.folder.display());
    match code {
        None => Ok(ToolOutput::text(text)),
        Some(code) => Err(ToolError::new(code, text)),
    }
}

fn how(finished: &Finished, limit: Duration) -> (Option<ErrorCode>, String) {
    match finished.end {
        End::Exited(status) if status.success() => (None, "exit code 0".to_owned()),
        End::Exited(status) => (Some(ErrorCode::ToolFailed), exit(status)),
        End::TimedOut => (
            Some(ErrorCode::ToolTimeout),
            format!(
                "timed out after {} ms and was ended; ask for more by `timeout_ms` (at most {}), \
                 or for less work",
                limit.as_millis(),
                MAX_LIMIT.as_millis()
            ),
        ),
        End::Cancelled => (
            Some(ErrorCode::TurnAborted),
            "the prompt was cancelled: the command was ended".to_owned(),
        ),
    }
}

/// What became of the other processes, where there is something to tell.
fn rest(finished: &Finished) -> String {
    let exited = matches!(finished.end, End::Exited(_));
    let mut text = String::new();
    if exited && finished.tree.found {
        let done = if finished.tree.left.is_empty() { "ended" } else { "told to end" };
        let cut = if finished.read { "" } else { "; their output was cut off" };
        text = format!("(background processes were still running and were {done}{cut})\n");
    } else if !finished.read {
        text.push_str(
            "(something still holds the output and was not found among the processes of the \
             command; it may run on, its output was cut off)\n",
        );
    }
    let left = &finished.tree.left;
    if !left.is_empty() {
        let ids: Vec<String> = left.iter().take(LISTED).map(ToString::to_string).collect();
        let more = if left.len() > LISTED { ", …" } else { "" };
        text.push_str(&format!(
            "({} of its processes could not be ended, not even by KILL: {}{more})\n",
            left.len(),
            ids.join(", ")
        ));
    }
    text
}

fn exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}{}", signal_name(signal)),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

fn signal_name(number: i32) -> &'static str {
    const NAMES: &[(Signal, &str)] = &[
        (Signal::HUP, " (HUP)"),
        (Signal::INT, " (INT)"),
        (Signal::QUIT, " (QUIT)"),
        (Signal::ILL, " (ILL)"),
        (Signal::ABORT, " (ABRT)"),
        (Signal::BUS, " (BUS)"),
        (Signal::FPE, " (FPE)"),
        (Signal::KILL, " (KILL)"),
        (Signal::SEGV, " (SEGV)"),
        (Signal::PIPE, " (PIPE)"),
        (Signal::ALARM, " (ALRM)"),
        (Signal::TERM, " (TERM)"),
        (Signal::XCPU, " (XCPU)"),
        (Signal::XFSZ, " (XFSZ)"),
    ];
    NAMES.iter().find(|(signal, _)| signal.as_raw() == number).map_or("", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::bash::{output::HeadTail, tree::Ended};

    fn told(end: End, read: bool, found: bool, left: Vec<i32>) -> String {
        let (stdout, stderr) = (HeadTail::default(), HeadTail::default());
        let tree = Ended { found, left };
        let finished = Finished { end, stdout, stderr, read, tree };
        let (_, how) = how(&finished, Duration::from_secs(1));
        format!("{how}\n{}{}", rest(&finished), output::render(&finished.stdout, &finished.stderr))
    }

    #[test]
    fn no_more_is_claimed_than_was_done() {
        let exited = || End::Exited(ExitStatus::default());
        assert_eq!(told(exited(), true, false, vec![]), "exit code 0\n(no output)\n");
        assert_eq!(
            told(exited(), true, true, vec![]),
            "exit code 0\n(background processes were still running and were ended)\n(no output)\n"
        );
        assert_eq!(
            told(exited(), false, true, vec![]),
            "exit code 0\n(background processes were still running and were ended; their output \
             was cut off)\n(no output)\n"
        );
        let held = told(exited(), false, false, vec![]);
        assert!(held.contains("was not found") && held.contains("it may run on"), "{held}");
        let late = told(End::TimedOut, false, true, vec![]);
        assert!(late.contains("was not found") && late.contains("it may run on"), "{late}");
        let left = told(exited(), true, true, vec![7, 8]);
        let expected = "exit code 0\n(background processes were still running and were told to \
                        end)\n(2 of its processes could not be ended, not even by KILL: 7, 8)\n";
        assert!(left.starts_with(expected), "{left}");
    }

    #[test]
    fn a_signal_without_a_name_is_told_by_its_number() {
        assert_eq!(exit(ExitStatus::from_raw(9)), "ended by signal 9 (KILL)");
        assert_eq!(exit(ExitStatus::from_raw(64)), "ended by signal 64");
        assert_eq!(exit(ExitStatus::from_raw(3 << 8)), "exit code 3");
    }
}
