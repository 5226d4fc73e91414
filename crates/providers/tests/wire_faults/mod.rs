//! What is known of a connection that breaks below the answer, over real sockets:
//! its code and rule, whether the server can have worked, and the actual cause.

mod proxies;

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use turnbuckle_errors::{Delivered, ErrorCode, Failure, Phase};
use turnbuckle_faults::{FaultServer, Http2Code, Protocol, Script, Serving, Step, Tls};
use turnbuckle_providers::{
    AttemptContext, ChatRequest, Clocks, CompletedMessage, Message, Provider, StreamEvent,
    openai_chat::OpenAiChat,
    transport::{ReqwestTransport, ReqwestTransportBuilder},
};

use crate::server::{Server, head};

const KEY: &str = "canary-7f3b9a-key";

/// Far beyond anything that works; only a hang meets it.
const HANG: Duration = Duration::from_secs(30);

/// What a failed attempt is to be known as.
#[derive(Clone, Copy)]
struct Known {
    code: ErrorCode,
    phase: Phase,
    rule: &'static str,
    delivered: Delivered,
    retriable: bool,
    /// A part of the innermost cause.
    cause: &'static str,
}

const fn request(rule: &'static str, delivered: Delivered, cause: &'static str) -> Known {
    let (code, phase) = (ErrorCode::NetworkError, Phase::Request);
    Known { code, phase, rule, delivered, retriable: true, cause }
}

const fn stream(rule: &'static str, cause: &'static str) -> Known {
    let (code, phase) = (ErrorCode::StreamFailed, Phase::Stream);
    Known { code, phase, rule, delivered: Delivered::Yes, retriable: true, cause }
}

const fn timeout(rule: &'static str, phase: Phase, delivered: Delivered) -> Known {
    Known { code: ErrorCode::Timeout, phase, rule, delivered, retriable: true, cause: "" }
}

const fn never(known: Known) -> Known {
    Known { retriable: false, ..known }
}

impl Known {
    #[track_caller]
    #[expect(clippy::print_stdout, reason = "the closing lines of a test run count these")]
    fn check(&self, failure: &Failure) {
        println!("counted: 1 transport failures over real sockets");
        let details = failure.details();
        let causes: Vec<&str> = details.causes.iter().map(|cause| cause.as_str()).collect();
        let seen =
            (failure.code(), failure.phase(), details.rule, details.delivered, failure.retriable());
        let known =
            (self.code, Some(self.phase), Some(self.rule), Some(self.delivered), self.retriable);
        assert_eq!(seen, known, "{causes:?}");
        if !self.cause.is_empty() {
            let named = causes.iter().any(|cause| cause.contains(self.cause));
            assert!(named, "{:?} is not in {causes:?}", self.cause);
        }
        let shown = format!("{failure:?} {failure} {}", serde_json::to_string(failure).unwrap());
        assert!(!shown.contains("canary"), "{shown}");
    }
}

async fn attempt(provider: &OpenAiChat, fresh: bool) -> Result<CompletedMessage, Failure> {
    let request = ChatRequest::new("m").with_message(Message::User("hello".into()));
    let attempt = AttemptContext::new(CancellationToken::new(), fresh);
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

fn direct() -> ReqwestTransportBuilder {
    ReqwestTransport::builder(&Clocks::default()).direct()
}

fn provider(url: &str, transport: ReqwestTransportBuilder, clocks: Clocks) -> OpenAiChat {
    let transport = Arc::new(transport.build().unwrap());
    OpenAiChat::builder(url).api_key(KEY).clocks(clocks).transport(transport).build().unwrap()
}

/// A provider that trusts the server's authority.
fn provider_of(server: &FaultServer) -> OpenAiChat {
    let trusting = match server.ca_pem() {
        Some(pem) => direct().root_certificates_pem(pem),
        None => direct(),
    };
    provider(&server.base_url(), trusting, Clocks::default())
}

async fn serve(steps: &[&str]) -> FaultServer {
    let steps = steps.iter().map(|name| Step::named(name).unwrap()).collect();
    FaultServer::start_anywhere(Script::new(steps).unwrap()).await.unwrap()
}

/// The first attempt meets the fault and fails as known; a second one with a fresh
/// connection is answered, on a connection of its own.
async fn meets(name: &str, known: &Known) {
    let server = serve(&[name, "whole"]).await;
    let provider = provider_of(&server);
    let failure = attempt(&provider, false).await.unwrap_err();
    known.check(&failure);
    assert_eq!((server.connections(), server.attempts()), (1, 1), "{name}");
    attempt(&provider, true).await.unwrap();
    assert_eq!((server.connections(), server.attempts()), (2, 2), "{name}");
}

#[tokio::test]
async fn a_broken_http1_connection_is_known_by_how_it_broke() {
    let reset = "Connection reset by peer";
    let incomplete = "transport.incomplete";
    for (name, known) in [
        ("cut_before_status", request("transport.reset", Delivered::Unknown, reset)),
        ("cut_after_headers", stream("transport.reset", reset)),
        ("cut_inside_event", stream("transport.reset", reset)),
        ("fin_inside_chunk", stream(incomplete, "end of file before message length reached")),
        ("cut_between_events", stream(incomplete, "unexpected EOF during chunk size line")),
        ("short_body", stream(incomplete, "end of file before message length reached")),
        ("bad_chunk", stream("transport.bad_chunk", "Invalid chunk size line")),
    ] {
        meets(name, &known).await;
    }
}

#[tokio::test]
async fn compression_that_breaks_is_told_from_a_connection_that_does() {
    let bad = "transport.bad_compression";
    for (name, known) in [
        ("gzip_corrupt", stream(bad, "deflate decompression error")),
        ("gzip_lie", stream(bad, "Invalid gzip header")),
        ("gzip_cut", stream("transport.incomplete", "unexpected end of file")),
    ] {
        meets(name, &known).await;
    }
    let server = serve(&["gzip"]).await;
    let message = attempt(&provider_of(&server), false).await.unwrap();
    assert_eq!(message.message().text, turnbuckle_faults::DEFAULT_TEXT);
}

#[tokio::test]
async fn a_tls_handshake_that_fails_says_why_and_reached_nobody() {
    let tls = |cause| never(request("transport.tls", Delivered::No, cause));
    for (name, known) in [
        ("tls_unknown_authority", tls("invalid peer certificate: UnknownIssuer")),
        ("tls_wrong_name", tls("certificate not valid for name \"127.0.0.1\"")),
        ("tls_expired", tls("invalid peer certificate: certificate expired")),
        // Nothing is known to be wrong for good, so this one may be tried again.
        ("tls_handshake_cut", request("transport.connect", Delivered::No, "tls handshake eof")),
    ] {
        meets(name, &known).await;
    }
}

#[tokio::test]
async fn an_authority_that_was_not_given_is_unknown() {
    let script = Script::named("cut_once").unwrap().on(Serving::default().tls(Tls::Good)).unwrap();
    let server = FaultServer::start_anywhere(script).await.unwrap();
    let stranger = provider(&server.base_url(), direct(), Clocks::default());
    let known = never(request("transport.tls", Delivered::No, "UnknownIssuer"));
    known.check(&attempt(&stranger, false).await.unwrap_err());
    assert_eq!(server.attempts(), 0);
}

#[tokio::test]
async fn a_tls_connection_that_ends_without_its_goodbye_is_incomplete() {
    let known = stream("transport.incomplete", "without sending TLS close_notify");
    meets("tls_close_without_notify", &known).await;
}

#[tokio::test]
async fn http2_is_known_by_the_frame_and_its_code() {
    let reset = "transport.http2_reset";
    let goaway = "transport.http2_goaway";
    let internal = "the server sent RST_STREAM with INTERNAL_ERROR";
    for (name, known) in [
        ("http2_reset_before_status", request(reset, Delivered::Unknown, internal)),
        ("http2_reset_in_body", stream(reset, internal)),
        // By its meaning, nothing was done with the request.
        (
            "http2_refused_stream",
            request(reset, Delivered::No, "the server sent RST_STREAM with REFUSED_STREAM"),
        ),
        (
            "http2_goaway_before_status",
            request(goaway, Delivered::Unknown, "the server sent GOAWAY with ENHANCE_YOUR_CALM"),
        ),
        ("http2_goaway_in_body", stream(goaway, "the server sent GOAWAY with INTERNAL_ERROR")),
        // The server said that it would go on, so what fails the stream is the end
        // of the connection.
        ("http2_goaway_accepted", stream("transport.reset", "broken pipe")),
    ] {
        meets(name, &known).await;
    }
}

#[tokio::test]
async fn every_code_of_http2_is_named() {
    for word in Http2Code::WORDS {
        let source =
            format!("[[step]]\nbehaviour = \"http2_reset_in_body\"\nhttp2_code = \"{word}\"\n");
        let server = FaultServer::start_anywhere(Script::parse(&source).unwrap()).await.unwrap();
        let failure = attempt(&provider_of(&server), false).await.unwrap_err();
        if *word == "NO_ERROR" {
            // hyper takes this one for the end of a body, so what is left to see is
            // that the answer ended too early.
            stream("protocol.ended_early", "").check(&failure);
            continue;
        }
        let causes = format!("{:?}", failure.details().causes);
        assert!(causes.contains(&format!("the server sent RST_STREAM with {word}\"")), "{causes}");
    }
}

#[tokio::test]
async fn an_http2_connection_that_breaks_under_its_stream_is_known_too() {
    let http2 = Serving::default().tls(Tls::Good).protocol(Protocol::Http2);
    let broken = "broken pipe";
    for (name, known) in [
        ("cut_inside_event", stream("transport.reset", "connection reset")),
        ("cut_between_events", stream("transport.reset", broken)),
        (
            "tls_close_without_notify",
            stream("transport.incomplete", "without sending TLS close_notify"),
        ),
        ("cut_before_status", request("transport.reset", Delivered::Unknown, "connection reset")),
    ] {
        let steps = [name, "whole"].map(|name| Step::named(name).unwrap()).to_vec();
        let script = Script::new(steps).unwrap().on(http2.clone()).unwrap();
        let server = FaultServer::start_anywhere(script).await.unwrap();
        let provider = provider_of(&server);
        known.check(&attempt(&provider, false).await.unwrap_err());
        attempt(&provider, true).await.unwrap();
        assert_eq!(server.connections(), 2);
    }
}

#[tokio::test]
async fn only_a_fresh_connection_leaves_the_one_whose_stream_was_reset() {
    for (fresh, connections) in [(false, 1), (true, 2)] {
        let server = serve(&["http2_reset_in_body", "whole"]).await;
        let provider = provider_of(&server);
        attempt(&provider, false).await.unwrap_err();
        attempt(&provider, fresh).await.unwrap();
        assert_eq!(server.connections(), connections, "fresh: {fresh}");
    }
}

#[tokio::test]
async fn a_pooled_connection_that_is_reset_on_reuse_fails_the_attempt_and_a_fresh_one_does_not() {
    let server = serve(&["reset_on_reuse", "whole"]).await;
    let provider = provider_of(&server);
    attempt(&provider, false).await.unwrap();
    let known = request("transport.reset", Delivered::Unknown, "Connection reset by peer");
    known.check(&attempt(&provider, false).await.unwrap_err());
    assert_eq!((server.connections(), server.attempts()), (1, 1));
    attempt(&provider, true).await.unwrap();
    assert_eq!((server.connections(), server.attempts()), (2, 2));
}

#[tokio::test]
async fn a_pooled_connection_that_was_closed_in_between_costs_no_attempt() {
    let server = serve(&["close_after_answer", "whole"]).await;
    let provider = provider_of(&server);
    attempt(&provider, false).await.unwrap();
    // The server keeps its side until the client has seen the end and closed too.
    let closed = async {
        while server.open_connections() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(HANG, closed).await.unwrap();
    attempt(&provider, false).await.unwrap();
    assert_eq!((server.connections(), server.attempts()), (2, 2));
}

#[tokio::test]
async fn nobody_listening_and_no_such_name_reached_nobody() {
    let address = Server::closed_port().await;
    let refused = provider(&format!("http://{address}/v1"), direct(), Clocks::default());
    request("transport.refused", Delivered::No, "Connection refused")
        .check(&attempt(&refused, false).await.unwrap_err());
    let unknown = provider("http://nobody.invalid/v1", direct(), Clocks::default());
    request("transport.unresolved", Delivered::No, "the host name could not be resolved")
        .check(&attempt(&unknown, false).await.unwrap_err());
}

#[tokio::test]
async fn a_silent_server_runs_into_the_clock_of_its_silence() {
    let short = Duration::from_millis(50);
    let first_event = Clocks { first_event: short, ..Clocks::default() };
    let byte_idle = Clocks { byte_idle: short, ..Clocks::default() };
    for (name, clocks, known) in [
        (
            "stall_before_headers",
            first_event,
            timeout("clock.first_event", Phase::Request, Delivered::Unknown),
        ),
        ("stall", byte_idle, timeout("clock.byte_idle", Phase::Stream, Delivered::Yes)),
    ] {
        let server = serve(&[name, "whole"]).await;
        let provider = provider(&server.base_url(), direct(), clocks);
        known.check(&attempt(&provider, false).await.unwrap_err());
        // The connection is closed, and the next attempt has one of its own.
        let left = async {
            while server.open_connections() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(HANG, left).await.unwrap();
        let patient = provider_of(&server);
        attempt(&patient, true).await.unwrap();
        assert_eq!(server.connections(), 2);
    }
}

#[tokio::test]
async fn a_stream_of_nothing_but_life_signs_runs_into_the_clock_of_progress() {
    // An event, then empty lines without end: bytes, and never a delta.
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let answer = head(200, "content-type: text/event-stream") + event;
    let mut server = Server::flooding(answer, b'\n').await;
    let clocks = Clocks { progress_idle: Duration::from_millis(50), ..Clocks::default() };
    let url = format!("http://{}/v1", server.address);
    let failure = attempt(&provider(&url, direct(), clocks), false).await.unwrap_err();
    timeout("clock.progress_idle", Phase::Stream, Delivered::Yes).check(&failure);
    assert_eq!(failure.details().events_received, Some(1));
    assert!(server.peer_hung_up().await, "the connection is closed");
}

#[tokio::test]
async fn of_an_error_body_that_never_ends_64_kib_are_read_and_the_connection_is_closed() {
    let mut server = Server::flooding(head(500, "content-type: text/plain"), b'x').await;
    let url = format!("http://{}/v1", server.address);
    let failure = attempt(&provider(&url, direct(), Clocks::default()), false).await.unwrap_err();
    let known = (ErrorCode::ProviderError, Some("status.5xx"), Some(Delivered::Yes));
    let details = failure.details();
    assert_eq!((failure.code(), details.rule, details.delivered), known);
    // One piece of the socket may overshoot the bound; the flood may not.
    let received = details.bytes_received.unwrap();
    assert!((64 << 10..1 << 20).contains(&received), "{received}");
    assert!(server.peer_hung_up().await, "the connection is closed");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_key_goes_nowhere_else() {
    let server = serve(&["redirect", "whole"]).await;
    let failure = attempt(&provider_of(&server), false).await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ProviderProtocolMismatch);
    let record = server.requests();
    let [only] = record.as_slice() else { panic!("{record:?}") };
    assert_eq!(only.path.as_str(), "/v1/chat/completions");
    assert_eq!(only.headers.get("authorization"), Some(format!("Bearer {KEY}").as_str()));
}
