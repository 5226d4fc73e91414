//! The course of a prompt, held against what the oracle foretells.

use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_runtime::{EventKind, Outcome, PromptOutcome, RetrySummary};

use super::Findings;
use crate::{
    kind::{Kind, Means},
    mail::Mail,
    oracle::{self, MAX_ATTEMPTS, MAX_WAIT_MS, Story, Wait},
    play::{Played, PlayedPrompt, Role},
    script::Policy,
    stage::Asked,
};

const BOUND: &str = "attempts of a step stay within the printed bound";
const WAIT_BOUND: &str = "waits of a step stay within the policy's bound";
const FORETOLD: &str = "the prompt ends as the table of budgets foretells";
const ATTEMPTS: &str = "as many requests and steps as foretold";
const WAITS: &str = "each retry is paid from its budget, and waits as long as promised";
const ON_TIME: &str = "the request follows when the wait is over, and not before";
const FRESH: &str = "after a broken connection a fresh one is asked for";
const NO_FALSE_SUCCESS: &str = "a prompt completes only with a whole answer";
const SMALLER: &str = "what is too large is made smaller once, if its digest can be used";
const HISTORY: &str = "the outcome lists every retry that the events told";
const NUMBERED: &str = "a failure tells which attempt of its step it was";

/// So many messages are enough to leave some of them out.
const ENOUGH: usize = 12;

pub(super) fn check(played: &Played, prompt: &PlayedPrompt, findings: &mut Findings) {
    let asked = played.asked.get(prompt.asked.clone()).unwrap_or_default();
    let compacted = compactions(prompt, asked, findings);
    let more = answered(prompt, asked);
    let (compacted, more) = (|at| compacted.contains(&at), |at| more.contains(&at));
    let story = oracle::foretell(&prompt.attempts, played.policy, compacted, more);
    waits(prompt, asked, played.policy, findings);
    let Some(outcome) = &prompt.outcome else { return };
    // Whether there was nothing to answer is told by the history.
    if prompt.role == Role::GoneOn && asked.is_empty() {
        return;
    }
    against(&story, prompt, outcome, asked.len(), findings);
    retries(prompt, outcome, findings);
    if outcome.ok {
        let whole = asked
            .last()
            .is_some_and(|last| last.finished && last.attempt.kind.means() == Means::Done);
        findings.holds(NO_FALSE_SUCCESS, whole, || {
            format!("completed with {:?}", asked.last().map(|last| last.attempt.kind))
        });
    }
}

/// After which attempts the history was made smaller.
fn compactions(prompt: &PlayedPrompt, asked: &[Asked], findings: &mut Findings) -> Vec<usize> {
    let mut ends = prompt.events.iter().filter_map(|(_, event)| match &event.kind {
        EventKind::CompactionEnd { ok, .. } => Some(*ok),
        _ => None,
    });
    let stopped = prompt.outcome.is_none() || prompt.aborted_ms.is_some() || prompt.full;
    let mut compacted = Vec::new();
    let mut tried = false;
    for (at, asked) in asked.iter().enumerate() {
        let kind = asked.attempt.kind;
        let smaller = asked.digest.is_some() && ends.next().unwrap_or(false);
        if smaller {
            compacted.push(at);
        }
        findings.holds(SMALLER, !smaller || kind.digest_works(), || asked.attempt.to_string());
        if kind.means() == Means::Smaller && asked.messages.len() >= ENOUGH && !tried && !stopped {
            let due = kind.digest_works();
            findings.holds(SMALLER, asked.digest.is_some() && smaller == due, || {
                format!("of {} messages after {}", asked.messages.len(), asked.attempt)
            });
        }
        tried |= kind.means() == Means::Smaller;
        tried &= kind.means() != Means::GoesOn;
    }
    compacted
}

/// After which attempts the user has more to say.
fn answered(prompt: &PlayedPrompt, asked: &[Asked]) -> Vec<usize> {
    let mut mail = Mail::of(prompt);
    let mut more = Vec::new();
    for ((at, asked), number) in asked.iter().enumerate().zip(prompt.asked.clone()) {
        mail.before_request(number);
        let answers = asked.attempt.kind.means() == Means::Done;
        if answers && mail.after_answer(number).is_some() {
            more.push(at);
        }
    }
    more
}

fn against(
    story: &Story,
    prompt: &PlayedPrompt,
    outcome: &PromptOutcome,
    attempts: usize,
    findings: &mut Findings,
) {
    let code = outcome.failure.as_ref().map(Failure::code);
    let retries = &outcome.retries;
    let fits = |retry: &RetrySummary, wait: &Wait| {
        let (least, most) = wait.ms;
        retry.budget == wait.budget
            && retry.code == wait.code
            && (least..=most).contains(&retry.delay_ms)
    };
    let as_foretold = retries.iter().zip(&story.waits).all(|(retry, wait)| fits(retry, wait));
    findings.holds(WAITS, as_foretold && retries.len() <= story.waits.len(), || {
        format!("{retries:?} instead of {:?}", story.waits)
    });
    let stopped = (prompt.aborted_ms.is_some() && outcome.outcome == Outcome::Aborted)
        || (prompt.full && code == Some(ErrorCode::Internal));
    if stopped {
        findings.holds(ATTEMPTS, attempts <= story.attempts, || {
            format!("{attempts} requests instead of {} at most", story.attempts)
        });
        return;
    }
    findings.equal(FORETOLD, code, story.failure);
    findings.equal(ATTEMPTS, attempts, story.attempts);
    let steps =
        prompt.events.iter().filter(|(_, event)| matches!(event.kind, EventKind::TurnStart));
    findings.equal(ATTEMPTS, u32::try_from(steps.count()).ok(), Some(story.steps));
    findings.equal(WAITS, retries.len(), story.waits.len());
}

fn retries(prompt: &PlayedPrompt, outcome: &PromptOutcome, findings: &mut Findings) {
    let mut told = prompt.events.iter().filter_map(|(_, event)| match &event.kind {
        EventKind::RetryScheduled { retry_id, attempt, budget, delay_ms, failure, .. } => {
            Some((retry_id, *attempt, *budget, *delay_ms, failure))
        }
        _ => None,
    });
    // One that could not be noted any more is listed, and not told.
    let untold = usize::from(prompt.full);
    let certain = outcome.retries.len().saturating_sub(untold);
    for (at, listed) in outcome.retries.iter().enumerate() {
        let told = told.next();
        let same = told.is_some_and(|(retry_id, attempt, budget, delay_ms, failure)| {
            *retry_id == listed.retry_id
                && attempt == listed.attempt
                && budget == listed.budget
                && delay_ms == listed.delay_ms
                && failure.code() == listed.code
                && failure.details().retry_attempt == Some(attempt)
        });
        findings
            .holds(HISTORY, same || at >= certain, || format!("{listed:?} instead of {told:?}"));
    }
    findings.holds(HISTORY, told.next().is_none(), || "a retry is not listed".into());
}

/// Walks the steps: how many attempts, how long they wait, when they begin.
fn waits(prompt: &PlayedPrompt, asked: &[Asked], policy: Policy, findings: &mut Findings) {
    let mut first_of_step = 0;
    let mut last_of_step = 0;
    let mut waited = 0;
    let mut ids: Vec<&str> = Vec::new();
    for (at, event) in &prompt.events {
        match &event.kind {
            EventKind::TurnStart => {
                first_of_step = last_of_step;
                waited = 0;
                ids.clear();
            }
            EventKind::RetryScheduled { retry_id, attempt, delay_ms, .. } => {
                waited += delay_ms;
                ids.push(retry_id);
                let next = first_of_step + usize::try_from(*attempt).unwrap_or(usize::MAX);
                if let Some(asked) = asked.get(next) {
                    // Waits are told in whole milliseconds, and timers round up.
                    let (seen, due) = (asked.at_ms, at + delay_ms);
                    findings.holds(ON_TIME, seen == due || seen == due + 1, || {
                        format!("at {seen} ms instead of {due} ms")
                    });
                }
                if let Some(failed) = next.checked_sub(1).and_then(|at| asked.get(at)) {
                    let fresh = asked.get(next).map(|next| next.fresh_connection);
                    let due = broke_the_connection(failed.attempt.kind);
                    findings.holds(FRESH, fresh.is_none_or(|fresh| fresh == due), || {
                        format!("{fresh:?} after {}", failed.attempt)
                    });
                }
                findings.holds(WAITS, ids.iter().all(|id| *id == retry_id), || {
                    format!("the retries of one step are called {ids:?}")
                });
            }
            EventKind::TurnEnd => {
                let retries = ids.len();
                last_of_step = first_of_step + retries + 1;
                let attempts = u32::try_from(retries + 1).unwrap_or(u32::MAX);
                if policy == Policy::Always {
                    continue;
                }
                findings.holds(BOUND, attempts <= MAX_ATTEMPTS, || format!("{attempts} attempts"));
                findings.holds(WAIT_BOUND, waited <= MAX_WAIT_MS, || format!("{waited} ms"));
            }
            EventKind::Error { failure, .. } => {
                let own = last_of_step.saturating_sub(first_of_step);
                let told = failure.details().retry_attempt;
                let fits = told.is_none_or(|told| usize::try_from(told).ok() == Some(own));
                findings.holds(NUMBERED, fits, || format!("{told:?} instead of {own}"));
            }
            _ => {}
        }
    }
}

/// Whether the connection of this attempt cannot be trusted any more.
const fn broke_the_connection(kind: Kind) -> bool {
    matches!(
        kind.means(),
        Means::Again(ErrorCode::NetworkError | ErrorCode::Timeout | ErrorCode::StreamFailed, _)
            | Means::Final(ErrorCode::NetworkError)
    )
}
