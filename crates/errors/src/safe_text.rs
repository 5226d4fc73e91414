//! Text that is fit to be shown: redacted, bounded, without control characters.
//!
//! Diagnostics never hold a plain `String`. Outside text becomes [`SafeText`]
//! through a [`Redact`]; our own literals are safe by birth; and the two are put
//! together with [`SafeText::compose`]. There is no other way in.
//!
//! ```compile_fail
//! use turnbuckle_errors::SafeText;
//! let from_outside = String::from("the key is sk-…");
//! let _ = SafeText::from(from_outside);
//! ```
//!
//! A part of a sentence cannot be a plain text either, and neither can a token:
//!
//! ```compile_fail
//! use turnbuckle_errors::SafePart;
//! let _ = SafePart::from(String::from("raw").as_str());
//! ```
//!
//! ```compile_fail
//! use turnbuckle_errors::SafeToken;
//! let _: SafeToken = String::from("raw").into();
//! ```

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer};

use crate::ErrorCode;

/// The longest a [`SafeText`] gets, in characters.
pub const MAX_SAFE_TEXT_CHARS: usize = 600;

/// The longest a [`SafeToken`] gets, in characters.
const MAX_TOKEN_CHARS: usize = 64;

/// Masks secrets in text that came from outside.
///
/// The crate `turnbuckle-diagnostics` has the real one; this port is here so
/// that everything which makes failures can ask for it.
pub trait Redact: Send + Sync {
    /// Returns `text` with every secret masked; borrowed when there was none.
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

/// The redactor of a host that has none: it shows no outside text at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Opaque;

impl Redact for Opaque {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(if text.is_empty() { text } else { "[withheld]" })
    }
}

/// Redacted text of at most [`MAX_SAFE_TEXT_CHARS`] characters, on one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SafeText(Cow<'static, str>);

impl SafeText {
    /// Makes outside text safe: control characters go first (so that they
    /// cannot break up a secret), then `redact` runs, then the length is bounded.
    #[must_use]
    pub fn redacted(raw: &str, redact: &dyn Redact) -> Self {
        let clean = without_controls(raw);
        let masked = redact.redact(&clean);
        Self(Cow::Owned(bounded(&without_controls(&masked))))
    }

    /// Puts a sentence together from parts that are each safe.
    ///
    /// ```
    /// use turnbuckle_errors::SafeText;
    /// let text = SafeText::compose(&["no event within ".into(), 300_u64.into(), " s".into()]);
    /// assert_eq!(text.as_str(), "no event within 300 s");
    /// ```
    #[must_use]
    pub fn compose(parts: &[SafePart<'_>]) -> Self {
        let mut text = String::new();
        for part in parts {
            match part {
                SafePart::Literal(literal) => text.push_str(literal),
                SafePart::Number(number) => text.push_str(&number.to_string()),
                SafePart::Text(safe) => text.push_str(safe.as_str()),
            }
        }
        Self(Cow::Owned(bounded(&text)))
    }

    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for SafeText {
    /// Our own literals are safe by birth.
    fn from(literal: &'static str) -> Self {
        Self(Cow::Borrowed(literal))
    }
}

impl fmt::Display for SafeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for SafeText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// One part of a [`SafeText::compose`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum SafePart<'a> {
    /// Our own words.
    Literal(&'static str),
    /// A number.
    Number(u64),
    /// Text that is safe already.
    Text(&'a SafeText),
}

impl From<&'static str> for SafePart<'_> {
    fn from(literal: &'static str) -> Self {
        Self::Literal(literal)
    }
}

impl From<u64> for SafePart<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<ErrorCode> for SafePart<'_> {
    fn from(code: ErrorCode) -> Self {
        Self::Literal(code.as_str())
    }
}

impl<'a> From<&'a SafeText> for SafePart<'a> {
    fn from(text: &'a SafeText) -> Self {
        Self::Text(text)
    }
}

/// An identifier from outside that looks like one: a provider's error code or
/// request id, `[A-Za-z0-9_.:-]{1,64}`, and touched by no redaction rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SafeToken(String);

impl SafeToken {
    /// Keeps `raw` if it is an identifier and `redact` leaves it alone.
    #[must_use]
    pub fn new(raw: &str, redact: &dyn Redact) -> Option<Self> {
        let shape = (1..=MAX_TOKEN_CHARS).contains(&raw.len())
            && raw.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:-".contains(&b));
        (shape && redact.redact(raw) == raw).then(|| Self(raw.to_owned()))
    }

    /// The identifier.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SafeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for SafeToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// One line of `raw`: white space becomes a space, other control characters and
/// the invisible marks that reorder text go away.
fn without_controls(raw: &str) -> String {
    let mut clean = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '\n' | '\r' | '\t' => clean.push(' '),
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c if c.is_control() => {}
            c => clean.push(c),
        }
    }
    clean
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(MAX_SAFE_TEXT_CHARS) {
        None => text.to_owned(),
        Some(_) => text.chars().take(MAX_SAFE_TEXT_CHARS - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Masks one known word.
    struct Mask(&'static str);

    impl Redact for Mask {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            if text.contains(self.0) {
                Cow::Owned(text.replace(self.0, "[redacted]"))
            } else {
                Cow::Borrowed(text)
            }
        }
    }

    #[test]
    fn outside_text_is_masked_cleaned_and_bounded() {
        let safe = SafeText::redacted("a\tb\u{1b}[31m s3c\u{0}ret\r\n", &Mask("s3cret"));
        assert_eq!(safe.as_str(), "a b[31m [redacted]  ");

        let long = SafeText::redacted(&"é".repeat(5000), &Mask("x"));
        assert_eq!(long.as_str().chars().count(), MAX_SAFE_TEXT_CHARS);
        assert!(long.as_str().ends_with('…'));
        let exact = SafeText::redacted(&"é".repeat(600), &Mask("x"));
        assert!(!exact.as_str().ends_with('…'));
    }

    #[test]
    fn a_secret_across_the_bound_is_masked_before_the_cut() {
        let raw = format!("{}s3cret", "x".repeat(MAX_SAFE_TEXT_CHARS - 3));
        assert!(!SafeText::redacted(&raw, &Mask("s3cret")).as_str().contains("s3"));
    }

    #[test]
    fn a_token_must_look_like_one_and_hold_no_secret() {
        let mask = Mask("s3cret");
        assert_eq!(
            SafeToken::new("rate_limit.exceeded:1-2", &mask).unwrap().as_str(),
            "rate_limit.exceeded:1-2"
        );
        for raw in ["", "two words", "s3cret", "über", "a/b", &"x".repeat(65)] {
            assert_eq!(SafeToken::new(raw, &mask), None, "{raw}");
        }
    }

    #[test]
    fn the_opaque_redactor_shows_nothing() {
        assert_eq!(SafeText::redacted("anything", &Opaque).as_str(), "[withheld]");
        assert_eq!(SafeToken::new("code", &Opaque), None);
    }
}
