//! Any body, read by the code that reads the socket: whole, byte by byte and in
//! pieces of a size that the input chooses, the outcome is the same, and an answer
//! that was cut before its end is never whole.
//!
//! The first byte of the input is the size of the pieces; the rest is the body.

#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use turnbuckle_diagnostics::Redactor;
use turnbuckle_providers::{
    CompletedMessage,
    openai_chat::{BodyEnding, decode_body},
    transport::ResponseHead,
};

fuzz_target!(|data: &[u8]| {
    let Some((&size, body)) = data.split_first() else { return };
    let whole = read(body, body.len().max(1));
    assert_eq!(whole, read(body, 1), "byte by byte it reads differently");
    assert_eq!(whole, read(body, usize::from(size).max(1)), "in pieces it reads differently");

    if let Ok(message) = &whole {
        assert!(message.finish_raw().is_some(), "a message without a finish reason is whole");
    }
});

/// The message, or the code of the failure and the text that had come.
fn read(body: &[u8], size: usize) -> Result<CompletedMessage, (String, String)> {
    let head = ResponseHead::new(200, [("content-type".into(), "text/event-stream".into())]);
    let pieces: Vec<Bytes> = body.chunks(size).map(Bytes::copy_from_slice).collect();
    decode_body(head, pieces, BodyEnding::Clean, Arc::new(Redactor::default()))
        .map_err(|failed| (failed.0.to_string(), failed.1.text))
}
