//! What a script says of its requests, seen over real sockets, and what the
//! server says of itself over HTTP.

use serde_json::{Value, json};

use super::client::{Client, chat_body, post};
use crate::{FaultServer, Script};

async fn serve(script: &str) -> FaultServer {
    FaultServer::start_anywhere(Script::parse(script).unwrap()).await.unwrap()
}

/// Sends one request on a connection of its own, and gives status and body.
async fn ask(server: &FaultServer, request: &str) -> (u16, String) {
    let mut client = Client::sending(server, request).await;
    client.assert_end_of_file().await;
    answer_of(&client)
}

fn answer_of(client: &Client) -> (u16, String) {
    let status = client.head().split(' ').nth(1).unwrap().parse().unwrap();
    (status, String::from_utf8_lossy(client.body()).into_owned())
}

fn chat(headers: &str, model: &str) -> String {
    let body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
    let headers =
        format!("authorization: Bearer sk-sent-by-the-test\r\n{headers}connection: close\r\n");
    post("/v1/chat/completions", &headers, &body.to_string())
}

async fn get(server: &FaultServer, path: &str) -> (u16, Value) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let (status, body) = ask(server, &request).await;
    (status, serde_json::from_str(&body).unwrap())
}

const QUOTA_THEN_WHOLE: &str =
    "[[step]]\nerror = { status = 503 }\n[[step]]\nbehaviour = \"whole\"\n";

#[tokio::test]
async fn each_session_has_the_script_for_itself() {
    let server = serve(&format!("scope = \"session\"\n{QUOTA_THEN_WHOLE}")).await;
    let mut seen = Vec::new();
    for session in ["a", "b", "a", "c", "b", "a"] {
        let header = format!("x-faults-session: {session}\r\n");
        seen.push(ask(&server, &chat(&header, "m")).await.0);
    }
    assert_eq!(seen, [503, 503, 200, 503, 200, 200]);
    let sessions: Vec<_> =
        server.stop().await.into_iter().map(|request| request.session.unwrap()).collect();
    assert_eq!(sessions, ["a", "b", "a", "c", "b", "a"]);
}

#[tokio::test]
async fn each_connection_has_the_script_for_itself() {
    let server = serve(&format!("scope = \"connection\"\n{QUOTA_THEN_WHOLE}")).await;
    for _ in 0..2 {
        let mut client = Client::to(&server).await;
        let body = chat_body(false).to_string();
        client.send(&post("/v1/chat/completions", "", &body)).await;
        client.until("\"error\"").await;
        client.send(&post("/v1/chat/completions", "connection: close\r\n", &body)).await;
        client.assert_end_of_file().await;
        assert!(client.text().contains("503") && client.text().contains("before noon"));
    }
    assert_eq!(server.stop().await.len(), 4);
}

#[tokio::test]
async fn a_step_is_for_the_requests_it_matches() {
    let server = serve(
        "[[step]]\nmatch = { model = \"small\" }\ntimes = \"always\"\nerror = { status = 503 }\n\
         [[step]]\nbehaviour = \"whole\"\n",
    )
    .await;
    let mut seen = Vec::new();
    for model in ["big", "small", "big", "small"] {
        seen.push(ask(&server, &chat("", model)).await.0);
    }
    assert_eq!(seen, [200, 503, 200, 503]);
    let record = server.stop().await;
    assert_eq!(
        record.iter().map(|request| request.step).collect::<Vec<_>>(),
        [2, 1, 2, 1].map(Some)
    );
}

#[tokio::test]
async fn a_request_that_no_step_is_for_is_answered_and_recorded_without_a_step() {
    let server = serve("[[step]]\nmatch = { model = \"small\" }\nbehaviour = \"quota\"\n").await;
    assert_eq!(ask(&server, &chat("", "big")).await.0, 200);
    let record = server.stop().await;
    assert_eq!((record[0].step, record[0].behaviour.as_deref()), (None, Some("whole")));
}

#[tokio::test]
async fn the_same_dice_are_thrown_again_after_a_reset() {
    let server = serve(
        "seed = 11\n[[step]]\nprobability = 0.5\ntimes = \"always\"\nerror = { status = 503 }\n\
         [[step]]\nbehaviour = \"whole\"\n",
    )
    .await;
    let mut rounds = Vec::new();
    for _ in 0..2 {
        let mut seen = Vec::new();
        for _ in 0..16 {
            seen.push(ask(&server, &chat("", "m")).await.0);
        }
        assert!(seen.contains(&503) && seen.contains(&200), "{seen:?}");
        rounds.push(seen);
        let reset = "POST /_faults/reset HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        assert_eq!(ask(&server, reset).await, (200, r#"{"reset":true}"#.to_owned()));
    }
    assert_eq!(rounds[0], rounds[1]);
    assert_eq!(server.seed(), Some(11));
    let drawn = serve("[[step]]\nprobability = 0.5\nbehaviour = \"quota\"\n").await;
    assert!(drawn.seed().is_some(), "drawn when the script has none");
    assert_eq!(serve(QUOTA_THEN_WHOLE).await.seed(), None, "no dice");
}

#[tokio::test]
async fn the_record_is_read_over_http_filtered_and_without_keys() {
    let server = serve(QUOTA_THEN_WHOLE).await;
    for session in ["a", "b b", "a"] {
        ask(&server, &chat(&format!("x-session-id: {session}\r\n"), "m")).await;
    }
    let (status, all) = get(&server, "/_faults/requests").await;
    assert_eq!((status, all.as_array().unwrap().len()), (200, 3));
    assert!(!all.to_string().contains("sk-sent-by-the-test"), "{all}");
    assert_eq!(all[0]["headers"]["authorization"], "Bearer …");
    assert_eq!(all[0]["ended"], "complete");
    for request in all.as_array().unwrap() {
        assert!(request["ended_ms"].as_u64().unwrap() >= request["at_ms"].as_u64().unwrap());
    }
    let connections: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|request| request["connection"].as_u64().unwrap())
        .collect();
    assert_eq!(connections, [1, 2, 3]);
    let kept = async |query: &str| -> Vec<u64> {
        let (status, kept) = get(&server, &format!("/_faults/requests?{query}")).await;
        assert_eq!(status, 200, "{kept}");
        kept.as_array().unwrap().iter().map(|request| request["seq"].as_u64().unwrap()).collect()
    };
    assert_eq!(kept("session=a").await, [1, 3]);
    assert_eq!(kept("session=b+b").await, [2]);
    assert_eq!(kept("session=b%20b").await, [2]);
    assert_eq!(kept("connection=2").await, [2]);
    assert_eq!(kept("step=2").await, [2, 3]);
    assert_eq!(kept("since=1&step=2&session=a").await, [3]);
    assert_eq!(kept("").await, [1, 2, 3]);
    for (query, told) in [
        ("sesion=a", "unknown filter `sesion`; allowed: session=NAME, connection=N"),
        ("since=x", "`since` must be a whole number, not \\\"x\\\""),
    ] {
        let (status, refusal) = get(&server, &format!("/_faults/requests?{query}")).await;
        assert!(status == 400 && refusal.to_string().contains(told), "{refusal}");
    }
    assert_eq!(server.requests().len(), 3, "reading the record leaves none");
}

#[tokio::test]
async fn a_long_body_is_told_by_its_beginning_unless_it_is_asked_for_whole() {
    let server = serve(QUOTA_THEN_WHOLE).await;
    // Of characters with two bytes after an odd number of bytes, so that a cut by
    // bytes meets the middle of one.
    let text = "é".repeat(100_000);
    let long = json!({"model": "m", "messages": [{"role": "user", "content": text}]});
    let long = long.to_string();
    for body in [&long, &chat_body(true).to_string()] {
        let close = "connection: close\r\n";
        ask(&server, &post("/v1/chat/completions", close, body)).await;
    }
    let (_, told) = get(&server, "/_faults/requests").await;
    assert_eq!(told[0]["body_bytes"], long.len());
    let cut = told[0]["body"].as_str().unwrap();
    assert!(cut.len() < 65 * 1024 && cut.ends_with("é…"), "{} bytes", cut.len());
    assert!(cut.starts_with("{\"model\":\"m\""), "{:?}", cut.get(..40));
    assert_eq!(told[1]["body"], chat_body(true), "a short one is told as JSON");
    let (_, told) = get(&server, "/_faults/requests?bodies=whole&since=0").await;
    assert_eq!(told[0]["body"]["messages"][0]["content"], text);
    let (status, refusal) = get(&server, "/_faults/requests?bodies=all").await;
    assert!(status == 400 && refusal.to_string().contains("only be `whole`"), "{refusal}");
    assert_eq!(server.requests()[0].body["messages"][0]["content"], text, "it is kept whole");
}

#[tokio::test]
async fn an_answer_under_way_has_no_end_yet() {
    let server = serve("[[step]]\nbehaviour = \"stall\"\n").await;
    let body = chat_body(true).to_string();
    let mut client = Client::sending(&server, &post("/v1/chat/completions", "", &body)).await;
    client.until("café").await;
    super::client::until_ended(&server, crate::Ended::Silence).await;
    let (_, record) = get(&server, "/_faults/requests").await;
    assert_eq!((&record[0]["ended"], &record[0]["ended_ms"]), (&json!("silence"), &Value::Null));
    drop(client);
    super::client::until_ended(&server, crate::Ended::LeftInSilence).await;
    let (_, record) = get(&server, "/_faults/requests").await;
    assert!(record[0]["ended_ms"].is_u64(), "{record}");
}

#[tokio::test]
async fn what_is_left_of_the_script_is_read_over_http() {
    let server = serve(
        "scope = \"session\"\nseed = 4\nafter = \"answer\"\n\
         [[step]]\nerror = { status = 503 }\ntimes = 2\n\
         [[step]]\nbehaviour = \"quota\"\nmatch = { model = \"x\" }\nprobability = 0.5\ntimes = \"always\"\n",
    )
    .await;
    ask(&server, &chat("x-session-id: a\r\n", "m")).await;
    let (status, script) = get(&server, "/_faults/script").await;
    assert_eq!(status, 200);
    assert_eq!(
        script,
        json!({
            "scope": "session", "after": "answer", "seed": 4, "attempts": 1,
            "steps": [
                {"step": 1, "behaviour": null, "does": "an error of status 503", "times": 2,
                 "probability": null, "matches": false},
                {"step": 2, "behaviour": "quota", "does": "an error of status 429", "times": null,
                 "probability": 0.5, "matches": true},
            ],
            "rows": [{"of": {"session": "a"}, "left": [1, null]}],
        })
    );
}

#[tokio::test]
async fn a_wrong_request_of_the_servers_own_is_told_what_there_is() {
    let server = serve(QUOTA_THEN_WHOLE).await;
    let (status, told) = get(&server, "/_faults/nothing").await;
    assert!(status == 404 && told.to_string().contains("GET /_faults/script"), "{told}");
    let (status, told) = get(&server, "/_faults/reset").await;
    assert!(status == 405 && told.to_string().contains("use POST"), "{told}");
    let (status, _) = ask(&server, &post("/_faults/script", "connection: close\r\n", "")).await;
    assert_eq!(status, 405);
    assert!(server.requests().is_empty());
}
