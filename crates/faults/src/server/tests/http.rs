//! HTTP, the routes, the record and the life of the server.

use serde_json::{Value, json};
use tokio::time::timeout;

use super::client::{Client, HANG, chat, chat_body, ended, post, serve, serve_named, until_ended};
use crate::{Ended, FaultServer, Finish, Script, ServeError, Step, Usage};

fn document(client: &Client) -> Value {
    serde_json::from_slice(client.body()).unwrap()
}

#[tokio::test]
async fn one_connection_carries_answers_and_errors_one_after_the_other() {
    let server = serve(vec![
        Step::named("rate_limit").unwrap(),
        Step::named("end_before_terminal").unwrap(),
        Step::named("whole").unwrap(),
    ])
    .await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("}}").await;
    client.seen.clear();
    client.send(&chat()).await;
    client.until("\r\n0\r\n\r\n").await;
    client.seen.clear();
    client.send(&chat()).await;
    client.until("[DONE]").await;
    assert_eq!(server.connections(), 1);
    assert_eq!(server.attempts(), 3);
    assert_eq!(ended(&server), [Ended::Complete, Ended::CleanEnd, Ended::Complete]);
    let dealt: Vec<_> = server.requests().iter().map(|r| (r.seq, r.connection, r.step)).collect();
    assert_eq!(dealt, [(1, 1, Some(1)), (2, 1, Some(2)), (3, 1, Some(3))]);
}

#[tokio::test]
async fn two_requests_sent_at_once_are_both_answered() {
    let server = serve_named("whole").await;
    let closing =
        post("/v1/chat/completions", "connection: close\r\n", &chat_body(false).to_string());
    let mut client = Client::sending(&server, &(chat() + &closing)).await;
    client.assert_end_of_file().await;
    assert_eq!(client.text().matches("HTTP/1.1 200 OK").count(), 2);
}

#[tokio::test]
async fn a_request_without_stream_gets_one_document() {
    let step = Step::named("whole")
        .unwrap()
        .text("done")
        .reasoning("why")
        .tool_call("Read", &json!({"path": "a"}))
        .usage(Usage::new(10, 14))
        .finish(Finish::Length);
    let server = serve(vec![step]).await;
    let request = post("/prefix/chat/completions?x=1", "", &chat_body(false).to_string());
    let mut client = Client::sending(&server, &request).await;
    client.until("\"reasoning_tokens\":0}}}").await;
    assert!(client.head().contains("content-type: application/json"));
    let document = document(&client);
    assert_eq!(document["object"], "chat.completion");
    assert_eq!(
        document["choices"][0],
        json!({
            "index": 0,
            "message": {
                "role": "assistant", "content": "done", "reasoning_content": "why",
                "tool_calls": [{
                    "id": "call_1", "type": "function",
                    "function": {"name": "Read", "arguments": "{\"path\":\"a\"}"},
                }],
            },
            "logprobs": null,
            "finish_reason": "length",
        })
    );
    assert_eq!(document["usage"]["total_tokens"], 24);
}

#[tokio::test]
async fn usage_is_streamed_only_when_it_is_asked_for() {
    let server = serve(vec![Step::named("whole").unwrap().usage(Usage::new(10, 14))]).await;
    let mut body = chat_body(true);
    body["stream_options"] = json!({"include_usage": true});
    let mut client =
        Client::sending(&server, &post("/v1/chat/completions", "", &body.to_string())).await;
    client.until("[DONE]").await;
    let events = client.events();
    let usage = &events[events.len() - 2];
    assert!(
        usage.contains(r#""choices":[]"#) && usage.contains(r#""prompt_tokens":10"#),
        "{usage}"
    );
}

#[tokio::test]
async fn a_chunked_request_body_with_trailers_is_read() {
    let server = serve_named("whole").await;
    let body = chat_body(true).to_string();
    let (first, second) = body.split_at(7);
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{first}\r\n{:X};ext=1\r\n{second}\r\n0\r\nx-trailer: 1\r\n\r\n",
        first.len(),
        second.len(),
    );
    let mut client = Client::sending(&server, &request).await;
    client.until("[DONE]").await;
    assert_eq!(server.requests()[0].body, chat_body(true));
}

#[tokio::test]
async fn a_client_that_expects_a_continue_gets_it_before_its_body() {
    let server = serve_named("whole").await;
    let body = chat_body(true).to_string();
    let whole = post("/v1/chat/completions", "expect: 100-continue\r\n", &body);
    let (head, body) = whole.split_at(whole.len() - body.len());
    let mut client = Client::sending(&server, head).await;
    client.until("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.seen.clear();
    client.send(body).await;
    client.until("[DONE]").await;
}

#[tokio::test]
async fn a_bad_request_gets_a_400_is_recorded_and_uses_up_no_step() {
    let server = serve_named("quota").await;
    for (body, part) in [("{not json", "parse"), ("{\"model\":\"m\"}", "messages")] {
        let mut client = Client::sending(&server, &post("/v1/chat/completions", "", body)).await;
        client.until("}}").await;
        assert!(client.head().starts_with("HTTP/1.1 400 Bad Request"));
        let message = document(&client)["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(part), "{message}");
    }
    let record = server.requests();
    assert_eq!((record.len(), server.attempts()), (2, 0));
    assert_eq!(record[0].body, json!("{not json"));
    assert_eq!((record[1].step, &record[1].behaviour), (None, &None));
}

#[tokio::test]
async fn what_is_no_http_gets_an_answer_and_the_end_of_the_connection() {
    let server = serve_named("whole").await;
    for (request, status) in [
        ("GET / HTTP/1.0\r\n\r\n", 505),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        ("nonsense\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
        ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n", 400),
    ] {
        let mut client = Client::sending(&server, request).await;
        client.assert_end_of_file().await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(client.text().starts_with(&expected), "{request:?}: {}", client.text());
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_told_the_right_ones() {
    let server = serve_named("whole").await;
    for (request, status, told) in [
        ("POST /v1/completions HTTP/1.1\r\n\r\n", 404, "/v1/chat/completions"),
        ("GET /v1/chat/completions HTTP/1.1\r\n\r\n", 405, "use POST"),
        ("GET /v1/models HTTP/1.1\r\n\r\n", 200, "\"faults\""),
    ] {
        let mut client = Client::sending(&server, request).await;
        client.until("}").await;
        assert!(client.head().starts_with(&format!("HTTP/1.1 {status} ")), "{}", client.text());
        assert!(client.text().contains(told), "{}", client.text());
    }
    assert_eq!(server.attempts(), 0);
}

#[tokio::test]
async fn the_record_can_be_read_and_reset_over_http() {
    let server =
        FaultServer::start_anywhere(Script::named("rate_limited_twice").unwrap()).await.unwrap();
    let mut client = Client::sending(&server, &chat()).await;
    client.until("}}").await;
    client.seen.clear();
    client.send("GET /_faults/requests HTTP/1.1\r\n\r\n").await;
    client.until("\"complete\"}]").await;
    let record = document(&client);
    assert_eq!(record.as_array().unwrap().len(), 1);
    assert_eq!(record[0]["behaviour"], "rate_limit");
    assert_eq!(record[0]["headers"]["authorization"], "Bearer …");
    assert_eq!(record[0]["body"]["model"], "m");
    client.seen.clear();
    client.send("POST /_faults/reset HTTP/1.1\r\ncontent-length: 0\r\n\r\n").await;
    client.until("{\"reset\":true}").await;
    assert_eq!((server.requests().len(), server.attempts()), (0, 0));
    client.seen.clear();
    client.send(&chat()).await;
    client.until("}}").await;
    assert_eq!(server.requests()[0].step, Some(1));
}

#[tokio::test]
async fn an_exchange_begun_before_a_reset_does_not_write_into_the_new_record() {
    let server = serve_named("stall_before_headers").await;
    let old = Client::sending(&server, &chat()).await;
    until_ended(&server, Ended::Silence).await;
    server.reset();
    let new = Client::sending(&server, &chat()).await;
    until_ended(&server, Ended::Silence).await;
    drop(old);
    while server.open_connections() > 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ended(&server), [Ended::Silence]);
    drop(new);
}

#[tokio::test]
async fn tool_call_ids_differ_from_attempt_to_attempt() {
    let step = Step::named("whole").unwrap().tool_call("Read", &json!({"path": "a"}));
    let server = serve(vec![step]).await;
    for id in ["call_1", "call_2"] {
        let mut client = Client::sending(&server, &chat()).await;
        client.until("[DONE]").await;
        assert!(client.text().contains(&format!("\"id\":\"{id}\"")), "{}", client.text());
    }
}

#[tokio::test]
async fn stopping_ends_open_exchanges_and_hands_back_the_record() {
    let server = serve_named("stall").await;
    let mut stalled = Client::sending(&server, &chat()).await;
    until_ended(&server, Ended::Silence).await;
    let mut idle = Client::to(&server).await;
    let addr = server.addr();
    let record = timeout(HANG, server.stop()).await.unwrap();
    assert_eq!(record.len(), 1);
    let _ = stalled.read_out().await;
    let _ = idle.read_out().await;
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
}

#[tokio::test]
async fn dropping_the_server_closes_its_connections() {
    let server = serve_named("stall_before_headers").await;
    let mut client = Client::sending(&server, &chat()).await;
    until_ended(&server, Ended::Silence).await;
    drop(server);
    let _ = client.read_out().await;
}

#[tokio::test]
async fn an_address_that_others_can_reach_is_refused() {
    let script = Script::named("demo").unwrap();
    let error = FaultServer::start(script.clone(), "0.0.0.0:0".parse().unwrap()).await.unwrap_err();
    assert!(matches!(error, ServeError::NotLoopback(_)), "{error}");
    let server = FaultServer::start_anywhere(script.clone()).await.unwrap();
    assert_eq!(server.base_url(), format!("http://{}/v1", server.addr()));
    let error = FaultServer::start(script, server.addr()).await.unwrap_err();
    assert!(matches!(error, ServeError::Bind { .. }), "{error}");
}
