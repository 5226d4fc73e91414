//! Google's Gemini API (`generateContent`), and what speaks it: Vertex AI, and
//! gateways in front of either.
//!
//! What a model wrote that only it can read, thought signatures above all, is kept
//! in the message's [`Native`](crate::Native) parts and sent back byte for byte.
//!
//! Not every wish has a field in this API: parallel calls cannot be switched off,
//! and caching needs no asking for. Explicit caches go through `extra_body`
//! (`cachedContent`), as do fields of `generationConfig` that have no place in a
//! [`ChatRequest`]; they are merged into ours.
//!
//! ```
//! use turnbuckle_providers::gemini::Gemini;
//!
//! let provider = Gemini::builder()
//!     .api_key("AIza-example-0000")
//!     .header("x-team", "blue")
//!     .build()
//!     .unwrap();
//! let base = provider.endpoint().to_string();
//! assert_eq!(base, "https://generativelanguage.googleapis.com/v1beta");
//! assert!(!format!("{provider:?}").contains("AIza-example"));
//! ```

mod facts;
mod kept;
mod pieces;
mod request;
mod schema;
mod stream;
mod wire;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};
use turnbuckle_errors::{Delivered, ErrorCode, Failure, Phase, Redact, SafeText};

pub use super::settings::ConfigError;
use super::settings::{Connection, KeyHeader, Settings};
pub use crate::intake::{BodyEnding, FailedAnswer};
use crate::{
    AttemptContext, ChatRequest, Clocks, CompletedMessage, EventStream, Provider,
    intake::decode_recorded,
    profiles::{self, Affinity, Profile},
    transport::{Endpoint, HttpRequest, HttpTransport, ResponseHead, header_is_sendable},
};

/// The name of the dialect, and of the adapter.
const DIALECT: &str = "gemini";

/// A model behind `POST …/models/{model}:streamGenerateContent`.
#[derive(Clone)]
pub struct Gemini {
    id: &'static str,
    connection: Connection,
    affinity: Affinity,
}

impl Gemini {
    /// An adapter for Google's own API, unless a base URL says otherwise.
    pub fn builder() -> GeminiBuilder {
        GeminiBuilder { id: DIALECT, ..Self::for_profile(&profiles::GEMINI) }
    }

    /// An adapter for a kind of server that is known; it bears the profile's name.
    pub fn for_profile(profile: &Profile) -> GeminiBuilder {
        let mut settings = Settings::new(profile.name, profile.base_url.unwrap_or_default());
        if let Some(byte_idle) = profile.byte_idle {
            settings.clocks.byte_idle = byte_idle;
        }
        GeminiBuilder {
            id: profile.name,
            key: KeyHeader { name: profile.key.header, prefix: profile.key.prefix },
            settings,
            user_agent: None,
            affinity: profile.affinity,
        }
    }

    /// What the requests' URLs begin with; the model's name comes after it.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.connection.endpoint
    }

    fn http(&self, request: &ChatRequest) -> Result<HttpRequest, request::Refused> {
        let path = request::path(&request.model)?;
        let mut segments: Vec<&str> = path.iter().map(String::as_str).collect();
        // A base URL may end in `/models` already.
        let models = self.endpoint().path().trim_end_matches('/').ends_with("/models");
        if models && segments.first() == Some(&"models") {
            segments.remove(0);
        }
        let body = request::body(request)?;
        let mut http = HttpRequest::new(self.endpoint().join(&segments), body);
        http.headers.clone_from(&self.connection.headers);
        if let (Affinity::Header(name), Some(session)) = (self.affinity, &request.session_id) {
            let value = SecretString::from(session.clone());
            // An id that no header can carry finds no cache; the request is fine.
            if header_is_sendable(name, &value) {
                http.headers.push((name.to_owned(), value));
            }
        }
        Ok(http)
    }
}

#[async_trait]
impl Provider for Gemini {
    fn id(&self) -> &str {
        self.id
    }

    /// Besides what every adapter can fail with: `INVALID_REQUEST`, before anything
    /// is sent, for a tool schema or a response format that this API cannot be told
    /// (the message names the tool and the place in it), and for a model name that
    /// no path can hold.
    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        let http = self.http(request).map_err(|refused| {
            let told = SafeText::redacted(&refused.to_string(), &*self.connection.wire.redact);
            Failure::new(ErrorCode::InvalidRequest, told)
                .with_phase(Phase::Request)
                .with_details(|details| details.delivered = Some(Delivered::No))
        })?;
        self.connection.wire.open(http, attempt, stream::Responses::new(&request.model)).await
    }
}

impl fmt::Debug for Gemini {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gemini")
            .field("id", &self.id)
            .field("connection", &self.connection)
            .field("affinity", &self.affinity)
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
    decode_recorded(head, pieces, ending, stream::Responses::new(""), redact)
}

/// Makes a [`Gemini`]; every wrong setting is found in [`build`](Self::build),
/// before any request.
#[derive(Debug)]
#[must_use]
pub struct GeminiBuilder {
    id: &'static str,
    key: KeyHeader,
    settings: Settings,
    user_agent: Option<String>,
    affinity: Affinity,
}

impl GeminiBuilder {
    /// The part of the URL before `/models/…`; for Vertex AI it ends in
    /// `/publishers/google`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.settings.base_url = url.into();
        self
    }

    /// The key, sent as the profile says, else as `x-goog-api-key`, and never in the
    /// URL. Vertex AI wants a token in its place: `header("authorization", "Bearer …")`.
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.settings.api_key = Some(key.into());
        self
    }

    /// Another header; its value is kept as secret as the key. A header of the same
    /// name that we would send ourselves is replaced.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> Self {
        self.settings.headers.push((name.into(), value.into()));
        self
    }

    /// What is sent as `User-Agent`; `turnbuckle/VERSION` without it.
    pub fn user_agent(mut self, user_agent: impl Into<String>) -> Self {
        self.user_agent = Some(user_agent.into());
        self
    }

    /// How the session id is sent. This API has no field for it, so that only
    /// [`Affinity::Header`], for a gateway in front of it, sends anything.
    pub const fn affinity(mut self, affinity: Affinity) -> Self {
        self.affinity = affinity;
        self
    }

    /// How long an attempt waits for what, in place of the defaults and of what the
    /// profile knows.
    pub const fn clocks(mut self, clocks: Clocks) -> Self {
        self.settings.clocks = clocks;
        self
    }

    /// Masks secrets in what servers say. The key and the header values are masked
    /// besides, whatever this one knows.
    pub fn redactor(mut self, redactor: Arc<dyn Redact>) -> Self {
        self.settings.redactor = Some(redactor);
        self
    }

    /// Sends through `transport`, for instance one that is shared with others.
    /// Without it the adapter makes its own
    /// [`ReqwestTransport`](crate::transport::ReqwestTransport).
    pub fn transport(mut self, transport: Arc<dyn HttpTransport>) -> Self {
        self.settings.transport = Some(transport);
        self
    }

    /// Checks the settings and makes the adapter. Nothing is sent.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] that names the setting. As a [`Failure`] it reads
    /// `PROVIDER_SECRET_INVALID` for a key that cannot be sent, else `INVALID_CONFIG`.
    pub fn build(self) -> Result<Gemini, ConfigError> {
        let Self { id, key, mut settings, user_agent, affinity } = self;
        settings.base_url = for_events(&settings.base_url);
        let mut connection = settings.connect(&[], key)?;
        if let Some(user_agent) = user_agent {
            let value = SecretString::from(user_agent);
            if value.expose_secret().is_empty() || !header_is_sendable("user-agent", &value) {
                return Err(ConfigError::Header);
            }
            connection.headers.push(("user-agent".to_owned(), value));
        }
        Ok(Gemini { id, connection, affinity })
    }
}

/// The base URL with `alt=sse` in its query, which asks for an event stream.
fn for_events(url: &str) -> String {
    let url = url.trim().split('#').next().unwrap_or_default();
    let (before, query) = url.split_once('?').unwrap_or((url, ""));
    let others = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("alt="));
    let pairs: Vec<&str> = others.chain(["alt=sse"]).collect();
    format!("{before}?{}", pairs.join("&"))
}

/// The dialect as it is, and with every event parsed.
#[cfg(test)]
pub(crate) fn both_readings() -> [Box<dyn crate::answer::Dialect>; 2] {
    let dialect = || stream::Responses::new("m");
    [Box::new(dialect()), Box::new(dialect().without_template())]
}

#[cfg(test)]
mod tests;
