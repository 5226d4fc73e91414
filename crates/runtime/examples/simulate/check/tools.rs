//! What the tools saw: each call once, changes one by one and known before.

use std::collections::BTreeMap;

use super::Findings;
use crate::{
    kind::Kind,
    play::{Played, PlayedPrompt},
    script::Act,
    stage::call_mark,
};

const ONCE: &str = "each tool call ran at most once, over crash and resume";
const KNOWN: &str = "the journal knew, synced, of each change before it began";
const IN_ORDER: &str = "changes run one by one, in call order";
const NOT_AFTER: &str = "no tool begins after a cancellation";
const WHOLE: &str = "calls run only from a complete message, and only those that may";
const ALL: &str = "a prompt that goes on ran every call that may run";

pub(super) fn check(played: &Played, findings: &mut Findings) {
    let mut ran: BTreeMap<&str, u32> = BTreeMap::new();
    for run in &played.tool_runs {
        let times = ran.entry(&run.what).or_default();
        *times += 1;
        findings.equal(ONCE, *times, 1);
        findings.holds(NOT_AFTER, !run.after_abort, || run.what.clone());
        if run.act.changes() {
            findings.holds(KNOWN, run.noted, || run.what.clone());
            findings.equal(IN_ORDER, run.beside, 0);
        }
    }
    for prompt in &played.prompts {
        calls(played, prompt, findings);
    }
}

fn calls(played: &Played, prompt: &PlayedPrompt, findings: &mut Findings) {
    let runs = played.tool_runs.get(prompt.tool_runs.clone()).unwrap_or_default();
    let asked = played.asked.get(prompt.asked.clone()).unwrap_or_default();
    let mut due: Vec<(String, Act)> = Vec::new();
    for (number, asked) in prompt.asked.clone().zip(asked) {
        if asked.finished && asked.attempt.kind == Kind::Tools {
            let calls = asked.attempt.calls.iter().enumerate();
            let may_run = calls.filter(|(_, act)| act.is_run());
            due.extend(may_run.map(|(at, act)| (call_mark(number, at), *act)));
        }
    }
    for run in runs {
        let may = due.iter().any(|(what, act)| *what == run.what && *act == run.act);
        findings.holds(WHOLE, may, || format!("{} {}", run.act.name(), run.what));
    }
    let changes = |what: &str| {
        let change = runs.iter().filter(|run| run.act.changes());
        change.map(|run| run.what.as_str()).position(|other| other == what)
    };
    let order: Vec<_> = due.iter().filter_map(|(what, _)| changes(what)).collect();
    findings.holds(IN_ORDER, order.is_sorted(), || format!("{order:?}"));
    if prompt.outcome.is_some() && prompt.aborted_ms.is_none() && !prompt.full {
        for (what, _) in &due {
            let ran = runs.iter().any(|run| run.what == *what);
            findings.holds(ALL, ran, || format!("{what} did not run"));
        }
    }
}
