//! The adapter over real sockets, against raw loopback servers that misbehave.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod server;
mod wire_faults;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use server::{Server, head, post_head};
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::{Delivered, ErrorCode, Failure, Phase};
use turnbuckle_providers::{
    AttemptContext, ChatRequest, Clocks, CompletedMessage, Message, Provider, StreamEvent,
    openai_chat::OpenAiChat, transport::ReqwestTransport,
};

const KEY: &str = "canary-7f3b9a-key";
const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const FINISH: &str =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn provider_at(url: &str, clocks: Clocks) -> OpenAiChat {
    let transport = Arc::new(ReqwestTransport::direct(&clocks).unwrap());
    OpenAiChat::builder(url).api_key(KEY).clocks(clocks).transport(transport).build().unwrap()
}

fn provider(address: SocketAddr) -> OpenAiChat {
    provider_at(&format!("http://{address}/v1"), Clocks::default())
}

async fn attempt(
    provider: &OpenAiChat,
    fresh_connection: bool,
) -> Result<CompletedMessage, Failure> {
    let request = ChatRequest::new("m").with_message(Message::User("hello".into()));
    let attempt = AttemptContext::new(CancellationToken::new(), fresh_connection);
    let mut stream = provider.open(&request, attempt).await?;
    loop {
        match stream.next().await {
            Some(Ok(StreamEvent::Finished(message))) => return Ok(*message),
            Some(Ok(_)) => {}
            Some(Err(failure)) => return Err(failure),
            None => panic!("a stream without an end"),
        }
    }
}

/// The failure of one attempt at a server that answers with `answer` and hangs up.
async fn failure(answer: impl Into<Vec<u8>>) -> Failure {
    let server = Server::answering(answer).await;
    let failure = attempt(&provider(server.address), false).await.unwrap_err();
    let shown = format!("{failure:?} {} {failure}", serde_json::to_string(&failure).unwrap());
    assert!(!shown.contains("canary"), "{shown}");
    failure
}

#[track_caller]
fn assert_failure(failure: &Failure, code: ErrorCode, rule: &str, phase: Phase) {
    let got = (failure.code(), failure.details().rule, failure.phase());
    assert_eq!(got, (code, Some(rule), Some(phase)), "{failure:?}");
}

fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n", body.len())
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_refused() {
    let address = Server::closed_port().await;
    let failure = attempt(&provider(address), false).await.unwrap_err();
    assert_failure(&failure, ErrorCode::NetworkError, "transport.refused", Phase::Request);
    assert_eq!(failure.details().delivered, Some(Delivered::No));
    assert!(!failure.details().causes.is_empty());
    assert!(failure.retriable());
}

#[tokio::test]
async fn a_name_without_an_address_is_unresolved() {
    let provider = provider_at("http://nobody.invalid/v1", Clocks::default());
    let failure = attempt(&provider, false).await.unwrap_err();
    assert_failure(&failure, ErrorCode::NetworkError, "transport.unresolved", Phase::Request);
    assert_eq!(failure.details().delivered, Some(Delivered::No));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_does_not_come_about_expires_the_connect_clock() {
    // A full queue of connections that nobody accepts: the next one gets no answer.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    loop {
        let connecting = tokio::net::TcpStream::connect(address);
        match tokio::time::timeout(Duration::from_millis(200), connecting).await {
            Ok(connected) => queue.push(connected.unwrap()),
            Err(_) => break,
        }
    }
    let clocks = Clocks { connect: Duration::from_millis(50), ..Clocks::default() };
    let provider = provider_at(&format!("http://{address}/v1"), clocks);
    let failure = attempt(&provider, false).await.unwrap_err();
    assert_failure(&failure, ErrorCode::Timeout, "clock.connect", Phase::Request);
    assert_eq!(failure.details().delivered, Some(Delivered::No));
    let causes = format!("{:?}", failure.details().causes);
    // The client has two timers of this length, and either may be the first.
    let either = ["deadline has elapsed", "operation timed out"];
    assert!(either.iter().any(|cause| causes.contains(cause)), "{causes}");
}

#[tokio::test]
async fn plain_http_where_tls_is_expected_is_a_tls_failure_and_final() {
    let server = Server::answering("HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let provider = provider_at(&format!("https://{}/v1", server.address), Clocks::default());
    let failure = attempt(&provider, false).await.unwrap_err();
    assert_failure(&failure, ErrorCode::NetworkError, "transport.tls", Phase::Request);
    assert!(!failure.retriable());
}

#[tokio::test]
async fn a_reset_before_the_head_is_a_network_error() {
    let server = Server::resetting("").await;
    let failure = attempt(&provider(server.address), false).await.unwrap_err();
    assert_failure(&failure, ErrorCode::NetworkError, "transport.reset", Phase::Request);
    assert_eq!(failure.details().delivered, Some(Delivered::Unknown));
}

#[tokio::test]
async fn a_close_before_the_head_is_incomplete() {
    let failure = failure("").await;
    assert_failure(&failure, ErrorCode::NetworkError, "transport.incomplete", Phase::Request);
}

#[tokio::test]
async fn a_reset_in_the_body_fails_the_stream() {
    let answer = head(200, "transfer-encoding: chunked") + &chunk(TEXT);
    let server = Server::resetting(answer).await;
    let failure = attempt(&provider(server.address), false).await.unwrap_err();
    assert_failure(&failure, ErrorCode::StreamFailed, "transport.reset", Phase::Stream);
    assert_eq!(failure.details().events_received, Some(1));
}

#[tokio::test]
async fn a_body_that_ends_inside_a_chunk_or_before_its_length_is_incomplete() {
    let in_chunk = head(200, "transfer-encoding: chunked") + &chunk(TEXT) + "40\r\ndata: {\"choi";
    let short = head(200, "content-length: 5000") + TEXT;
    for answer in [in_chunk, short] {
        let failure = failure(answer).await;
        assert_failure(&failure, ErrorCode::StreamFailed, "transport.incomplete", Phase::Stream);
        assert_eq!(failure.details().bytes_received.map(|n| n >= TEXT.len() as u64), Some(true));
    }
}

#[tokio::test]
async fn a_malformed_chunk_is_told_as_such() {
    let answer = head(200, "transfer-encoding: chunked") + &chunk(TEXT) + "zz\r\nnot a chunk\r\n";
    let failure = failure(answer).await;
    assert_failure(&failure, ErrorCode::StreamFailed, "transport.bad_chunk", Phase::Stream);
}

#[tokio::test]
async fn a_clean_end_before_the_terminal_event_fails_the_stream() {
    let answer = head(200, "transfer-encoding: chunked") + &chunk(TEXT) + "0\r\n\r\n";
    let failure = failure(answer).await;
    assert_failure(&failure, ErrorCode::StreamFailed, "protocol.ended_early", Phase::Stream);
    let empty = head(200, "content-length: 0");
    let failure = self::failure(empty).await;
    assert_failure(&failure, ErrorCode::StreamFailed, "protocol.empty_body", Phase::Stream);
}

#[tokio::test]
async fn a_finish_reason_completes_the_message_however_the_connection_ends() {
    let finish = head(200, "transfer-encoding: chunked") + &chunk(TEXT) + &chunk(FINISH);
    for answer in [finish.clone() + "0\r\n\r\n", finish + "zz"] {
        let server = Server::answering(answer).await;
        let message = attempt(&provider(server.address), false).await.unwrap();
        assert_eq!(message.message().text, "Hi");
    }
}

#[tokio::test]
async fn a_stall_expires_the_clock_and_closes_the_connection() {
    let clocks = Clocks { byte_idle: Duration::from_millis(50), ..Clocks::default() };
    let mut server = Server::stalling(head(200, "transfer-encoding: chunked") + &chunk(TEXT)).await;
    let url = format!("http://{}/v1", server.address);
    let failure = attempt(&provider_at(&url, clocks), false).await.unwrap_err();
    assert_failure(&failure, ErrorCode::Timeout, "clock.byte_idle", Phase::Stream);
    assert!(server.peer_hung_up().await, "the connection is closed");

    let clocks = Clocks { first_event: Duration::from_millis(50), ..Clocks::default() };
    let mut server = Server::stalling("").await;
    let url = format!("http://{}/v1", server.address);
    let failure = attempt(&provider_at(&url, clocks), false).await.unwrap_err();
    assert_failure(&failure, ErrorCode::Timeout, "clock.first_event", Phase::Request);
    assert!(server.peer_hung_up().await, "the connection is closed");
}

#[tokio::test]
async fn a_cancelled_attempt_closes_its_connection() {
    let mut server = Server::stalling(head(200, "transfer-encoding: chunked") + &chunk(TEXT)).await;
    let provider = provider(server.address);
    let cancel = CancellationToken::new();
    let attempt = AttemptContext::new(cancel.clone(), false);
    let mut stream = provider.open(&ChatRequest::new("m"), attempt).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), StreamEvent::Started);
    cancel.cancel();
    let failure = stream.next().await.unwrap().unwrap_err();
    assert_failure(&failure, ErrorCode::TurnAborted, "abort", Phase::Stream);
    assert!(server.peer_hung_up().await, "the connection is closed");
}

#[tokio::test]
async fn a_401_whose_body_is_cut_is_still_a_401() {
    let body = r#"{"error":{"message":"Incorrect API key provided: canary-7f3b9a-key"#;
    let failure = failure(head(401, "content-length: 900\r\nx-request-id: req_9") + body).await;
    assert_failure(&failure, ErrorCode::ProviderUnauthorized, "status.401", Phase::Request);
    assert_eq!(failure.details().provider_request_id.as_ref().unwrap().as_str(), "req_9");
    assert!(failure.message().as_str().contains("[redacted]"));
    assert!(!failure.details().causes.is_empty(), "the cut is in the causes");
}

#[tokio::test]
async fn a_429_carries_the_delay_that_the_server_asks_for() {
    let body = r#"{"error":{"type":"requests","code":"rate_limit_exceeded","message":"slow"}}"#;
    let headers =
        format!("content-length: {}\r\nretry-after-ms: 1500\r\nretry-after: 9", body.len());
    let failure = failure(head(429, &headers) + body).await;
    assert_eq!(failure.code(), ErrorCode::ProviderRateLimited);
    assert_eq!(failure.retry_after(), Some(Duration::from_millis(1500)));
    assert_eq!(failure.details().provider_status, Some(429));
}

#[tokio::test]
async fn a_web_page_with_200_is_another_protocol_and_final() {
    let page = "<html><title>Sign in</title></html>";
    let headers = format!("content-type: text/html\r\ncontent-length: {}", page.len());
    let failure = failure(head(200, &headers) + page).await;
    assert_failure(&failure, ErrorCode::ProviderProtocolMismatch, "protocol.html", Phase::Stream);
    assert!(!failure.retriable());
}

#[tokio::test]
async fn a_line_without_end_is_refused_after_16_mib() {
    let server = Server::flooding(head(200, "content-type: text/event-stream"), b'x').await;
    let failure = attempt(&provider(server.address), false).await.unwrap_err();
    let code = ErrorCode::ProviderProtocolMismatch;
    assert_failure(&failure, code, "protocol.line_too_long", Phase::Stream);
    let received = failure.details().bytes_received.unwrap();
    assert!((16 << 20..=17 << 20).contains(&received), "{received}");
}

#[tokio::test]
async fn a_compressed_answer_is_read_and_a_torn_one_is_not() {
    // The stream of TEXT and FINISH, by `gzip -9 -n`.
    const GZIP: &[u8] = include_bytes!("streams/hi.sse.gz");
    let with_head = |body: &[u8]| {
        let headers = format!("content-encoding: gzip\r\ncontent-length: {}", body.len());
        [head(200, &headers).as_bytes(), body].concat()
    };
    let server = Server::answering(with_head(GZIP)).await;
    let message = attempt(&provider(server.address), false).await.unwrap();
    assert_eq!(message.message().text, "Hi");
    // Yet we ask for none: proxies hold compressed streams back.
    assert!(server.request_heads()[0].contains("accept-encoding: identity"));

    let mut garbled = GZIP.to_vec();
    garbled[12] ^= 0xff;
    garbled[20] ^= 0xff;
    let failure = failure(with_head(&garbled)).await;
    assert_failure(&failure, ErrorCode::StreamFailed, "transport.bad_compression", Phase::Stream);
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_key_stays_here() {
    let other = Server::answering(head(200, "content-length: 0")).await;
    let location = format!("location: http://{}/v1\r\ncontent-length: 0", other.address);
    for status in [301, 302, 307, 308] {
        let failure = failure(head(status, &location)).await;
        assert_eq!(failure.code(), ErrorCode::ProviderProtocolMismatch);
        assert_eq!(failure.details().provider_status, Some(status));
    }
    assert_eq!(other.connections(), 0);
}

/// Lets the task of a connection whose answer was read run once more.
async fn back_to_the_pool() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn connections_are_pooled_until_a_fresh_one_is_asked_for() {
    let body = format!("{TEXT}{FINISH}");
    let answer = head(200, &format!("content-length: {}", body.len())) + &body;
    let server = Server::keeping_alive(answer).await;
    let provider = provider(server.address);
    let mut connections = Vec::new();
    for fresh in [false, false, true, false, true] {
        attempt(&provider, fresh).await.unwrap();
        back_to_the_pool().await;
        connections.push(server.connections());
    }
    // The pool goes on with the fresh connection.
    assert_eq!(connections, [1, 1, 2, 2, 3]);
}

#[tokio::test]
async fn a_connection_is_pooled_although_its_last_chunk_comes_after_the_end_marker() {
    let answer = head(200, "transfer-encoding: chunked") + &chunk(TEXT) + &chunk(FINISH);
    let server = Server::pausing(answer, "0\r\n\r\n").await;
    let provider = provider(server.address);
    for _ in 0..10 {
        attempt(&provider, false).await.unwrap();
    }
    // On a busy machine a connection may come back to the pool too late now and then;
    // dropped before its end it would never come back.
    assert!(server.connections() < 10, "{}", server.connections());
}

#[tokio::test]
async fn one_transport_can_serve_several_adapters() {
    let body = format!("{TEXT}{FINISH}");
    let answer = head(200, &format!("content-length: {}", body.len())) + &body;
    let server = Server::keeping_alive(answer).await;
    let transport = Arc::new(ReqwestTransport::direct(&Clocks::default()).unwrap());
    for key in ["key-of-the-first", "key-of-the-second"] {
        let provider = OpenAiChat::builder(format!("http://{}", server.address))
            .api_key(key)
            .transport(transport.clone())
            .build()
            .unwrap();
        attempt(&provider, false).await.unwrap();
        back_to_the_pool().await;
    }
    assert_eq!(server.connections(), 1);
    let heads = server.request_heads();
    assert!(heads[0].contains("authorization: Bearer key-of-the-first"));
    assert!(heads[1].contains("authorization: Bearer key-of-the-second"));
}

#[tokio::test]
async fn the_request_is_what_a_server_expects() {
    let body = format!("{TEXT}{FINISH}");
    let server =
        Server::keeping_alive(head(200, &format!("content-length: {}", body.len())) + &body).await;
    let provider = OpenAiChat::builder(format!("http://{}/v1?api-version=1", server.address))
        .api_key(KEY)
        .header("X-Team", "blue")
        .transport(Arc::new(ReqwestTransport::direct(&Clocks::default()).unwrap()))
        .build()
        .unwrap();
    attempt(&provider, false).await.unwrap();
    let head = server.request_heads().remove(0);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(post_head(&head), "POST /v1/chat/completions?api-version=1 HTTP/1.1");
    for line in [
        "content-type: application/json".to_owned(),
        "x-team: blue".to_owned(),
        format!("user-agent: turnbuckle/{version}"),
        format!("authorization: Bearer {KEY}"),
    ] {
        assert!(head.lines().any(|found| found == line), "{line} in {head}");
    }
}

#[tokio::test]
async fn a_server_that_echoes_the_key_does_not_leak_it() {
    let echo = format!(
        r#"{{"error":{{"message":"bad key {KEY} sent as Bearer {KEY}","type":"{KEY}","code":"{KEY}"}}}}"#
    );
    let headers = format!("content-length: {}\r\nx-request-id: {KEY}\r\nserver: {KEY}", echo.len());
    let refused = failure(head(400, &headers) + &echo).await;
    assert!(refused.message().as_str().contains("bad key [redacted]"));
    assert_eq!(refused.details().provider_code, None);
    assert_eq!(refused.details().provider_request_id, None);

    for stream in [
        format!("{TEXT}data: {echo}\n\n"),
        format!("{TEXT}error: {KEY}\n\n"),
        format!("{TEXT}data: {KEY}\n\n"),
        format!("{TEXT}event: error\ndata: {KEY}\n\n"),
        format!("<html><title>{KEY}</title>"),
    ] {
        let headers = format!("content-length: {}\r\nx-request-id: {KEY}", stream.len());
        failure(head(200, &headers) + &stream).await;
    }
}
