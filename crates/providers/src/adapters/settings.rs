//! The settings that every adapter takes, checked once before any request.

use std::{borrow::Cow, fmt, sync::Arc};

use secrecy::{ExposeSecret, SecretString};
use turnbuckle_diagnostics::Redactor;
use turnbuckle_errors::{ErrorCode, Failure, Redact, SafeText};

use crate::{
    Clocks,
    attempt::Wire,
    transport::{
        BadEndpoint, Endpoint, HttpTransport, ReqwestTransport, SetupError, header_is_sendable,
    },
};

/// The settings as a builder collects them. Its `Debug` shows none of them but the
/// clocks: the base URL is unchecked, and may hold a password.
pub(crate) struct Settings {
    /// The kind of server, by the name of its profile.
    provider: &'static str,
    pub(crate) base_url: String,
    pub(crate) api_key: Option<SecretString>,
    pub(crate) headers: Vec<(String, SecretString)>,
    pub(crate) clocks: Clocks,
    pub(crate) redactor: Option<Arc<dyn Redact>>,
    pub(crate) transport: Option<Arc<dyn HttpTransport>>,
}

/// Where a dialect puts the key: `name: prefix key`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyHeader {
    pub(crate) name: &'static str,
    pub(crate) prefix: &'static str,
}

/// Checked settings: what every request is made with.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint,
    /// The key's header first; a later header of the same name replaces it.
    pub(crate) headers: Vec<(String, SecretString)>,
    pub(crate) wire: Wire,
}

impl Settings {
    /// For a kind of server, by the name of its profile.
    pub(crate) fn new(provider: &'static str, base_url: impl Into<String>) -> Self {
        Self {
            provider,
            base_url: base_url.into(),
            api_key: None,
            headers: Vec::new(),
            clocks: Clocks::default(),
            redactor: None,
            transport: None,
        }
    }

    /// Checks them. `path` is added to the base URL unless that ends in it already.
    pub(crate) fn connect(self, path: &[&str], key: KeyHeader) -> Result<Connection, ConfigError> {
        let base = Endpoint::parse(&self.base_url).map_err(ConfigError::BaseUrl)?;
        let ending = format!("/{}", path.join("/"));
        let whole = base.path().trim_end_matches('/').ends_with(&ending);
        let endpoint = if whole { base } else { base.join(path) };

        let mut headers = Vec::with_capacity(self.headers.len() + 1);
        if let Some(secret) = &self.api_key {
            headers.push((key.name.to_owned(), key.value(secret)?));
        }
        for (name, value) in &self.headers {
            if !header_is_sendable(name, value) {
                return Err(ConfigError::Header);
            }
            headers.push((name.clone(), value.clone()));
        }

        let secrets = self.api_key.iter().chain(self.headers.iter().map(|(_, value)| value));
        let ours = Redactor::new(secrets.cloned());
        let redact: Arc<dyn Redact> = match self.redactor {
            Some(theirs) => Arc::new(Both { ours, theirs }),
            None => Arc::new(ours),
        };
        let transport = match self.transport {
            Some(transport) => transport,
            None => Arc::new(
                ReqwestTransport::for_server(&endpoint, &self.clocks)
                    .map_err(ConfigError::Transport)?,
            ),
        };
        let wire = Wire { transport, clocks: self.clocks, redact, provider: self.provider };
        Ok(Connection { endpoint, headers, wire })
    }
}

impl KeyHeader {
    /// The key as a header value; what stands around it (a line break of a file) is
    /// no part of it.
    fn value(self, key: &SecretString) -> Result<SecretString, ConfigError> {
        let key = key.expose_secret().trim();
        if key.is_empty() {
            return Err(ConfigError::EmptyKey);
        }
        let value = SecretString::from(format!("{}{key}", self.prefix));
        let plain = !key.bytes().any(|b| b.is_ascii_whitespace());
        match plain && header_is_sendable(self.name, &value) {
            true => Ok(value),
            false => Err(ConfigError::UnsendableKey),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("has_key", &self.api_key.is_some())
            .field("clocks", &self.clocks)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Connection")
            .field("endpoint", &self.endpoint)
            .field("headers", &names)
            .field("wire", &self.wire)
            .finish()
    }
}

/// A setting of an adapter that cannot be right.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.advice())]
#[non_exhaustive]
pub enum ConfigError {
    /// The base URL.
    BaseUrl(BadEndpoint),
    /// The key is empty.
    EmptyKey,
    /// The key holds what no header can carry.
    UnsendableKey,
    /// A header cannot be sent as it is.
    Header,
    /// The HTTP client could not be set up.
    Transport(#[source] SetupError),
}

impl ConfigError {
    /// What is wrong, and how to correct it.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::BaseUrl(bad) => bad.advice(),
            Self::EmptyKey => "the key is empty; set it, or leave it out for a server without keys",
            Self::UnsendableKey => {
                "the key holds a space, a line break or a character outside ASCII; copy it again"
            }
            Self::Header => {
                "a header has a name or a value that cannot be sent; use plain ASCII on one line"
            }
            Self::Transport(_) => "the HTTP client could not be set up",
        }
    }

    /// The code that a failure made of it carries.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::EmptyKey | Self::UnsendableKey => ErrorCode::ProviderSecretInvalid,
            Self::BaseUrl(_) | Self::Header => ErrorCode::InvalidConfig,
            Self::Transport(_) => ErrorCode::Internal,
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::new(error.code(), SafeText::from(error.advice()))
    }
}

/// Our secrets first, then whatever the host knows.
struct Both {
    ours: Redactor,
    theirs: Arc<dyn Redact>,
}

impl Redact for Both {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.ours.redact(text) {
            Cow::Borrowed(same) => self.theirs.redact(same),
            Cow::Owned(masked) => Cow::Owned(self.theirs.redact(&masked).into_owned()),
        }
    }
}
