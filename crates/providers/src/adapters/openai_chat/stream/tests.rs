use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use turnbuckle_errors::{ErrorCode, Opaque, Transport};

use crate::{
    Arguments, CompletedMessage, FinishReason,
    openai_chat::{BodyEnding, FailedAnswer, decode_body},
    transport::{ResponseHead, TransportError},
};

fn decode(body: &str) -> Result<CompletedMessage, FailedAnswer> {
    let head = ResponseHead::new(200, []);
    decode_body(
        head,
        [Bytes::copy_from_slice(body.as_bytes())],
        BodyEnding::Clean,
        Arc::new(Opaque),
    )
}

fn stream(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[track_caller]
fn whole(events: &[&str]) -> CompletedMessage {
    decode(&stream(events)).unwrap()
}

#[track_caller]
fn failed(body: &str) -> (ErrorCode, &'static str) {
    let failed = decode(body).unwrap_err();
    (failed.0.code(), failed.0.details().rule.unwrap())
}

const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;

#[test]
fn only_a_finish_reason_completes_a_message() {
    assert_eq!(whole(&[TEXT, FINISH]).message().text, "a");
    assert_eq!(whole(&[TEXT, FINISH, "[DONE]"]).finish_raw(), Some("stop"));
    let early = (ErrorCode::StreamFailed, "protocol.ended_early");
    assert_eq!(failed(&stream(&[TEXT])), early);
    assert_eq!(failed(&stream(&[TEXT, "[DONE]"])), early);
    assert_eq!(failed(&stream(&[TEXT, r#"{"choices":[{"finish_reason":""}]}"#])), early);
    assert_eq!(failed(""), (ErrorCode::StreamFailed, "protocol.empty_body"));
    assert_eq!(
        failed(": only\n\n: comments\n\n"),
        (ErrorCode::StreamFailed, "protocol.empty_body")
    );
    assert_eq!(failed("data: [DONE]\n\n"), (ErrorCode::StreamFailed, "protocol.empty_body"));
}

#[test]
fn text_after_the_end_is_not_part_of_the_message() {
    assert_eq!(whole(&[TEXT, FINISH, TEXT]).message().text, "a");
    assert_eq!(whole(&[TEXT, FINISH, "not json"]).message().text, "a");
    assert_eq!(whole(&[TEXT, FINISH, "[DONE]", "{broken"]).message().text, "a");
}

#[test]
fn an_event_that_cannot_be_decoded_fails_the_stream() {
    for event in ["not json", "{\"choices\":", "5", "\"text\"", "{\"a\":1}{\"b\":2}"] {
        assert_eq!(
            failed(&stream(&[TEXT, event, FINISH])),
            (ErrorCode::StreamFailed, "protocol.undecodable"),
            "{event}"
        );
    }
    // A last event that was cut says nothing of its own.
    assert_eq!(
        failed(&format!("{}data: {{\"choices\":[{{", stream(&[TEXT]))),
        (ErrorCode::StreamFailed, "protocol.ended_early")
    );
}

#[test]
fn unknown_and_mistyped_fields_are_passed_over() {
    let message = whole(&[
        r#"{"id":5,"choices":[],"usage":null,"obfuscation":"x"}"#,
        r#"{"choices":null}"#,
        r#"{"choices":[{"index":null,"delta":null,"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":null,"tool_calls":null,"role":7}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"b"},7,null]}}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"length"}]}"#,
        "{}",
        FINISH,
    ]);
    assert_eq!(message.message().text, "b");
    assert_eq!(message.finish(), FinishReason::Stop);
}

#[test]
fn reasoning_comes_from_one_field_of_a_chunk() {
    let message = whole(&[
        r#"{"choices":[{"delta":{"reasoning":"a","reasoning_content":"a","reasoning_details":[{"text":"a"}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":null,"reasoning_details":[{"type":"reasoning.text","text":"b"},{"type":"reasoning.encrypted","data":"zz"}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_text":"c"}}]}"#,
        r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"d"}]},{"type":"text","text":"!"}]}}]}"#,
        FINISH,
    ]);
    assert_eq!((&*message.message().reasoning, &*message.message().text), ("abcd", "!"));
}

#[test]
fn the_last_token_counts_win_and_an_empty_report_does_not() {
    for (json, input, cached) in [
        (
            r#"{"choices":[],"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}}"#,
            5,
            Some(4),
        ),
        (r#"{"choices":[],"usage":{"prompt_tokens":9,"prompt_cache_hit_tokens":4}}"#, 5, Some(4)),
        (r#"{"choices":[{"delta":{},"usage":{"prompt_tokens":9,"cached_tokens":4}}]}"#, 5, Some(4)),
        (r#"{"choices":[],"x_groq":{"usage":{"prompt_tokens":9}}}"#, 9, None),
    ] {
        let before = r#"{"choices":[],"usage":{"prompt_tokens":1}}"#;
        let empty = r#"{"choices":[],"usage":{}}"#;
        let message = whole(&[before, TEXT, FINISH, json, empty]);
        assert_eq!(message.usage().input_tokens, Some(input), "{json}");
        assert_eq!(message.usage().cached_tokens, cached, "{json}");
    }
}

#[test]
fn what_was_written_to_a_cache_is_no_part_of_the_input() {
    for (usage, input) in [
        // OpenRouter.
        (
            r#"{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":30,"cache_write_tokens":50}}"#,
            20,
        ),
        // LiteLLM.
        (
            r#"{"prompt_tokens":100,"cache_creation_input_tokens":50,"prompt_tokens_details":{"cached_tokens":30,"cache_creation_tokens":50}}"#,
            20,
        ),
        (r#"{"prompt_tokens":100,"cached_tokens":30,"cache_creation_input_tokens":50}"#, 20),
        // More than there was to write: it was counted beside the prompt.
        (r#"{"prompt_tokens":40,"cached_tokens":30,"cache_creation_input_tokens":50}"#, 10),
    ] {
        let message = whole(&[TEXT, FINISH, &format!(r#"{{"choices":[],"usage":{usage}}}"#)]);
        let usage = message.usage();
        assert_eq!(
            (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens),
            (Some(input), Some(30), Some(50)),
        );
    }
    let message = whole(&[TEXT, FINISH, r#"{"choices":[],"usage":{"prompt_tokens":5}}"#]);
    assert_eq!(message.usage().cache_write_tokens, None, "unknown is not nothing");
}

#[test]
fn free_text_that_the_limit_may_have_cut_is_not_whole() {
    let call = |id: &str, input: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"id":"{id}","custom":{{"name":"sh","input":"{input}"}}}}]}}}}]}}"#
        )
    };
    let (first, second) = (call("a", "ls"), call("b", "rm -rf /tmp/x"));
    let told = |word: &str| {
        let end = format!(r#"{{"choices":[{{"finish_reason":"{word}"}}]}}"#);
        let calls = whole(&[&first, &second, &end]).into_message().tool_calls;
        calls.into_iter().map(|call| call.arguments).collect::<Vec<_>>()
    };
    let text = |text: &str| Arguments::Whole(format!("{text:?}"));
    assert_eq!(told("tool_calls"), [text("ls"), text("rm -rf /tmp/x")]);
    assert_eq!(told("length"), [text("ls"), Arguments::Broken("rm -rf /tmp/x".into())]);
}

#[test]
fn reasoning_is_taken_out_of_the_answer_unless_it_was_counted_beside() {
    for (usage, output) in [
        // OpenAI: reasoning is part of the answer.
        (
            r#"{"prompt_tokens":5,"completion_tokens":9,"total_tokens":14,"completion_tokens_details":{"reasoning_tokens":7}}"#,
            2,
        ),
        // xAI: reasoning comes beside it.
        (
            r#"{"prompt_tokens":5,"completion_tokens":9,"total_tokens":21,"completion_tokens_details":{"reasoning_tokens":7}}"#,
            9,
        ),
        // More reasoning than answer, as a Hugging Face router reports: beside it.
        (
            r#"{"prompt_tokens":5,"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":11}}"#,
            9,
        ),
    ] {
        let message = whole(&[TEXT, FINISH, &format!(r#"{{"choices":[],"usage":{usage}}}"#)]);
        assert_eq!(message.usage().output_tokens, Some(output), "{usage}");
    }
}

#[test]
fn an_error_wins_wherever_it_stands() {
    let server = r#"{"error":{"message":"m","type":"server_error"}}"#;
    for body in [
        stream(&[server]),
        stream(&[TEXT, server]),
        stream(&[TEXT, FINISH, server]),
        format!("{}event: error\ndata: {server}\n\n", stream(&[TEXT])),
        format!("{}error: {server}\n\n", stream(&[TEXT])),
        server.to_owned(),
        format!("[{server}]"),
        stream(&[TEXT, r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#]),
    ] {
        assert_eq!(failed(&body).0, ErrorCode::ProviderError, "{body}");
    }
    assert_eq!(
        failed(&stream(&[
            r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#
        ]))
        .0,
        ErrorCode::InvalidRequest
    );
    assert_eq!(
        failed(&stream(&[
            r#"{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}"#
        ]))
        .0,
        ErrorCode::ProviderOverloaded
    );
    // A field that says nothing is no error.
    for nothing in ["null", "false", r#""""#, "{}"] {
        let event = format!(r#"{{"error":{nothing},"choices":[{{"delta":{{"content":"a"}}}}]}}"#);
        assert_eq!(whole(&[&event, FINISH]).message().text, "a");
    }
}

#[test]
fn a_whole_completion_may_answer_a_streaming_request() {
    let json = r#" {"choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[
        {"id":"c","type":"function","function":{"name":"f","arguments":{"x":1}}}]},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":2}}"#;
    for body in [
        json.to_owned(),
        format!("[{json}]"),
        format!("\u{feff}{json}"),
        format!("data: {}\n\n", json.replace('\n', "")),
    ] {
        let message = decode(&body).unwrap();
        assert_eq!(message.message().text, "a");
        assert_eq!(message.finish(), FinishReason::ToolCalls);
        assert_eq!(
            message.message().tool_calls[0].arguments,
            Arguments::Whole(r#"{"x":1}"#.into())
        );
    }
    let torn = json.split_at(json.len() - 5).0;
    assert_eq!(failed(torn), (ErrorCode::StreamFailed, "protocol.ended_early"));
}

#[test]
fn a_message_that_repeats_the_deltas_is_not_added_to_them() {
    let both = r#"{"choices":[{"delta":{"content":"b"},"message":{"content":"ab"}}]}"#;
    let last = r#"{"choices":[{"message":{"content":"ab"},"finish_reason":"stop"}]}"#;
    assert_eq!(whole(&[TEXT, both, last]).message().text, "ab");
}

#[test]
fn a_web_page_is_another_protocol() {
    let mismatch = (ErrorCode::ProviderProtocolMismatch, "protocol.html");
    assert_eq!(failed("<!DOCTYPE html><html></html>"), mismatch);
    assert_eq!(failed("\r\n  <html>"), mismatch);
    let head = ResponseHead::new(200, [("content-type".into(), "text/html; charset=utf-8".into())]);
    let page = [Bytes::from_static(b"Please log in")];
    let failed = decode_body(head, page, BodyEnding::Clean, Arc::new(Opaque)).unwrap_err();
    assert_eq!(failed.0.code(), ErrorCode::ProviderProtocolMismatch);
}

#[test]
fn a_call_of_the_old_kind_and_an_empty_one() {
    let message = whole(&[
        r#"{"choices":[{"delta":{"function_call":{"name":"f","arguments":""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"{\"x\":"}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"1}"}}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#,
    ]);
    assert_eq!(message.message().tool_calls.len(), 1);
    assert_eq!(message.message().tool_calls[0].arguments.as_json(), r#"{"x":1}"#);
    let empty =
        r#"{"choices":[{"delta":{"content":"a","function_call":{"name":"","arguments":""}}}]}"#;
    assert_eq!(whole(&[empty, FINISH]).message().tool_calls, []);
    let blank =
        r#"{"choices":[{"delta":{"content":"a","tool_calls":[{},{"index":0,"function":null}]}}]}"#;
    assert_eq!(whole(&[blank, FINISH]).message().tool_calls, []);
}

#[test]
fn a_cut_of_the_connection_is_told_by_its_cause() {
    let broken = BodyEnding::Broken(TransportError::new(Transport::BadChunk, None));
    let body = [Bytes::from(stream(&[TEXT]))];
    let failed =
        decode_body(ResponseHead::new(200, []), body, broken, Arc::new(Opaque)).unwrap_err();
    assert_eq!(failed.0.details().rule, Some("transport.bad_chunk"));
    assert_eq!(failed.1.text, "a");
}

/// A stream with most of what servers send.
fn rich() -> Vec<u8> {
    let mut body = b"\xef\xbb\xbf: hello\n\n".to_vec();
    body.extend(stream(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"h\u00e9 \"q\" 🦀"}}],"usage":{"prompt_tokens":1}}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning_details":[{"text":"x"}],"content":[{"text":"é"}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
        FINISH,
        "[DONE]",
    ]).into_bytes());
    body
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_and_no_cutting_changes_the_outcome(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, any::<u8>()), 0..8),
        size in 1usize..20,
    ) {
        let mut body = rich();
        for (place, kind, byte) in edits {
            if body.is_empty() { break }
            let at = place.index(body.len());
            match kind {
                0 => body[at] = byte,
                1 => body.insert(at, byte),
                2 => { body.remove(at); }
                _ => body.truncate(at),
            }
        }
        let run = |pieces: Vec<Bytes>| {
            match decode_body(ResponseHead::new(200, []), pieces, BodyEnding::Clean, Arc::new(Opaque)) {
                Ok(message) => (Some(message), None),
                Err(failed) => (None, Some((failed.0.code(), failed.0.details().rule, failed.1))),
            }
        };
        let whole = run(vec![Bytes::from(body.clone())]);
        let pieces = body.chunks(size).map(Bytes::copy_from_slice).collect();
        prop_assert_eq!(run(pieces), whole);
    }

    #[test]
    fn nothing_before_the_finish_reason_is_a_whole_message(cut in any::<prop::sample::Index>()) {
        let body = rich();
        let end = body.windows(15).position(|w| w == b"\"finish_reason\"").unwrap();
        let part = Bytes::copy_from_slice(&body[..cut.index(end)]);
        let outcome = decode_body(ResponseHead::new(200, []), [part], BodyEnding::Clean, Arc::new(Opaque));
        prop_assert!(outcome.is_err());
    }
}
