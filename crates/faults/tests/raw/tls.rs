//! TLS whose records are read off the socket and fed to the library by hand.

use std::{io::Read as _, io::Write as _, sync::Arc};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use turnbuckle_faults::FaultServer;

use crate::client::{HANG, request, serve};

fn client(server: &FaultServer) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(server.ca_pem().unwrap().as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    ClientConnection::new(Arc::new(config), ServerName::try_from("127.0.0.1").unwrap()).unwrap()
}

/// The bytes under TLS, and what came of them.
struct Beneath {
    raw: Vec<u8>,
    text: Vec<u8>,
    /// Whether `close_notify` came.
    notified: bool,
    refused: Option<rustls::Error>,
}

/// Shakes hands, asks, and reads to the end of the connection.
async fn listen(fault: &str) -> Beneath {
    let server = serve(fault).await;
    let mut tls = client(&server);
    let mut tcp = TcpStream::connect(server.addr()).await.unwrap();
    tls.writer().write_all(request().as_bytes()).unwrap();
    let mut seen = Beneath { raw: Vec::new(), text: Vec::new(), notified: false, refused: None };
    loop {
        let mut out = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut out).unwrap();
        }
        // A server that has left needs no more.
        let _ = tcp.write_all(&out).await;
        let mut bytes = Vec::new();
        let read = timeout(HANG, tcp.read_buf(&mut bytes)).await.expect("the server hangs");
        if read.unwrap() == 0 {
            return seen;
        }
        seen.raw.extend_from_slice(&bytes);
        let mut rest = &*bytes;
        while !rest.is_empty() && seen.refused.is_none() {
            tls.read_tls(&mut rest).unwrap();
            match tls.process_new_packets() {
                Ok(state) => {
                    let mut plain = vec![0; state.plaintext_bytes_to_read()];
                    tls.reader().read_exact(&mut plain).unwrap();
                    seen.text.extend(plain);
                    seen.notified |= state.peer_has_closed();
                }
                Err(error) => seen.refused = Some(error),
            }
        }
    }
}

#[tokio::test]
async fn tls_close_without_notify_is_a_fin_after_whole_records() {
    let seen = listen("tls_close_without_notify").await;
    assert!(!seen.notified);
    assert_eq!(seen.refused, None);
    assert!(seen.text.ends_with(b"}\n\n\r\n"), "{}", String::from_utf8_lossy(&seen.text));
    // Each record: its type, two bytes of version, two of length.
    let mut rest = &*seen.raw;
    while let [_, 3, 3, high, low, ..] = *rest {
        rest = &rest[5 + usize::from(u16::from_be_bytes([high, low]))..];
    }
    assert!(rest.is_empty(), "{rest:?}");
}

#[tokio::test]
async fn tls_close_before_status_is_a_fin_without_a_byte_of_http() {
    let seen = listen("tls_close_before_status").await;
    assert!(!seen.notified && seen.text.is_empty());
}

#[tokio::test]
async fn tls_bad_record_is_64_bytes_of_no_type() {
    let seen = listen("tls_bad_record").await;
    assert!(seen.raw.ends_with(&[0xff; 64]));
    assert!(seen.text.ends_with(b"}\n\n\r\n"));
    assert!(seen.refused.is_some());
}

#[tokio::test]
async fn tls_bad_record_before_status_is_all_that_answers_the_request() {
    let seen = listen("tls_bad_record_before_status").await;
    assert!(seen.raw.ends_with(&[0xff; 64]) && seen.text.is_empty());
    assert!(seen.refused.is_some());
}

/// What a server answers to the first message of a handshake.
async fn answered(fault: &str) -> Vec<u8> {
    let server = serve(fault).await;
    let mut tls = client(&server);
    let mut tcp = TcpStream::connect(server.addr()).await.unwrap();
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    tcp.write_all(&hello).await.unwrap();
    let mut bytes = Vec::new();
    let read = timeout(HANG, tcp.read_to_end(&mut bytes)).await.expect("the server hangs");
    read.unwrap();
    bytes
}

#[tokio::test]
async fn a_handshake_is_answered_by_an_alert_by_http_or_by_nothing() {
    // A fatal alert of seven bytes: handshake_failure.
    assert_eq!(answered("tls_alert").await, [21, 3, 3, 0, 2, 2, 40]);
    assert!(answered("tls_not_spoken").await.starts_with(b"HTTP/1.1 400 "));
    assert_eq!(answered("tls_handshake_cut").await, b"");
}
