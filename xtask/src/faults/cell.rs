//! What is played: a fault, when it strikes, and with which words.

use anyhow::{Context as _, Result};
use fastrand::Rng;
use serde_json::json;
use turnbuckle_faults::{
    Needs, Script, Step,
    catalogue::{self, Entry, Recovery},
};

/// Words of an answer that is kept. Several are wider than a byte a character, so
/// that every text can be cut inside one.
const KEPT: &[&str] = &[
    "kettle", "sang", "before", "noon", "café", "prêt", "harbour", "漢字", "drawn", "slowly",
    "über", "bridges", "🦀", "walked", "home", "while", "naïve", "rivers", "rose",
];

/// Words of an answer that is lost. None of them may be seen again.
const LOST: &[&str] = &[
    "zinc",
    "quorum",
    "vortex",
    "jäger",
    "fjord",
    "œuvre",
    "plinth",
    "кварц",
    "umbra",
    "wyvern",
    "ξenon",
    "gizmo",
    "🐙",
    "tundra",
    "ÿttrium",
];

/// The file that the tool reads, and what is in it.
pub(crate) const NOTES: (&str, &str) = ("notes.txt", "the kettle sang before noon\n");

/// The API that client and server speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Dialect {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini.
    Gemini,
}

impl Dialect {
    pub(crate) const ALL: &[Self] = &[Self::Chat, Self::Responses, Self::Anthropic, Self::Gemini];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// Whether the dialect can show the fault at all.
    fn knows(self, entry: &Entry) -> bool {
        entry.apis.iter().any(|api| api.as_str() == self.name())
    }

    /// The header that carries the key, and what stands before the key in it.
    pub(crate) const fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::Chat | Self::Responses => ("authorization", "Bearer "),
            Self::Anthropic => ("x-api-key", ""),
            Self::Gemini => ("x-goog-api-key", ""),
        }
    }
}

/// One fault, in one situation.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) dialect: Dialect,
    pub(crate) entry: &'static Entry,
    pub(crate) variant: Variant,
    pub(crate) script: Script,
    /// What the whole answer says.
    pub(crate) kept: String,
    /// What a failed attempt was about to say.
    pub(crate) lost: String,
    /// The least and the longest wait in milliseconds that the server asks for.
    pub(crate) wish_ms: Option<(u64, u64)>,
    /// Sent as the key. No host may ever see it.
    pub(crate) key: String,
}

/// When the fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// At the first attempt; the next one is whole.
    Once,
    /// At every attempt.
    Always,
    /// Once, in the step after a tool ran.
    AfterTool,
}

impl Variant {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Always => "always",
            Self::AfterTool => "after tool",
        }
    }
}

impl Cell {
    /// Attempts by the documentation, of the whole prompt.
    pub(crate) const fn attempts(&self) -> usize {
        let expected = self.entry.expected;
        let attempts = match self.variant {
            Variant::Once => expected.attempts_if_once,
            Variant::Always => expected.attempts_if_always,
            Variant::AfterTool => 1 + expected.attempts_if_once,
        };
        attempts as usize
    }

    /// Requests of the prompt: an attempt whose TLS handshake fails makes none.
    pub(crate) fn requests(&self) -> usize {
        match (self.strikes_in_handshake(), self.variant) {
            (false, _) => self.attempts(),
            (true, Variant::Always) => 0,
            (true, Variant::Once | Variant::AfterTool) => self.attempts() - 1,
        }
    }

    pub(crate) fn strikes_in_handshake(&self) -> bool {
        self.entry.needs() == Needs::Tls && !self.entry.behaviour().carries_content()
    }

    /// Whether its whole answers leave connections behind that are of no use.
    pub(crate) fn gives_up_connections(&self) -> bool {
        self.entry.expected.recovery == Recovery::None && self.entry.behaviour().hangs_up()
    }

    /// Attempts before the step in which the fault strikes.
    pub(crate) const fn earlier(&self) -> usize {
        match self.variant {
            Variant::AfterTool => 1,
            Variant::Once | Variant::Always => 0,
        }
    }

    /// Calls that are made and answered.
    pub(crate) fn calls(&self) -> usize {
        match (self.variant, self.entry.behaviour().calls()) {
            (Variant::AfterTool, 0) => 1,
            (_, calls) if self.entry.expected.recovery == Recovery::None => calls,
            _ => 0,
        }
    }

    /// Whether the prompt is to end well.
    pub(crate) fn completes(&self) -> bool {
        self.variant != Variant::Always || self.entry.expected.recovery == Recovery::None
    }

    /// Whether the failed answer's words are known, and may not come back.
    pub(crate) fn loses_words(&self) -> bool {
        self.entry.expected.recovery != Recovery::None && self.entry.behaviour().carries_content()
    }
}

/// Every cell of every fault in every dialect, or of one.
pub(crate) fn cells(only: Option<&str>, dialect: Option<Dialect>, seed: u64) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    let dialects = Dialect::ALL.iter().filter(|known| dialect.is_none_or(|one| one == **known));
    for dialect in dialects {
        for (number, entry) in (0_u64..).zip(catalogue::all().iter().chain(catalogue::variants())) {
            if only.is_some_and(|name| name != entry.name) || !dialect.knows(entry) {
                continue;
            }
            for variant in variants(entry) {
                // Of its own, so that a fault played alone is played the same.
                let mut chance = Rng::with_seed(seed.wrapping_mul(1000).wrapping_add(number));
                let made = cell(*dialect, entry, *variant, &mut chance);
                cells.push(made.with_context(|| format!("cannot script {}", entry.name))?);
            }
        }
    }
    Ok(cells)
}

fn variants(entry: &Entry) -> &'static [Variant] {
    if entry.behaviour().calls() > 0 {
        // The call itself is what came before: a whole one is answered, and then the
        // model is asked again.
        return match entry.expected.recovery {
            Recovery::None => &[Variant::AfterTool],
            Recovery::Recoverable => &[Variant::Once, Variant::Always],
            _ => &[Variant::Always],
        };
    }
    if entry.variant_of.is_some() {
        // One cell is enough: its fault is played in all of them.
        return match entry.expected.recovery {
            Recovery::Recoverable => &[Variant::Once],
            _ => &[Variant::Always],
        };
    }
    match (entry.expected.recovery, entry.expected.phase) {
        (Recovery::Recoverable, Some("stream")) => {
            &[Variant::Once, Variant::Always, Variant::AfterTool]
        }
        (Recovery::Recoverable, _) => &[Variant::Once, Variant::Always],
        _ => &[Variant::Always],
    }
}

fn cell(
    dialect: Dialect,
    entry: &'static Entry,
    variant: Variant,
    chance: &mut Rng,
) -> Result<Cell> {
    let (mut kept, lost) = (sentence(KEPT, chance), sentence(LOST, chance));
    let own = entry.behaviour();
    if let (Recovery::None, 0, Some(text)) =
        (entry.expected.recovery, own.calls(), entry.heard.or(own.said_text()))
    {
        text.clone_into(&mut kept);
    }
    let wish_ms = (entry.name == "rate_limit").then(|| chance.u64(100..3000));
    let said = if entry.expected.recovery == Recovery::None { &kept } else { &lost };
    let fault = fault(entry, said, wish_ms, chance);
    let wish_ms = entry.wait_ms.or(wish_ms.map(|wish| (wish, wish)));
    let whole = Step::named("whole")?.text(&kept);
    let read = Step::named("whole")?.tool_call("Read", &json!({"path": NOTES.0}));
    let steps = match variant {
        Variant::Once => vec![fault, whole],
        Variant::Always => vec![fault],
        Variant::AfterTool if own.calls() > 0 => vec![fault, whole],
        Variant::AfterTool => vec![read, fault, whole],
    };
    let key = format!("sk-canary-{:016x}", chance.u64(..));
    Ok(Cell { dialect, entry, variant, script: Script::new(steps)?, kept, lost, wish_ms, key })
}

fn fault(entry: &'static Entry, said: &str, wish_ms: Option<u64>, chance: &mut Rng) -> Step {
    let behaviour = entry.behaviour();
    let mut step = Step::from_entry(entry);
    let says = behaviour.says();
    if behaviour.carries_content() && !says {
        step = step.text(said);
    }
    if behaviour.names_an_event() && !says {
        // The first event opens the message; then one comes for each word.
        step = step.at_event(chance.usize(1..=said.split(' ').count()));
    }
    match wish_ms {
        Some(wish) => step.retry_after(std::time::Duration::from_millis(wish)),
        None => step,
    }
}

/// Fourteen words or more, so that each is an event; every other one is wide
/// somewhere in the list, so one is always among them.
fn sentence(words: &[&str], chance: &mut Rng) -> String {
    let count = chance.usize(14..30);
    let start = chance.usize(..words.len());
    let words: Vec<&str> = words.iter().copied().cycle().skip(start).take(count).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_seed_gives_a_script_that_can_be_served() {
        for seed in (0..40).chain([u64::MAX]) {
            assert!(cells(None, Some(Dialect::Chat), seed).unwrap().len() > 30, "{seed}");
        }
    }

    #[test]
    fn the_same_seed_plays_the_same_and_another_does_not() {
        let scripts = |seed| {
            let cells = cells(None, Some(Dialect::Chat), seed).unwrap();
            cells.into_iter().map(|cell| cell.script).collect::<Vec<_>>()
        };
        assert_eq!(scripts(7), scripts(7));
        assert_ne!(scripts(7), scripts(8));
    }

    #[test]
    fn a_fault_played_alone_is_played_as_among_the_others() {
        let alone = cells(Some("stall"), Some(Dialect::Chat), 3).unwrap();
        let among = cells(None, Some(Dialect::Chat), 3).unwrap();
        let among: Vec<_> = among.iter().filter(|cell| cell.entry.name == "stall").collect();
        assert_eq!(alone.len(), 3);
        assert!(alone.iter().zip(among).all(|(a, b)| a.script == b.script && a.key == b.key));
    }

    #[test]
    fn kept_and_lost_words_differ() {
        assert!(KEPT.iter().all(|word| !LOST.contains(word)));
    }
}
