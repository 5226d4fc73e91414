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
mod wire;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use secrecy::{ExposeSecret as _, SecretString};
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
        let mut settings = Settings::new(profile.name, profile.base_url.unwrap_or_default());
        if let Some(byte_idle) = profile.byte_idle {
            settings.clocks.byte_idle = byte_idle;
        }
        OpenAiChatBuilder { id: profile.name, profile: *profile, settings, user_agent: None }
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
        let body = request::body(request, &self.profile, self.endpoint().host());
        let body = body.map_err(|unfit| {
            let message = SafeText::redacted(&unfit.to_string(), &*self.connection.wire.redact);
            Failure::new(unfit.code(), message)
                .with_phase(Phase::Request)
                .with_details(|details| details.delivered = Some(Delivered::No))
        })?;
        let mut http = HttpRequest::new(self.endpoint().clone(), body);
        http.headers.clone_from(&self.connection.headers);
        if let (Affinity::Header(name), Some(session)) =
            (self.profile.affinity, &request.session_id)
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

/// Makes an [`OpenAiChat`]; every wrong setting is found in [`build`](Self::build),
/// before any request.
#[derive(Debug)]
#[must_use]
pub struct OpenAiChatBuilder {
    id: &'static str,
    profile: Profile,
    settings: Settings,
    user_agent: Option<String>,
}

impl OpenAiChatBuilder {
    /// Another address, for a server of the profile's kind that stands elsewhere.
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.settings.base_url = base_url.into();
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

    /// The field for the limit of the answer.
    pub const fn max_tokens_field(mut self, field: MaxTokensField) -> Self {
        self.profile.output_cap = field;
        self
    }

    /// Whether and how the session id is sent.
    pub const fn affinity(mut self, affinity: Affinity) -> Self {
        self.profile.affinity = affinity;
        self
    }

    /// Whether a `<think>` at the start of the text means reasoning.
    pub const fn think_tags(mut self, think_tags: bool) -> Self {
        self.profile.think_tags = think_tags;
        self
    }

    /// Checks the settings and makes the adapter. Nothing is sent.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] that names the setting. As a [`Failure`] it reads
    /// `PROVIDER_SECRET_INVALID` for a key that cannot be sent, else `INVALID_CONFIG`.
    pub fn build(self) -> Result<OpenAiChat, ConfigError> {
        let Self { id, profile, settings, user_agent } = self;
        let key = KeyHeader { name: profile.key.header, prefix: profile.key.prefix };
        let mut connection = settings.connect(&["chat", "completions"], key)?;
        if let Some(user_agent) = user_agent {
            let value = SecretString::from(user_agent);
            if value.expose_secret().is_empty() || !header_is_sendable("user-agent", &value) {
                return Err(ConfigError::Header);
            }
            connection.headers.push(("user-agent".to_owned(), value));
        }
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
