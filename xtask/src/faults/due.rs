//! What a good client makes of a script, by the verdicts of the catalogue and the
//! documented budgets alone. It knows nothing of the runtime, and none of its numbers
//! are read from it.

use std::collections::BTreeMap;

use serde_json::Value;
use turnbuckle_faults::{
    Needs, Script, Step, ToolCall,
    catalogue::{self, Entry, Recovery},
};

use super::stage::Until;

/// More attempts than any script that ends can take.
const ENDLESS: usize = 400;

/// How a session has to go that meets a script.
#[derive(Debug, Clone, Default)]
pub(crate) struct Due {
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) prompts: Vec<Ending>,
    /// Whether it never ends, so that it cannot be judged.
    pub(crate) endless: bool,
}

/// One attempt, in the order of the session.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    /// The prompt and its step, both from 0.
    pub(crate) prompt: usize,
    pub(crate) step: usize,
    /// The step of the script that it meets, from 1; none if it is sent on a
    /// connection that is dead already.
    pub(crate) dealt: Option<usize>,
    /// Whether its handshake fails, so that no request comes of it.
    pub(crate) in_handshake: bool,
    /// Whether it may have been sent on a dead connection.
    pub(crate) may_be_lost: bool,
    pub(crate) fails: Option<Failing>,
    pub(crate) retry: Option<Retry>,
    /// The budget that would pay for a retry, and the wait that the server asks for.
    budget: Option<&'static str>,
    wish_ms: Option<(u64, u64)>,
    /// What it says if it is whole, else what it was about to say.
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failing {
    pub(crate) code: &'static str,
    pub(crate) phase: &'static str,
}

/// A retry that has to follow, and the shortest and the longest wait before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) budget: &'static str,
    pub(crate) wait_ms: (u64, u64),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Value,
    /// What the model reads in place of a result, where it cannot be run.
    pub(crate) refused: Option<&'static str>,
}

/// How a prompt has to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With this text.
    Completed(String),
    Failed(Failing),
}

impl Due {
    /// What is said and kept: the whole answers before this attempt, oldest first.
    pub(crate) fn kept_before(&self, attempt: usize) -> impl Iterator<Item = &Attempt> {
        let before = self.attempts.get(..attempt).unwrap_or_default();
        before.iter().filter(|attempt| attempt.fails.is_none())
    }

    pub(crate) fn of_prompt(&self, prompt: usize) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(move |attempt| attempt.prompt == prompt)
    }

    /// The attempts that meet a step of the script.
    pub(crate) fn dealt(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.dealt.is_some()).count()
    }
}

/// Every way in which `lost` requests can be sent on connections that the server has
/// given up: chance decides which, and each costs a setup retry.
pub(crate) fn ways(script: &Script, until: Until, lost: usize) -> Vec<Due> {
    let mut ways = Vec::new();
    explore(script, until, lost, &mut Vec::new(), &mut ways);
    if ways.is_empty() {
        ways.push(foretell(script, until, &[]));
    }
    ways
}

fn explore(
    script: &Script,
    until: Until,
    lost: usize,
    chosen: &mut Vec<usize>,
    ways: &mut Vec<Due>,
) {
    let due = foretell(script, until, chosen);
    if lost == 0 {
        ways.push(due);
        return;
    }
    let after = chosen.last().map_or(0, |last| last + 1);
    let may = |(at, attempt): (usize, &Attempt)| (at >= after && attempt.may_be_lost).then_some(at);
    for at in due.attempts.iter().enumerate().filter_map(may).collect::<Vec<_>>() {
        chosen.push(at);
        explore(script, until, lost - 1, chosen, ways);
        chosen.pop();
    }
}

/// How the session goes if these attempts, by their place, are sent on dead
/// connections.
pub(crate) fn foretell(script: &Script, until: Until, lost: &[usize]) -> Due {
    let mut walk = Walk { script, dealt: 0, before: None, due: Due::default() };
    let enough = |walk: &Walk<'_>| match until {
        Until::Prompts(prompts) => walk.due.prompts.len() >= prompts,
        // One more prompt after that shows what is remembered.
        Until::Played => walk.dealt > script.steps().len(),
    };
    while !enough(&walk) && !walk.due.endless {
        walk.prompt(lost);
    }
    walk.due
}

struct Walk<'a> {
    script: &'a Script,
    dealt: usize,
    /// What was dealt last.
    before: Option<&'static Entry>,
    due: Due,
}

impl Walk<'_> {
    fn prompt(&mut self, lost: &[usize]) {
        let prompt = self.due.prompts.len();
        for step in 0.. {
            let mut purse = Purse::default();
            let whole = loop {
                if self.due.attempts.len() >= ENDLESS {
                    self.due.endless = true;
                    self.due.prompts.push(Ending::Completed(String::new()));
                    return;
                }
                let mut attempt = self.attempt(prompt, step, lost);
                let Some(failing) = attempt.fails else { break attempt };
                attempt.retry = attempt.budget.and_then(|b| purse.pay(b, attempt.wish_ms));
                let again = attempt.retry.is_some();
                self.due.attempts.push(attempt);
                if !again {
                    self.due.prompts.push(Ending::Failed(failing));
                    return;
                }
            };
            let (text, goes_on) = (whole.text.clone(), !whole.calls.is_empty());
            self.due.attempts.push(whole);
            if !goes_on {
                self.due.prompts.push(Ending::Completed(text));
                return;
            }
        }
    }

    /// The next attempt; whether a retry follows is still to be found out.
    fn attempt(&mut self, prompt: usize, step: usize, lost: &[usize]) -> Attempt {
        let steps = self.script.steps();
        let next = (self.dealt + 1).min(steps.len());
        let beat = steps.get(next - 1);
        let entry = beat.and_then(|step| catalogue::find(step.name()?));
        let in_handshake = entry.is_some_and(strikes_in_handshake);
        let place = self.due.attempts.len();
        let gave_up = self.before.is_some_and(gives_up_connections);
        let mut attempt = Attempt {
            prompt,
            step,
            dealt: Some(next),
            in_handshake,
            may_be_lost: gave_up || in_handshake && self.before.is_some(),
            fails: None,
            retry: None,
            budget: None,
            wish_ms: None,
            text: String::new(),
            calls: Vec::new(),
        };
        if attempt.may_be_lost && lost.contains(&place) {
            let failing = Failing { code: "NETWORK_ERROR", phase: "request" };
            attempt.dealt = None;
            attempt.in_handshake = false;
            attempt.fails = Some(failing);
            attempt.budget = Some("setup");
            // The next one gets a fresh connection.
            self.before = None;
            return attempt;
        }
        self.dealt += 1;
        self.before = entry;
        let (Some(beat), Some(entry)) = (beat, entry) else { return attempt };
        if entry.behaviour().carries_content() {
            attempt.text = beat.answer();
            let call = |call: &ToolCall| Call {
                name: call.name().to_owned(),
                arguments: serde_json::from_str(call.arguments()).unwrap_or(Value::Null),
                refused: entry.expected.tool,
            };
            attempt.calls = beat.answer_calls().iter().map(call).collect();
        }
        let expected = entry.expected;
        let (Some(code), Some(phase)) = (expected.code, expected.phase) else {
            return attempt;
        };
        attempt.fails = Some(Failing { code, phase });
        attempt.budget = expected.budget.filter(|_| expected.recovery == Recovery::Recoverable);
        attempt.wish_ms = wish(entry, beat);
        attempt
    }
}

pub(crate) fn strikes_in_handshake(entry: &Entry) -> bool {
    entry.needs() == Needs::Tls && !entry.behaviour().carries_content()
}

/// Whether its whole answers leave connections behind that are of no use.
pub(crate) fn gives_up_connections(entry: &Entry) -> bool {
    entry.expected.recovery == Recovery::None && entry.behaviour().hangs_up()
}

/// The shortest and the longest wait that the step asks for.
fn wish(entry: &Entry, step: &Step) -> Option<(u64, u64)> {
    if entry.wait_ms.is_some() {
        return entry.wait_ms;
    }
    let wish = u64::try_from(step.asked_wait()?.as_millis()).ok()?;
    Some((wish, wish))
}

/// What one step has spent, by budget.
#[derive(Debug, Default)]
struct Purse(BTreeMap<&'static str, u32>);

impl Purse {
    /// Pays for a retry, if the budget has one left, and tells how it waits.
    fn pay(&mut self, budget: &'static str, wish_ms: Option<(u64, u64)>) -> Option<Retry> {
        let spent = self.0.entry(budget).or_default();
        if *spent >= pays(budget) {
            return None;
        }
        let wait_ms = documented_wait(budget, *spent, wish_ms);
        *spent += 1;
        Some(Retry { budget, wait_ms })
    }
}

/// How many retries of one step a budget pays for. Written down here again on
/// purpose, as are the waits: a changed policy has to be noticed.
fn pays(budget: &str) -> u32 {
    match budget {
        "capacity" => 5,
        _ => 1,
    }
}

/// The shortest and the longest wait in milliseconds before a retry of a budget of
/// which `spent` are spent.
pub(crate) fn documented_wait(budget: &str, spent: u32, wish_ms: Option<(u64, u64)>) -> (u64, u64) {
    const LONGEST: u64 = 30_000;
    match (budget, wish_ms) {
        ("stream", _) => (750, 750),
        ("silent" | "overflow", _) => (0, 0),
        (_, Some(wish)) => wish,
        ("setup", None) => (500, 625),
        (_, None) => {
            let least = 2000_u64.saturating_mul(2_u64.saturating_pow(spent));
            (least.min(LONGEST), (least + least / 4).min(LONGEST))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn named(name: &str) -> Step {
        Step::named(name).unwrap()
    }

    fn due(steps: Vec<Step>) -> Due {
        foretell(&Script::new(steps).unwrap(), Until::Played, &[])
    }

    #[test]
    fn the_documented_waits_are_those_of_the_design() {
        assert_eq!(documented_wait("stream", 0, Some((9, 9))), (750, 750));
        assert_eq!(documented_wait("setup", 0, None), (500, 625));
        assert_eq!(documented_wait("capacity", 0, None), (2000, 2500));
        assert_eq!(documented_wait("capacity", 3, None), (16_000, 20_000));
        assert_eq!(documented_wait("capacity", 4, None), (30_000, 30_000));
        assert_eq!(documented_wait("capacity", 4, Some((1234, 1234))), (1234, 1234));
        assert_eq!(documented_wait("silent", 0, None), (0, 0));
    }

    #[test]
    fn a_step_pays_each_budget_once_and_the_next_step_has_its_own() {
        let read = named("whole").tool_call("Read", &json!({"path": "a"}));
        let due = due(vec![
            named("stall"),
            named("server_error"),
            read,
            named("stall"),
            named("stall"),
            named("whole").text("ok"),
        ]);
        let stalled = Failing { code: "TIMEOUT", phase: "stream" };
        let done = Ending::Completed("ok".to_owned());
        assert_eq!(due.prompts, [Ending::Failed(stalled), done.clone(), done]);
        let places: Vec<_> = due.attempts.iter().map(|a| (a.prompt, a.step)).collect();
        assert_eq!(
            places,
            [(0, 0), (0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (2, 0)],
            "one more prompt shows what is remembered"
        );
        let budgets: Vec<_> = due.attempts.iter().map(|a| a.retry.map(|r| r.budget)).collect();
        assert_eq!(
            budgets,
            [Some("stream"), Some("setup"), None, Some("stream"), None, None, None]
        );
    }

    #[test]
    fn a_request_on_a_dead_connection_is_lost_in_one_way_or_another() {
        let script = Script::new(vec![
            named("close_after_answer").text("one"),
            named("close_after_answer").text("two"),
        ]);
        let script = script.unwrap();
        let until = Until::Prompts(3);
        assert_eq!(ways(&script, until, 0).len(), 1);
        let lost: Vec<usize> = ways(&script, until, 1)
            .iter()
            .filter_map(|due| due.attempts.iter().position(|attempt| attempt.dealt.is_none()))
            .collect();
        assert_eq!(lost, [1, 2]);
    }

    #[test]
    fn a_script_that_calls_tools_for_ever_is_known_not_to_end() {
        assert!(due(vec![named("whole").tool_call("Read", &json!({"path": "a"}))]).endless);
    }
}
