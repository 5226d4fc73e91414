//! The certificates of one server, good and bad, made when it starts.

use std::{io, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    select,
    sync::watch,
    time,
};
use tokio_rustls::TlsAcceptor;

use super::{socket::Socket, wire::CLOSE_WAIT};
use crate::behaviour::{Protocol, Tls};

const OUR_NAMES: &[&str] = &["localhost", "127.0.0.1", "::1"];

/// The certificates of one server, each behind its acceptor.
pub(super) struct Certificates {
    pub(super) ca_pem: String,
    good: TlsAcceptor,
    unknown_authority: TlsAcceptor,
    wrong_name: TlsAcceptor,
    expired: TlsAcceptor,
    not_yet_valid: TlsAcceptor,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Fresh keys and certificates for a server of this protocol.
    pub(super) fn make(protocol: Protocol) -> Result<Self, MakeError> {
        let (ours, ca_pem) = authority("turnbuckle-faults test authority")?;
        let (stranger, _) = authority("an authority that nobody knows")?;
        let acceptor = |issuer: &Authority, names: &[&str], years: Option<(i32, i32)>| {
            acceptor(issuer, names, years, protocol)
        };
        Ok(Self {
            good: acceptor(&ours, OUR_NAMES, None)?,
            unknown_authority: acceptor(&stranger, OUR_NAMES, None)?,
            wrong_name: acceptor(&ours, &["wrong.invalid"], None)?,
            expired: acceptor(&ours, OUR_NAMES, Some((2000, 2001)))?,
            not_yet_valid: acceptor(&ours, OUR_NAMES, Some((3000, 3001)))?,
            ca_pem,
        })
    }

    /// Shakes hands; `None` when no connection came of it.
    pub(super) async fn shake_hands(
        &self,
        mut tcp: TcpStream,
        tls: Tls,
        stop: &mut watch::Receiver<bool>,
    ) -> Option<Socket> {
        let acceptor = match tls {
            Tls::Good => &self.good,
            Tls::UnknownAuthority => &self.unknown_authority,
            Tls::WrongName => &self.wrong_name,
            Tls::Expired => &self.expired,
            Tls::NotYetValid => &self.not_yet_valid,
            Tls::HandshakeCut | Tls::Silence | Tls::Alert | Tls::NoTls => {
                select! {
                    () = spoil(&mut tcp, tls) => {}
                    _ = stop.wait_for(|stop| *stop) => {}
                }
                return None;
            }
        };
        select! {
            // A client that refuses the certificate says so, and that is all.
            shaken = acceptor.accept(tcp) => shaken.ok().map(|tls| Socket::Tls(Box::new(tls))),
            _ = stop.wait_for(|stop| *stop) => None,
        }
    }
}

/// A fatal alert: handshake_failure (RFC 8446, section 6).
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

/// Reads the start of the handshake, answers it wrongly or not at all, and waits for
/// the client to close.
async fn spoil(tcp: &mut TcpStream, tls: Tls) {
    let mut bytes = [0; 16 * 1024];
    if !matches!(tcp.read(&mut bytes).await, Ok(1..)) {
        return;
    }
    let answer: &[u8] = match tls {
        Tls::Alert => &ALERT,
        Tls::NoTls => b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        _ => &[],
    };
    // A client that has left already needs no answer.
    let _ = tcp.write_all(answer).await;
    if tls == Tls::Silence {
        while matches!(tcp.read(&mut bytes).await, Ok(1..)) {}
        return;
    }
    // A client that has left already needs no FIN.
    let _ = tcp.shutdown().await;
    let drained = async { while matches!(tcp.read(&mut bytes).await, Ok(1..)) {} };
    let _ = time::timeout(CLOSE_WAIT, drained).await;
}

type Authority = Issuer<'static, KeyPair>;

fn authority(name: &str) -> Result<(Authority, String), MakeError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let pem = params.self_signed(&key)?.pem();
    Ok((Issuer::new(params, key), pem))
}

fn acceptor(
    issuer: &Authority,
    names: &[&str],
    years: Option<(i32, i32)>,
    protocol: Protocol,
) -> Result<TlsAcceptor, MakeError> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    if let Some((from, to)) = years {
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(to, 1, 1);
    }
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    config.alpn_protocols = match protocol {
        Protocol::Http1 => vec![b"http/1.1".to_vec()],
        Protocol::Http2 => vec![b"h2".to_vec()],
    };
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The certificates could not be made, which would be a fault of the build.
#[derive(Debug, thiserror::Error)]
pub(super) enum MakeError {
    #[error(transparent)]
    Certificate(#[from] rcgen::Error),
    #[error(transparent)]
    Config(#[from] rustls::Error),
}

impl From<MakeError> for io::Error {
    fn from(error: MakeError) -> Self {
        Self::other(error)
    }
}
