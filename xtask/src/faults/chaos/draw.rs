//! A script by chance: up to eight steps, each a fault or a whole answer, with texts and
//! calls, on a server that can play them all.

use fastrand::Rng;
use serde_json::json;
use turnbuckle_faults::{
    Api, Needs, Script, ScriptError, Step,
    catalogue::{self, Entry, Recovery},
};

use super::super::{
    cell::{self, HEAVY, OF_TEXTS},
    dialect::Dialect,
    stage::{NOTES, Part, Until},
    words,
};

/// The most steps of a script, the answer that ends it among them.
pub(super) const MOST_STEPS: usize = 8;

/// The same call with the same result ends a prompt at the fifth time. So often the
/// notes are read at most.
const MOST_READS: usize = 3;

/// Faults whose verdict is that of plain HTTP: under TLS no proxy on the way could say it.
const OF_PLAIN_HTTP: &[&str] = &["proxy_password"];

/// One in so many of the heavy faults, and of those that wait for a clock, is played:
/// else they would take nearly all of the time.
const SELDOM: usize = 20;
const NOT_OFTEN: usize = 3;

/// What the server of a script speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ground {
    Plain,
    Tls,
    Http2,
}

impl Ground {
    fn drawn(chance: &mut Rng) -> Self {
        match chance.u8(0..10) {
            0 | 1 => Self::Tls,
            2 | 3 => Self::Http2,
            _ => Self::Plain,
        }
    }

    fn plays(self, needs: Needs) -> bool {
        match needs {
            Needs::Plain => true,
            Needs::Http1 => self != Self::Http2,
            Needs::Tls => self != Self::Plain,
            Needs::Http2 => self == Self::Http2,
            _ => false,
        }
    }
}

/// The script of this number, of a run with this seed. The same numbers give the same
/// script, whatever else is played.
pub(super) fn part(dialect: Option<Dialect>, seed: u64, number: u64) -> Result<Part, ScriptError> {
    let mut chance = Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(number));
    let any = Dialect::ALL.get(chance.usize(..Dialect::ALL.len())).copied();
    let dialect = dialect.or(any).unwrap_or(Dialect::Chat);
    let ground = Ground::drawn(&mut chance);
    let count = chance.usize(1..=MOST_STEPS);
    let mut steps = Vec::new();
    let mut reads = 0;
    for place in 1..count {
        let entry = entry(dialect, ground, &mut chance);
        let step = step(dialect, entry, place, &mut reads, &mut chance)?;
        steps.extend(step);
    }
    // The last one repeats, so it must answer.
    steps.push(Step::named("whole")?.text(text(count, &words::kept(&mut chance))));
    let key = format!("sk-canary-{:016x}", chance.u64(..));
    Ok(Part { dialect, script: Script::new(steps)?, key, until: Until::Played })
}

fn entry(dialect: Dialect, ground: Ground, chance: &mut Rng) -> Option<&'static Entry> {
    if chance.u8(0..10) < 3 {
        return catalogue::find("whole");
    }
    // Rows are one mechanism with their fault, so a fault comes more often than each.
    let table = if chance.u8(0..8) == 0 { catalogue::variants() } else { catalogue::all() };
    let fits = |entry: &&Entry| {
        let plain = ground == Ground::Plain || !OF_PLAIN_HTTP.contains(&entry.name);
        dialect.knows(entry) && ground.plays(entry.needs()) && plain
    };
    let entries: Vec<&'static Entry> = table.iter().filter(fits).collect();
    let entry = entries.get(chance.usize(..entries.len().max(1))).copied()?;
    let one_in = if HEAVY.contains(&entry.name) {
        SELDOM
    } else if entry.expected.code == Some("TIMEOUT") {
        NOT_OFTEN
    } else {
        1
    };
    if chance.usize(..one_in) == 0 { Some(entry) } else { catalogue::find("server_error") }
}

/// A step of this fault; none where there is nothing in it for the fault to strike.
fn step(
    dialect: Dialect,
    entry: Option<&'static Entry>,
    place: usize,
    reads: &mut usize,
    chance: &mut Rng,
) -> Result<Option<Step>, ScriptError> {
    let Some(entry) = entry else { return Ok(None) };
    let own = entry.behaviour();
    let harmless = entry.expected.recovery == Recovery::None;
    let mut step = Step::from_entry(entry);
    if own.calls() > 0 {
        *reads += own.calls();
        if *reads > MOST_READS {
            return Ok(None);
        }
    }
    if own.carries_content() && !own.says() {
        let said = if harmless { words::kept(chance) } else { words::lost(chance) };
        let said = text(place, &said);
        let kind = if OF_TEXTS.contains(&entry.name) { 9 } else { chance.u8(0..10) };
        step = match kind {
            0 | 1 => {
                let file = format!("file-{place}.txt");
                step.tool_call("Write", &json!({"path": file, "content": said}))
            }
            2 if *reads < MOST_READS => {
                *reads += 1;
                step.tool_call("Read", &json!({"path": NOTES.0}))
            }
            3 => {
                step.tool_call("Bash", &json!({"command": format!("echo ran-{place} >> ran.txt")}))
            }
            4 => {
                let file = format!("file-{place}.txt");
                let run = json!({"command": format!("echo ran-{place} >> ran.txt")});
                step.text(said.clone())
                    .tool_call("Write", &json!({"path": file, "content": said}))
                    .tool_call("Bash", &run)
            }
            _ => step.text(said.clone()),
        };
        // A fault inside a character wants one of several bytes, which not every call has.
        if Script::new(vec![step.clone()]).is_err() {
            step = Step::from_entry(entry).text(said);
        }
    }
    let strikes = [dialect.api(), Api::Chat].into_iter().all(|api| step.strikes_in(api));
    if !strikes {
        return Ok(None);
    }
    let event = chance.usize(1..24);
    cell::at(step, event).map(Some)
}

/// A text that no other one of the script is a part of.
fn text(place: usize, words: &str) -> String {
    format!("answer-{place}: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_gives_a_script_that_can_be_served_and_the_same_one_again() {
        let mut steps = 0;
        for number in 0..300 {
            let [one, again] = [part(None, 7, number), part(None, 7, number)].map(Result::unwrap);
            assert!(one.script == again.script && one.dialect == again.dialect, "{number}");
            assert!((1..=MOST_STEPS).contains(&one.script.steps().len()));
            let toml = one.script.to_toml().unwrap();
            assert_eq!(Script::parse(&toml).unwrap(), one.script, "{toml}");
            steps += one.script.steps().len();
        }
        assert!(steps > 600, "{steps}");
    }

    #[test]
    fn in_a_run_nearly_every_fault_has_its_turn() {
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..1500 {
            let one = part(None, 7, number).unwrap();
            seen.extend(one.script.steps().iter().filter_map(Step::name));
        }
        let missed: Vec<_> = catalogue::all()
            .iter()
            .filter(|entry| !seen.contains(entry.name))
            .map(|entry| entry.name)
            .collect();
        assert!(missed.len() <= 20, "{missed:?}");
    }
}
