//! The smallest script that still breaks the same promise.

use crate::{
    check::{Broken, Findings, check},
    play::Theatre,
    script::{Policy, Script},
};

/// What a script breaks.
pub(crate) fn broken_by(theatre: &Theatre, script: &Script) -> Vec<Broken> {
    let mut findings = Findings::default();
    check(&theatre.play(script), &mut findings);
    findings.broken
}

/// Takes away whatever is not needed to break the first of these promises.
pub(crate) fn shrink(theatre: &Theatre, script: &Script, broken: &[Broken]) -> Script {
    let Some(promise) = broken.first().map(|broken| broken.promise) else { return script.clone() };
    let fails =
        |script: &Script| broken_by(theatre, script).iter().any(|broken| broken.promise == promise);
    let mut smallest = script.clone();
    while let Some(smaller) = smaller(&smallest).into_iter().find(&fails) {
        smallest = smaller;
    }
    smallest
}

/// Every script that is one thing shorter, those that lack most first.
fn smaller(script: &Script) -> Vec<Script> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Script)| {
        let mut smaller = script.clone();
        change(&mut smaller);
        if smaller != *script {
            all.push(smaller);
        }
    };
    if script.prompts.len() > 1 {
        for at in 0..script.prompts.len() {
            with(&|script| drop(script.prompts.remove(at)));
        }
    }
    with(&|script| script.crash = None);
    with(&|script| script.policy = Policy::Default);
    for (prompt, played) in script.prompts.iter().enumerate() {
        for at in 0..played.attempts.len() {
            with(&|script| {
                if let Some(prompt) = script.prompts.get_mut(prompt) {
                    drop(prompt.attempts.remove(at));
                }
            });
        }
        for at in 0..played.said.len() {
            with(&|script| {
                if let Some(prompt) = script.prompts.get_mut(prompt) {
                    let _ = prompt.said.remove(at);
                }
            });
        }
        with(&|script| {
            if let Some(prompt) = script.prompts.get_mut(prompt) {
                (prompt.abort_ms, prompt.kill_ms, prompt.goes_on) = (None, None, false);
            }
        });
        for (at, attempt) in played.attempts.iter().enumerate() {
            if attempt.calls.len() < 2 {
                continue;
            }
            for call in 0..attempt.calls.len() {
                with(&|script| {
                    let prompt = script.prompts.get_mut(prompt);
                    if let Some(attempt) = prompt.and_then(|prompt| prompt.attempts.get_mut(at)) {
                        let _ = attempt.calls.remove(call);
                    }
                });
            }
        }
    }
    all
}
