//! Heads, chunks, lengths, codings, and what stands beside them.

use std::io::Read as _;

use flate2::read::{DeflateDecoder, GzDecoder};

use crate::client::{End, count, find, hear, hear_until};

#[tokio::test]
async fn early_hints_come_before_the_head() {
    let heard = hear("early_hints").await;
    let text = String::from_utf8(heard.bytes).unwrap();
    let heads: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")).map(|s| &s[..3]).collect();
    assert_eq!(heads, ["103", "100", "200"]);
}

#[tokio::test]
async fn informational_for_ever_never_comes_to_another_head() {
    let bytes = hear_until("informational_for_ever", |bytes| bytes.len() > 500).await;
    let one = b"HTTP/1.1 102 Processing\r\n\r\n";
    assert!(bytes.chunks(one.len()).all(|piece| one.starts_with(piece)), "{bytes:?}");
}

#[tokio::test]
async fn endless_headers_never_come_to_a_blank_line() {
    let bytes = hear_until("endless_headers", |bytes| bytes.len() > 512 * 1024).await;
    assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert_eq!(find(&bytes, b"\r\n\r\n"), None);
}

#[tokio::test]
async fn no_status_line_begins_by_another_protocol() {
    let heard = hear("no_status_line").await;
    assert!(heard.bytes.starts_with(b"ESMTP ready "));
}

#[tokio::test]
async fn two_lengths_are_announced_and_no_chunks() {
    let heard = hear("two_lengths").await;
    let head = heard.head();
    let lengths: Vec<&str> =
        head.lines().filter_map(|line| line.strip_prefix("content-length: ")).collect();
    assert_eq!(lengths, ["5", "7"]);
    assert_eq!(heard.header("transfer-encoding"), None);
}

#[tokio::test]
async fn large_header_is_one_line_of_64_kib() {
    let heard = hear("large_header").await;
    assert_eq!(heard.header("x-huge").unwrap().len(), 64 * 1024);
}

#[tokio::test]
async fn trailers_stand_between_the_last_chunk_and_the_end() {
    let heard = hear("trailers").await;
    let (line, trailers) = heard.chunks().pop().unwrap();
    assert_eq!(line, "0");
    let trailers = String::from_utf8(trailers).unwrap();
    assert_eq!(trailers, "x-served-by: faults\r\nserver-timing: total;dur=1\r\n\r\n");
}

#[tokio::test]
async fn chunk_extensions_stand_in_the_line_of_each_size() {
    let mut chunks = hear("chunk_extensions").await.chunks();
    chunks.pop();
    assert!(chunks.len() > 6);
    assert!(chunks.iter().all(|(line, _)| line.ends_with(";served-by=\"faults\"")), "{chunks:?}");
}

#[tokio::test]
async fn content_length_stream_is_as_long_as_it_says_and_not_chunked() {
    let heard = hear("content_length_stream").await;
    assert_eq!(heard.header("transfer-encoding"), None);
    assert_eq!(heard.header("content-length").unwrap(), heard.body().len().to_string());
    assert!(heard.body().ends_with(b"data: [DONE]\n\n"));
}

#[tokio::test]
async fn bytes_beyond_length_follow_the_end_of_the_body() {
    let heard = hear("bytes_beyond_length").await;
    let length: usize = heard.header("content-length").unwrap().parse().unwrap();
    let (body, beyond) = heard.body().split_at(length);
    assert!(body.ends_with(b"data: [DONE]\n\n"));
    assert_eq!(beyond, [b'x'; 64]);
}

#[tokio::test]
async fn short_body_announces_more_and_ends_by_a_fin() {
    let heard = hear("short_body").await;
    let length: usize = heard.header("content-length").unwrap().parse().unwrap();
    assert!(!heard.body().is_empty() && heard.body().len() < length);
    assert_eq!(heard.end, End::File);
}

#[tokio::test]
async fn the_content_type_is_missing_or_wrong() {
    assert_eq!(hear("no_content_type").await.header("content-type"), None);
    let wrong = hear("wrong_content_type").await.header("content-type").unwrap();
    assert_eq!(wrong, "text/plain; charset=iso-8859-1");
}

#[tokio::test]
async fn gzip_cut_is_whole_http_around_a_torn_stream() {
    let heard = hear("gzip_cut").await;
    assert_eq!(heard.header("content-encoding").unwrap(), "gzip");
    let coded = heard.data();
    assert!(coded.starts_with(&[0x1f, 0x8b]));
    let mut text = Vec::new();
    assert!(GzDecoder::new(&*coded).read_to_end(&mut text).is_err());
    assert_eq!(count(&text, b"data: "), 6);
}

#[tokio::test]
async fn gzip_no_trailer_lacks_the_checksum_alone() {
    let coded = hear("gzip_no_trailer").await.data();
    assert!(GzDecoder::new(&*coded).read_to_end(&mut Vec::new()).is_err());
    // Ten bytes of a header without a name.
    let mut text = String::new();
    DeflateDecoder::new(&coded[10..]).read_to_string(&mut text).unwrap();
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
}

#[tokio::test]
async fn gzip_unlabelled_is_compressed_and_does_not_say_so() {
    let heard = hear("gzip_unlabelled").await;
    assert_eq!(heard.header("content-encoding"), None);
    assert!(heard.data().starts_with(&[0x1f, 0x8b]));
}
