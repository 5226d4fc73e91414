//! For a name that is wrong: the right one that was probably meant.

/// The name of `known` that is nearest to `given`, if one is near at all.
pub(crate) fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = given.to_lowercase();
    known
        .iter()
        .map(|name| (strsim::jaro_winkler(&lower, &name.to_lowercase()), *name))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// `; did you mean …?`, or the whole list where nothing is near.
pub(crate) fn hint(given: &str, known: &[&str]) -> String {
    match nearest(given, known) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => format!("; known are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let known = ["openai-chat", "anthropic", "gemini"];
        assert_eq!(nearest("openai-chta", &known), Some("openai-chat"));
        assert_eq!(nearest("Gemni", &known), Some("gemini"));
        assert_eq!(nearest("zzz", &known), None);
        assert_eq!(hint("zzz", &known), "; known are openai-chat, anthropic, gemini");
    }
}
