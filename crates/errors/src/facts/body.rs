//! An error body of any shape, boiled down to the fields that decide.

use std::time::Duration;

use serde_json::Value;

use crate::server_delay::delay_from_body;

/// How deep errors may be nested inside each other (gateways wrap them).
const MAX_DEPTH: usize = 6;

/// What an error body says. All texts are outside text: redact before showing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
    /// The sentence for people: `error.message`, or the title of a page.
    pub message: Option<String>,
    /// Ids of the quotas that are used up, from Google's typed details.
    pub quota_ids: Vec<String>,
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
    /// JSON.
    Json,
    /// A web page.
    Html,
    /// Anything else, torn JSON included.
    Text,
}

impl ErrorBody {
    /// Reads a body of any shape; it never fails, it only finds less.
    #[must_use]
    pub fn parse(raw: &str) -> Self {
        let text = raw.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Self::default();
        }
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            return Self::from_json(&value);
        }
        if text.starts_with('<') {
            return Self { shape: BodyShape::Html, message: title(text), ..Self::default() };
        }
        Self { shape: BodyShape::Text, message: Some(text.to_owned()), ..Self::default() }
    }

    /// Reads a body that is JSON already: an object with `error` (object, text
    /// or list), the error object itself, a list of either, or a bare text.
    #[must_use]
    pub fn from_json(value: &Value) -> Self {
        let mut body = Self { shape: BodyShape::Json, ..Self::default() };
        body.fill(value, 0);
        body.delay = delay_from_body(value, body.message.as_deref());
        body
    }

    /// Every word that types the error: type, code and status, in that order.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        [&self.kind, &self.code, &self.status_word].into_iter().flatten().map(String::as_str)
    }

    /// The code as an HTTP status, where it is one (several gateways put it there).
    #[must_use]
    pub fn numeric_status(&self) -> Option<u16> {
        self.code.as_deref()?.parse().ok().filter(|status| (400..600).contains(status))
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
            Value::String(text) => keep(&mut self.message, text),
            Value::Array(items) => {
                if let Some(first) = items.first() {
                    self.fill(first, depth + 1);
                }
            }
            Value::Object(fields) => {
                // The innermost error is the origin; what wraps it only fills gaps.
                for inner in ["error", "errors", "detail"] {
                    if let Some(inner) = fields.get(inner).filter(|inner| !inner.is_null()) {
                        self.fill(inner, depth + 1);
                    }
                }
                self.fill_fields(fields);
            }
            _ => {}
        }
    }

    fn fill_fields(&mut self, fields: &serde_json::Map<String, Value>) {
        let word = |name: &str| match fields.get(name)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        // `{"type":"error","error":{…}}` and `"object":"error"` wrap, they do not type.
        if let Some(kind) = word("type").filter(|kind| kind != "error") {
            keep(&mut self.kind, &kind);
        }
        if let Some(code) = word("code") {
            keep(&mut self.code, &code);
        }
        if let Some(status) = word("status") {
            keep(&mut self.status_word, &status);
        }
        for name in ["message", "msg", "error_description", "title"] {
            if let Some(message) = word(name) {
                keep(&mut self.message, &message);
            }
        }
        if let Some(Value::Array(details)) = fields.get("details") {
            self.quota_ids.extend(details.iter().flat_map(quota_ids));
        }
    }
}

fn keep(slot: &mut Option<String>, text: &str) {
    slot.get_or_insert_with(|| text.to_owned());
}

/// `quotaId`s of a `google.rpc.QuotaFailure`, as Gemini servers send them.
fn quota_ids(detail: &Value) -> impl Iterator<Item = String> {
    let violations = detail.get("violations").and_then(Value::as_array);
    violations
        .into_iter()
        .flatten()
        .filter_map(|violation| violation.get("quotaId").and_then(Value::as_str).map(str::to_owned))
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
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        raw: &str,
        shape: BodyShape,
        kind: Option<&str>,
        code: Option<&str>,
        message: Option<&str>,
    ) {
        let body = ErrorBody::parse(raw);
        assert_eq!(
            (body.shape, body.kind.as_deref(), body.code.as_deref(), body.message.as_deref()),
            (shape, kind, code, message),
            "{raw}"
        );
    }

    #[test]
    fn bodies_of_every_shape_give_their_fields() {
        use BodyShape::{Empty, Html, Json, Text};
        check("", Empty, None, None, None);
        check(" \r\n", Empty, None, None, None);
        check(
            r#"{"error":{"type":"t","code":"c","message":"m"}}"#,
            Json,
            Some("t"),
            Some("c"),
            Some("m"),
        );
        check(
            r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
            Json,
            Some("overloaded_error"),
            None,
            Some("m"),
        );
        check(
            r#"{"error":{"error":{"code":400,"message":"inner"},"message":"outer"}}"#,
            Json,
            None,
            Some("400"),
            Some("inner"),
        );
        check(
            r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#,
            Json,
            None,
            Some("429"),
            None,
        );
        check(r#"{"error":"plain"}"#, Json, None, None, Some("plain"));
        check(r#""bare""#, Json, None, None, Some("bare"));
        check(r#"{"detail":"Unauthorized"}"#, Json, None, None, Some("Unauthorized"));
        check(
            r#"{"detail":[{"type":"missing","msg":"field required"}]}"#,
            Json,
            Some("missing"),
            None,
            Some("field required"),
        );
        check(
            r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
            Json,
            Some("BadRequestError"),
            Some("400"),
            Some("m"),
        );
        check(r#"{"error":null,"code":null}"#, Json, None, None, None);
        check(
            "<!DOCTYPE html><html><head><TITLE>502 Bad\n Gateway</TITLE></head>",
            Html,
            None,
            None,
            Some("502 Bad Gateway"),
        );
        check("<html>no title", Html, None, None, None);
        check("upstream failed", Text, None, None, Some("upstream failed"));
        check(r#"{"error":{"mess"#, Text, None, None, Some(r#"{"error":{"mess"#));
    }

    #[test]
    fn nesting_without_end_is_bounded() {
        let raw = format!("{}1{}", r#"{"error":"#.repeat(100), "}".repeat(100));
        assert_eq!(ErrorBody::parse(&raw).message, None);
    }

    #[test]
    fn google_quota_ids_and_delays_are_found() {
        let body = ErrorBody::parse(
            r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota","details":[
                {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDay"}]},
                {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"45.5s"}]}}"#,
        );
        assert_eq!(body.quota_ids, ["GenerateRequestsPerDay"]);
        assert_eq!(body.delay, Some(Duration::from_millis(45_500)));
        assert_eq!(body.provider_code(), Some("RESOURCE_EXHAUSTED"));
        assert_eq!(body.numeric_status(), Some(429));
    }
}
