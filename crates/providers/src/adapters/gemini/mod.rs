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
    profiles::{self, Affinity, Profile},
    transport::{Endpoint, HttpRequest, ResponseHead},
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
        AdapterBuilder::of(profile, Options { affinity: profile.affinity })
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
        let endpoint = self.endpoint().join(&segments);
        let affinity = match self.affinity {
            Affinity::Header(name) => Some(name),
            _ => None,
        };
        Ok(self.connection.request(endpoint, body, affinity, request.session_id.as_deref()))
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
        let http = self
            .http(request)
            .map_err(|refused| self.connection.unfit(ErrorCode::InvalidRequest, &refused))?;
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

/// Makes a [`Gemini`].
///
/// The base URL for Vertex AI ends in `/publishers/google`, and in the place of the key
/// it wants a token: `header("authorization", "Bearer …")`.
pub type GeminiBuilder = AdapterBuilder<Options>;

/// What this dialect alone can be told.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    affinity: Affinity,
}

impl AdapterBuilder<Options> {
    /// How the session id is sent. This API has no field for it, so that only
    /// [`Affinity::Header`], for a gateway in front of it, sends anything.
    pub const fn affinity(mut self, affinity: Affinity) -> Self {
        self.options.affinity = affinity;
        self
    }
}

impl sealed::Sealed for Options {}

impl AdapterOptions for Options {
    type Adapter = Gemini;

    fn adapter(builder: AdapterBuilder<Self>) -> Result<Gemini, ConfigError> {
        let AdapterBuilder { id, key, mut settings, options: Self { affinity } } = builder;
        settings.base_url = for_events(&settings.base_url);
        let connection = settings.connect(&[], key)?;
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
