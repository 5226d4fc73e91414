//! Chunks, lengths, compression, redirects and the end of a connection, byte
//! by byte.

use std::io::Read as _;

use flate2::read::GzDecoder;

use super::client::{Client, chat, chat_body, ended, post, serve, serve_named, until_ended};
use crate::{
    DEFAULT_TEXT, Ended, Gzip, HangUp, How, RefusingProxy, Step, catalogue::DEFAULT_EVENT,
};

/// What can be inflated of a chunked body, and whether that was all of it.
fn inflated(client: &Client) -> (String, bool) {
    let coded: Vec<u8> = client.chunks().into_iter().flat_map(|(_, data)| data).collect();
    let mut text = Vec::new();
    let whole = GzDecoder::new(&*coded).read_to_end(&mut text).is_ok();
    (String::from_utf8(text).unwrap(), whole)
}

#[tokio::test]
async fn bad_chunk_sends_a_size_that_is_no_number() {
    let server = serve_named("bad_chunk").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.assert_end_of_file().await;
    let (before, after) =
        client.text().rsplit_once("\r\nzz\r\n").map(|(a, b)| (a.len(), b.len())).unwrap();
    assert!(after > 0);
    client.seen.truncate(before + 2);
    assert_eq!(client.events().len(), DEFAULT_EVENT);
    assert_eq!(ended(&server), [Ended::Fin]);
}

#[tokio::test]
async fn a_bad_chunk_stands_behind_whole_chunks_wherever_it_is_put() {
    for stream in [true, false] {
        let step = Step::named("cut_inside_event").unwrap().how(How::BadChunk);
        let server = serve(vec![step]).await;
        let body = chat_body(stream).to_string();
        let mut client = Client::sending(&server, &post("/v1/chat/completions", "", &body)).await;
        client.assert_end_of_file().await;
        let text = client.text();
        assert!(text.contains("transfer-encoding: chunked"), "{text}");
        client.seen.truncate(text.find("\r\nzz\r\n").unwrap() + 2);
        for (announced, data) in client.chunks() {
            assert_eq!(announced, data.len());
        }
    }
}

#[tokio::test]
async fn fin_inside_chunk_ends_a_chunk_before_its_size() {
    let server = serve_named("fin_inside_chunk").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.assert_end_of_file().await;
    let (announced, torn) = client.chunks().pop().unwrap();
    assert_eq!(torn.len(), announced / 2);
    assert_eq!(ended(&server), [Ended::Fin]);
}

#[tokio::test]
async fn short_body_announces_more_than_it_sends() {
    for stream in [true, false] {
        let server = serve_named("short_body").await;
        let body = chat_body(stream).to_string();
        let mut client = Client::sending(&server, &post("/v1/chat/completions", "", &body)).await;
        client.assert_end_of_file().await;
        let head = client.head();
        assert!(!head.contains("transfer-encoding"), "{head}");
        let length = head.split_once("content-length: ").unwrap().1;
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        assert!(client.body().len() < length, "{head}");
        assert!(!client.body().is_empty());
        assert_eq!(ended(&server), [Ended::Fin]);
    }
}

#[tokio::test]
async fn a_redirect_names_this_server_by_another_name_and_what_follows_is_recorded() {
    let server = serve(vec![Step::named("redirect").unwrap(), Step::named("whole").unwrap()]).await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("see http").await;
    let head = client.head();
    assert!(head.starts_with("HTTP/1.1 307 "), "{head}");
    let port = server.addr().port();
    let elsewhere = "/elsewhere/v1/chat/completions";
    assert!(head.contains(&format!("location: http://localhost:{port}{elsewhere}")), "{head}");
    let key = "authorization: Bearer sk-sent-by-the-test\r\n";
    let follow = post(elsewhere, key, &chat_body(true).to_string());
    let mut client = Client::sending(&server, &follow).await;
    client.until("[DONE]").await;
    let record = server.requests();
    assert_eq!(record[1].path.as_str(), elsewhere);
    assert!(record[1].headers.get("authorization").is_some());
}

#[tokio::test]
async fn close_after_answer_promises_to_keep_the_connection_and_closes_it() {
    let server = serve_named("close_after_answer").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.assert_end_of_file().await;
    assert!(!client.head().contains("connection: close"));
    assert!(client.text().ends_with("\r\n0\r\n\r\n"));
    assert_eq!(ended(&server), [Ended::Complete]);
}

#[tokio::test]
async fn reset_on_reuse_answers_one_request_and_resets_the_next() {
    let server = serve_named("reset_on_reuse").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("\r\n0\r\n\r\n").await;
    client.seen.clear();
    client.send(&chat()).await;
    client.assert_reset().await;
    assert_eq!(client.text(), "");
    assert_eq!(ended(&server), [Ended::Complete, Ended::Reset]);
    assert_eq!((server.attempts(), server.requests()[1].step), (1, None));
}

#[tokio::test]
async fn gzip_gives_each_event_out_at_once_and_ends_whole() {
    let slow = Step::named("stall").unwrap().gzip(Gzip::Flushed);
    let server = serve(vec![slow, Step::named("gzip").unwrap()]).await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("\r\n\r\n").await;
    // A hang in here is a failure of `until_more`.
    while inflated(&client).0.matches("data: ").count() < DEFAULT_EVENT {
        client.until_more().await;
    }
    let mut client = Client::sending(&server, &chat()).await;
    client.until("\r\n0\r\n\r\n").await;
    assert!(client.head().contains("content-encoding: gzip"));
    let (text, whole) = inflated(&client);
    assert!(whole && text.ends_with("data: [DONE]\n\n"), "{text}");
}

#[tokio::test]
async fn a_held_gzip_gives_nothing_out_before_its_end() {
    let server = serve(vec![Step::named("stall").unwrap().gzip(Gzip::Held)]).await;
    let mut client = Client::sending(&server, &chat()).await;
    until_ended(&server, Ended::Silence).await;
    client.until("\r\n\r\n").await;
    assert_eq!(inflated(&client).0, "");
    let server = serve(vec![Step::named("whole").unwrap().gzip(Gzip::Held)]).await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("\r\n0\r\n\r\n").await;
    assert!(inflated(&client).1);
}

#[tokio::test]
async fn gzip_corrupt_and_gzip_cut_cannot_be_inflated_to_their_end() {
    for (name, end) in [("gzip_corrupt", Ended::Complete), ("gzip_cut", Ended::CleanEnd)] {
        let server = serve_named(name).await;
        let mut client = Client::sending(&server, &chat()).await;
        client.until("\r\n0\r\n\r\n").await;
        let (text, whole) = inflated(&client);
        assert!(!whole, "{name}");
        assert!(text.matches("data: ").count() <= DEFAULT_EVENT, "{name}: {text}");
        assert_eq!(ended(&server), [end], "{name}");
    }
}

#[tokio::test]
async fn gzip_lie_is_plain_text_under_a_header_that_says_gzip() {
    let server = serve_named("gzip_lie").await;
    let mut client = Client::sending(&server, &chat()).await;
    client.until("\r\n0\r\n\r\n").await;
    assert!(client.head().contains("content-encoding: gzip"));
    assert_eq!(client.content(), DEFAULT_TEXT);
}

#[tokio::test]
async fn a_whole_document_is_compressed_to_the_length_it_announces() {
    let server = serve_named("gzip").await;
    let request =
        post("/v1/chat/completions", "connection: close\r\n", &chat_body(false).to_string());
    let mut client = Client::sending(&server, &request).await;
    client.assert_end_of_file().await;
    assert!(client.head().contains(&format!("content-length: {}", client.body().len())));
    let mut text = String::new();
    GzDecoder::new(client.body()).read_to_string(&mut text).unwrap();
    assert!(text.contains("chat.completion"), "{text}");
}

#[tokio::test]
async fn a_corrupt_document_is_whole_http_and_cannot_be_inflated() {
    let server = serve_named("gzip_corrupt").await;
    let request =
        post("/v1/chat/completions", "connection: close\r\n", &chat_body(false).to_string());
    let mut client = Client::sending(&server, &request).await;
    client.assert_end_of_file().await;
    assert!(client.head().contains(&format!("content-length: {}", client.body().len())));
    assert!(GzDecoder::new(client.body()).read_to_end(&mut Vec::new()).is_err());
    assert_eq!(ended(&server), [Ended::Complete]);
}

#[tokio::test]
async fn a_hang_up_composes_with_an_error_response() {
    let server = serve(vec![Step::named("quota").unwrap().hang_up(HangUp::AtOnce)]).await;
    let mut client = Client::sending(&server, &chat()).await;
    client.assert_end_of_file().await;
    assert!(client.text().starts_with("HTTP/1.1 429"));
    assert!(!client.head().contains("connection: close"));
}

#[tokio::test]
async fn a_refusing_proxy_answers_its_status_and_says_where_the_client_wanted_to_go() {
    let proxy = RefusingProxy::start(407).await.unwrap();
    let addr = proxy.url().strip_prefix("http://").unwrap().parse().unwrap();
    let mut client = Client::at(addr).await;
    client.send("CONNECT api.example.com:443 HTTP/1.1\r\nhost: api.example.com:443\r\n\r\n").await;
    client.assert_end_of_file().await;
    assert!(client.text().starts_with("HTTP/1.1 407 "), "{}", client.text());
    assert!(client.text().contains("proxy-authenticate: Basic"));
    assert_eq!(proxy.targets(), ["CONNECT api.example.com:443"]);
}
