use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::{Delivered, ErrorCode, Failure, Phase, Transport};

use crate::{
    AttemptContext, ChatRequest, Clocks, CompletedMessage, EventStream, Provider, StreamEvent,
    openai_chat::OpenAiChat,
    testing::{ScriptedResponse, ScriptedTransport},
};

const TEXT: &str = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
const FINISH: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn provider(response: ScriptedResponse) -> (OpenAiChat, ScriptedTransport) {
    let transport = ScriptedTransport::new([response]);
    let provider = OpenAiChat::builder("http://server.test/v1")
        .api_key("canary-key-12345678")
        .transport(Arc::new(transport.clone()))
        .build()
        .unwrap();
    (provider, transport)
}

async fn drain(stream: &mut EventStream) -> Result<CompletedMessage, Failure> {
    loop {
        match stream.next().await {
            Some(Ok(StreamEvent::Finished(message))) => {
                assert_eq!(stream.next().await, None, "after the end there is nothing");
                return Ok(*message);
            }
            Some(Ok(_)) => {}
            Some(Err(failure)) => {
                assert_eq!(stream.next().await, None, "after a failure there is nothing");
                return Err(failure);
            }
            None => panic!("a stream without an end"),
        }
    }
}

/// The outcome, the virtual time it took, and how many bodies are open after it.
async fn outcome(
    response: ScriptedResponse,
) -> (Result<CompletedMessage, Failure>, Duration, usize) {
    let (provider, transport) = provider(response);
    let began = Instant::now();
    let result = match provider.open(&ChatRequest::new("m"), AttemptContext::default()).await {
        Ok(mut stream) => {
            let result = drain(&mut stream).await;
            return (result, began.elapsed(), transport.open_bodies());
        }
        Err(failure) => Err(failure),
    };
    (result, began.elapsed(), transport.open_bodies())
}

async fn failure(response: ScriptedResponse) -> (Failure, Duration) {
    let (result, took, open) = outcome(response).await;
    assert_eq!(open, 0, "the connection is closed");
    (result.unwrap_err(), took)
}

#[track_caller]
fn assert_clock(failure: &Failure, rule: &str, phase: Phase) {
    assert_eq!(failure.code(), ErrorCode::Timeout);
    assert_eq!((failure.details().rule, failure.phase()), (Some(rule), Some(phase)));
}

#[tokio::test(start_paused = true)]
async fn no_response_head_expires_the_first_event_clock() {
    let (failure, took) = failure(ScriptedResponse::silent()).await;
    assert_clock(&failure, "clock.first_event", Phase::Request);
    assert_eq!(took, seconds(300));
    assert_eq!(failure.details().provider_wait_ms, Some(300_000));
    assert_eq!(failure.details().delivered, Some(Delivered::Unknown));
}

#[tokio::test(start_paused = true)]
async fn comments_are_no_first_event_and_the_wait_for_the_head_counts() {
    let mut response = ScriptedResponse::new(200).after(seconds(100));
    for _ in 0..30 {
        response = response.bytes(": PROCESSING\n\n").wait(seconds(10));
    }
    let (failure, took) = failure(response).await;
    assert_clock(&failure, "clock.first_event", Phase::Stream);
    assert_eq!(took, seconds(300));
    assert_eq!(failure.details().events_received, Some(0));
}

#[tokio::test(start_paused = true)]
async fn silence_between_two_bytes_expires_the_byte_clock() {
    let response = ScriptedResponse::new(200).wait(seconds(250)).event(TEXT).hang();
    let (failure, took) = failure(response).await;
    assert_clock(&failure, "clock.byte_idle", Phase::Stream);
    assert_eq!(took, seconds(550));
    let details = failure.details();
    assert_eq!((details.idle_ms, details.stream_ms), (Some(300_000), Some(550_000)));
    assert_eq!(details.events_received, Some(1));
}

#[tokio::test(start_paused = true)]
async fn keep_alives_do_not_feed_the_progress_clock() {
    let mut response = ScriptedResponse::new(200).event(TEXT);
    for _ in 0..200 {
        response = response.wait(seconds(10)).bytes(": ping\n\n");
    }
    let (failure, took) = failure(response).await;
    assert_clock(&failure, "clock.progress_idle", Phase::Stream);
    assert_eq!(took, seconds(900));
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_that_makes_progress_has_no_total_limit() {
    let mut response = ScriptedResponse::new(200);
    for _ in 0..20 {
        response = response.event(TEXT).wait(seconds(299));
    }
    let (result, took, _) = outcome(response.event(FINISH)).await;
    assert_eq!(result.unwrap().message().text, "Hi".repeat(20));
    assert_eq!(took, seconds(20 * 299));
}

#[tokio::test(start_paused = true)]
async fn after_the_finish_reason_there_are_two_seconds_of_grace() {
    let response = ScriptedResponse::new(200).event(TEXT).wait(seconds(5)).event(FINISH);
    let (result, took, open) = outcome(response.clone().hang()).await;
    assert_eq!(result.unwrap().message().text, "Hi");
    assert_eq!((took, open), (seconds(7), 0));

    // Token counts within the grace count, and comments do not extend it.
    let mut chatty = response.wait(seconds(1)).event(USAGE);
    for _ in 0..10 {
        chatty = chatty.bytes(": ping\n\n").wait(Duration::from_millis(300));
    }
    let (result, took, _) = outcome(chatty).await;
    assert_eq!(result.unwrap().usage().output_tokens, Some(1));
    assert_eq!(took, seconds(7));
}

#[tokio::test(start_paused = true)]
async fn after_the_end_marker_nothing_is_waited_for_but_the_end_of_the_body() {
    let response = ScriptedResponse::new(200).event(TEXT).event(FINISH).event("[DONE]");
    for after in [response.clone().hang(), response.wait(seconds(1)).event(TEXT)] {
        let (result, took, open) = outcome(after).await;
        assert_eq!(result.unwrap().message().text, "Hi");
        assert_eq!((took, open), (Duration::from_millis(50), 0));
    }
}

#[tokio::test(start_paused = true)]
async fn what_breaks_after_the_finish_reason_takes_nothing_away() {
    let response = ScriptedResponse::new(200).event(TEXT).event(FINISH).broken(Transport::Reset);
    assert_eq!(outcome(response).await.0.unwrap().message().text, "Hi");
    // An error event does.
    let error = r#"{"error":{"code":"server_error","message":"late"}}"#;
    let response = ScriptedResponse::new(200).event(TEXT).event(FINISH).event(error);
    let (failure, _) = failure(response).await;
    assert_eq!(failure.code(), ErrorCode::ProviderError);
    assert_eq!(failure.message().as_str(), "late");
}

#[tokio::test(start_paused = true)]
async fn time_that_the_consumer_spends_is_not_idle_time() {
    let response = ScriptedResponse::new(200)
        .event(TEXT)
        .wait(seconds(1))
        .event(TEXT)
        .wait(seconds(1))
        .event(FINISH);
    let (provider, _) = provider(response);
    let mut stream =
        provider.open(&ChatRequest::new("m"), AttemptContext::default()).await.unwrap();
    let mut events = 0;
    let message = loop {
        // Polled once, then left alone for an hour: nobody waits on the socket.
        let waiting = tokio::time::timeout(Duration::from_millis(1), stream.next()).await;
        match waiting {
            Ok(Some(Ok(StreamEvent::Finished(message)))) => break message,
            Ok(Some(event)) => {
                event.unwrap();
                events += 1;
            }
            Ok(None) => panic!("no end"),
            Err(_) => {}
        }
        tokio::time::sleep(seconds(3600)).await;
    };
    assert_eq!(message.message().text, "HiHi");
    assert_eq!(events, 3);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_missed_by_the_consumer_is_looked_at_again_and_then_believed() {
    let (provider, transport) = provider(ScriptedResponse::new(200).event(TEXT).hang());
    let mut stream =
        provider.open(&ChatRequest::new("m"), AttemptContext::default()).await.unwrap();
    stream.next().await.unwrap().unwrap();
    stream.next().await.unwrap().unwrap();
    assert!(tokio::time::timeout(seconds(1), stream.next()).await.is_err());
    tokio::time::sleep(seconds(3600)).await;
    let began = Instant::now();
    let failure = stream.next().await.unwrap().unwrap_err();
    assert_clock(&failure, "clock.byte_idle", Phase::Stream);
    assert!(began.elapsed() >= Duration::from_millis(100), "a last look: {:?}", began.elapsed());
    assert_eq!(transport.open_bodies(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_attempt_ends_at_once_wherever_it_stands() {
    // Before the head.
    let cancel = CancellationToken::new();
    let (provider_a, _) = provider(ScriptedResponse::silent());
    let request = ChatRequest::new("m");
    let attempt = AttemptContext::new(cancel.clone(), false);
    let began = Instant::now();
    let later = async {
        tokio::time::sleep(seconds(5)).await;
        cancel.cancel();
    };
    let (opened, ()) = futures_util::join!(provider_a.open(&request, attempt), later);
    let failure = opened.unwrap_err();
    assert_eq!((failure.code(), failure.phase()), (ErrorCode::TurnAborted, Some(Phase::Request)));
    assert_eq!(began.elapsed(), seconds(5));

    // While events wait to be taken, and while the socket is silent.
    for events_taken in [1, 2] {
        let cancel = CancellationToken::new();
        let (provider, transport) = provider(ScriptedResponse::new(200).event(TEXT).hang());
        let attempt = AttemptContext::new(cancel.clone(), false);
        let mut stream = provider.open(&request, attempt).await.unwrap();
        for _ in 0..events_taken {
            stream.next().await.unwrap().unwrap();
        }
        let later = async {
            if events_taken == 2 {
                tokio::time::sleep(seconds(5)).await;
            }
            cancel.cancel();
        };
        let (next, ()) = match events_taken {
            1 => {
                later.await;
                (stream.next().await, ())
            }
            _ => futures_util::join!(stream.next(), later),
        };
        let failure = next.unwrap().unwrap_err();
        assert_eq!(failure.code(), ErrorCode::TurnAborted);
        assert_eq!(failure.phase(), Some(Phase::Stream));
        assert_eq!(transport.open_bodies(), 0);
        assert_eq!(stream.next().await, None);
        assert_eq!(stream.partial().text, "Hi");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_body_is_bounded_in_time_and_size() {
    let started = r#"{"error":{"code":"invalid_api_key"}} "#;
    let (slow, took) = failure(ScriptedResponse::new(401).bytes(started).hang()).await;
    assert_eq!(slow.code(), ErrorCode::ProviderUnauthorized);
    assert_eq!(took, Clocks::default().error_body);

    let mut endless = ScriptedResponse::new(500);
    for _ in 0..1000 {
        endless = endless.bytes(vec![b'x'; 1024]);
    }
    let (endless, _) = failure(endless).await;
    assert_eq!(endless.code(), ErrorCode::ProviderError);
    assert_eq!(endless.details().bytes_received, Some(64 * 1024));
}

#[tokio::test(start_paused = true)]
async fn a_torn_401_is_still_a_401_and_the_headers_are_read() {
    let response = ScriptedResponse::new(401)
        .header("X-Request-Id", "req_1")
        .bytes(r#"{"error":{"mess"#)
        .broken(Transport::Incomplete);
    let (torn, _) = failure(response).await;
    assert_eq!(torn.code(), ErrorCode::ProviderUnauthorized);
    assert_eq!(torn.details().provider_request_id.as_ref().unwrap().as_str(), "req_1");
    assert_eq!(torn.details().provider_status, Some(401));

    let response = ScriptedResponse::new(429)
        .header("retry-after", "7")
        .header("x-should-retry", "false")
        .bytes(r#"{"error":{"code":"rate_limit_exceeded","message":"slow down"}}"#);
    let (limited, _) = failure(response).await;
    assert_eq!(limited.code(), ErrorCode::ProviderRateLimited);
    assert_eq!(limited.retry_after(), Some(seconds(7)));
    assert!(!limited.retriable(), "the server's own word");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_tells_what_it_had() {
    let response = ScriptedResponse::new(200).event(USAGE).event(TEXT).broken(Transport::Reset);
    let (provider, _) = provider(response);
    let mut stream =
        provider.open(&ChatRequest::new("m"), AttemptContext::default()).await.unwrap();
    let failure = drain(&mut stream).await.unwrap_err();
    let details = failure.details();
    assert_eq!(failure.code(), ErrorCode::StreamFailed);
    assert_eq!(details.rule, Some("transport.reset"));
    assert_eq!(details.events_received, Some(2));
    assert_eq!(details.bytes_received, Some((USAGE.len() + TEXT.len() + 16) as u64));
    assert_eq!(details.usage.unwrap().input_tokens, Some(3));
    assert_eq!(details.delivered, Some(Delivered::Yes));
    assert_eq!(details.provider_status, Some(200));
    assert_eq!(stream.partial().text, "Hi");
}

#[tokio::test(start_paused = true)]
async fn the_request_carries_what_it_should_and_shows_no_key() {
    let (provider, transport) = provider(ScriptedResponse::new(200).event(TEXT).event(FINISH));
    let attempt = AttemptContext::new(CancellationToken::new(), true);
    let mut stream = provider.open(&ChatRequest::new("m"), attempt).await.unwrap();
    drain(&mut stream).await.unwrap();
    let sent = transport.requests().remove(0);
    assert!(sent.fresh_connection);
    assert_eq!(sent.endpoint.to_string(), "http://server.test/v1/chat/completions");
    let shown = format!("{sent:?} {provider:?} {stream:?} {transport:?}");
    assert!(!shown.contains("canary"), "{shown}");
}
