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
use turnbuckle_errors::{ErrorCode, Failure, Redact};

pub use super::settings::ConfigError;
use super::{
    builder::{AdapterBuilder, AdapterOptions, sealed},
    settings::Connection,
};
pub use crate::intake::{BodyEnding, FailedAnswer};
use crate::{
    AttemptContext, ChatRequest, CompletedMessage, EventStream, Provider,
    intake::decode_recorded,
    profiles::{self, Profile},
    transport::{Endpoint, ResponseHead},
};

/// The dialect's name in [`Native`](crate::Native) parts.
const DIALECT: &str = "anthropic";

/// The version of the API that is spoken here.
const VERSION: &str = "2023-06-01";

/// A model behind `POST …/v1/messages`.
#[derive(Debug, Clone)]
pub struct Anthropic {
    id: &'static str,
    connection: Connection,
    options: Options,
}

/// What this dialect alone can be told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
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
    /// In this header.
    Header(&'static str),
    /// Not at all.
    Off,
}

impl Anthropic {
    /// An adapter for Anthropic's own API.
    pub fn builder() -> AnthropicBuilder {
        AnthropicBuilder { id: DIALECT, ..Self::for_profile(&profiles::ANTHROPIC) }
    }

    /// An adapter for a kind of server that is known; it bears the profile's name.
    pub fn for_profile(profile: &Profile) -> AnthropicBuilder {
        let affinity = match profile.affinity {
            profiles::Affinity::Header(name) => Affinity::Header(name),
            profiles::Affinity::Off => Affinity::Off,
            _ => Affinity::ByHost,
        };
        AdapterBuilder::of(profile, Options { affinity, default_limit: None })
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
        self.id
    }

    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        let body = request::body(request, self.options, self.endpoint().host())
            .map_err(|refused| self.connection.unfit(code(&refused), &refused))?;
        let affinity = match self.options.affinity {
            Affinity::Header(name) => Some(name),
            _ => None,
        };
        let session_id = request.session_id.as_deref();
        let mut http = self.connection.request(self.endpoint().clone(), body, affinity, session_id);
        // First, so that a header of the host replaces it.
        http.headers.insert(0, ("anthropic-version".to_owned(), VERSION.into()));
        self.connection.wire.open(http, attempt, stream::Messages::new(&request.model)).await
    }
}

const fn code(refused: &schema::Refused) -> ErrorCode {
    match refused {
        schema::Refused::Json => ErrorCode::Internal,
        _ => ErrorCode::InvalidRequest,
    }
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

/// Makes an [`Anthropic`].
pub type AnthropicBuilder = AdapterBuilder<Options>;

impl AdapterBuilder<Options> {
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
}

impl sealed::Sealed for Options {}

impl AdapterOptions for Options {
    type Adapter = Anthropic;

    fn adapter(builder: AdapterBuilder<Self>) -> Result<Anthropic, ConfigError> {
        let AdapterBuilder { id, key, settings, options } = builder;
        let connection = settings.connect(&["messages"], key)?;
        Ok(Anthropic { id, connection, options })
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
