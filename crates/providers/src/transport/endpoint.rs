//! Where a provider listens, checked before any request is made.

use std::{fmt, net::IpAddr};

use reqwest::Url;

/// The URL of a provider's API.
///
/// It prints as scheme, host and path: a query may carry a key.
///
/// ```
/// use turnbuckle_providers::transport::Endpoint;
///
/// let base = Endpoint::parse("https://api.example.com/v1/?key=abc").unwrap();
/// assert_eq!(base.join(&["chat", "completions"]).to_string(), "https://api.example.com/v1/chat/completions");
/// assert!(Endpoint::parse("api.example.com/v1").is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

/// Why a text is no [`Endpoint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.advice())]
#[non_exhaustive]
pub enum BadEndpoint {
    /// There is no scheme.
    NoScheme,
    /// Another scheme than `http` and `https`.
    Scheme,
    /// It has no host, or cannot be read at all.
    Unreadable,
    /// A user name or password in the URL would end up in logs of others.
    Userinfo,
}

impl BadEndpoint {
    /// What is wrong, and how to correct it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::NoScheme => "the base URL has no scheme; write https:// in front of it",
            Self::Scheme => "the base URL is neither http:// nor https://",
            Self::Unreadable => {
                "the base URL cannot be read; write it like https://api.example.com/v1"
            }
            Self::Userinfo => {
                "the base URL holds a user name or password; pass the key as a key, or as a header"
            }
        }
    }
}

impl Endpoint {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// A [`BadEndpoint`] that says how to correct it.
    pub fn parse(text: &str) -> Result<Self, BadEndpoint> {
        let text = text.trim();
        let (scheme, _) = text.split_once("://").ok_or(BadEndpoint::NoScheme)?;
        if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Err(BadEndpoint::Scheme);
        }
        let mut url = Url::parse(text).map_err(|_| BadEndpoint::Unreadable)?;
        if !url.has_host() {
            return Err(BadEndpoint::Unreadable);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadEndpoint::Userinfo);
        }
        url.set_fragment(None);
        Ok(Self(url))
    }

    /// This URL with more path segments, its query kept.
    #[must_use]
    pub fn join(&self, segments: &[&str]) -> Self {
        let mut url = self.0.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        Self(url)
    }

    /// The host's name or address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Whether it is on this machine: `localhost`, or a loopback address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.host().trim_start_matches('[').trim_end_matches(']');
        let named = host.eq_ignore_ascii_case("localhost") || host.ends_with(".localhost");
        named || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// The path, beginning with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.0.path()
    }

    pub(super) const fn url(&self) -> &Url {
        &self.0
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.0.scheme(), self.host())?;
        if let Some(port) = self.0.port() {
            write!(f, ":{port}")?;
        }
        f.write_str(self.path())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told_from_others() {
        let loopback = |url| Endpoint::parse(url).unwrap().is_loopback();
        for url in [
            "http://127.0.0.1:1/v1",
            "http://127.9.8.7/",
            "http://[::1]:1/",
            "http://LocalHost/",
            "http://a.localhost/",
        ] {
            assert!(loopback(url), "{url}");
        }
        for url in [
            "http://10.0.0.1/",
            "http://localhost.example.com/",
            "https://api.openai.com/v1",
            "http://notlocalhost/",
        ] {
            assert!(!loopback(url), "{url}");
        }
    }

    #[test]
    fn a_bad_url_says_how_to_correct_it() {
        for (text, expected) in [
            ("", BadEndpoint::NoScheme),
            ("api.openai.com/v1", BadEndpoint::NoScheme),
            ("localhost:8080", BadEndpoint::NoScheme),
            ("ftp://example.com", BadEndpoint::Scheme),
            ("file:///etc/passwd", BadEndpoint::Scheme),
            ("https://", BadEndpoint::Unreadable),
            ("https://exa mple.com", BadEndpoint::Unreadable),
            ("https://host:99999", BadEndpoint::Unreadable),
            ("https://user@example.com", BadEndpoint::Userinfo),
            ("https://:word@example.com", BadEndpoint::Userinfo),
        ] {
            assert_eq!(Endpoint::parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn joining_keeps_the_query_and_shows_none_of_it() {
        let base = Endpoint::parse(" HTTPS://Example.com:8443/openai/v1?api-version=1&k=s3cret#x ");
        let joined = base.unwrap().join(&["chat", "completions"]);
        assert_eq!(
            joined.url().as_str(),
            "https://example.com:8443/openai/v1/chat/completions?api-version=1&k=s3cret"
        );
        assert_eq!(
            format!("{joined:?}"),
            "Endpoint(https://example.com:8443/openai/v1/chat/completions)"
        );
        let bare = Endpoint::parse("http://127.0.0.1").unwrap();
        assert_eq!(bare.join(&["x"]).to_string(), "http://127.0.0.1/x");
    }
}
