//! For a name that is wrong: the right one that was probably meant, and a few
//! that are like it.

/// How many names are told of many.
const TOLD: usize = 5;
/// A word that is shorter says nothing of a name.
const SHORTEST_WORD: usize = 3;

/// The name that was probably meant: at most a third of it is typed wrong.
pub(super) fn nearest(word: &str, names: &[&'static str]) -> Option<&'static str> {
    let distance = |name: &&'static str| (strsim::damerau_levenshtein(word, name), *name);
    let (distance, name) = names.iter().map(distance).min()?;
    (distance <= name.chars().count().div_ceil(3)).then_some(name)
}

/// A few names of many: those that share most words with the wrong one, then
/// those that are spelled most like it.
pub(super) fn some(word: &str, names: &[&'static str]) -> Vec<&'static str> {
    let lower = word.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() >= SHORTEST_WORD)
        .collect();
    let shared = |name: &str| words.iter().filter(|word| name.contains(**word)).count();
    let mut ranked: Vec<_> = names.iter().map(|name| (shared(name), *name)).collect();
    ranked.sort_by(|(shared_a, a), (shared_b, b)| {
        let spelled = |name| strsim::jaro_winkler(&lower, name);
        shared_b.cmp(shared_a).then_with(|| spelled(b).total_cmp(&spelled(a)))
    });
    ranked.into_iter().take(TOLD).map(|(_, name)| name).collect()
}

pub(super) fn hint(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

pub(super) fn listed(names: &[&'static str]) -> String {
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &[
        "whole",
        "stall",
        "rate_limit",
        "rate_limit_in_stream",
        "tls_expired",
        "cut_inside_event",
        "cut_before_status",
    ];

    #[test]
    fn a_slip_finds_its_name_and_another_word_finds_none() {
        assert_eq!(nearest("stal", NAMES), Some("stall"));
        assert_eq!(nearest("cut_inside_evnet", NAMES), Some("cut_inside_event"));
        assert_eq!(nearest("", NAMES), None);
        assert_eq!(nearest("timeout", NAMES), None);
    }

    #[test]
    fn names_with_the_same_words_come_before_those_that_are_spelled_alike() {
        assert_eq!(some("Rate-Limited", NAMES)[..2], ["rate_limit", "rate_limit_in_stream"]);
        assert_eq!(some("expired_tls", NAMES)[0], "tls_expired");
        assert_eq!(some("stal", NAMES)[0], "stall");
        assert_eq!(some("", NAMES).len(), TOLD);
        assert_eq!(some("x", &["a"]), ["a"]);
    }
}
