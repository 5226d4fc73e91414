//! Masks secrets in outside text.
//!
//! Known secrets go by exact value, in one pass over all of them; then what
//! looks like one: headers that carry keys, bearer tokens, vendor prefixes.
//! Every pass is linear in the text.

use std::{borrow::Cow, fmt, sync::LazyLock};

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;
use secrecy::{ExposeSecret, SecretString};
use turnbuckle_errors::Redact;

/// What stands in a secret's place.
const MASK: &str = "[redacted]";

/// Known secrets shorter than this are too likely to be ordinary words.
const MIN_EXACT_BYTES: usize = 8;

/// Masks secrets in text that came from outside.
///
/// ```
/// use turnbuckle_diagnostics::{Redactor, SecretString};
/// use turnbuckle_errors::Redact;
///
/// let redactor = Redactor::new([SecretString::from("correct-horse-battery")]);
/// assert_eq!(redactor.redact("bad key: correct-horse-battery"), "bad key: [redacted]");
/// assert_eq!(redactor.redact("Authorization: Bearer abc.def"), "Authorization: [redacted]");
/// assert_eq!(redactor.redact("nothing to hide"), "nothing to hide");
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    exact: Option<AhoCorasick>,
}

impl Redactor {
    /// A redactor that knows `secrets`, as they are and as JSON escapes them.
    #[must_use]
    pub fn new(secrets: impl IntoIterator<Item = SecretString>) -> Self {
        let mut needles: Vec<String> = Vec::new();
        for secret in secrets {
            let value = secret.expose_secret().trim();
            if value.len() < MIN_EXACT_BYTES {
                continue;
            }
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            if escaped != value {
                needles.push(escaped);
            }
            needles.push(value.to_owned());
        }
        if needles.is_empty() {
            return Self::default();
        }
        // Too many or too large needles are the only way to fail; then the shapes still work.
        let exact =
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(needles).ok();
        Self { exact }
    }

    fn exact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.exact {
            Some(known) if known.is_match(text) => {
                let masks = vec![MASK; known.patterns_len()];
                Cow::Owned(known.replace_all(text, &masks))
            }
            _ => Cow::Borrowed(text),
        }
    }
}

impl Redact for Redactor {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = self.exact(text);
        for shape in SHAPES.iter() {
            if let Cow::Owned(replaced) = shape.find.replace_all(&masked, shape.mask) {
                masked = Cow::Owned(replaced);
            }
        }
        masked
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.exact.as_ref().map_or(0, AhoCorasick::patterns_len);
        f.debug_struct("Redactor").field("known", &known).finish()
    }
}

/// One kind of text that looks like a secret.
struct Shape {
    find: Regex,
    mask: &'static str,
}

/// In order: whole headers first, then tokens wherever they stand.
static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    [
        // A header or field that carries a key, to the end of its value. A scheme
        // (`Bearer`, `Basic`) belongs to the value.
        (
            r#"(?i)\b((?:proxy-)?authorization|x-api-key|api-key|apikey|x-goog-api-key|ocp-apim-subscription-key)("?\s*[:=]\s*"?)(?:(?:bearer|basic|token)\s+)?[^\s",;}]+"#,
            "${1}${2}[redacted]",
        ),
        // A bearer token without its header.
        (r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}", "${1}[redacted]"),
        // The prefix that OpenAI made customary, also `sk-proj-`, `sk-ant-`, `sk-or-`;
        // servers that echo a key shorten it with asterisks.
        (r"\bsk-[A-Za-z0-9_*.-]{8,}", MASK),
    ]
    .into_iter()
    .filter_map(|(find, mask)| Some(Shape { find: Regex::new(find).ok()?, mask }))
    .collect()
});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(["s3cr3t-value-1234", "with\"quote\\and"].map(SecretString::from))
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(redactor().redact(text), expected);
    }

    #[test]
    fn all_shapes_compile() {
        assert_eq!(SHAPES.len(), 3);
    }

    #[test]
    fn known_secrets_go_wherever_they_stand() {
        check("key s3cr3t-value-1234!", "key [redacted]!");
        check("xs3cr3t-value-1234s3cr3t-value-1234", "x[redacted][redacted]");
        check(r#"{"k":"with\"quote\\and"}"#, r#"{"k":"[redacted]"}"#);
    }

    #[test]
    fn headers_that_carry_keys_are_masked_with_their_scheme() {
        check("Authorization: Bearer abc", "Authorization: [redacted]");
        check("authorization=Basic dXNlcjpwYXNz", "authorization=[redacted]");
        check(r#"{"x-api-key": "abc123"}"#, r#"{"x-api-key": "[redacted]"}"#);
        check("api-key: a; next", "api-key: [redacted]; next");
    }

    #[test]
    fn token_shapes_are_masked_without_context() {
        check("got bearer abcdefgh.ijkl", "got bearer [redacted]");
        check(
            "Incorrect API key provided: sk-proj-aaaabbbbcccc.",
            "Incorrect API key provided: [redacted]",
        );
        check(
            "Incorrect API key provided: sk-abc***********wxyz",
            "Incorrect API key provided: [redacted]",
        );
    }

    #[test]
    fn innocent_text_stays_as_it_is() {
        for text in [
            "the bearer of bad news",
            "task-force risk-taking sk-1",
            "commit 80ca4907f2c1d1a8f7d2e9b0c3a4f5e6d7c8b9a0",
            "550e8400-e29b-41d4-a716-446655440000",
            "an authorization error",
            "let api_key_count = 3;",
            "/usr/local/lib/python3.11/site-packages",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn short_secrets_do_not_blank_out_words() {
        let redactor = Redactor::new([SecretString::from("the")]);
        assert_eq!(redactor.redact("the theme"), "the theme");
        assert_eq!(format!("{redactor:?}"), "Redactor { known: 0 }");
    }

    proptest! {
        #[test]
        fn a_known_secret_never_comes_through_and_masking_is_idempotent(
            before in ".{0,40}", after in ".{0,40}", secret in "[A-Za-z0-9+/_=-]{8,60}",
        ) {
            let redactor = Redactor::new([SecretString::from(secret.clone())]);
            let text = format!("{before}{secret}{after}");
            let masked = redactor.redact(&text).into_owned();
            prop_assume!(!MASK.contains(&secret));
            prop_assert!(!masked.contains(&secret));
            prop_assert_eq!(redactor.redact(&masked).into_owned(), masked.clone());
        }
    }
}
