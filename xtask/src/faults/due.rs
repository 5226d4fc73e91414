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
    /// Steps that were dealt to connections no attempt waited for.
    pub(crate) spare: usize,
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
    /// Whether its answer may not be read, because of what its connection said before.
    may_be_unread: bool,
    pub(crate) fails: Option<Failing>,
    pub(crate) retry: Option<Retry>,
    /// The budget that would pay for a retry, and the wait that the server asks for.
    budget: Option<&'static str>,
    wish_ms: Option<(u64, u64)>,
    /// What it says if it is whole, else what it was about to say.
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    /// Everything else that it says: what it thinks, and its calls as they are sent.
    pub(crate) also: String,
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

    /// How many attempts end in this phase because a clock runs out.
    pub(crate) fn expired(&self, phase: &str) -> usize {
        let failing = self.attempts.iter().filter_map(|attempt| attempt.fails);
        failing.filter(|it| it.code == "TIMEOUT" && it.phase == phase).count()
    }

    /// How many steps of the script are dealt.
    pub(crate) fn dealt(&self) -> usize {
        self.spare + self.attempts.iter().filter(|attempt| attempt.dealt.is_some()).count()
    }
}

/// What chance has decided, and not the client: which attempts are sent on connections
/// that are dead already, by their place, and which steps that break a handshake meet a
/// connection that the client's pool had opened for later, by their number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chance {
    lost: Vec<usize>,
    spare: Vec<usize>,
    /// The attempt whose answer is not read, because the connection has said too much
    /// before it was asked.
    unread: Option<usize>,
}

/// The most connections for later that meet a broken handshake in one session.
const MOST_SPARE: usize = 2;

/// Every way in which a session can have gone that took so many attempts, of which the
/// server dealt steps to so many: first those without, and then those with connections
/// that were opened for later.
pub(crate) fn ways(
    script: &Script,
    until: Until,
    attempts: usize,
    dealt: usize,
) -> impl Iterator<Item = Due> {
    let breaks =
        |step: &Step| step.name().and_then(catalogue::find).is_some_and(strikes_in_handshake);
    let steps = script.steps().iter().enumerate();
    let handshakes: Vec<usize> =
        steps.filter(|(_, step)| breaks(step)).map(|(index, _)| index + 1).collect();
    let most = handshakes.len().min(MOST_SPARE);
    (0..=most).flat_map(move |count| {
        let lost = (attempts + count).saturating_sub(dealt);
        let mut ways = Vec::new();
        for spare in some_of(&handshakes, count) {
            explore(script, until, lost, &mut Chance { spare, ..Chance::default() }, &mut ways);
        }
        if ways.is_empty() && count == 0 {
            ways.push(foretell(script, until, &Chance::default()));
        }
        ways
    })
}

/// Every choice of so many of these.
fn some_of(all: &[usize], count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut choices = Vec::new();
    for (at, first) in all.iter().enumerate() {
        let rest = all.get(at + 1..).unwrap_or_default();
        for mut choice in some_of(rest, count - 1) {
            choice.insert(0, *first);
            choices.push(choice);
        }
    }
    choices
}

fn explore(script: &Script, until: Until, lost: usize, chosen: &mut Chance, ways: &mut Vec<Due>) {
    let due = foretell(script, until, chosen);
    if lost == 0 {
        let places = due.attempts.iter().enumerate();
        let unread: Vec<_> = places.filter_map(|(at, a)| a.may_be_unread.then_some(at)).collect();
        ways.push(due);
        for at in unread {
            chosen.unread = Some(at);
            ways.push(foretell(script, until, chosen));
        }
        chosen.unread = None;
        return;
    }
    let after = chosen.lost.last().map_or(0, |last| last + 1);
    let may = |(at, attempt): (usize, &Attempt)| (at >= after && attempt.may_be_lost).then_some(at);
    for at in due.attempts.iter().enumerate().filter_map(may).collect::<Vec<_>>() {
        chosen.lost.push(at);
        explore(script, until, lost - 1, chosen, ways);
        chosen.lost.pop();
    }
}

/// How the session goes if this is what chance decides.
pub(crate) fn foretell(script: &Script, until: Until, chance: &Chance) -> Due {
    let mut walk = Walk { script, dealt: 0, before: None, gave_up: false, due: Due::default() };
    let enough = |walk: &Walk<'_>| match until {
        Until::Prompts(prompts) => walk.due.prompts.len() >= prompts,
        // One more prompt after that shows what is remembered.
        Until::Played => walk.dealt > script.steps().len(),
    };
    while !enough(&walk) && !walk.due.endless {
        walk.prompt(chance);
    }
    walk.due
}

struct Walk<'a> {
    script: &'a Script,
    dealt: usize,
    /// What was dealt last.
    before: Option<&'static Entry>,
    /// Whether a connection of no use may lie in the client's pool.
    gave_up: bool,
    due: Due,
}

impl<'a> Walk<'a> {
    /// The step that is dealt next: its number, itself, and its fault.
    fn next(&self) -> (usize, Option<&'a Step>, Option<&'static Entry>) {
        let steps = self.script.steps();
        let next = (self.dealt + 1).min(steps.len());
        let beat = steps.get(next - 1);
        (next, beat, beat.and_then(|step| catalogue::find(step.name()?)))
    }

    fn prompt(&mut self, chance: &Chance) {
        let prompt = self.due.prompts.len();
        for step in 0.. {
            let mut purse = Purse::default();
            let whole = loop {
                if self.due.attempts.len() >= ENDLESS {
                    self.due.endless = true;
                    self.due.prompts.push(Ending::Completed(String::new()));
                    return;
                }
                let mut attempt = self.attempt(prompt, step, chance);
                let Some(failing) = attempt.fails else { break attempt };
                attempt.retry = attempt.budget.and_then(|b| purse.pay(b, attempt.wish_ms));
                let again = attempt.retry.is_some();
                if again && attempt.dealt.is_none() {
                    // A retry gets a fresh connection; the next prompt, where nothing paid
                    // for one, may get another that is dead.
                    self.before = None;
                    self.gave_up = false;
                }
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
    fn attempt(&mut self, prompt: usize, step: usize, chance: &Chance) -> Attempt {
        let (_, _, entry) = self.next();
        let stands_before = entry.is_some_and(strikes_in_handshake);
        let place = self.due.attempts.len();
        let mut attempt = Attempt {
            prompt,
            step,
            dealt: None,
            in_handshake: false,
            may_be_lost: self.gave_up || stands_before && self.before.is_some(),
            may_be_unread: !stands_before && self.before.is_some_and(says_too_much),
            fails: None,
            retry: None,
            budget: None,
            wish_ms: None,
            text: String::new(),
            calls: Vec::new(),
            also: String::new(),
        };
        if attempt.may_be_lost && chance.lost.contains(&place) {
            let failing = Failing { code: "NETWORK_ERROR", phase: "request" };
            attempt.fails = Some(failing);
            attempt.budget = Some("setup");
            return attempt;
        }
        while chance.spare.contains(&(self.dealt + 1)) {
            self.dealt += 1;
            self.due.spare += 1;
        }
        let (next, beat, entry) = self.next();
        attempt.dealt = Some(next);
        attempt.in_handshake = entry.is_some_and(strikes_in_handshake);
        self.dealt += 1;
        self.before = entry;
        if attempt.may_be_unread && chance.unread == Some(place) {
            attempt.fails = Some(Failing { code: "NETWORK_ERROR", phase: "request" });
            attempt.budget = Some("setup");
            return attempt;
        }
        self.gave_up |= entry.is_some_and(gives_up_connections);
        let (Some(beat), Some(entry)) = (beat, entry) else { return attempt };
        if entry.behaviour().carries_content() {
            attempt.text = entry.heard.map_or_else(|| beat.answer(), str::to_owned);
            let call = |call: &ToolCall| Call {
                name: call.name().to_owned(),
                arguments: serde_json::from_str(call.arguments()).unwrap_or(Value::Null),
                refused: entry.expected.tool,
            };
            let calls = beat.answer_calls();
            attempt.also = beat.answer_reasoning().unwrap_or_default();
            for call in &calls {
                attempt.also.push(' ');
                attempt.also.push_str(call.arguments());
            }
            attempt.calls = calls.iter().map(call).collect();
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

/// Whether it leaves bytes on its connection that belong to no answer: a client may find
/// them before or after it has sent its next request there.
fn says_too_much(entry: &Entry) -> bool {
    entry.name == "bytes_beyond_length"
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
mod tests;
