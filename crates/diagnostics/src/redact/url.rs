//! A URL that prints masked.

use std::{fmt, str::FromStr};

use super::{
    MASK, Redactor,
    names::{Strength, strength},
};

/// A URL that prints without the secrets in it: user and password, the values of
/// parameters that carry keys, and whatever looks like a key elsewhere.
///
/// Any text may be held; a text that is no URL prints by the same rules.
///
/// ```
/// use turnbuckle_diagnostics::SafeUrl;
///
/// let url = SafeUrl::new("https://me:pw@host/v1?key=abc&alt=sse");
/// assert_eq!(url.to_string(), "https://[redacted]@host/v1?key=[redacted]&alt=sse");
/// assert!(url.expose().contains("me:pw"));
/// ```
///
/// ```compile_fail
/// use turnbuckle_diagnostics::SafeUrl;
/// let _: turnbuckle_errors::SafeText = SafeUrl::new("https://host").into();
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SafeUrl(String);

impl SafeUrl {
    /// Wraps a URL.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The URL itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The URL as it may be shown.
    #[must_use]
    pub fn masked(&self) -> String {
        let (main, fragment) = split_at_sign(&self.0, '#');
        let (address, query) = split_at_sign(main, '?');
        let mut shown = without_user(address);
        for (sign, parameters) in [('?', query), ('#', fragment)] {
            if let Some(parameters) = parameters {
                shown.push(sign);
                shown.push_str(&without_values(parameters));
            }
        }
        Redactor::default().redact_url(&shown).into_owned()
    }
}

fn split_at_sign(text: &str, sign: char) -> (&str, Option<&str>) {
    text.split_once(sign).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// `scheme://[redacted]@host/path`.
fn without_user(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(authority_end).unwrap_or((rest, ""));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{MASK}@{host}{path}"),
        None => format!("{scheme}{rest}"),
    }
}

fn without_values(parameters: &str) -> String {
    let masked = parameters.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, value)) if !value.is_empty() && carries_key(name) => format!("{name}={MASK}"),
        _ => parameter.to_owned(),
    });
    masked.collect::<Vec<_>>().join("&")
}

fn carries_key(name: &str) -> bool {
    matches!(
        strength(name.as_bytes()),
        Some(Strength::Header | Strength::Strong | Strength::Weak | Strength::Query)
    )
}

impl From<String> for SafeUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl From<&str> for SafeUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl FromStr for SafeUrl {
    type Err = std::convert::Infallible;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        Ok(Self::from(url))
    }
}

impl fmt::Display for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SafeUrl({})", self.masked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_query_and_fragment_are_masked_and_the_rest_stays() {
        for (url, shown) in [
            ("http://h:80/v1", "http://h:80/v1"),
            ("http://user@h/", "http://[redacted]@h/"),
            (
                "postgres://u:p@h:5/db?sslmode=require",
                "postgres://[redacted]@h:5/db?sslmode=require",
            ),
            ("https://h/p?a=1&sig=x&b", "https://h/p?a=1&sig=[redacted]&b"),
            ("https://h/cb#access_token=t&state=s", "https://h/cb#access_token=[redacted]&state=s"),
            ("https://h/@scope/pkg@1.0", "https://h/@scope/pkg@1.0"),
            ("u:p@h", "[redacted]@h"),
            ("", ""),
        ] {
            assert_eq!(SafeUrl::new(url).to_string(), shown);
        }
    }
}
