//! Fields of spans that can hold no raw text.

use std::fmt;

use tracing::{Span, field::display};
use turnbuckle_errors::{ErrorCode, SafeText, SafeToken};

/// What a field of a span may hold: safe text, a code, our own words, a number.
///
/// Text from outside has no way in but as [`SafeText`]:
///
/// ```
/// use turnbuckle_diagnostics::{Redactor, record};
/// use turnbuckle_errors::SafeText;
///
/// let told = SafeText::redacted("key sk-proj-abcdefgh12345678 refused", &Redactor::default());
/// record(&tracing::Span::current(), "message", &told);
/// ```
///
/// ```compile_fail
/// use turnbuckle_diagnostics::record;
///
/// let from_outside = String::from("key sk-proj-abcdefgh12345678 refused");
/// record(&tracing::Span::current(), "message", from_outside);
/// ```
///
/// ```compile_fail
/// use turnbuckle_diagnostics::record;
///
/// let from_outside = String::from("key sk-proj-abcdefgh12345678 refused");
/// record(&tracing::Span::current(), "message", from_outside.as_str());
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum SafeField<'a> {
    /// Redacted, bounded text.
    Text(&'a SafeText),
    /// An identifier that looks like one.
    Token(&'a SafeToken),
    /// A code.
    Code(ErrorCode),
    /// Our own words.
    Literal(&'static str),
    /// A number.
    Number(u64),
}

/// Records a field of a span.
pub fn record<'a>(span: &Span, field: &'static str, value: impl Into<SafeField<'a>>) {
    span.record(field, display(value.into()));
}

impl fmt::Display for SafeField<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => text.fmt(f),
            Self::Token(token) => token.fmt(f),
            Self::Code(code) => code.fmt(f),
            Self::Literal(literal) => f.write_str(literal),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl<'a> From<&'a SafeText> for SafeField<'a> {
    fn from(text: &'a SafeText) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a SafeToken> for SafeField<'a> {
    fn from(token: &'a SafeToken) -> Self {
        Self::Token(token)
    }
}

impl From<ErrorCode> for SafeField<'_> {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl From<&'static str> for SafeField<'_> {
    fn from(literal: &'static str) -> Self {
        Self::Literal(literal)
    }
}

impl From<u64> for SafeField<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Redactor;

    #[test]
    fn a_field_shows_what_is_safe() {
        let redactor = Redactor::default();
        let text = SafeText::redacted("Authorization: Bearer canary-1234", &redactor);
        let token = SafeToken::new("req_1", &redactor).unwrap();
        let shown = [
            SafeField::from(&text),
            SafeField::from(&token),
            SafeField::from(ErrorCode::Timeout),
            SafeField::from("ours"),
            SafeField::from(7),
        ]
        .map(|field| field.to_string());
        assert_eq!(shown, ["Authorization: [redacted]", "req_1", "TIMEOUT", "ours", "7"]);
    }
}
