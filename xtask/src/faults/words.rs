//! The words of the answers: those that are kept, and those that are lost.

use fastrand::Rng;

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

pub(super) fn kept(chance: &mut Rng) -> String {
    sentence(KEPT, chance)
}

pub(super) fn lost(chance: &mut Rng) -> String {
    sentence(LOST, chance)
}

/// Fourteen words or more, so that each is an event; every other one is wide
/// somewhere in the list, so one is always among them.
fn sentence(words: &[&str], chance: &mut Rng) -> String {
    let count = chance.usize(14..30);
    let start = chance.usize(..words.len());
    let words: Vec<&str> = words.iter().copied().cycle().skip(start).take(count).collect();
    words.join(" ")
}

/// What a text is made of, for looking one up elsewhere: runs of letters and digits,
/// and characters that are neither, each for itself.
pub(super) fn of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_and_lost_words_differ() {
        assert!(KEPT.iter().all(|word| !LOST.contains(word)));
    }

    #[test]
    fn words_are_found_in_arguments_too() {
        assert_eq!(of(r#"{"a":"œuvre 🐙"}"#).collect::<Vec<_>>(), ["a", "œuvre", "🐙"]);
    }
}
