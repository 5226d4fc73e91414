//! Masks secrets in outside text.
//!
//! Known secrets go by exact value in every spelling that servers and encoders
//! give them; then what looks like one: by the name it stands under, by the
//! prefix its maker gave it, by its shape. `docs/REDACTION.md` says what is
//! masked and what is not.
//!
//! One automaton finds the beginnings of all of them in one pass; text without
//! any is returned as it is. The cost is linear in the text.

mod engine;
mod exact;
mod fields;
mod headers;
mod json;
mod names;
#[cfg(feature = "measure")]
mod plain;
mod run;
mod secret;
mod shapes;
mod span;
mod stream;
mod tokens;
mod url;

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, LazyLock},
};

use secrecy::{ExposeSecret, SecretString};
use turnbuckle_errors::Redact;

use self::engine::{Engine, Place};
#[cfg(feature = "measure")]
pub use self::plain::PlainPass;
pub use self::{secret::Secret, stream::StreamRedactor, url::SafeUrl};

/// What stands in a secret's place.
pub const MASK: &str = "[redacted]";

/// Masking can bring together what then looks like a secret too. This often it
/// is looked at again; almost always once is enough.
const MOST_PASSES: usize = 4;

/// The one that knows no secrets, made once.
static SHAPES_ONLY: LazyLock<Arc<Engine>> = LazyLock::new(|| Arc::new(Engine::new([])));

/// Masks secrets in text that came from outside.
///
/// Cheap to clone. Its `Debug` shows no secret.
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
#[derive(Clone)]
pub struct Redactor {
    engine: Arc<Engine>,
    secrets: usize,
}

impl Redactor {
    /// A redactor that knows `secrets`: as they are (white space around them
    /// aside), percent-encoded, in base64 and hex, and as JSON and HTML escape
    /// them; in any case.
    ///
    /// Values under 8 bytes are masked in headers and URLs only: elsewhere they
    /// would blank out ordinary words. An empty value is no secret.
    #[must_use]
    pub fn new(secrets: impl IntoIterator<Item = SecretString>) -> Self {
        let secrets: Vec<SecretString> = secrets
            .into_iter()
            .filter(|secret| !secret.expose_secret().trim().is_empty())
            .collect();
        if secrets.is_empty() {
            return Self::default();
        }
        let engine = Engine::new(secrets.iter().map(ExposeSecret::expose_secret));
        Self { engine: Arc::new(engine), secrets: secrets.len() }
    }

    /// A redactor of text that arrives in pieces.
    #[must_use]
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor::new(self.clone())
    }

    /// Masks what is secret in a URL or the value of a header, where known
    /// secrets under 8 bytes are masked too.
    fn redact_in<'a>(&self, text: &'a str, place: Place) -> Cow<'a, str> {
        let mut current = Cow::Borrowed(text);
        for _ in 0..MOST_PASSES {
            let mut spans = self.engine.spans(&current, place);
            spans.retain(|span| current.get(span.start..span.end) != Some(MASK));
            if spans.is_empty() {
                break;
            }
            current = Cow::Owned(span::masked(&current, &spans));
        }
        current
    }
}

impl Default for Redactor {
    /// A redactor that knows no secret and masks by name and shape alone.
    fn default() -> Self {
        Self { engine: Arc::clone(&SHAPES_ONLY), secrets: 0 }
    }
}

impl Redact for Redactor {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_in(text, Place::Text)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("known", &self.secrets).finish()
    }
}

#[cfg(test)]
mod tests;
