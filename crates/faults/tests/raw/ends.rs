//! FIN and RST, and what stood before them.

use crate::client::{End, count, find, hear, hear_until};

#[tokio::test]
async fn cut_before_status_is_a_reset_without_a_byte() {
    let heard = hear("cut_before_status").await;
    assert_eq!((heard.bytes.len(), heard.end), (0, End::Reset));
}

#[tokio::test]
async fn end_before_status_is_a_fin_without_a_byte() {
    let heard = hear("end_before_status").await;
    assert_eq!((heard.bytes.len(), heard.end), (0, End::File));
}

#[tokio::test]
async fn cut_inside_headers_ends_within_the_head() {
    let heard = hear("cut_inside_headers").await;
    assert!(heard.bytes.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert_eq!(find(&heard.bytes, b"\r\n\r\n"), None);
    assert_eq!(heard.end, End::File);
}

#[tokio::test]
async fn cut_between_events_lacks_the_last_chunk_and_nothing_else() {
    let heard = hear("cut_between_events").await;
    assert!(heard.bytes.ends_with(b"}\n\n\r\n"), "a whole event in a whole chunk");
    assert_eq!(find(heard.body(), b"\r\n0\r\n"), None);
    assert_eq!(count(heard.body(), b"data: "), 6);
    assert_eq!(heard.end, End::File);
}

#[tokio::test]
async fn end_before_terminal_has_the_last_chunk_and_no_finish_reason() {
    let heard = hear("end_before_terminal").await;
    assert!(heard.bytes.ends_with(b"\r\n0\r\n\r\n"));
    let data = String::from_utf8(heard.data()).unwrap();
    assert!(!data.contains("\"finish_reason\":\"") && !data.contains("[DONE]"), "{data}");
    assert_eq!(heard.end, End::File);
}

#[tokio::test]
async fn the_terminal_event_is_followed_by_a_fin_or_a_reset_and_no_last_chunk() {
    for (fault, end) in [("end_after_terminal", End::File), ("reset_after_terminal", End::Reset)] {
        let heard = hear(fault).await;
        let body = String::from_utf8(heard.body().to_vec()).unwrap();
        assert!(body.contains("\"finish_reason\":\"stop\""), "{fault}: {body}");
        assert!(!body.contains("\r\n0\r\n"), "{fault}: {body}");
        assert_eq!(heard.end, end, "{fault}");
    }
}

#[tokio::test]
async fn error_body_cut_falls_short_of_its_length_by_a_reset() {
    let heard = hear("error_body_cut").await;
    assert!(heard.head().starts_with("HTTP/1.1 500 "));
    let length: usize = heard.header("content-length").unwrap().parse().unwrap();
    assert!(!heard.body().is_empty() && heard.body().len() < length);
    assert_eq!(heard.end, End::Reset);
}

#[tokio::test]
async fn close_delimited_ends_by_a_fin_which_a_cut_does_too() {
    for (fault, done) in [("close_delimited", true), ("close_delimited_cut", false)] {
        let heard = hear(fault).await;
        assert!(heard.head().starts_with("HTTP/1.0 200 OK\r\n"), "{}", heard.head());
        assert_eq!(heard.header("content-length"), None);
        assert_eq!(heard.header("transfer-encoding"), None);
        assert!(heard.body().starts_with(b"data: "), "no chunk");
        assert_eq!(heard.body().ends_with(b"data: [DONE]\n\n"), done, "{fault}");
        assert_eq!(heard.end, End::File);
    }
}

#[tokio::test]
async fn keep_alives_for_ever_are_comments_on_an_open_connection() {
    let bytes = hear_until("keep_alives_for_ever", |bytes| count(bytes, b"keep-alive") > 20).await;
    let first = find(&bytes, b"keep-alive").unwrap();
    let after = String::from_utf8(bytes[first..].to_vec()).unwrap();
    let said = after.replace("e\r\n: keep-alive\n\n\r\n", "");
    assert!(!said.contains("data:"), "{said}");
    assert_eq!(count(&bytes[..first], b"data: "), 6);
}
