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
mod native;
mod request;
mod stream;
mod think;
mod usage;
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
    profiles::{Affinity, MaxTokensField},
};

/// A model behind `POST …/chat/completions`.
#[derive(Clone)]
pub struct OpenAiChat {
    id: &'static str,
    profile: Profile,
    connection: Connection,
}

impl OpenAiChat {
    /// An adapter for the API at `base_url`, the part before `/chat/completions`;
    /// a URL that ends in it is taken as well. Nothing is supposed of the server;
    /// for one that is known there is [`for_profile`](Self::for_profile).
    pub fn builder(base_url: impl Into<String>) -> OpenAiChatBuilder {
        let builder = Self::for_profile(&profiles::CUSTOM);
        OpenAiChatBuilder { id: "openai-chat", ..builder.base_url(base_url) }
    }

    /// An adapter for a server that is known, at its own address, with its quirks.
    ///
    /// ```
    /// use turnbuckle_providers::{Provider, openai_chat::OpenAiChat, profiles};
    ///
    /// let groq = OpenAiChat::for_profile(&profiles::GROQ).api_key("example-0000").build().unwrap();
    /// assert_eq!(groq.id(), "groq");
    /// assert!(OpenAiChat::for_profile(&profiles::AZURE).build().is_err(), "it has no address");
    /// ```
    pub fn for_profile(profile: &Profile) -> OpenAiChatBuilder {
        AdapterBuilder::of(profile, Options { profile: *profile })
    }

    /// Where the requests go.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.connection.endpoint
    }

    /// What is known of the server.
    #[must_use]
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The request on the wire, if the server can take it at all.
    fn http(&self, request: &ChatRequest) -> Result<HttpRequest, Failure> {
        let body = request::body(request, &self.profile, self.endpoint().host())
            .map_err(|unfit| self.connection.unfit(unfit.code(), &unfit))?;
        let affinity = match self.profile.affinity {
            Affinity::Header(name) => Some(name),
            _ => None,
        };
        let session_id = request.session_id.as_deref();
        Ok(self.connection.request(self.endpoint().clone(), body, affinity, session_id))
    }
}

#[async_trait]
impl Provider for OpenAiChat {
    fn id(&self) -> &str {
        self.id
    }

    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        let http = self.http(request)?;
        let chat = match self.profile.think_tags {
            true => stream::Chat::with_think_tags(),
            false => stream::Chat::default(),
        };
        let chat = chat.asking(self.profile.name, &request.model);
        self.connection.wire.open(http, attempt, chat).await
    }
}

impl fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiChat")
            .field("id", &self.id)
            .field("connection", &self.connection)
            .field("profile", &self.profile)
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

/// Makes an [`OpenAiChat`].
pub type OpenAiChatBuilder = AdapterBuilder<Options>;

/// What is known of the server.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    profile: Profile,
}

impl AdapterBuilder<Options> {
    /// The field for the limit of the answer.
    pub const fn max_tokens_field(mut self, field: MaxTokensField) -> Self {
        self.options.profile.output_cap = field;
        self
    }

    /// Whether and how the session id is sent.
    pub const fn affinity(mut self, affinity: Affinity) -> Self {
        self.options.profile.affinity = affinity;
        self
    }

    /// Whether a `<think>` at the start of the text means reasoning.
    pub const fn think_tags(mut self, think_tags: bool) -> Self {
        self.options.profile.think_tags = think_tags;
        self
    }
}

impl sealed::Sealed for Options {}

impl AdapterOptions for Options {
    type Adapter = OpenAiChat;

    fn adapter(builder: AdapterBuilder<Self>) -> Result<OpenAiChat, ConfigError> {
        let AdapterBuilder { id, key, settings, options: Self { profile } } = builder;
        let connection = settings.connect(&["chat", "completions"], key)?;
        Ok(OpenAiChat { id, profile, connection })
    }
}

/// The dialect as it is, and with every event parsed.
#[cfg(test)]
pub(crate) fn both_readings() -> [Box<dyn crate::answer::Dialect>; 2] {
    let dialect = || stream::Chat::with_think_tags().asking("a-profile", "m");
    [Box::new(dialect()), Box::new(dialect().without_template())]
}

#[cfg(test)]
mod tests;
