//! How a transport is set up.

use std::{fmt, sync::Arc, time::Duration};

use reqwest::Proxy;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use secrecy::{ExposeSecret, SecretString};

use super::{ReqwestTransport, SetupError, tls::Roots};
use crate::Clocks;

/// Makes a [`ReqwestTransport`]; every wrong setting is found in
/// [`build`](Self::build), before any request.
///
/// ```
/// use turnbuckle_providers::{Clocks, transport::ReqwestTransport};
///
/// let error = ReqwestTransport::builder(&Clocks::default())
///     .proxy("http://proxy.example:3128")
///     .root_certificates_pem("not a certificate")
///     .build()
///     .unwrap_err();
/// assert!(std::error::Error::source(&error).unwrap().to_string().contains("-----BEGIN CERTIFICATE-----"));
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ReqwestTransportBuilder {
    connect: Duration,
    route: Route,
    pem: Vec<Vec<u8>>,
}

/// By which way servers are reached.
#[derive(Debug, Clone)]
pub(super) enum Route {
    /// As the environment says.
    Environment,
    Direct,
    /// The proxy's URL may hold a password.
    Proxy(SecretString),
}

/// What every client of one transport is made with.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) connect: Duration,
    pub(super) route: Route,
    pub(super) roots: Arc<Roots>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("connect", &self.connect)
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl ReqwestTransportBuilder {
    pub(super) const fn new(clocks: &Clocks) -> Self {
        Self { connect: clocks.connect, route: Route::Environment, pem: Vec::new() }
    }

    /// Ignores the proxy settings of the environment, for servers on this machine.
    pub fn direct(mut self) -> Self {
        self.route = Route::Direct;
        self
    }

    /// Reaches every server through this proxy, whatever the environment says:
    /// `http://`, `https://` or `socks5h://`, with user name and password in the URL
    /// where it wants them.
    pub fn proxy(mut self, url: impl Into<SecretString>) -> Self {
        self.route = Route::Proxy(url.into());
        self
    }

    /// Trusts these authorities besides those of the platform, for instance that of
    /// a company whose proxy opens TLS. The PEM may hold several certificates.
    pub fn root_certificates_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.pem.push(pem.into());
        self
    }

    /// The transport.
    ///
    /// # Errors
    ///
    /// A [`SetupError`] if the platform offers no usable TLS, the proxy's URL cannot
    /// be read, or a PEM holds no certificate.
    pub fn build(self) -> Result<ReqwestTransport, SetupError> {
        let mut extra = Vec::new();
        for pem in &self.pem {
            extra.extend(certificates(pem)?);
        }
        let (connect, route) = (self.connect, self.route);
        ReqwestTransport::with(Settings { connect, route, roots: Arc::new(Roots::with(extra)) })
    }
}

impl Settings {
    pub(super) fn proxy(&self) -> Result<Option<Proxy>, SetupError> {
        let Route::Proxy(url) = &self.route else { return Ok(None) };
        match Proxy::all(url.expose_secret()) {
            Ok(proxy) => Ok(Some(proxy)),
            // What is wrong with it may be shown, the URL itself may not.
            Err(_) => Err(SetupError(BadSetting::Proxy.into())),
        }
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, SetupError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|source| SetupError(BadSetting::Pem(source).into()))?;
    if read.is_empty() {
        return Err(SetupError(BadSetting::NoCertificate.into()));
    }
    for certificate in &read {
        let mut store = rustls::RootCertStore::empty();
        store.add(certificate.clone()).map_err(|e| SetupError(BadSetting::Root(e).into()))?;
    }
    Ok(read)
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
enum BadSetting {
    #[error("the proxy's URL cannot be read; write it like http://proxy.example:3128")]
    Proxy,
    #[error(
        "the PEM of the root certificates holds none; it has parts that begin with \
         -----BEGIN CERTIFICATE-----"
    )]
    NoCertificate,
    #[error("the PEM of the root certificates is broken; give the file as the authority made it")]
    Pem(#[source] rustls::pki_types::pem::Error),
    #[error("a root certificate cannot be used; give that of the authority itself, in PEM")]
    Root(#[source] rustls::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(builder: ReqwestTransportBuilder) -> String {
        let error = builder.build().unwrap_err();
        std::error::Error::source(&error).unwrap().to_string()
    }

    #[test]
    fn a_wrong_setting_is_found_before_any_request_and_says_what_is_right() {
        let builder = || ReqwestTransport::builder(&Clocks::default());
        let message = refused(builder().root_certificates_pem(""));
        assert!(message.contains("BEGIN CERTIFICATE"), "{message}");
        let torn = "-----BEGIN CERTIFICATE-----\nAAAA";
        let message = refused(builder().root_certificates_pem(torn));
        assert!(message.contains("broken"), "{message}");
        let foreign = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let message = refused(builder().root_certificates_pem(foreign));
        assert!(message.contains("authority itself"), "{message}");
        let message = refused(builder().proxy("http://user:s3cret@:0:"));
        assert!(message.contains("http://proxy.example:3128") && !message.contains("s3cret"));
    }

    #[test]
    fn the_password_of_a_proxy_is_not_printed() {
        let builder =
            ReqwestTransport::builder(&Clocks::default()).proxy("http://user:s3cret@localhost:1");
        assert!(!format!("{builder:?}").contains("s3cret"));
        assert!(!format!("{:?}", builder.build().unwrap()).contains("s3cret"));
    }
}
