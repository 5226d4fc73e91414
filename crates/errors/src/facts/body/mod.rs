//! An error body of any shape, boiled down to the fields that decide.

mod bytes;
mod torn;

use std::{fmt, time::Duration};

use serde_json::{Map, Value};

use super::Unseen;
use crate::server_delay::delay_from_body;

/// How deep errors may be nested inside each other (gateways wrap them).
const MAX_DEPTH: usize = 6;

/// How much of a body is looked at, in bytes. Errors say what they mean early,
/// and the rest of a huge page costs nothing then.
const MAX_BYTES: usize = 64 * 1024;

/// What an error body says. All texts are outside text: redact before showing.
///
/// Its `Debug` says how long each text is, and not what it says.
#[derive(Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ErrorBody {
    /// What kind of body it was.
    pub shape: BodyShape,
    /// `error.type`.
    pub kind: Option<String>,
    /// `error.code`, numbers as text.
    pub code: Option<String>,
    /// `error.status`, the word that Google servers send.
    pub status_word: Option<String>,
    /// The HTTP status that the body itself names (`status_code`, a numeric `status`).
    pub http_status: Option<u16>,
    /// The sentence for people: `error.message`, or the title of a page.
    pub message: Option<String>,
    /// Ids of the quotas that are used up, from Google's typed details.
    pub quota_ids: Vec<String>,
    /// Finer words from typed details: Google's `reason`, Azure's inner code.
    pub reasons: Vec<String>,
    /// The wait that the body itself asks for.
    pub delay: Option<Duration>,
}

/// What kind of body it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum BodyShape {
    /// No byte, or white space alone.
    #[default]
    Empty,
    /// JSON, also when its end is missing.
    Json,
    /// A web page.
    Html,
    /// Anything else. Without a message it was not even text.
    Text,
}

impl ErrorBody {
    /// Reads a body of any shape; it never fails, it only finds less.
    ///
    /// Of a body over 64 KiB only the beginning is read.
    #[must_use]
    pub fn parse(raw: &str) -> Self {
        let text = raw.trim_start_matches('\u{feff}').trim_start();
        let text = text.get(..text.floor_char_boundary(MAX_BYTES)).unwrap_or_default().trim_end();
        if text.is_empty() {
            return Self::default();
        }
        if let Some(value) = torn::json(text) {
            return Self::from_json(&value);
        }
        if text.starts_with('<') {
            return Self { shape: BodyShape::Html, message: title(text), ..Self::default() };
        }
        let message = bytes::is_text(text).then(|| text.to_owned());
        Self { shape: BodyShape::Text, message, ..Self::default() }
    }

    /// Reads a body as it came off the wire: UTF-8, UTF-16 or Latin-1, whatever
    /// `content_type` claims. Bytes that are no text at all (a compressed body
    /// under a wrong header) give [`BodyShape::Text`] without a message.
    ///
    /// ```
    /// use turnbuckle_errors::ErrorBody;
    /// let body = ErrorBody::parse_bytes(b"{\"error\":\"refus\xe9\"}", Some("application/json; charset=utf-8"));
    /// assert_eq!(body.message.as_deref(), Some("refusé"));
    /// assert_eq!(ErrorBody::parse_bytes(b"\x1f\x8b\x08\x00\x01", None).message, None);
    /// ```
    #[must_use]
    pub fn parse_bytes(raw: &[u8], content_type: Option<&str>) -> Self {
        match bytes::decode(raw.get(..MAX_BYTES).unwrap_or(raw), content_type) {
            Some(text) => Self::parse(&text),
            None => Self { shape: BodyShape::Text, ..Self::default() },
        }
    }

    /// Reads a body that is JSON already: an object with `error` (object, text
    /// or list), the error object itself, a list of either, or a bare text.
    #[must_use]
    pub fn from_json(value: &Value) -> Self {
        let mut body = Self { shape: BodyShape::Json, ..Self::default() };
        body.fill(value, 0);
        body.delay = delay_from_body(value, body.message.as_deref()).or(body.delay);
        body
    }

    /// Every word that types the error: type, code, status and finer reasons.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let named = [&self.kind, &self.code, &self.status_word].into_iter().flatten();
        named.chain(&self.reasons).map(String::as_str)
    }

    /// The HTTP status that the body carries, where it carries one (several
    /// gateways put it into the code).
    #[must_use]
    pub fn numeric_status(&self) -> Option<u16> {
        let is_error = |status: &u16| (400..600).contains(status);
        let code = self.code.as_deref().and_then(|code| code.parse().ok());
        code.filter(is_error).or(self.http_status.filter(is_error))
    }

    /// The most telling word: the code if it is a word, else type, status, number.
    #[must_use]
    pub fn provider_code(&self) -> Option<&str> {
        let is_word = |word: &&str| word.bytes().any(|b| b.is_ascii_alphabetic());
        let code = self.code.as_deref();
        code.filter(is_word)
            .or(self.kind.as_deref().filter(is_word))
            .or(self.status_word.as_deref())
            .or(code)
    }

    fn fill(&mut self, value: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::String(text) => self.fill_text(text, depth),
            Value::Array(items) => {
                if let Some(first) = items.first() {
                    self.fill(first, depth + 1);
                }
            }
            Value::Object(fields) => {
                // The innermost error is the origin; what wraps it only fills gaps.
                for inner in INNER {
                    if let Some(inner) = fields.get(inner).filter(|inner| !inner.is_null()) {
                        self.fill(inner, depth + 1);
                    }
                }
                self.fill_fields(fields, depth);
            }
            _ => {}
        }
    }

    /// A text is the message, unless a gateway put the whole error of another
    /// server into it.
    fn fill_text(&mut self, text: &str, depth: usize) {
        let trimmed = text.trim();
        if let ('{' | '[', Some(value)) =
            (trimmed.chars().next().unwrap_or(' '), serde_json::from_str::<Value>(trimmed).ok())
        {
            self.fill(&value, depth + 1);
            self.delay = self.delay.or_else(|| delay_from_body(&value, None));
        }
        keep(&mut self.message, text);
    }

    fn fill_fields(&mut self, fields: &Map<String, Value>, depth: usize) {
        let nested = |name: &str| fields.get(name).filter(|value| !value.is_null());
        // OpenRouter hands on what its upstream sent as `metadata.raw`.
        let raw = nested("metadata").and_then(|metadata| text_at(metadata, "raw"));
        if let Some(raw) = raw.filter(|raw| raw.trim_start().starts_with('{')) {
            self.fill_text(&raw, depth + 1);
        }
        for name in ["message", "msg", "error_message", "errorMessage", "error_description"] {
            if let Some(message) = nested(name) {
                self.fill(message, depth + 1);
            }
        }
        if let Some(title) = word(fields, "title") {
            keep(&mut self.message, &title);
        }
        for name in ["type", "error_type", "__type"] {
            self.take_kind(word(fields, name));
        }
        for name in ["code", "errorCode"] {
            if let Some(code) = word(fields, name) {
                keep(&mut self.code, &code);
            }
        }
        for name in ["status_code", "statusCode", "raw_status_code", "http_status", "status"] {
            self.http_status = self.http_status.or_else(|| status_in(fields.get(name)?));
        }
        if let Some(Value::String(status)) = fields.get("status") {
            // `"status":"failed"` says nothing that the error itself does not.
            if !status.is_empty() && !matches!(status.as_str(), "failed" | "error" | "fail") {
                keep(&mut self.status_word, status);
            }
        }
        if let Some(Value::Array(details)) = fields.get("details") {
            self.quota_ids.extend(details.iter().flat_map(quota_ids));
            self.reasons.extend(details.iter().filter_map(|detail| text_at(detail, "reason")));
        }
        // Azure: `innererror`; OpenRouter: `metadata.error_type`.
        self.reasons.extend(nested("innererror").and_then(|inner| text_at(inner, "code")));
        self.reasons.extend(nested("metadata").and_then(|meta| text_at(meta, "error_type")));
    }

    /// A type that only says that this is an error wraps, it does not type.
    fn take_kind(&mut self, kind: Option<String>) {
        let Some(kind) = kind.filter(|kind| kind != "error") else { return };
        // The Responses dialect wraps the error of an answer into an event.
        let wraps = kind.starts_with("response.");
        if !(wraps && (self.code.is_some() || self.message.is_some())) {
            keep(&mut self.kind, &kind);
        }
    }
}

impl fmt::Debug for ErrorBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |texts: &[String]| texts.iter().map(|text| Unseen::new(text)).collect::<Vec<_>>();
        let text = |text: &Option<String>| text.as_deref().map(Unseen::new);
        f.debug_struct("ErrorBody")
            .field("shape", &self.shape)
            .field("kind", &text(&self.kind))
            .field("code", &text(&self.code))
            .field("status_word", &text(&self.status_word))
            .field("http_status", &self.http_status)
            .field("message", &text(&self.message))
            .field("quota_ids", &all(&self.quota_ids))
            .field("reasons", &all(&self.reasons))
            .field("delay", &self.delay)
            .finish()
    }
}

/// Where the error inside an error stands. `response` is the Responses dialect's.
const INNER: [&str; 4] = ["error", "errors", "detail", "response"];

fn keep(slot: &mut Option<String>, text: &str) {
    slot.get_or_insert_with(|| text.to_owned());
}

fn word(fields: &Map<String, Value>, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn text_at(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// A status as a number, or as a text of exactly three digits.
fn status_in(value: &Value) -> Option<u16> {
    match value {
        Value::Number(number) => u16::try_from(number.as_u64()?).ok(),
        Value::String(text) if text.len() == 3 => text.parse().ok(),
        _ => None,
    }
}

/// The used-up quotas in Google's typed details: a `google.rpc.QuotaFailure` of
/// Gemini, or the `quota_limit` of a Vertex `ErrorInfo`.
fn quota_ids(detail: &Value) -> impl Iterator<Item = String> {
    let violations = detail.get("violations").and_then(Value::as_array);
    let ids = violations.into_iter().flatten().filter_map(|one| text_at(one, "quotaId"));
    ids.chain(detail.get("metadata").and_then(|metadata| text_at(metadata, "quota_limit")))
}

/// The title of a web page; the page itself is never kept.
fn title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower.get(open..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    let title = page.get(start..end)?.split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests;
