//! TLS by rustls on ring, with the roots of the platform.
//!
//! The platform's roots are read once per process (once more for each transport
//! with roots of its own), at the first TLS handshake: a program
//! that talks to a server on plain HTTP never pays for them.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use rustls_platform_verifier::Verifier;

/// The configuration of every connection: TLS 1.2 and 1.3, HTTP/2 before HTTP/1.1.
///
/// # Errors
///
/// If ring supports no protocol version, which would be a fault of the build.
pub(super) fn client_config(roots: &Arc<Roots>) -> Result<ClientConfig, Error> {
    let crypto = crypto();
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&crypto))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(roots) as _)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn crypto() -> Arc<CryptoProvider> {
    static RING: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(RING.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider())))
}

/// The platform's roots and more, read when they are first needed.
#[derive(Debug)]
pub(super) struct Roots {
    extra: Vec<CertificateDer<'static>>,
    /// With `extra`, which not every transport has.
    own: OnceLock<Result<Verifier, Error>>,
}

impl Roots {
    pub(super) const fn with(extra: Vec<CertificateDer<'static>>) -> Self {
        Self { extra, own: OnceLock::new() }
    }

    fn verifier(&self) -> Result<&Verifier, Error> {
        static PLATFORM: OnceLock<Result<Verifier, Error>> = OnceLock::new();
        let made = match self.extra.is_empty() {
            true => PLATFORM.get_or_init(|| Verifier::new(crypto())),
            false => self.own.get_or_init(|| {
                Verifier::new_with_extra_roots(self.extra.iter().cloned(), crypto())
            }),
        };
        made.as_ref().map_err(Clone::clone)
    }
}

impl ServerCertVerifier for Roots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verifier = self.verifier()?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        crypto().signature_verification_algorithms.supported_schemes()
    }
}
