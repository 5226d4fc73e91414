//! Anthropic Messages, and the gateways that speak it.
//!
//! ```
//! use turnbuckle_providers::anthropic::Anthropic;
//!
//! let provider = Anthropic::builder()
//!     .api_key("sk-ant-example-0000")
//!     .header("anthropic-beta", "context-1m-2025-08-07")
//!     .build()
//!     .unwrap();
//! assert!(!format!("{provider:?}").contains("sk-ant-example"));
//! ```

mod blocks;
mod conversation;
mod facts;
mod request;
mod schema;
mod stream;
mod thinking;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use secrecy::SecretString;
use turnbuckle_errors::{ErrorCode, Failure, Redact, SafeText};

pub use super::settings::ConfigError;
use super::settings::{Connection, KeyHeader, Settings};
pub use crate::intake::{BodyEnding, FailedAnswer};
use crate::{
    AttemptContext, ChatRequest, Clocks, CompletedMessage, EventStream, Provider,
    intake::decode_recorded,
    transport::{Endpoint, HttpRequest, HttpTransport, ResponseHead},
};

/// The dialect's name in [`Native`](crate::Native) parts.
const DIALECT: &str = "anthropic";

/// Anthropic's own API.
const BASE_URL: &str = "https://api.anthropic.com/v1";

/// The version of the API that is spoken here.
const VERSION: &str = "2023-06-01";

/// A model behind `POST …/v1/messages`.
#[derive(Debug, Clone)]
pub struct Anthropic {
    connection: Connection,
    options: Options,
}

#[derive(Debug, Clone, Copy, Default)]
struct Options {
    affinity: Affinity,
    default_limit: Option<u32>,
}

/// Whether the session id is sent. This API finds its cache without it; gateways
/// in front of several servers choose by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Affinity {
    /// As `metadata.user_id` to `api.anthropic.com`, and to nobody else.
    #[default]
    ByHost,
    /// As `metadata.user_id`.
    UserId,
    /// Not at all.
    Off,
}

impl Anthropic {
    /// An adapter for Anthropic's own API.
    pub fn builder() -> AnthropicBuilder {
        AnthropicBuilder { settings: Settings::new(DIALECT, BASE_URL), options: Options::default() }
    }

    /// Where the requests go.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.connection.endpoint
    }
}

#[async_trait]
impl Provider for Anthropic {
    fn id(&self) -> &str {
        DIALECT
    }

    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        let Connection { endpoint, headers, wire } = &self.connection;
        let body = request::body(request, self.options, endpoint.host())
            .map_err(|refused| refusal(&refused, &*wire.redact))?;
        let mut http = HttpRequest::new(endpoint.clone(), body);
        http.headers.push(("anthropic-version".to_owned(), VERSION.into()));
        http.headers.extend_from_slice(headers);
        wire.open(http, attempt, stream::Messages::new(&request.model)).await
    }
}

fn refusal(refused: &schema::Refused, redact: &dyn Redact) -> Failure {
    let code = match refused {
        schema::Refused::Json => ErrorCode::Internal,
        _ => ErrorCode::InvalidRequest,
    };
    Failure::new(code, SafeText::redacted(&refused.to_string(), redact))
}

/// Decodes a body that is already here, by the code that reads the socket.
///
/// For conformance checks and for replaying recordings; `pieces` may cut the body
/// anywhere, and `model` is the one that was asked.
///
/// # Errors
///
/// The failure that an attempt would have ended with, and what it had received.
#[doc(hidden)]
pub fn decode_body(
    head: ResponseHead,
    pieces: impl IntoIterator<Item = Bytes>,
    ending: BodyEnding,
    model: &str,
    redact: Arc<dyn Redact>,
) -> Result<CompletedMessage, FailedAnswer> {
    decode_recorded(head, pieces, ending, stream::Messages::new(model), redact)
}

/// Makes an [`Anthropic`]; every wrong setting is found in [`build`](Self::build),
/// before any request.
#[must_use]
#[derive(Debug)]
pub struct AnthropicBuilder {
    settings: Settings,
    options: Options,
}

impl AnthropicBuilder {
    /// The API of a gateway: the part before `/messages`; a URL that ends in it is
    /// taken as well.
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.settings.base_url = base_url.into();
        self
    }

    /// The key, sent as `x-api-key`. Without one no such header is sent.
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.settings.api_key = Some(key.into());
        self
    }

    /// Another header, for example `anthropic-beta`, or the `authorization` of a
    /// gateway; its value is kept as secret as the key. A header of the same name
    /// that we would send ourselves is replaced.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> Self {
        self.settings.headers.push((name.into(), value.into()));
        self
    }

    /// How long an attempt waits for what.
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
    pub fn transport(mut self, transport: Arc<dyn HttpTransport>) -> Self {
        self.settings.transport = Some(transport);
        self
    }

    /// Whether the session id is sent.
    pub const fn affinity(mut self, affinity: Affinity) -> Self {
        self.options.affinity = affinity;
        self
    }

    /// The most tokens of an answer where a request names no limit: this API insists
    /// on one. Without it the adapter takes what the model's generation allows, at
    /// most 32,000.
    pub const fn default_max_tokens(mut self, tokens: u32) -> Self {
        self.options.default_limit = Some(tokens);
        self
    }

    /// Checks the settings and makes the adapter. Nothing is sent.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] that names the setting. As a [`Failure`] it reads
    /// `PROVIDER_SECRET_INVALID` for a key that cannot be sent, else `INVALID_CONFIG`.
    pub fn build(self) -> Result<Anthropic, ConfigError> {
        const KEY: KeyHeader = KeyHeader { name: "x-api-key", prefix: "" };
        let connection = self.settings.connect(&["messages"], KEY)?;
        Ok(Anthropic { connection, options: self.options })
    }
}

/// The dialect as it is, and with every event parsed.
#[cfg(test)]
pub(crate) fn both_readings() -> [Box<dyn crate::answer::Dialect>; 2] {
    let dialect = || stream::Messages::new("m");
    [Box::new(dialect()), Box::new(dialect().without_template())]
}

#[cfg(test)]
mod tests;
