//! Handshakes and ends of TLS, as a client with its own eyes sees them.

use std::{io, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::client::{HANG, chat, ended, serve, serve_named};
use crate::{Ended, FaultServer, How, Protocol, Script, ServeError, Serving, Step, Tls};

/// A connection by a client that trusts the server's authority and no other.
async fn connect(server: &FaultServer) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(server.ca_pem().unwrap().as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let tcp = TcpStream::connect(server.addr()).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let shaking = TlsConnector::from(Arc::new(config)).connect(name, tcp);
    timeout(HANG, shaking).await.expect("the server hangs")
}

/// What was read up to the end, and the error there, if any.
async fn chat_out(mut tls: TlsStream<TcpStream>) -> (String, Option<io::ErrorKind>) {
    tls.write_all(chat().as_bytes()).await.unwrap();
    let mut read = Vec::new();
    let end = timeout(HANG, tls.read_to_end(&mut read)).await.expect("the server hangs");
    (String::from_utf8_lossy(&read).into_owned(), end.err().map(|error| error.kind()))
}

async fn served(tls: Tls) -> FaultServer {
    let script = Script::new(vec![Step::named("cut_between_events").unwrap()]).unwrap();
    FaultServer::start_anywhere(script.on(Serving::default().tls(tls)).unwrap()).await.unwrap()
}

fn refusal(error: &io::Error) -> CertificateError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => why.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_good_handshake_is_trusted_by_whoever_trusts_the_authority() {
    let server = served(Tls::Good).await;
    assert_eq!(server.base_url(), format!("https://{}/v1", server.addr()));
    let tls = connect(&server).await.unwrap();
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let (text, error) = chat_out(tls).await;
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    assert_eq!(error, None, "close_notify comes before a FIN");
}

#[tokio::test]
async fn a_bad_certificate_is_bad_for_the_reason_it_says() {
    let why = async |tls| refusal(&connect(&served(tls).await).await.unwrap_err());
    assert_eq!(why(Tls::UnknownAuthority).await, CertificateError::UnknownIssuer);
    let wrong = why(Tls::WrongName).await;
    assert!(matches!(wrong, CertificateError::NotValidForNameContext { .. }), "{wrong:?}");
    let expired = why(Tls::Expired).await;
    assert!(matches!(expired, CertificateError::ExpiredContext { .. }), "{expired:?}");
}

#[tokio::test]
async fn a_cut_handshake_is_an_end_of_file() {
    let error = connect(&served(Tls::HandshakeCut).await).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn a_failing_handshake_is_dealt_to_a_connection_and_the_next_one_is_good() {
    let steps = ["tls_expired", "tls_handshake_cut", "whole"];
    let server = serve(steps.map(|name| Step::named(name).unwrap()).to_vec()).await;
    assert!(connect(&server).await.is_err());
    assert!(connect(&server).await.is_err());
    let mut tls = connect(&server).await.unwrap();
    tls.write_all(chat().as_bytes()).await.unwrap();
    let mut read = String::new();
    while !read.contains("[DONE]") {
        let mut bytes = [0; 4096];
        let count = timeout(HANG, tls.read(&mut bytes)).await.unwrap().unwrap();
        assert_ne!(count, 0, "{read}");
        read.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert_eq!((server.attempts(), server.connections()), (3, 3));
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.requests()[0].step, Some(3));
}

#[tokio::test]
async fn an_open_connection_is_closed_before_a_step_that_is_for_a_new_one() {
    let steps = ["whole", "tls_expired"].map(|name| Step::named(name).unwrap());
    let server = serve(steps.to_vec()).await;
    let mut tls = connect(&server).await.unwrap();
    tls.write_all((chat() + &chat()).as_bytes()).await.unwrap();
    let mut read = Vec::new();
    timeout(HANG, tls.read_to_end(&mut read)).await.unwrap().unwrap();
    assert_eq!(ended(&server), [Ended::Complete, Ended::Fin]);
    assert_eq!((server.attempts(), server.requests()[1].step), (1, None));
    assert!(connect(&server).await.is_err());
}

#[tokio::test]
async fn a_fin_without_notify_is_told_from_one_with_it() {
    let server = serve_named("tls_close_without_notify").await;
    let (text, error) = chat_out(connect(&server).await.unwrap()).await;
    assert!(text.contains("data: "), "{text}");
    assert_eq!(error, Some(io::ErrorKind::UnexpectedEof));
    assert_eq!(ended(&server), [Ended::Fin]);
    let step = Step::named("tls_close_without_notify").unwrap().how(How::Fin);
    let script = Script::new(vec![step]).unwrap().on(Serving::default().tls(Tls::Good)).unwrap();
    let server = FaultServer::start_anywhere(script).await.unwrap();
    assert_eq!(chat_out(connect(&server).await.unwrap()).await.1, None);
}

#[tokio::test]
async fn a_failing_handshake_waits_as_long_as_its_step_says_and_stopping_ends_the_wait() {
    let step = Step::named("tls_handshake_cut").unwrap().headers_delay(HANG * 10);
    let server = serve(vec![step]).await;
    let addr = server.addr();
    let waiting = tokio::spawn(async move {
        let mut tcp = TcpStream::connect(addr).await.unwrap();
        tcp.read(&mut [0; 1]).await
    });
    while server.attempts() == 0 {
        tokio::task::yield_now().await;
    }
    timeout(HANG, server.stop()).await.expect("stopping ends the wait");
    assert!(!matches!(waiting.await.unwrap(), Ok(1..)));
}

#[tokio::test]
async fn http2_over_tls_is_chosen_by_alpn() {
    let server = serve_named("http2_refused_stream").await;
    let tls = connect(&server).await.unwrap();
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
}

#[tokio::test]
async fn the_authority_is_written_where_the_script_wants_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let script = || Script::new(vec![Step::named("whole").unwrap()]).unwrap();
    let serving = Serving::default().tls(Tls::Good).protocol(Protocol::Http1);
    let written = script().on(serving.clone().ca_file(&path)).unwrap();
    let server = FaultServer::start_anywhere(written).await.unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), server.ca_pem().unwrap());
    let nowhere = script().on(serving.ca_file(folder.path().join("no/such/folder"))).unwrap();
    let error = FaultServer::start_anywhere(nowhere).await.unwrap_err();
    assert!(matches!(error, ServeError::CaFile { .. }), "{error}");
    let plain = FaultServer::start_anywhere(script()).await.unwrap();
    assert_eq!(plain.ca_pem(), None);
}
