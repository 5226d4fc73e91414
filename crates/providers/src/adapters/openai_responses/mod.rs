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
use turnbuckle_errors::{Failure, Redact};

pub use super::settings::ConfigError;
use super::{
    builder::{AdapterBuilder, AdapterOptions, sealed},
    settings::Connection,
};
use crate::{
    AttemptContext, ChatRequest, CompletedMessage, EventStream, Provider,
    intake::decode_recorded,
    profiles::{self, Profile},
    transport::{Endpoint, HttpRequest, ResponseHead},
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
pub struct Options {
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
    /// URL](AdapterBuilder::base_url) is set.
    pub fn builder() -> OpenAiResponsesBuilder {
        let builder = Self::for_profile(&profiles::OPENAI);
        OpenAiResponsesBuilder { id: DIALECT, ..builder }.affinity(Affinity::ByHost)
    }

    /// An adapter for a kind of server that is known; it bears the profile's name.
    pub fn for_profile(profile: &Profile) -> OpenAiResponsesBuilder {
        let options = Options { affinity: profile.affinity, ..Options::default() };
        AdapterBuilder::of(profile, options)
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
        let endpoint = self.endpoint();
        let body = request::body(request, &self.options, endpoint.host())
            .map_err(|unfit| self.connection.unfit(unfit.code(), &unfit))?;
        let affinity = match self.options.affinity {
            Affinity::Header(name) => Some(name),
            _ => None,
        };
        let session_id = request.session_id.as_deref();
        Ok(self.connection.request(endpoint.clone(), body, affinity, session_id))
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

/// Makes an [`OpenAiResponses`].
pub type OpenAiResponsesBuilder = AdapterBuilder<Options>;

impl AdapterBuilder<Options> {
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
}

impl sealed::Sealed for Options {}

impl AdapterOptions for Options {
    type Adapter = OpenAiResponses;

    fn adapter(builder: AdapterBuilder<Self>) -> Result<OpenAiResponses, ConfigError> {
        let AdapterBuilder { id, key, settings, options } = builder;
        let connection = settings.connect(&["responses"], key)?;
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
