//! Events that are no object of the dialect, in all four dialects alike.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::sync::Arc;

use bytes::Bytes;
use turnbuckle_errors::{ErrorCode, Opaque};
use turnbuckle_providers::{
    anthropic, conformance::Outcome, gemini, openai_chat, openai_chat::BodyEnding,
    openai_responses, transport::ResponseHead,
};

/// A dialect: how an answer begins, what says "hi", and how it ends.
struct Stream {
    begin: &'static [&'static str],
    text: &'static str,
    end: &'static [&'static str],
    decode: fn(ResponseHead, Bytes) -> Outcome,
}

const STREAMS: [Stream; 4] = [
    Stream {
        begin: &[],
        text: r#"{"choices":[{"index":0,"delta":{"content":"hi"}}]}"#,
        end: &[r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#, "[DONE]"],
        decode: |head, body| {
            openai_chat::decode_body(head, [body], BodyEnding::Clean, Arc::new(Opaque))
        },
    },
    Stream {
        begin: &[r#"{"type":"response.created","response":{"id":"r"}}"#],
        text: r#"{"type":"response.output_text.delta","output_index":0,"delta":"hi"}"#,
        end: &[r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#],
        decode: |head, body| {
            openai_responses::decode_body(head, [body], BodyEnding::Clean, Arc::new(Opaque))
        },
    },
    Stream {
        begin: &[
            r#"{"type":"message_start","message":{"id":"m","content":[]}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        ],
        text: r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#,
        end: &[
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        decode: |head, body| {
            anthropic::decode_body(head, [body], BodyEnding::Clean, "m", Arc::new(Opaque))
        },
    },
    Stream {
        begin: &[],
        text: r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}"#,
        end: &[r#"{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}"#],
        decode: |head, body| gemini::decode_body(head, [body], BodyEnding::Clean, Arc::new(Opaque)),
    },
];

fn framed(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

impl Stream {
    /// The answer to an answer's text with `tail` after it.
    fn after_text(&self, tail: &str) -> Outcome {
        let body = framed(self.begin) + &framed(&[self.text]) + tail;
        (self.decode)(ResponseHead::new(200, []), body.into())
    }
}

fn code(outcome: Outcome) -> ErrorCode {
    outcome.unwrap_err().0.code()
}

const ERROR: &str =
    r#"{"error":{"code":429,"type":"rate_limit_error","message":"slow down, please"}}"#;

#[test]
fn an_error_in_a_list_is_an_error() {
    for stream in &STREAMS {
        let tail = framed(&[&format!("[{ERROR}]")]) + &framed(stream.end);
        assert_eq!(code(stream.after_text(&tail)), ErrorCode::ProviderRateLimited, "{tail}");
    }
}

#[test]
fn words_in_a_list_end_nothing() {
    for stream in &STREAMS {
        for word in ["[\"response.completed\"]", "[\"message_stop\"]", "[[{\"x\":\"stop\"}]]", "7"]
        {
            assert_eq!(
                code(stream.after_text(&framed(&[word]))),
                ErrorCode::StreamFailed,
                "{word}"
            );
        }
    }
}

#[test]
fn null_says_nothing() {
    for stream in &STREAMS {
        let tail = framed(&["null"]) + &framed(stream.end);
        assert_eq!(stream.after_text(&tail).unwrap().message().text, "hi");
        assert_eq!(code(stream.after_text(&framed(&["null"]))), ErrorCode::StreamFailed);
    }
}

#[test]
fn an_error_as_bare_json_counts_also_before_an_end_marker() {
    for stream in &STREAMS {
        for tail in [format!("{ERROR}\n\n"), format!("{ERROR}\n\ndata: [DONE]\n\n")] {
            assert_eq!(code(stream.after_text(&tail)), ErrorCode::ProviderRateLimited, "{tail}");
            // With nothing before it.
            let alone = (stream.decode)(ResponseHead::new(200, []), tail.clone().into());
            assert_eq!(code(alone), ErrorCode::ProviderRateLimited, "{tail}");
        }
        // What is no error is noise.
        let tail = String::from("{\"error\":null}\n\n") + &framed(stream.end);
        assert_eq!(stream.after_text(&tail).unwrap().message().text, "hi");
    }
}
