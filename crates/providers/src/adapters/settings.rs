//! The settings that every adapter takes, checked once before any request.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};
use turnbuckle_diagnostics::Redactor;
use turnbuckle_errors::{Delivered, ErrorCode, Failure, Phase, Redact, SafeText};

use crate::{
    Clocks,
    attempt::Wire,
    transport::{
        BadEndpoint, Endpoint, HttpRequest, HttpTransport, ReqwestTransport, SetupError,
        header_is_sendable,
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
    pub(crate) user_agent: Option<String>,
    pub(crate) clocks: Clocks,
    pub(crate) redactor: Option<Arc<dyn Redact>>,
    pub(crate) transport: Option<Arc<dyn HttpTransport>>,
}

/// The session id as the `prompt_cache_key` of OpenAI's two dialects, where it is sent
/// as one.
#[cfg(any(feature = "openai-chat", feature = "openai-responses"))]
pub(crate) fn cache_key<'a>(
    session_id: Option<&'a str>,
    affinity: crate::profiles::Affinity,
    host: &str,
) -> Option<&'a str> {
    use crate::profiles::Affinity;

    /// The host that is known to take it.
    const OPENAI: &str = "api.openai.com";
    /// OpenAI refuses a longer one.
    const MAX_CHARS: usize = 64;
    let keyed = match affinity {
        Affinity::ByHost => host == OPENAI,
        Affinity::PromptCacheKey => true,
        _ => false,
    };
    let id = session_id.filter(|_| keyed)?;
    let end = id.char_indices().nth(MAX_CHARS).map_or(id.len(), |(at, _)| at);
    id.get(..end)
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
            user_agent: None,
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

        let mut headers = Vec::with_capacity(self.headers.len() + 2);
        if let Some(secret) = &self.api_key {
            headers.push((key.name.to_owned(), key.value(secret)?));
        }
        for (name, value) in &self.headers {
            if !header_is_sendable(name, value) {
                return Err(ConfigError::Header);
            }
            headers.push((name.clone(), value.clone()));
        }

        if let Some(user_agent) = self.user_agent {
            let value = SecretString::from(user_agent);
            if value.expose_secret().is_empty() || !header_is_sendable("user-agent", &value) {
                return Err(ConfigError::Header);
            }
            headers.push(("user-agent".to_owned(), value));
        }

        let values = self.headers.into_iter().map(|(_, value)| value);
        let secrets = self.api_key.into_iter().chain(values).collect();
        let ours = Known { secrets, redactor: OnceLock::new() };
        let redact = Arc::new(Both { ours, theirs: self.redactor });
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

impl Connection {
    /// A request with the headers of every request, and the session id in the header
    /// `affinity`, if it has one.
    pub(crate) fn request(
        &self,
        endpoint: Endpoint,
        body: Bytes,
        affinity: Option<&str>,
        session_id: Option<&str>,
    ) -> HttpRequest {
        let mut http = HttpRequest::new(endpoint, body);
        http.headers.clone_from(&self.headers);
        if let (Some(name), Some(session)) = (affinity, session_id) {
            let value = SecretString::from(session);
            // It only helps a cache, so one that cannot be sent is left out.
            if header_is_sendable(name, &value) {
                http.headers.push((name.to_owned(), value));
            }
        }
        http
    }

    /// The failure of a request that was never sent, because the API cannot be asked
    /// this.
    pub(crate) fn unfit(&self, code: ErrorCode, why: &dyn fmt::Display) -> Failure {
        Failure::new(code, SafeText::redacted(&why.to_string(), &*self.wire.redact))
            .with_phase(Phase::Request)
            .with_details(|details| details.delivered = Some(Delivered::No))
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

/// The key and the header values. What finds them is made when something is first
/// looked at, which is a failure: a run without one does without it.
struct Known {
    secrets: Vec<SecretString>,
    redactor: OnceLock<Redactor>,
}

impl Redact for Known {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let made = || Redactor::new(self.secrets.iter().cloned());
        self.redactor.get_or_init(made).redact(text)
    }
}

/// Our secrets first, then whatever the host knows.
struct Both {
    ours: Known,
    theirs: Option<Arc<dyn Redact>>,
}

impl Redact for Both {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(theirs) = &self.theirs else { return self.ours.redact(text) };
        match self.ours.redact(text) {
            Cow::Borrowed(same) => theirs.redact(same),
            Cow::Owned(masked) => Cow::Owned(theirs.redact(&masked).into_owned()),
        }
    }
}
