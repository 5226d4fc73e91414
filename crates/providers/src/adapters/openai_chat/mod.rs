//! OpenAI Chat Completions, and the many servers that speak it.
//!
//! ```
//! use turnbuckle_providers::openai_chat::OpenAiChat;
//!
//! let provider = OpenAiChat::builder("https://api.openai.com/v1")
//!     .api_key("sk-example-0000")
//!     .header("x-team", "blue")
//!     .build()
//!     .unwrap();
//! assert!(!format!("{provider:?}").contains("sk-example"));
//! ```

mod facts;
mod request;
mod stream;
mod think;
mod wire;

use std::{borrow::Cow, fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};
use turnbuckle_diagnostics::Redactor;
use turnbuckle_errors::{ErrorCode, Failure, Redact, SafeText};

pub use crate::intake::{BodyEnding, FailedAnswer};
use crate::{
    AttemptContext, ChatRequest, Clocks, CompletedMessage, EventStream, Provider,
    attempt::Wire,
    intake::decode_recorded,
    transport::{
        BadEndpoint, Endpoint, HttpRequest, HttpTransport, ReqwestTransport, ResponseHead,
        SetupError, header_is_sendable,
    },
};

/// A model behind `POST …/chat/completions`.
#[derive(Clone)]
pub struct OpenAiChat {
    endpoint: Endpoint,
    headers: Vec<(String, SecretString)>,
    options: Options,
    wire: Wire,
}

/// What differs between the servers that speak this dialect.
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    max_tokens: MaxTokensField,
    affinity: Affinity,
}

/// The field in which a server reads the limit of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MaxTokensField {
    /// `max_tokens`, which nearly every server knows.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's reasoning models insist on.
    MaxCompletionTokens,
}

/// Whether the session id is sent, so that a request finds the cache of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Affinity {
    /// As `prompt_cache_key` to `api.openai.com`, and to nobody else: strict servers
    /// refuse fields that they do not know.
    #[default]
    ByHost,
    /// As `prompt_cache_key`.
    PromptCacheKey,
    /// Not at all.
    Off,
}

impl OpenAiChat {
    /// An adapter for the API at `base_url`, the part before `/chat/completions`;
    /// a URL that ends in it is taken as well.
    pub fn builder(base_url: impl Into<String>) -> OpenAiChatBuilder {
        OpenAiChatBuilder {
            base_url: base_url.into(),
            api_key: None,
            headers: Vec::new(),
            clocks: Clocks::default(),
            redactor: None,
            transport: None,
            options: Options::default(),
        }
    }

    /// Where the requests go.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

#[async_trait]
impl Provider for OpenAiChat {
    fn id(&self) -> &str {
        "openai-chat"
    }

    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        let body = request::body(request, self.options, self.endpoint.host()).map_err(|_| {
            Failure::new(ErrorCode::Internal, "the request could not be written as JSON")
        })?;
        let mut http = HttpRequest::new(self.endpoint.clone(), body);
        http.headers.clone_from(&self.headers);
        self.wire.open(http, attempt, stream::Chat::default()).await
    }
}

impl fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("OpenAiChat")
            .field("endpoint", &self.endpoint)
            .field("headers", &names)
            .field("options", &self.options)
            .field("wire", &self.wire)
            .finish()
    }
}

/// Decodes a body that is already here, by the code that reads the socket.
///
/// For conformance checks and for replaying recordings; `pieces` may cut the body
/// anywhere.
///
/// # Errors
///
/// The failure that an attempt would have ended with, and what it had received.
#[doc(hidden)]
pub fn decode_body(
    head: ResponseHead,
    pieces: impl IntoIterator<Item = Bytes>,
    ending: BodyEnding,
    redact: Arc<dyn Redact>,
) -> Result<CompletedMessage, FailedAnswer> {
    decode_recorded(head, pieces, ending, stream::Chat::default(), redact)
}

/// Makes an [`OpenAiChat`]; every wrong setting is found in [`build`](Self::build),
/// before any request.
#[must_use]
pub struct OpenAiChatBuilder {
    base_url: String,
    api_key: Option<SecretString>,
    headers: Vec<(String, SecretString)>,
    clocks: Clocks,
    redactor: Option<Arc<dyn Redact>>,
    transport: Option<Arc<dyn HttpTransport>>,
    options: Options,
}

impl OpenAiChatBuilder {
    /// The key, sent as `Authorization: Bearer …`. Without one no such header is
    /// sent, as local servers like it.
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Another header; its value is kept as secret as the key. A header of the same
    /// name that we would send ourselves is replaced.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// How long an attempt waits for what.
    pub const fn clocks(mut self, clocks: Clocks) -> Self {
        self.clocks = clocks;
        self
    }

    /// Masks secrets in what servers say. The key and the header values are masked
    /// besides, whatever this one knows.
    pub fn redactor(mut self, redactor: Arc<dyn Redact>) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Sends through `transport`, for instance one that is shared with others.
    /// Without it the adapter makes its own [`ReqwestTransport`].
    pub fn transport(mut self, transport: Arc<dyn HttpTransport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// The field for the limit of the answer.
    pub const fn max_tokens_field(mut self, field: MaxTokensField) -> Self {
        self.options.max_tokens = field;
        self
    }

    /// Whether the session id is sent.
    pub const fn affinity(mut self, affinity: Affinity) -> Self {
        self.options.affinity = affinity;
        self
    }

    /// Checks the settings and makes the adapter. Nothing is sent.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] that names the setting. As a [`Failure`] it reads
    /// `PROVIDER_SECRET_INVALID` for a key that cannot be sent, else `INVALID_CONFIG`.
    pub fn build(self) -> Result<OpenAiChat, ConfigError> {
        const PATH: &[&str] = &["chat", "completions"];
        let base = Endpoint::parse(&self.base_url).map_err(ConfigError::BaseUrl)?;
        let whole = base.path().trim_end_matches('/').ends_with("/chat/completions");
        let endpoint = if whole { base } else { base.join(PATH) };

        let mut headers = Vec::with_capacity(self.headers.len() + 1);
        if let Some(key) = &self.api_key {
            headers.push(("authorization".to_owned(), bearer(key)?));
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
        let wire = Wire { transport, clocks: self.clocks, redact };
        Ok(OpenAiChat { endpoint, headers, options: self.options, wire })
    }
}

impl fmt::Debug for OpenAiChatBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The base URL is unchecked yet, and may hold a password.
        f.debug_struct("OpenAiChatBuilder")
            .field("has_key", &self.api_key.is_some())
            .field("clocks", &self.clocks)
            .field("options", &self.options)
            .finish_non_exhaustive()
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

/// The key as a header value; what stands around it (a line break of a file) is no
/// part of it.
fn bearer(key: &SecretString) -> Result<SecretString, ConfigError> {
    let key = key.expose_secret().trim();
    if key.is_empty() {
        return Err(ConfigError::EmptyKey);
    }
    let value = SecretString::from(format!("Bearer {key}"));
    let plain = !key.bytes().any(|b| b.is_ascii_whitespace());
    match plain && header_is_sendable("authorization", &value) {
        true => Ok(value),
        false => Err(ConfigError::UnsendableKey),
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

#[cfg(test)]
mod tests;
