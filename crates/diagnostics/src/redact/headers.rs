//! Header lists, for logs.

use std::borrow::Cow;

use super::{
    MASK, Redactor,
    engine::Place,
    names::{Strength, strength},
};

impl Redactor {
    /// The value of the header `name` as it may be logged.
    ///
    /// A header made to carry a key is masked whole, whatever is in it; in any
    /// other, known secrets of every length and what looks like a secret.
    ///
    /// ```
    /// let redactor = turnbuckle_diagnostics::Redactor::default();
    /// assert_eq!(redactor.redact_header("X-Api-Key", "abc"), "[redacted]");
    /// assert_eq!(redactor.redact_header("accept", "text/event-stream"), "text/event-stream");
    /// ```
    #[must_use]
    pub fn redact_header<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        match strength(name.as_bytes()) {
            Some(Strength::Header | Strength::Strong) if !value.is_empty() => Cow::Borrowed(MASK),
            Some(Strength::Weak) if value.len() >= 8 => Cow::Borrowed(MASK),
            _ => self.redact_in(value, Place::HeaderOrUrl),
        }
    }

    /// Header names and values as they may be logged, in their order.
    #[must_use]
    pub fn redact_headers<N: AsRef<str>, V: AsRef<str>>(
        &self,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Vec<(String, String)> {
        headers
            .into_iter()
            .map(|(name, value)| {
                let (name, value) = (name.as_ref(), value.as_ref());
                (name.to_owned(), self.redact_header(name, value).into_owned())
            })
            .collect()
    }

    /// A URL as it may be logged: known secrets of every length are masked in it.
    #[must_use]
    pub fn redact_url<'a>(&self, url: &'a str) -> Cow<'a, str> {
        self.redact_in(url, Place::HeaderOrUrl)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    #[test]
    fn a_short_secret_goes_in_headers_and_urls_only() {
        let redactor = Redactor::new([SecretString::from("abc12")]);
        assert_eq!(redactor.redact_header("x-other", "id=abc12"), "id=[redacted]");
        assert_eq!(redactor.redact_url("https://h/abc12?x=1"), "https://h/[redacted]?x=1");
        use turnbuckle_errors::Redact as _;
        assert_eq!(
            redactor.redact("see https://h/p?x=abc12 now"),
            "see https://h/p?x=[redacted] now"
        );
        assert_eq!(redactor.redact("x-other: abc12\nabc12"), "x-other: [redacted]\nabc12");
        assert_eq!(redactor.redact("the abc12 stays"), "the abc12 stays");
    }

    #[test]
    fn a_list_keeps_its_order_and_its_innocent_values() {
        let redactor = Redactor::default();
        let headers = [
            ("Content-Type", "application/json"),
            ("Authorization", "Bearer x"),
            ("Set-Cookie", "a=b"),
            ("x-request-id", "req_0123456789abcdef"),
        ];
        let masked = redactor.redact_headers(headers);
        let values: Vec<&str> = masked.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["application/json", MASK, MASK, "req_0123456789abcdef"]);
    }
}
