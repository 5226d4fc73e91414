//! The real transport.

use std::{
    fmt,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt};
use reqwest::{
    Client, ClientBuilder,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use secrecy::ExposeSecret;
use turnbuckle_errors::Transport;

use super::{
    Endpoint, HttpRequest, HttpResponse, HttpTransport, ResponseHead, TransportError,
    cause::{Unresolved, transport_error},
    settings::{ReqwestTransportBuilder, Route, Settings},
    tls,
};
use crate::Clocks;

/// How often an HTTP/2 connection with open streams is pinged, and how long an
/// answer may take: a dead path is noticed in under a minute.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// HTTP/1.1 and HTTP/2 by reqwest, over rustls on ring.
///
/// Its own retries and redirects are off, the body has no total limit, and the
/// proxy settings of the environment are honoured. Make one and share it: it
/// holds the pool of connections.
///
/// ```
/// use turnbuckle_providers::{Clocks, transport::ReqwestTransport};
/// let transport = ReqwestTransport::new(&Clocks::default()).unwrap();
/// # let _ = transport;
/// ```
pub struct ReqwestTransport {
    client: Mutex<Client>,
    settings: Settings,
}

/// The HTTP client could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client could not be set up")]
pub struct SetupError(#[source] pub(super) Box<dyn std::error::Error + Send + Sync>);

/// A proxy answered 407.
#[derive(Debug, thiserror::Error)]
#[error(
    "the proxy wants a user name and a password (407): put them into its URL, \
     http://user:password@proxy.example:3128"
)]
struct PasswordWanted;

impl ReqwestTransport {
    /// A transport that gives up connecting after `clocks.connect`.
    ///
    /// # Errors
    ///
    /// A [`SetupError`] if the platform offers no usable TLS.
    pub fn new(clocks: &Clocks) -> Result<Self, SetupError> {
        Self::builder(clocks).build()
    }

    /// The same without the proxy settings of the environment, for servers on this
    /// machine.
    ///
    /// # Errors
    ///
    /// A [`SetupError`] if the platform offers no usable TLS.
    pub fn direct(clocks: &Clocks) -> Result<Self, SetupError> {
        Self::builder(clocks).direct().build()
    }

    /// The transport for a server: direct to one on this machine, else as the
    /// environment says. A proxy elsewhere could not reach ours, and must not see
    /// what is meant for it.
    ///
    /// # Errors
    ///
    /// A [`SetupError`] if the platform offers no usable TLS.
    pub fn for_server(endpoint: &Endpoint, clocks: &Clocks) -> Result<Self, SetupError> {
        if endpoint.is_loopback() { Self::direct(clocks) } else { Self::new(clocks) }
    }

    /// A transport with a proxy or root certificates of its own.
    pub const fn builder(clocks: &Clocks) -> ReqwestTransportBuilder {
        ReqwestTransportBuilder::new(clocks)
    }

    pub(super) fn with(settings: Settings) -> Result<Self, SetupError> {
        let client = build(&settings)?;
        Ok(Self { client: Mutex::new(client), settings })
    }

    fn client(&self) -> Client {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on the connections of `client` are the pool; those of the old one
    /// close when the streams on them end.
    fn replace(&self, client: Client) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }
}

impl fmt::Debug for ReqwestTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReqwestTransport").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpTransport for ReqwestTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let client = match request.fresh_connection {
            // A client of its own has an empty pool, and shares nothing but settings.
            true => build(&self.settings)
                .map_err(|error| TransportError::new(Transport::Other, Some(error.into())))?,
            false => self.client(),
        };
        let sent = client
            .post(request.endpoint.url().clone())
            .headers(header_map(&request)?)
            .body(request.body)
            .send()
            .await
            .map_err(transport_error)?;
        // Without TLS a proxy refuses in the place of the server, and only proxies
        // say 407.
        if sent.status() == 407 && request.endpoint.url().scheme() == "http" {
            return Err(TransportError::new(Transport::Proxy, Some(Box::new(PasswordWanted))));
        }
        if request.fresh_connection {
            self.replace(client);
        }
        let headers = sent.headers().iter().filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        let head = ResponseHead::new(sent.status().as_u16(), headers);
        Ok(HttpResponse::new(head, sent.bytes_stream().map_err(transport_error).boxed()))
    }
}

fn build(settings: &Settings) -> Result<Client, SetupError> {
    let tls = tls::client_config(&settings.roots).map_err(|error| SetupError(error.into()))?;
    let client = ClientBuilder::new()
        .tls_backend_preconfigured(tls)
        .dns_resolver(SystemResolver)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(settings.connect)
        .http2_keep_alive_interval(PING_EVERY)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .user_agent(concat!("turnbuckle/", env!("CARGO_PKG_VERSION")));
    let client = match (&settings.route, settings.proxy()?) {
        // A proxy of our own switches those of the environment off.
        (_, Some(proxy)) => client.proxy(proxy),
        (Route::Direct, None) => client.no_proxy(),
        _ => client,
    };
    client.build().map_err(|error| SetupError(error.into()))
}

/// The headers of a streaming JSON request, then those of the request itself.
fn header_map(request: &HttpRequest) -> Result<HeaderMap, TransportError> {
    let mut headers = HeaderMap::with_capacity(request.headers.len() + 3);
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("accept", HeaderValue::from_static("text/event-stream, application/json"));
    // A proxy that compresses a stream tends to hold it back; gzip is still read.
    headers.insert("accept-encoding", HeaderValue::from_static("identity"));
    for (name, value) in &request.headers {
        let unsendable = |source| TransportError::new(Transport::Other, Some(source));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| unsendable(e.into()))?;
        let mut value =
            HeaderValue::from_str(value.expose_secret()).map_err(|e| unsendable(e.into()))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The system's resolver. It is ours so that a name without an address has a type.
#[derive(Debug, Clone, Copy)]
struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let lookup: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await.map_err(Unresolved)?.collect();
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        });
        lookup
    }
}
