//! How a prompt ends: once, told the same way everywhere, with nothing left
//! behind, and at once when the user says so.

use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_runtime::{Event, EventKind, Outcome};

use super::Findings;
use crate::{
    model::INPUT_TOKENS,
    play::{Played, PlayedPrompt},
};

const ONE_END: &str = "exactly one agent_end, and it is the last event";
const ONE_ERROR: &str = "one error just before the end of a failed prompt, else none";
const SAME_FAILURE: &str = "agent_end, error and outcome tell one failure";
const NO_REQUEST: &str = "no request after a cancellation";
const SOON: &str = "a cancelled prompt ends within 100 ms";
const CLOSED: &str = "no stream and no task is left at the end";
const ONE_STREAM: &str = "one request at a time";
const ACCOUNTED: &str = "attempts and their usage are all accounted for";
const AFFINITY: &str = "every request carries the session's id";

pub(super) fn check(played: &Played, prompt: &PlayedPrompt, findings: &mut Findings) {
    let asked = played.asked.get(prompt.asked.clone()).unwrap_or_default();
    for asked in asked {
        findings.holds(NO_REQUEST, !asked.after_abort, || format!("at {} ms", asked.at_ms));
        findings.equal(ONE_STREAM, asked.beside, 0);
        findings.equal(AFFINITY, asked.session_id.as_deref(), Some(&*prompt.session_id));
    }
    let digests = played.digests.get(prompt.digests.clone()).unwrap_or_default();
    for digest in digests {
        findings.holds(NO_REQUEST, !digest.after_abort, || "for a digest".into());
        findings.equal(ONE_STREAM, digest.beside, 0);
    }
    findings.equal(CLOSED, (prompt.left_open, prompt.left_running), (0, 0));
    let Some(outcome) = &prompt.outcome else { return };
    if let Some(aborted) = prompt.aborted_ms {
        let took = prompt.ended_ms.saturating_sub(aborted);
        findings.holds(SOON, took <= 100, || format!("it took {took} ms"));
    }
    findings.equal(ACCOUNTED, usize::try_from(outcome.attempts).ok(), Some(asked.len()));
    let used = asked.iter().filter(|asked| asked.used).count()
        + digests.iter().filter(|digest| digest.used).count();
    let used = u64::try_from(used).unwrap_or(u64::MAX);
    findings.equal(ACCOUNTED, outcome.usage.input_tokens.unwrap_or(0), used * INPUT_TOKENS);

    let ends = prompt.events.iter().filter(|(_, event)| is_end(event)).count();
    let last = prompt.events.last().map(|(_, event)| event);
    findings.holds(ONE_END, ends == 1 && last.is_some_and(is_end), || {
        format!("{ends} ends, and the last event is {last:?}")
    });
    let told = last.and_then(|event| match &event.kind {
        EventKind::AgentEnd { outcome, failure, .. } => Some((*outcome, failure.as_ref())),
        _ => None,
    });
    findings.equal(SAME_FAILURE, told, Some((outcome.outcome, outcome.failure.as_ref())));
    findings.equal(SAME_FAILURE, outcome.ok, outcome.outcome == Outcome::Completed);
    let code = outcome.failure.as_ref().map(Failure::code);
    let fits = match outcome.outcome {
        Outcome::Completed => code.is_none(),
        Outcome::Failed => code.is_some_and(|code| code != ErrorCode::TurnAborted),
        Outcome::Aborted => code == Some(ErrorCode::TurnAborted),
    };
    findings.holds(SAME_FAILURE, fits, || format!("{:?} with {code:?}", outcome.outcome));

    let errors = prompt.events.iter().filter_map(|(_, event)| error(event)).count();
    let before = prompt.events.iter().rev().nth(1).and_then(|(_, event)| error(event));
    let failed = outcome.outcome == Outcome::Failed;
    let placed = !failed || before.is_some_and(|told| Some(told) == outcome.failure.as_ref());
    findings.holds(ONE_ERROR, errors == usize::from(failed) && placed, || {
        format!("{errors} errors, {before:?} before the end")
    });
}

fn is_end(event: &Event) -> bool {
    matches!(event.kind, EventKind::AgentEnd { .. })
}

fn error(event: &Event) -> Option<&Failure> {
    match &event.kind {
        EventKind::Error { failure, .. } => Some(failure),
        _ => None,
    }
}
