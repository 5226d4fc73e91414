//! The one HTTP call that an attempt makes, behind a trait.
//!
//! [`ReqwestTransport`] is the real one; only this module knows reqwest, hyper,
//! h2 and rustls. A transport neither retries nor follows redirects: attempts
//! belong to the runtime, and a key belongs to one server.

mod cause;
mod endpoint;
mod reqwest;
mod settings;
mod tls;

use std::{error::Error, fmt};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use secrecy::{ExposeSecret, SecretString};
use turnbuckle_errors::{Clock, Fact, Transport};

pub use self::{
    endpoint::{BadEndpoint, Endpoint},
    reqwest::{ReqwestTransport, SetupError},
    settings::ReqwestTransportBuilder,
};

/// Sends one request and gives its response as it comes.
#[async_trait]
pub trait HttpTransport: Send + Sync + fmt::Debug {
    /// Sends `request` and returns once the response head came, whatever its
    /// status.
    ///
    /// Cancel safety: dropping the future, or the response's body, closes the
    /// connection (an HTTP/2 stream is reset).
    ///
    /// # Errors
    ///
    /// A [`TransportError`] with its typed cause if no response head came.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError>;
}

/// A `POST` with a JSON body.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpRequest {
    /// Where to.
    pub endpoint: Endpoint,
    /// Names and values, besides those that the transport sets itself. Every value
    /// is kept secret.
    pub headers: Vec<(String, SecretString)>,
    /// The body; shared, so that sending it again costs no copy.
    pub body: Bytes,
    /// Whether a pooled connection may not be used.
    pub fresh_connection: bool,
}

impl HttpRequest {
    /// A request without headers, which may use a pooled connection.
    #[must_use]
    pub const fn new(endpoint: Endpoint, body: Bytes) -> Self {
        Self { endpoint, headers: Vec::new(), body, fresh_connection: false }
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpRequest")
            .field("endpoint", &self.endpoint)
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .field("fresh_connection", &self.fresh_connection)
            .finish()
    }
}

/// A response whose head came.
#[non_exhaustive]
pub struct HttpResponse {
    /// Status and headers.
    pub head: ResponseHead,
    /// The body, decompressed, in the pieces in which it arrives.
    pub body: BoxStream<'static, Result<Bytes, TransportError>>,
}

impl HttpResponse {
    /// A response, for transports of your own.
    #[must_use]
    pub const fn new(
        head: ResponseHead,
        body: BoxStream<'static, Result<Bytes, TransportError>>,
    ) -> Self {
        Self { head, body }
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse").field("head", &self.head).finish_non_exhaustive()
    }
}

/// Status and headers of a response.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ResponseHead {
    /// The HTTP status.
    pub status: u16,
    headers: Vec<(String, String)>,
}

impl ResponseHead {
    /// A head; header names are compared without case.
    #[must_use]
    pub fn new(status: u16, headers: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { status, headers: headers.into_iter().collect() }
    }

    /// The first value of a header, if it came and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether the status is 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Debug for ResponseHead {
    /// Header names alone: a server may echo anything in their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ResponseHead")
            .field("status", &self.status)
            .field("headers", &names)
            .finish()
    }
}

/// The connection failed, before the response head or in the body.
pub struct TransportError {
    cause: Cause,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What a [`TransportError`] comes down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    ConnectTimeout,
    Transport(Transport),
}

impl TransportError {
    /// A failed connection. The texts of `source` may reach reports, redacted.
    #[must_use]
    pub fn new(cause: Transport, source: Option<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: Cause::Transport(cause), source }
    }

    /// No connection came about within the clock `connect`.
    #[must_use]
    pub fn connect_timeout(source: Option<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: Cause::ConnectTimeout, source }
    }

    /// The fact that the classifier decides on.
    #[must_use]
    pub const fn fact(&self) -> Fact {
        match self.cause {
            Cause::ConnectTimeout => Fact::Clock(Clock::Connect),
            Cause::Transport(cause) => Fact::Transport(cause),
        }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection to the provider failed")
    }
}

impl fmt::Debug for TransportError {
    /// The cause alone: the texts below it come from outside.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TransportError").field(&self.cause).finish()
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// Whether a header can be sent as it is.
#[must_use]
pub fn header_is_sendable(name: &str, value: &SecretString) -> bool {
    ::reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_ok()
        && value.expose_secret().is_ascii()
        && ::reqwest::header::HeaderValue::from_str(value.expose_secret()).is_ok()
}
