//! The bytes of server-sent events.

use crate::client::{count, find, hear, hear_responses};

#[tokio::test]
async fn sse_cr_has_no_line_feed() {
    let data = hear("sse_cr").await.data();
    assert!(!data.contains(&b'\n'));
    assert!(data.ends_with(b"data: [DONE]\r\r"));
}

#[tokio::test]
async fn sse_crlf_ends_each_line_by_both() {
    let data = hear("sse_crlf").await.data();
    assert_eq!(count(&data, b"\n"), count(&data, b"\r\n"));
    assert_eq!(count(&data, b"\r"), count(&data, b"\r\n"));
    assert!(data.ends_with(b"data: [DONE]\r\n\r\n"));
}

#[tokio::test]
async fn drip_puts_each_byte_into_a_chunk_of_its_own() {
    let mut chunks = hear("drip").await.chunks();
    chunks.pop();
    assert!(chunks.len() > 1000, "{}", chunks.len());
    assert!(chunks.iter().all(|(line, data)| line == "1" && data.len() == 1));
    // So that some characters are cut.
    assert!(chunks.iter().any(|(_, data)| !data.is_ascii()));
}

#[tokio::test]
async fn sse_bom_comes_first_and_in_three_pieces() {
    let heard = hear("sse_bom").await;
    assert!(heard.body().starts_with(b"1\r\n\xef\r\n1\r\n\xbb\r\n1\r\n\xbf\r\n1\r\nd\r\n"));
}

#[tokio::test]
async fn sse_no_last_newline_ends_the_body_after_its_last_event() {
    let data = hear("sse_no_last_newline").await.data();
    assert!(data.ends_with(b"\n\ndata: [DONE]"));
}

#[tokio::test]
async fn sse_more_fields_has_ids_and_waits() {
    let data = String::from_utf8(hear("sse_more_fields").await.data()).unwrap();
    assert!(data.starts_with("id: 0\nretry: 10\nx-unknown: 1\ndata: {"), "{data}");
    assert_eq!(data.matches("\nretry: 10\n").count(), data.matches("data: ").count());
}

#[tokio::test]
async fn sse_invalid_utf8_stands_in_a_comment() {
    let data = hear("sse_invalid_utf8").await.data();
    assert!(find(&data, b"\n\n: \xff\xfe\xc3\n\n").is_some());
}

#[tokio::test]
async fn junk_line_is_no_event_and_the_last_thing_said() {
    let data = hear("junk_line").await.data();
    assert!(data.ends_with(b"}\n\nupstream error: the connection was closed\n"));
}

#[tokio::test]
async fn large_line_is_4_mib_long() {
    let data = hear("large_line").await.data();
    let longest = data.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap();
    assert_eq!(longest, 4 * 1024 * 1024 + 2);
}

#[tokio::test]
async fn refusal_field_holds_the_text_in_no_other() {
    let data = String::from_utf8(hear("refusal_field").await.data()).unwrap();
    assert!(data.contains("\"delta\":{\"refusal\":\"café \"}"), "{data}");
    assert!(!data.contains("\"delta\":{\"content\":"), "{data}");
    let data = String::from_utf8(hear_responses("refusal_field").await.data()).unwrap();
    for event in ["response.refusal.delta", "response.refusal.done"] {
        assert!(data.contains(&format!("\"type\":\"{event}\"")), "{event}: {data}");
    }
    assert!(data.contains("\"refusal\":\"Le café"), "{data}");
    assert!(!data.contains("output_text") && !data.contains("\"text\":\""), "{data}");
}
