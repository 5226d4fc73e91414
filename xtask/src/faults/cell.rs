//! What is played: a fault, when it strikes, in which kind of step, and with which
//! words.

use std::{fmt, time::Duration};

use fastrand::Rng;
use serde_json::json;
use turnbuckle_faults::{
    Api, Needs, Script, ScriptError, Step,
    catalogue::{self, Entry, Recovery},
};

use super::{
    dialect::Dialect,
    stage::{NOTES, Part, Until},
    words,
};

/// Faults of so many bytes that one situation of each has to do, and few at once.
pub(super) const HEAVY: &[&str] =
    &["huge_line", "large_line", "answer_too_large", "error_body_huge", "comment_flood"];

/// Faults whose verdict is that of a text: of a call in the same disorder nobody can
/// know what it calls, so it is told anew.
pub(super) const OF_TEXTS: &[&str] = &["delta_before_start"];

/// One fault, in one situation.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) entry: &'static Entry,
    pub(crate) when: When,
    pub(crate) part: Part,
}

/// When the fault strikes, and what is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct When {
    pub(crate) place: Place,
    pub(crate) strikes: Strikes,
    pub(crate) turn: Turn,
}

/// The step that is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The first one.
    First,
    /// The one after a tool ran.
    AfterTool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strikes {
    /// The first attempt of the step; the next one is whole.
    Once,
    /// Every attempt.
    Always,
}

/// What the step that is struck is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It answers with text.
    Text,
    /// It calls a tool that changes a file.
    Tool,
}

impl When {
    /// Every situation, in the order of the columns.
    pub(crate) const ALL: &[Self] = &[
        Self::new(Place::First, Strikes::Once, Turn::Text),
        Self::new(Place::First, Strikes::Once, Turn::Tool),
        Self::new(Place::First, Strikes::Always, Turn::Text),
        Self::new(Place::First, Strikes::Always, Turn::Tool),
        Self::new(Place::AfterTool, Strikes::Once, Turn::Text),
        Self::new(Place::AfterTool, Strikes::Once, Turn::Tool),
        Self::new(Place::AfterTool, Strikes::Always, Turn::Text),
        Self::new(Place::AfterTool, Strikes::Always, Turn::Tool),
    ];

    const fn new(place: Place, strikes: Strikes, turn: Turn) -> Self {
        Self { place, strikes, turn }
    }

    /// Whether this situation differs, for this fault, from the others.
    fn tells_more(self, entry: &Entry) -> bool {
        let own = entry.behaviour();
        let in_handshake = entry.needs() == Needs::Tls && !own.carries_content();
        let first = self.place == Place::First;
        let text = self.turn == Turn::Text;
        let always = self.strikes == Strikes::Always;
        if HEAVY.contains(&entry.name) && (!first || !text) {
            return false;
        }
        if OF_TEXTS.contains(&entry.name) && !text {
            return false;
        }
        let fitting = match (own.says(), own.calls()) {
            (false, _) => true,
            // What it says is a part of the fault.
            (true, calls) => text == (calls == 0),
        };
        let carries = own.carries_content() && !own.says();
        if entry.variant_of.is_some() {
            // One cell is enough: its fault is played in all of them.
            let once = entry.expected.recovery == Recovery::Recoverable;
            return fitting && first && (text || own.calls() > 0) && always != once;
        }
        fitting
            && match entry.expected.recovery {
                // Whether the step before left a connection to be used again is chance.
                _ if in_handshake && !first => false,
                // A last failure ends the prompt, however often it would come.
                Recovery::Final => always && (text || carries || own.calls() > 0),
                Recovery::Recoverable => true,
                // Nothing is lost, so there is nothing to strike twice. What is sent next
                // on a connection that was given up is chance: `chaos` plays that.
                _ => always && (text || own.calls() > 0 || carries && !own.hangs_up()),
            }
    }
}

impl fmt::Display for When {
    /// `first once text`: three words, without a space too many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.place {
            Place::First => "first",
            Place::AfterTool => "later",
        };
        let strikes = match self.strikes {
            Strikes::Once => "once",
            Strikes::Always => "always",
        };
        let turn = match self.turn {
            Turn::Text => "text",
            Turn::Tool => "tool",
        };
        write!(f, "{place} {strikes} {turn}")
    }
}

impl Cell {
    pub(crate) fn is_heavy(&self) -> bool {
        HEAVY.contains(&self.entry.name)
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.part.dialect
    }

    /// Attempts of the prompt as the catalogue documents them.
    pub(crate) fn documented_attempts(&self) -> u32 {
        let expected = self.entry.expected;
        let before = u32::from(self.when.place == Place::AfterTool);
        let calls_itself = self.entry.behaviour().calls() > 0;
        let harmless = self.entry.expected.recovery == Recovery::None;
        let goes_on = self.when.turn == Turn::Tool && (harmless || !calls_itself);
        let after = u32::from(goes_on && self.completes());
        let struck = match self.when.strikes {
            Strikes::Once => expected.attempts_if_once,
            Strikes::Always => expected.attempts_if_always,
        };
        before + struck + after
    }

    /// Whether the prompt is to end well.
    pub(crate) fn completes(&self) -> bool {
        completes(self.entry, self.when)
    }
}

fn completes(entry: &Entry, when: When) -> bool {
    when.strikes == Strikes::Once || entry.expected.recovery == Recovery::None
}

/// Which cells are meant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<'a> {
    /// One fault alone.
    pub(crate) only: Option<&'a str>,
    pub(crate) dialect: Option<Dialect>,
    /// Each fault once in each dialect, in turns over its situations.
    pub(crate) thin: bool,
    pub(crate) seed: u64,
}

/// The cells that are meant, and why some of them cannot be: a behaviour that needs
/// other content than this matrix gives it has no script.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) cells: Vec<Cell>,
    pub(crate) without_script: Vec<String>,
}

/// Every fault, and then every row of one.
fn entries() -> impl Iterator<Item = &'static Entry> {
    catalogue::all().iter().chain(catalogue::variants())
}

pub(crate) fn cells(choice: Choice<'_>) -> Cells {
    let (mut cells, mut without_script) = (Vec::new(), Vec::new());
    for (turn, dialect) in Dialect::ALL.iter().copied().enumerate() {
        if choice.dialect.is_some_and(|one| one != dialect) {
            continue;
        }
        for (number, entry) in entries().enumerate() {
            let meant = |name| entry.name == name || entry.variant_of == Some(name);
            if !choice.only.is_none_or(meant) || !dialect.knows(entry) {
                continue;
            }
            // Of its own, so that a cell played alone is played the same.
            let own = choice.seed.wrapping_mul(1000).wrapping_add(number as u64);
            let whens = When::ALL.iter().copied().filter(|when| when.tells_more(entry));
            let mut made = Vec::new();
            for when in whens {
                match cell(dialect, entry, when, &mut Rng::with_seed(own)) {
                    Ok(cell) => made.extend(cell),
                    Err(why) => without_script.push(format!(
                        "{} {}, {when}: {why}",
                        dialect.name(),
                        entry.name
                    )),
                }
            }
            if choice.thin && !made.is_empty() {
                made = vec![made.swap_remove((turn + number) % made.len())];
            }
            cells.extend(made);
        }
    }
    Cells { cells, without_script }
}

/// The cell; none if the fault is one of texts, or of calls, and this is the other.
fn cell(
    dialect: Dialect,
    entry: &'static Entry,
    when: When,
    chance: &mut Rng,
) -> Result<Option<Cell>, ScriptError> {
    let (kept, lost) = (words::kept(chance), words::lost(chance));
    let wish_ms = chance.u64(100..3000);
    let at_event = chance.usize(1..=lost.split(' ').count());
    let key = format!("sk-canary-{:016x}", chance.u64(..));

    let harmless = entry.expected.recovery == Recovery::None;
    let calls_itself = entry.behaviour().calls() > 0;
    let write = |path: &str, content: &str| json!({"path": path, "content": content});
    let said = |step: Step, file: &str, text: &str| match when.turn {
        Turn::Tool if !calls_itself => step.tool_call("Write", &write(file, text)),
        _ => step.text(text),
    };
    let whole = || Step::named("whole");
    let mut steps = Vec::new();
    if when.place == Place::AfterTool {
        steps.push(whole()?.tool_call("Read", &json!({"path": NOTES.0})));
    }
    let (file, text) = if harmless { ("kept.txt", &kept) } else { ("lost.txt", &lost) };
    let struck = set(entry, wish_ms, |step| said(step, file, text));
    if ![dialect.api(), Api::Chat].into_iter().all(|api| struck.strikes_in(api)) {
        return Ok(None);
    }
    steps.push(at(struck, at_event)?);
    let completes = completes(entry, when);
    if when.strikes == Strikes::Once {
        steps.push(said(whole()?, "kept.txt", &kept));
    }
    if when.turn == Turn::Tool && completes && (harmless || !calls_itself) {
        let last = if harmless && !calls_itself {
            set(entry, wish_ms, |step| step.text(&kept))
        } else {
            whole()?.text(&kept)
        };
        let fits = [dialect.api(), Api::Chat].into_iter().all(|api| last.strikes_in(api));
        steps.push(if fits { last } else { whole()?.text(&kept) });
    }
    let until = Until::Prompts(if completes { 2 } else { 1 });
    let part = Part { dialect, script: Script::new(steps)?, key, until };
    Ok(Some(Cell { entry, when, part }))
}

/// The step of a fault, as far as it takes what is set.
fn set(entry: &'static Entry, wish_ms: u64, said: impl FnOnce(Step) -> Step) -> Step {
    let mut step = Step::from_entry(entry);
    // A row has its own wait, and its own way to spell it.
    if entry.wait_ms.is_none()
        && step.asked_wait().is_some()
        && entry.expected.recovery == Recovery::Recoverable
    {
        step = step.retry_after(Duration::from_millis(wish_ms));
    }
    let own = entry.behaviour();
    if own.carries_content() && !own.says() { said(step) } else { step }
}

/// The step with its fault at this event, or at the last one of the answer before the
/// one that completes it: after that, nothing is wrong any more.
pub(super) fn at(step: Step, event: usize) -> Result<Step, ScriptError> {
    if !step.behaviour().names_an_event() {
        return Ok(step);
    }
    let exists = |event| Script::new(vec![step.clone().at_event(event)]);
    // Nearly always the first one that is tried is there.
    let last = (1..=event).rev().find(|event| exists(event + 1).is_ok());
    match last {
        Some(event) => Ok(step.at_event(event)),
        None => exists(1).map(|_| step.at_event(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(seed: u64) -> Vec<Cell> {
        let choice = Choice { only: None, dialect: Some(Dialect::Chat), thin: false, seed };
        cells(choice).cells
    }

    #[test]
    fn any_seed_gives_every_cell_a_script() {
        for seed in [7, u64::MAX] {
            let choice = Choice { only: None, dialect: None, thin: false, seed };
            let Cells { cells, without_script } = cells(choice);
            assert!(cells.len() > 8 * catalogue::all().len(), "{seed}: {}", cells.len());
            assert_eq!(without_script, [""; 0], "{seed}");
        }
    }

    #[test]
    fn the_same_seed_plays_the_same_and_another_does_not() {
        let scripts = |seed| all(seed).into_iter().map(|cell| cell.part.script).collect::<Vec<_>>();
        assert_eq!(scripts(7), scripts(7));
        assert_ne!(scripts(7), scripts(8));
    }

    #[test]
    fn a_fault_played_alone_is_played_as_among_the_others() {
        let choice =
            Choice { only: Some("stall"), dialect: Some(Dialect::Chat), thin: false, seed: 3 };
        let alone = cells(choice).cells;
        let among = all(3);
        let among: Vec<_> = among.iter().filter(|cell| cell.entry.name == "stall").collect();
        assert_eq!(alone.len(), When::ALL.len());
        let same =
            |(a, b): (&Cell, &Cell)| a.part.script == b.part.script && a.part.key == b.part.key;
        assert!(alone.iter().zip(among).all(same));
    }

    #[test]
    fn the_thin_matrix_has_each_fault_once_in_each_dialect() {
        let choice = Choice { only: None, dialect: None, thin: true, seed: 1 };
        let thin = cells(choice).cells;
        let due: usize = Dialect::ALL
            .iter()
            .map(|dialect| entries().filter(|entry| dialect.knows(entry)).count())
            .sum();
        assert_eq!(thin.len(), due);
        let situations = When::ALL.iter().filter(|when| thin.iter().any(|c| c.when == **when));
        assert_eq!(situations.count(), When::ALL.len(), "over the dialects, each situation");
    }
}
