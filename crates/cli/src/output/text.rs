//! For people: the answer on standard output, everything else on standard error.

use std::{
    collections::HashMap,
    io::{self, IsTerminal as _, Stdout, Write as _},
};

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use turnbuckle_errors::Failure;
use turnbuckle_runtime::{DeltaKind, Event, EventKind, Outcome, PromptOutcome};

use super::{Canvas, Output, printable};

const NOTE: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// `--output text`. On a terminal the answer streams, and the part of a failed
/// attempt is erased; into a pipe each message is printed when it is complete.
pub(crate) struct Text {
    canvas: Option<Canvas<Stdout>>,
    calls: HashMap<String, String>,
}

impl Text {
    pub(crate) fn new() -> Self {
        let size = terminal_size::terminal_size().filter(|_| io::stdout().is_terminal());
        let canvas = size.map(|(width, height)| {
            Canvas::new(io::stdout(), usize::from(width.0), usize::from(height.0))
        });
        Self { canvas, calls: HashMap::new() }
    }

    fn delta(&mut self, delta: &str) -> io::Result<()> {
        match &mut self.canvas {
            Some(canvas) => canvas.print(delta),
            None => Ok(()),
        }
    }

    /// The part of a failed attempt goes before the note about it comes.
    fn take_back(&mut self) -> io::Result<()> {
        match &mut self.canvas {
            Some(canvas) if !canvas.is_blank() => canvas.erase(),
            _ => Ok(()),
        }
    }

    fn message(&mut self, text: &str, failed: bool) -> io::Result<()> {
        match &mut self.canvas {
            Some(canvas) => {
                if !canvas.is_blank() {
                    canvas.print("\n")?;
                }
                canvas.keep();
                Ok(())
            }
            None if failed || text.is_empty() => Ok(()),
            None => {
                let mut stdout = io::stdout().lock();
                // A terminal that does not tell its size can be steered all the same.
                let safe = stdout.is_terminal().then(|| printable(text));
                writeln!(stdout, "{}", safe.as_deref().unwrap_or(text))?;
                stdout.flush()
            }
        }
    }
}

impl Output for Text {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.kind {
            EventKind::MessageUpdate { kind: DeltaKind::Text, delta, .. } => self.delta(delta)?,
            EventKind::MessageRestart { .. } => self.take_back()?,
            EventKind::MessageEnd { message, failure, .. } => {
                self.message(&message.text, failure.is_some())?
            }
            EventKind::RetryScheduled { delay_ms, failure, .. } => {
                self.take_back()?;
                let why = failure.to_string();
                note(&format!(
                    "{}; trying again in {}",
                    why.trim_end_matches('.'),
                    seconds(*delay_ms)
                ));
            }
            EventKind::CompactionStart { .. } => {
                self.take_back()?;
                note("the conversation is too long for the model; summarising its older part");
            }
            EventKind::CompactionEnd { failure: Some(failure), .. } => {
                note(&format!("it stays as it was: {failure}"));
            }
            EventKind::ToolExecutionStart { tool_call_id, name, arguments } => {
                let call = describe_call(name, arguments.as_deref());
                note(&call);
                self.calls.insert(tool_call_id.clone(), call);
            }
            EventKind::ToolExecutionEnd { tool_call_id, failure: Some(failure), .. } => {
                let call = self.calls.get(tool_call_id).map_or("", String::as_str);
                note(&format!("{call}: {failure}"));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, outcome: &PromptOutcome) -> io::Result<()> {
        match (&outcome.failure, outcome.outcome) {
            (_, Outcome::Aborted) => note("cancelled"),
            (Some(failure), _) => {
                for line in failure_lines(failure) {
                    anstream::eprintln!("{line}");
                }
                for line in attempt_lines(outcome) {
                    anstream::eprintln!("  {NOTE}{line}{NOTE:#}");
                }
            }
            (None, _) => {}
        }
        Ok(())
    }
}

/// The failure, what to do about it, and how far it got.
fn failure_lines(failure: &Failure) -> Vec<String> {
    let details = failure.details();
    let mut lines = vec![
        format!("{BAD}error: {failure}{BAD:#}"),
        format!("  what to do: {}", failure.code().info().advice),
    ];
    for mismatch in &details.mismatches {
        lines.push(format!("  mismatch: {mismatch}"));
    }
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| format!("{name} {value}")));
    };
    fact("phase", details.phase.map(|phase| phase.as_str().to_owned()));
    fact("attempt", details.retry_attempt.map(|n| n.to_string()));
    fact("status", details.provider_status.map(|n| n.to_string()));
    fact("provider code", details.provider_code.as_ref().map(ToString::to_string));
    fact("request id", details.provider_request_id.as_ref().map(ToString::to_string));
    fact("retry after", details.retry_after_ms.map(seconds));
    fact("waited", details.provider_wait_ms.map(seconds));
    fact("streamed", details.stream_ms.map(seconds));
    fact("received", details.bytes_received.map(|n| format!("{n} bytes")));
    if !facts.is_empty() {
        lines.push(format!("  {NOTE}{}{NOTE:#}", facts.join(", ")));
    }
    for cause in &details.causes {
        lines.push(format!("  {NOTE}caused by: {cause}{NOTE:#}"));
    }
    lines
}

/// What became of the attempts before the one that ended the last step.
fn attempt_lines(outcome: &PromptOutcome) -> Vec<String> {
    let Some(last) = outcome.retries.last() else { return Vec::new() };
    let attempt = outcome.failure.as_ref().and_then(|failure| failure.details().retry_attempt);
    // The retries of a step that went well are no part of this failure's story.
    if attempt != last.attempt.checked_add(1) {
        return Vec::new();
    }
    let told = outcome.retries.iter().filter(|retry| retry.retry_id == last.retry_id);
    told.map(|retry| {
        format!(
            "attempt {} before it: {} ({}, {} bytes, {} events), then waited {} [{} budget]",
            retry.attempt,
            retry.code,
            retry.phase.as_str(),
            retry.bytes_received,
            retry.events_received,
            seconds(retry.waited_ms),
            retry.budget
        )
    })
    .collect()
}

/// A tool call in a few words: its name, and what it works on.
pub(crate) fn describe_call(name: &str, arguments: Option<&Value>) -> String {
    let what = ["path", "command", "pattern"]
        .iter()
        .find_map(|key| arguments?.get(key)?.as_str())
        .map(|what| what.lines().next().unwrap_or_default().chars().take(60).collect::<String>());
    printable(&match what {
        Some(what) => format!("{name} {what}"),
        None => name.to_owned(),
    })
}

/// `0.75 s` for 750.
pub(crate) fn seconds(millis: u64) -> String {
    let hundredths = millis.div_ceil(10);
    let (whole, part) = (hundredths / 100, hundredths % 100);
    match part {
        0 => format!("{whole} s"),
        part if part % 10 == 0 => format!("{whole}.{} s", part / 10),
        part => format!("{whole}.{part:02} s"),
    }
}

fn note(text: &str) {
    anstream::eprintln!("{NOTE}· {}{NOTE:#}", printable(text));
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnbuckle_errors::{ErrorCode, Phase, Usage};
    use turnbuckle_runtime::{PromptTiming, RetrySummary, recovery::Budget};

    use super::*;

    fn failed(attempt: u32, retries: &[(&str, u32)]) -> PromptOutcome {
        let retry = |(retry_id, attempt): &(&str, u32)| RetrySummary {
            retry_id: (*retry_id).to_owned(),
            attempt: *attempt,
            budget: Budget::Stream,
            phase: Phase::Stream,
            code: ErrorCode::StreamFailed,
            delay_ms: 750,
            waited_ms: 750,
            bytes_received: 90,
            events_received: 4,
            provider_wait_ms: None,
            stream_ms: None,
            usage: None,
            delivered: None,
        };
        let failure = Failure::new(ErrorCode::StreamFailed, "cut")
            .with_details(|details| details.retry_attempt = Some(attempt));
        PromptOutcome {
            ok: false,
            text: String::new(),
            message_id: None,
            finish: None,
            outcome: Outcome::Failed,
            attempts: 2,
            retries: retries.iter().map(retry).collect(),
            failure: Some(failure),
            usage: Usage::default(),
            tool_calls: Vec::new(),
            timing: PromptTiming::default(),
            session_id: "s".to_owned(),
        }
    }

    #[test]
    fn a_failure_tells_of_the_attempts_of_its_own_step() {
        assert_eq!(
            attempt_lines(&failed(2, &[("earlier", 1), ("own", 1)])),
            [
                "attempt 1 before it: STREAM_FAILED (stream, 90 bytes, 4 events), then waited 0.75 s [stream budget]"
            ]
        );
        assert!(attempt_lines(&failed(1, &[("earlier", 1)])).is_empty());
        assert!(attempt_lines(&failed(1, &[])).is_empty());
    }

    #[test]
    fn milliseconds_read_as_seconds() {
        let told: Vec<_> = [0, 1, 10, 100, 750, 1200, 2000, 65_005].map(seconds).to_vec();
        assert_eq!(told, ["0 s", "0.01 s", "0.01 s", "0.1 s", "0.75 s", "1.2 s", "2 s", "65.01 s"]);
    }

    #[test]
    fn a_call_is_told_by_what_it_works_on() {
        assert_eq!(describe_call("Read", Some(&json!({"path": "a.txt"}))), "Read a.txt");
        assert_eq!(describe_call("Bash", Some(&json!({"command": "ls\nrm x"}))), "Bash ls");
        assert_eq!(describe_call("Read", None), "Read");
    }
}
