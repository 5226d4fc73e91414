//! Step 5, the last resort: what prose means when nothing better is held.
//!
//! Best effort by nature. Each row cites the stack that says it. Rows of a plan
//! and of a rate come before overflow rows, because "too many tokens" is often a
//! throttle; a digit in prose is never taken for a status.

mod rows;

use rows::ROWS;

use super::{Scene, Verdict};
use crate::{Delivered, ErrorCode, Origin, Phase, facts::without_error_names};

/// How much of a text is read, in bytes: an error says what it means early.
const MAX_BYTES: usize = 64 * 1024;

/// What prose may make of a 5xx: that the server behind a gateway was short of
/// something, or the request too large for it.
pub(super) const CAPACITY: &[ErrorCode] = &[
    ErrorCode::ProviderRateLimited,
    ErrorCode::ProviderQuotaExceeded,
    ErrorCode::ProviderOverloaded,
    ErrorCode::ContextTooLarge,
];

/// What prose may make of a 400 or 422: every refusal that has a code of its own.
pub(super) const REFUSALS: &[ErrorCode] = &[
    ErrorCode::ProviderRateLimited,
    ErrorCode::ProviderQuotaExceeded,
    ErrorCode::ProviderOverloaded,
    ErrorCode::ContextTooLarge,
    ErrorCode::ProviderUnauthorized,
    ErrorCode::ModelNotConfigured,
    ErrorCode::ContentFiltered,
];

/// Rows after which the request cannot have reached the server.
const UNSENT: &[&str] = &["wording.unsent.refused", "wording.unsent.unresolved"];

pub(super) fn conclude(text: &str, scene: Scene) -> Option<Verdict> {
    let prose = Prose::new(text);
    ROWS.iter().find(|row| row.pattern.matches(&prose)).map(|row| row.verdict(scene))
}

/// The first row that means one of `allowed`.
pub(super) fn refine(text: &str, scene: Scene, allowed: &[ErrorCode]) -> Option<Verdict> {
    let prose = Prose::new(text);
    let mut rows = ROWS.iter().filter(|row| allowed.contains(&row.code));
    rows.find(|row| row.pattern.matches(&prose)).map(|row| row.verdict(scene))
}

/// Whether a rate limit can never let this request through: it says that more was
/// requested than the whole limit is. `None` if the text does not hold both numbers.
pub(super) fn above_the_limit(text: &str) -> Option<bool> {
    let prose = Prose::new(text);
    let limit = number_after(&prose.0, "limit ")?;
    let requested = number_after(&prose.0, "requested ")?;
    Some(requested > limit)
}

/// The number that follows `lead` at a word's border, thousands separators included.
fn number_after(text: &str, lead: &str) -> Option<u64> {
    text.match_indices(lead).find_map(|(at, _)| {
        let border = text.get(..at)?.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        let rest = text.get(at + lead.len()..).filter(|_| border)?;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(rest.len());
        rest.get(..end.min(24))?.replace(',', "").parse().ok()
    })
}

struct Row {
    rule: &'static str,
    pattern: Pattern,
    code: ErrorCode,
}

impl Row {
    fn verdict(&self, scene: Scene) -> Verdict {
        let (source, sentence) = match self.code {
            ErrorCode::StreamFailed => (Origin::Transport, "the answer broke off"),
            ErrorCode::Timeout => (Origin::Transport, "the answer fell silent"),
            ErrorCode::NetworkError => (Origin::Transport, "the connection failed"),
            ErrorCode::ProviderError => (Origin::Provider, "the provider failed"),
            _ => (Origin::Provider, "the provider refused the request"),
        };
        let verdict = Verdict::new(self.code, source, self.rule, sentence);
        match self.code {
            // Google says "exceeded your current quota" of a rate, and types a plan.
            ErrorCode::ProviderQuotaExceeded if scene.google && self.rule == "wording.quota" => {
                Verdict {
                    rule: "wording.quota+google",
                    delivered: Some(Delivered::Yes),
                    ..Verdict::new(
                        ErrorCode::ProviderRateLimited,
                        source,
                        self.rule,
                        "too many requests in a short time",
                    )
                }
            }
            // After a response head, a broken connection is a broken answer.
            ErrorCode::NetworkError if scene.phase == Phase::Stream => {
                Verdict { code: ErrorCode::StreamFailed, ..verdict }
            }
            ErrorCode::NetworkError if UNSENT.contains(&self.rule) => {
                Verdict { delivered: Some(Delivered::No), ..verdict }
            }
            ErrorCode::NetworkError | ErrorCode::Timeout => verdict,
            // Somebody said so, or an answer had begun.
            _ => Verdict { delivered: Some(Delivered::Yes), ..verdict },
        }
    }
}

enum Pattern {
    /// The whole text, behind any number of `SomethingError:` prefixes.
    Whole(&'static str),
    /// The text's beginning, behind the same.
    Start(&'static str),
    /// A phrase that begins and ends at a word's border.
    Phrase(&'static str),
    /// Any of these phrases.
    Any(&'static [&'static str]),
    /// Phrases that all occur, in this order.
    Ordered(&'static [&'static str]),
}

/// Lower-case text with white space folded.
struct Prose(String);

impl Prose {
    fn new(text: &str) -> Self {
        let text = text.get(..text.floor_char_boundary(MAX_BYTES)).unwrap_or_default();
        Self(text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase())
    }

    fn without_error_names(&self) -> &str {
        without_error_names(&self.0).trim_end_matches('.')
    }
}

impl Pattern {
    fn matches(&self, prose: &Prose) -> bool {
        match self {
            Self::Whole(whole) => prose.without_error_names() == *whole,
            Self::Start(start) => {
                let text = prose.without_error_names();
                text.starts_with(start) && find_phrase(text, start) == Some(start.len())
            }
            Self::Phrase(phrase) => find_phrase(&prose.0, phrase).is_some(),
            Self::Any(phrases) => {
                phrases.iter().any(|phrase| find_phrase(&prose.0, phrase).is_some())
            }
            Self::Ordered(phrases) => {
                let mut rest = prose.0.as_str();
                phrases.iter().all(|phrase| match find_phrase(rest, phrase) {
                    Some(end) => {
                        rest = rest.get(end..).unwrap_or_default();
                        true
                    }
                    None => false,
                })
            }
        }
    }
}

/// The end of the first `phrase` in `text` that stands at word borders.
fn find_phrase(text: &str, phrase: &str) -> Option<usize> {
    // Chinese and Japanese words have no borders to stand at.
    let word =
        |c: Option<char>| c.is_some_and(|c| (c.is_alphanumeric() && c < '\u{2e80}') || c == '_');
    text.match_indices(phrase).find_map(|(at, found)| {
        let end = at + found.len();
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(end..).and_then(|text| text.chars().next());
        let open = word(before) && found.starts_with(char::is_alphanumeric);
        let shut = word(after) && found.ends_with(char::is_alphanumeric);
        (!open && !shut).then_some(end)
    })
}

#[cfg(test)]
mod tests;
