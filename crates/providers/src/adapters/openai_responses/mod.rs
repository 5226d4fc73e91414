//! OpenAI Responses, and the servers that speak it: Azure OpenAI, xAI, OpenRouter,
//! LM Studio, llama.cpp, vLLM and others.
//!
//! Nothing is stored at the server (`store: false`): what a model has to see again,
//! encrypted reasoning and item ids among it, is kept in the message's
//! [`Native`](crate::Native) parts and sent back byte for byte.
//!
//! ```
//! use turnbuckle_providers::openai_responses::OpenAiResponses;
//!
//! let provider = OpenAiResponses::builder()
//!     .api_key("sk-example-0000")
//!     .header("x-team", "blue")
//!     .build()
//!     .unwrap();
//! assert_eq!(provider.endpoint().to_string(), "https://api.openai.com/v1/responses");
//! assert!(!format!("{provider:?}").contains("sk-example"));
//! ```

mod facts;
mod items;
mod request;
mod stream;
mod strict;
mod wire;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};
use turnbuckle_errors::{Delivered, Failure, Phase, Redact, SafeText};

pub use super::settings::ConfigError;
use super::settings::{Connection, KeyHeader, Settings};
use crate::{
    AttemptContext, ChatRequest, Clocks, CompletedMessage, EventStream, Provider,
    intake::decode_recorded,
    profiles::{self, Profile},
    transport::{Endpoint, HttpRequest, HttpTransport, ResponseHead, header_is_sendable},
};
pub use crate::{
    intake::{BodyEnding, FailedAnswer},
    profiles::Affinity,
};

/// The name of the dialect, and of the adapter.
const DIALECT: &str = "openai-responses";

/// A model behind `POST …/responses`.
#[derive(Clone)]
pub struct OpenAiResponses {
    id: &'static str,
    connection: Connection,
    options: Options,
}

/// What differs between the servers that speak this dialect.
#[derive(Debug, Clone, Default)]
struct Options {
    affinity: Affinity,
    encrypted_reasoning: EncryptedReasoning,
    reasoning_summary: Option<String>,
}

/// Whether the server is asked for its reasoning in encrypted form, the only one in
/// which OpenAI takes it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EncryptedReasoning {
    /// Unless the model's name is that of one which does not reason (`gpt-4.1`,
    /// `gpt-4o`, …): OpenAI refuses the wish there.
    #[default]
    ByModel,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl OpenAiResponses {
    /// An adapter for OpenAI, until another [base
    /// URL](OpenAiResponsesBuilder::base_url) is set.
    pub fn builder() -> OpenAiResponsesBuilder {
        let builder = Self::for_profile(&profiles::OPENAI);
        OpenAiResponsesBuilder { id: DIALECT, ..builder }.affinity(Affinity::ByHost)
    }

    /// An adapter for a kind of server that is known; it bears the profile's name.
    pub fn for_profile(profile: &Profile) -> OpenAiResponsesBuilder {
        let mut settings = Settings::new(profile.name, profile.base_url.unwrap_or_default());
        if let Some(byte_idle) = profile.byte_idle {
            settings.clocks.byte_idle = byte_idle;
        }
        OpenAiResponsesBuilder {
            id: profile.name,
            key: KeyHeader { name: profile.key.header, prefix: profile.key.prefix },
            settings,
            user_agent: None,
            options: Options { affinity: profile.affinity, ..Options::default() },
        }
    }

    /// Where the requests go.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.connection.endpoint
    }
}

impl OpenAiResponses {
    /// The request on the wire, if this API can take it at all.
    fn http(&self, request: &ChatRequest) -> Result<HttpRequest, Failure> {
        let Connection { endpoint, headers, wire } = &self.connection;
        let body = request::body(request, &self.options, endpoint.host()).map_err(|unfit| {
            let message = SafeText::redacted(&unfit.to_string(), &*wire.redact);
            Failure::new(unfit.code(), message)
                .with_phase(Phase::Request)
                .with_details(|details| details.delivered = Some(Delivered::No))
        })?;
        let mut http = HttpRequest::new(endpoint.clone(), body);
        http.headers.clone_from(headers);
        if let (Affinity::Header(name), Some(session)) =
            (self.options.affinity, &request.session_id)
        {
            let value = SecretString::from(session.clone());
            // It only helps a cache, so one that cannot be sent is left out.
            if header_is_sendable(name, &value) {
                http.headers.push((name.to_owned(), value));
            }
        }
        Ok(http)
    }
}

#[async_trait]
impl Provider for OpenAiResponses {
    fn id(&self) -> &str {
        self.id
    }

    /// Besides what every adapter can fail with: `INVALID_REQUEST`, before anything
    /// is sent, for a tool schema that this API cannot take (the message names the
    /// tool and the place in it) and for stop texts, which it does not know.
    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        let http = self.http(request)?;
        self.connection.wire.open(http, attempt, stream::Responses::new(&request.model)).await
    }
}

impl fmt::Debug for OpenAiResponses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiResponses")
            .field("id", &self.id)
            .field("connection", &self.connection)
            .field("options", &self.options)
            .finish()
    }
}

/// Decodes a body that is already here, by the code that reads the socket.
///
/// For conformance checks and for replaying recordings; `pieces` may cut the body
/// anywhere. Opaque parts are kept for a model without a name.
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

/// Makes an [`OpenAiResponses`]; every wrong setting is found in
/// [`build`](Self::build), before any request.
#[derive(Debug)]
#[must_use]
pub struct OpenAiResponsesBuilder {
    id: &'static str,
    key: KeyHeader,
    user_agent: Option<String>,
    settings: Settings,
    options: Options,
}

impl OpenAiResponsesBuilder {
    /// The API's address, the part before `/responses`; a URL that ends in it is
    /// taken as well. That of the profile if it is not set.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.settings.base_url = url.into();
        self
    }

    /// The key, sent as the profile says, else as `Authorization: Bearer …`. Without
    /// one no such header is sent, as local servers like it.
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

    /// Whether and how the session id is sent.
    pub const fn affinity(mut self, affinity: Affinity) -> Self {
        self.options.affinity = affinity;
        self
    }

    /// Whether encrypted reasoning is asked for.
    pub const fn encrypted_reasoning(mut self, wish: EncryptedReasoning) -> Self {
        self.options.encrypted_reasoning = wish;
        self
    }

    /// Asks for summaries of the reasoning, in the provider's word (`auto`,
    /// `concise`, `detailed`). Without it none is asked for: OpenAI shows them to
    /// verified organisations only, and refuses the request of any other.
    pub fn reasoning_summary(mut self, word: impl Into<String>) -> Self {
        self.options.reasoning_summary = Some(word.into());
        self
    }

    /// Checks the settings and makes the adapter. Nothing is sent.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] that names the setting. As a [`Failure`] it reads
    /// `PROVIDER_SECRET_INVALID` for a key that cannot be sent, else `INVALID_CONFIG`.
    pub fn build(self) -> Result<OpenAiResponses, ConfigError> {
        let Self { id, key, user_agent, settings, options } = self;
        let mut connection = settings.connect(&["responses"], key)?;
        if let Some(user_agent) = user_agent {
            let value = SecretString::from(user_agent);
            if value.expose_secret().is_empty() || !header_is_sendable("user-agent", &value) {
                return Err(ConfigError::Header);
            }
            connection.headers.push(("user-agent".to_owned(), value));
        }
        Ok(OpenAiResponses { id, connection, options })
    }
}

/// The dialect as it is, and with every event parsed.
#[cfg(test)]
pub(crate) fn both_readings() -> [Box<dyn crate::answer::Dialect>; 2] {
    let dialect = || stream::Responses::new("m");
    [Box::new(dialect()), Box::new(dialect().without_template())]
}

#[cfg(test)]
mod tests;
