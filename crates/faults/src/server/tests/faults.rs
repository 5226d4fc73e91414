//! Each behaviour of the catalogue, byte by byte.

use std::{io, time::Duration};

use serde_json::Value;

use super::client::{Client, HANG, chat, chat_body, ended, post, serve, serve_named, until_ended};
use crate::{Behaviour, DEFAULT_TEXT, Ended, How, Point, Step, catalogue::DEFAULT_EVENT};

#[tokio::test]
async fn whole_streams_every_event_and_a_proper_end() {
    let server = serve_named("whole").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("\r\n0\r\n\r\n").await;
    assert!(client.head().starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream"));
    assert_eq!(client.content(), DEFAULT_TEXT);
    let events = client.events();
    assert_eq!(events.last().unwrap(), "data: [DONE]");
    assert!(events[events.len() - 2].contains(r#""finish_reason":"stop""#), "{events:?}");
    assert!(!client.text().contains("\"usage\""));
    assert_eq!(ended(&server), [Ended::Complete]);
}

#[tokio::test]
async fn cut_before_status_resets_without_a_byte() {
    let server = serve_named("cut_before_status").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.assert_reset().await;
    assert_eq!(client.text(), "");
    assert_eq!(ended(&server), [Ended::Reset]);
}

#[tokio::test]
async fn cut_after_headers_resets_after_the_blank_line() {
    let server = serve_named("cut_after_headers").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.assert_reset().await;
    assert!(client.head().starts_with("HTTP/1.1 200 OK"));
    assert_eq!(client.body(), b"");
    assert_eq!(ended(&server), [Ended::Reset]);
}

#[tokio::test]
async fn cut_between_events_is_an_end_of_file_after_whole_events() {
    let server = serve_named("cut_between_events").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.assert_end_of_file().await;
    assert_eq!(client.events().len(), DEFAULT_EVENT);
    assert!(client.text().ends_with("\n\n\r\n"), "no end of the body: {}", client.text());
    assert!(DEFAULT_TEXT.starts_with(&client.content()) && !client.content().is_empty());
    assert_eq!(ended(&server), [Ended::Fin]);
}

#[tokio::test]
async fn cut_inside_event_resets_in_the_middle_of_an_announced_chunk() {
    let server = serve_named("cut_inside_event").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.assert_reset().await;
    assert_eq!(client.events().len(), DEFAULT_EVENT - 1);
    let (announced, torn) = client.chunks().pop().unwrap();
    assert_eq!(torn.len(), announced / 2);
    assert_eq!(ended(&server), [Ended::Reset]);
}

#[tokio::test]
async fn cut_inside_character_is_an_end_of_file_in_broken_utf8() {
    let server = serve_named("cut_inside_character").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.assert_end_of_file().await;
    let (_, torn) = client.chunks().pop().unwrap();
    let error = std::str::from_utf8(&torn).unwrap_err();
    assert_eq!((error.error_len(), error.valid_up_to()), (None, torn.len() - 1));
    assert!(client.events().len() > 1);
    assert_eq!(ended(&server), [Ended::Fin]);
}

#[tokio::test]
async fn end_before_terminal_is_proper_http_and_an_unfinished_answer() {
    let server = serve_named("end_before_terminal").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("\r\n0\r\n\r\n").await;
    assert_eq!(client.content(), DEFAULT_TEXT);
    assert!(!client.text().contains("[DONE]"));
    assert!(!client.text().contains(r#""finish_reason":"stop""#));
    assert_eq!(ended(&server), [Ended::CleanEnd]);
}

#[tokio::test]
async fn stall_sends_some_events_and_keeps_the_connection_silent() {
    let server = serve_named("stall").await;
    let mut client = Client::sending(&server, &chat()).await;
    while client.text().matches("data: ").count() < DEFAULT_EVENT
        || !client.text().ends_with("\n\n\r\n")
    {
        client.until_more().await;
    }
    until_ended(&server, Ended::Silence).await;
    let mut byte = [0];
    let nothing = client.stream.try_read(&mut byte).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(server.open_connections(), 1);
    drop(client);
    until_ended(&server, Ended::LeftInSilence).await;
}

#[tokio::test]
async fn rate_limit_asks_to_wait_in_both_spellings() {
    let server = serve_named("rate_limit").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("rate_limit_exceeded\"}}").await;
    let head = client.head();
    assert!(head.starts_with("HTTP/1.1 429 Too Many Requests"), "{head}");
    assert!(head.contains("\r\nretry-after-ms: 300\r\nretry-after: 1\r\n"), "{head}");
    let body: Value = serde_json::from_slice(client.body()).unwrap();
    assert_eq!(body["error"]["code"], "rate_limit_exceeded");
    assert_eq!(ended(&server), [Ended::Complete]);
}

#[tokio::test]
async fn error_responses_have_their_status_type_and_code() {
    for (name, status, kind, code) in [
        ("server_error", 500, "server_error", Value::Null),
        ("unauthorized", 401, "invalid_request_error", "invalid_api_key".into()),
        ("quota", 429, "insufficient_quota", "insufficient_quota".into()),
        ("overloaded", 503, "server_error", Value::Null),
        ("model_not_found", 404, "invalid_request_error", "model_not_found".into()),
    ] {
        let server = serve_named(name).await;
        let mut client = Client::sending(&server, &chat()).await;
        client.until("}}").await;
        assert!(client.head().starts_with(&format!("HTTP/1.1 {status} ")), "{name}");
        let body: Value = serde_json::from_slice(client.body()).unwrap();
        assert_eq!(body["error"]["type"], kind, "{name}");
        assert_eq!(body["error"]["code"], code, "{name}");
    }
}

#[tokio::test]
async fn unauthorized_repeats_the_key_and_the_record_does_not() {
    let server = serve_named("unauthorized").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("}}").await;
    assert!(client.text().contains("provided: sk-sent-by-the-test."), "{}", client.text());
    let record = server.requests();
    assert_eq!(record[0].headers.get("authorization"), Some("Bearer sk-sent-by-the-test"));
    let mut reader = Client::sending(&server, "GET /_faults/requests HTTP/1.1\r\n\r\n").await;
    reader.until("Bearer …").await;
    assert!(!reader.text().contains("sk-sent"), "{}", reader.text());
}

#[tokio::test]
async fn inband_error_says_an_error_event_after_some_events_and_ends() {
    let server = serve_named("inband_error").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("\r\n0\r\n\r\n").await;
    let events = client.events();
    assert_eq!(events.len(), DEFAULT_EVENT + 1);
    let error: Value =
        serde_json::from_str(events.last().unwrap().strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(error["error"]["type"], "server_error");
    assert!(!client.text().contains("[DONE]"));
}

#[tokio::test]
async fn html_page_is_a_page_of_status_200() {
    let server = serve_named("html_page").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("</html>").await;
    assert!(client.head().starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/html"));
}

#[tokio::test]
async fn huge_line_is_one_valid_event_of_more_than_16_mib() {
    let server = serve_named("huge_line").await;
    let mut client = Client::sending(
        &server,
        &post("/v1/chat/completions", "connection: close\r\n", &chat_body(true).to_string()),
    )
    .await;
    client.assert_end_of_file().await;
    let events = client.events();
    let longest = events.iter().max_by_key(|event| event.len()).unwrap();
    assert!(longest.len() > 16 * 1024 * 1024);
    assert!(serde_json::from_str::<Value>(&longest["data: ".len()..]).is_ok());
    assert_eq!(events.last().unwrap(), "data: [DONE]");
}

#[tokio::test]
async fn a_client_that_leaves_a_huge_line_is_noted() {
    let server = serve_named("huge_line").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("aaaa").await;
    drop(client);
    until_ended(&server, Ended::ClientLeft).await;
}

#[tokio::test]
async fn malformed_event_stands_in_an_otherwise_whole_stream() {
    let server = serve_named("malformed_event").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("\r\n0\r\n\r\n").await;
    let events = client.events();
    let broken: Vec<_> = events
        .iter()
        .filter(|e| *e != "data: [DONE]" && serde_json::from_str::<Value>(&e[6..]).is_err())
        .collect();
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert_eq!(client.content(), DEFAULT_TEXT);
}

#[tokio::test]
async fn done_without_finish_says_done_and_no_reason() {
    let server = serve_named("done_without_finish").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("\r\n0\r\n\r\n").await;
    assert_eq!(client.events().last().unwrap(), "data: [DONE]");
    assert!(!client.text().contains(r#""finish_reason":"stop""#));
}

#[tokio::test]
async fn stall_before_headers_answers_nothing_until_the_client_leaves() {
    let server = serve_named("stall_before_headers").await;
    let client = Client::sending(&server, &chat()).await;
    until_ended(&server, Ended::Silence).await;
    let mut byte = [0];
    let nothing = client.stream.try_read(&mut byte).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    drop(client);
    until_ended(&server, Ended::LeftInSilence).await;
}

#[tokio::test]
async fn every_event_before_a_reset_arrives_at_a_client_with_little_room() {
    // The client's buffer holds a fraction of the answer, so the rest waits in
    // the server's, where a reset sent at once would destroy it.
    let text = "é".repeat(64 * 1024);
    let cut = Behaviour::whole().cut(Point::BeforeTerminal, How::Reset);
    let server = serve(vec![Step::with(cut).text(&text).chunk_chars(16 * 1024)]).await;
    let mut client = Client::with_little_room(&server).await;
    client.send(&chat()).await;
    client.assert_reset().await;
    assert_eq!(client.content().len(), text.len());
    assert!(client.content() == text);
}

#[tokio::test]
async fn a_client_that_never_reads_is_reset_all_the_same() {
    let server = serve_named("cut_inside_event").await;
    let client = Client::sending(&server, &chat()).await;
    until_ended(&server, Ended::Reset).await;
    let closed = async {
        while server.open_connections() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG, closed).await.unwrap();
    drop(client);
}

#[tokio::test]
async fn a_behaviour_built_in_code_is_served_and_described_in_the_record() {
    let behaviour = Behaviour::whole()
        .status(206)
        .header("x-should-retry", "false")
        .cut(Point::AfterTerminal, How::Reset);
    let server = serve(vec![Step::with(behaviour)]).await;
    let mut client = Client::sending(&server, &chat()).await;
    client.assert_reset().await;
    assert!(client.head().starts_with("HTTP/1.1 206 "));
    assert!(client.head().contains("\r\nx-should-retry: false"));
    assert!(client.text().contains(r#""finish_reason":"stop""#));
    assert!(!client.text().contains("[DONE]"));
    assert_eq!(
        server.requests()[0].behaviour.as_deref(),
        Some("an answer, then a reset after the terminal event")
    );
}

#[tokio::test]
async fn a_request_that_does_not_stream_is_broken_in_its_document() {
    let body = chat_body(false).to_string();
    let request = post("/v1/chat/completions", "", &body);
    let server = serve(vec![
        Step::named("cut_inside_event").unwrap(),
        Step::named("malformed_event").unwrap(),
        Step::named("inband_error").unwrap(),
        Step::named("done_without_finish").unwrap(),
    ])
    .await;
    let mut client = Client::sending(&server, &request).await;
    client.assert_reset().await;
    assert!(client.head().contains("content-length: "));
    assert!(!client.body().is_empty());
    assert!(serde_json::from_slice::<Value>(client.body()).is_err());

    let mut client = Client::sending(&server, &request).await;
    client.until("this is not").await;
    assert!(serde_json::from_slice::<Value>(client.body()).is_err());

    let closing = post("/v1/chat/completions", "connection: close\r\n", &body);
    let mut client = Client::sending(&server, &closing).await;
    client.assert_end_of_file().await;
    let error: Value = serde_json::from_slice(client.body()).unwrap();
    assert_eq!(error["error"]["type"], "server_error");

    let mut client = Client::sending(&server, &closing).await;
    client.assert_end_of_file().await;
    let document: Value = serde_json::from_slice(client.body()).unwrap();
    assert_eq!(document["choices"][0]["finish_reason"], Value::Null);
}
