//! Step 5, the last resort: what prose means when nothing better is held.
//!
//! Best effort by nature. Each row cites the stack that says it. Throttle rows
//! come before overflow rows, because "too many tokens" is often a throttle; a
//! digit in prose is never taken for a status.

mod rows;

use rows::ROWS;

use super::Verdict;
use crate::{ErrorCode, Origin};

pub(super) fn conclude(text: &str) -> Option<Verdict> {
    let prose = Prose::new(text);
    ROWS.iter().find(|row| row.pattern.matches(&prose)).map(Row::verdict)
}

/// The rows that may refine a 400, 413 or 422: throttle, quota and overflow.
pub(super) fn refine(text: &str) -> Option<Verdict> {
    let prose = Prose::new(text);
    let refining = |row: &&Row| {
        matches!(
            row.code,
            ErrorCode::ProviderRateLimited
                | ErrorCode::ProviderQuotaExceeded
                | ErrorCode::ContextTooLarge
        )
    };
    ROWS.iter().filter(refining).find(|row| row.pattern.matches(&prose)).map(Row::verdict)
}

/// Whether prose speaks of a plan, a credit or a daily limit.
pub(super) fn says_quota(text: &str) -> bool {
    conclude(text).is_some_and(|verdict| verdict.code == ErrorCode::ProviderQuotaExceeded)
}

/// Whether prose speaks of a rate.
pub(super) fn says_throttle(text: &str) -> bool {
    conclude(text).is_some_and(|verdict| verdict.code == ErrorCode::ProviderRateLimited)
}

struct Row {
    rule: &'static str,
    pattern: Pattern,
    code: ErrorCode,
}

impl Row {
    fn verdict(&self) -> Verdict {
        let (source, sentence) = match self.code {
            ErrorCode::StreamFailed => (Origin::Transport, "the answer broke off"),
            ErrorCode::Timeout => (Origin::Transport, "the answer fell silent"),
            ErrorCode::NetworkError => (Origin::Transport, "the connection failed"),
            _ => (Origin::Provider, "the provider refused the request"),
        };
        Verdict::new(self.code, source, self.rule, sentence)
    }
}

enum Pattern {
    /// The whole text, behind any number of `SomethingError:` prefixes.
    Whole(&'static str),
    /// A phrase that begins and ends at a word's border.
    Phrase(&'static str),
    /// Phrases that all occur, in this order.
    Ordered(&'static [&'static str]),
}

/// Lower-case text with white space folded.
struct Prose(String);

impl Prose {
    fn new(text: &str) -> Self {
        Self(text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase())
    }

    fn without_error_names(&self) -> &str {
        let mut rest = self.0.as_str();
        while let Some((name, tail)) = rest.split_once(": ") {
            let is_name =
                name.ends_with("error") && name.bytes().all(|b| b.is_ascii_alphanumeric());
            if !is_name {
                break;
            }
            rest = tail;
        }
        rest.trim_end_matches('.')
    }
}

impl Pattern {
    fn matches(&self, prose: &Prose) -> bool {
        match self {
            Self::Whole(whole) => prose.without_error_names() == *whole,
            Self::Phrase(phrase) => find_phrase(&prose.0, phrase).is_some(),
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
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
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
