//! Why a run did not begin, told in the format that was asked for.

use std::{io::Write as _, process::ExitCode};

use serde_json::json;
use turnbuckle_diagnostics::Redactor;
use turnbuckle_errors::{ErrorCode, Failure, SafeText};

use crate::args::Format;

/// Usage and configuration errors end with this code.
const USAGE: u8 = 2;

/// Makes the failure of a wrong setting. What the user typed may be quoted in
/// it, and goes through the redactor like all outside text.
pub(crate) fn invalid(message: &str) -> Failure {
    refused(ErrorCode::InvalidConfig, message)
}

/// The same with another code.
pub(crate) fn refused(code: ErrorCode, message: &str) -> Failure {
    Failure::new(code, SafeText::redacted(message, &Redactor::default()))
}

/// Tells it, and gives the exit code. A program that reads standard output gets
/// the failure there too: one object, or the events that close a run.
pub(crate) fn tell(failure: &Failure, format: Format) -> ExitCode {
    anstream::eprintln!("error: {failure}");
    let mut stdout = std::io::stdout().lock();
    // Nobody may be reading; the exit code says it all the same.
    let _ = match format {
        Format::Text => Ok(()),
        Format::Json => writeln!(
            stdout,
            "{}",
            json!({
                "ok": false, "text": "", "messageId": null, "finish": null, "outcome": "failed",
                "attempts": 0, "retries": [], "failure": failure,
                "usage": turnbuckle_errors::Usage::default(), "toolCalls": [],
                "timing": turnbuckle_runtime::PromptTiming::default(), "sessionId": null,
            })
        ),
        Format::Ndjson => turnbuckle_runtime::refused_run(failure)
            .iter()
            .filter_map(|event| serde_json::to_string(event).ok())
            .try_for_each(|line| writeln!(stdout, "{line}")),
    };
    ExitCode::from(USAGE)
}
