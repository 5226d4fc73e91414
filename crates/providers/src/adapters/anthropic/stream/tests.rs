use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use turnbuckle_errors::{ErrorCode, Opaque, Usage};

use crate::{
    Arguments, CompletedMessage, FinishReason,
    anthropic::{BodyEnding, FailedAnswer, decode_body},
    transport::ResponseHead,
};

mod errors;
mod mutations;

fn decode(body: &str) -> Result<CompletedMessage, FailedAnswer> {
    let pieces = [Bytes::copy_from_slice(body.as_bytes())];
    decode_body(ResponseHead::new(200, []), pieces, BodyEnding::Clean, "claude-x", Arc::new(Opaque))
}

fn stream(events: &[&str]) -> String {
    let kind = |event: &str| {
        let value: Value = serde_json::from_str(event).unwrap_or_default();
        value["type"].as_str().unwrap_or("message").to_owned()
    };
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", kind(event))).collect()
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

fn parts(message: &CompletedMessage) -> Vec<&str> {
    let native = message.message().native.as_ref();
    native.map(|native| native.parts.iter().map(String::as_str).collect()).unwrap_or_default()
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":7,"output_tokens":1}}}"#;
const TEXT: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const HI: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#;
const STOP_0: &str = r#"{"type":"content_block_stop","index":0}"#;
const STOP_1: &str = r#"{"type":"content_block_stop","index":1}"#;
const END_TURN: &str =
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#;
const TOOL_USE: &str = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#;
const MESSAGE_STOP: &str = r#"{"type":"message_stop"}"#;
const THINK: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#;
const THOUGHT: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so \"so\" "}}"#;
const SIGNED: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln/+=="}}"#;
const CALL: &str = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}}"#;

fn input(json: &str) -> String {
    json!({"type": "content_block_delta", "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": json}})
    .to_string()
}

fn stop_with(word: &str) -> String {
    json!({"type": "message_delta", "delta": {"stop_reason": word}}).to_string()
}

#[test]
fn a_message_ends_by_message_stop_or_by_a_stop_reason() {
    let message = whole(&[START, TEXT, HI, STOP_0, END_TURN, MESSAGE_STOP]);
    assert_eq!((&*message.message().text, message.finish()), ("hi", FinishReason::Stop));
    assert_eq!(message.finish_raw(), Some("end_turn"));
    // A gateway leaves the last event out.
    assert_eq!(whole(&[START, TEXT, HI, STOP_0, END_TURN]).finish_raw(), Some("end_turn"));
    // Another leaves the reason out: there is no word to keep.
    assert_eq!(whole(&[START, TEXT, HI, STOP_0, MESSAGE_STOP]).finish_raw(), None);
}

#[test]
fn nothing_less_ends_it() {
    let early = (ErrorCode::StreamFailed, "protocol.ended_early");
    let null =
        r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":3}}"#;
    for events in [
        &[START][..],
        &[START, TEXT, HI],
        &[START, TEXT, HI, STOP_0],
        &[START, TEXT, HI, STOP_0, null],
        &[START, TEXT, HI, STOP_0, "[DONE]"],
        // A server that gave up writes its last event all the same.
        &[START, TEXT, HI, MESSAGE_STOP],
    ] {
        assert_eq!(failed(&stream(events)), early, "{events:?}");
    }
    let empty = (ErrorCode::StreamFailed, "protocol.empty_body");
    let ping = r#"{"type":"ping"}"#;
    for events in [&[][..], &[ping], &[MESSAGE_STOP], &[ping, MESSAGE_STOP]] {
        assert_eq!(failed(&stream(events)), empty, "{events:?}");
    }
    assert_eq!(failed(&format!("{}data: {{\"type\":\"mess", stream(&[START]))), early);
}

#[test]
fn what_comes_after_the_stop_reason_is_no_part_of_the_message() {
    let message = whole(&[START, TEXT, HI, STOP_0, END_TURN, HI, CALL, "{broken", MESSAGE_STOP]);
    assert_eq!(message.message().text, "hi");
    assert_eq!(message.message().tool_calls, []);
}

#[test]
fn counts_are_disjoint_and_later_ones_overlay() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":1}}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":null,"output_tokens":50,"output_tokens_details":{"thinking_tokens":30}}}"#;
    let expected = Usage {
        input_tokens: Some(5),
        output_tokens: Some(20),
        cached_tokens: Some(100),
        cache_write_tokens: Some(20),
        reasoning_tokens: Some(30),
    };
    assert_eq!(*whole(&[start, TEXT, HI, end]).usage(), expected);
    let silent = r#"{"type":"message_start","message":{}}"#;
    let end = stop_with("end_turn");
    assert_eq!(*whole(&[silent, TEXT, HI, &end]).usage(), Usage::default());
}

#[test]
fn every_stop_reason_is_kept_and_none_is_an_empty_success() {
    for (word, finish) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("pause_turn", FinishReason::Pause),
        ("refusal", FinishReason::ContentFilter),
        ("a_new_reason", FinishReason::Stop),
    ] {
        let message = whole(&[START, &stop_with(word), MESSAGE_STOP]);
        assert_eq!((message.finish(), message.finish_raw()), (finish, Some(word)));
    }
    // A refusal with a call in it stays one, so that the call is not run.
    let refused = whole(&[START, CALL, &input("{}"), STOP_1, &stop_with("refusal")]);
    assert_eq!(refused.finish(), FinishReason::ContentFilter);
}

#[test]
fn calls_are_put_together_by_their_block() {
    let second = CALL.replace("\"index\":1", "\"index\":2").replace("toolu_1", "toolu_2");
    let third = r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_3","name":"Now","input":{}}}"#;
    let to_second = input(r#"{"b":2}"#).replace("\"index\":1", "\"index\":2");
    let message = whole(&[
        START,
        CALL,
        &second,
        third,
        &input(r#"{"path":"#),
        &to_second,
        &input(r#""é"}"#),
        TOOL_USE,
    ]);
    let calls: Vec<_> = message
        .message()
        .tool_calls
        .iter()
        .map(|call| (&*call.id, &*call.name, call.arguments.as_json()))
        .collect();
    assert_eq!(
        calls,
        [
            ("toolu_1", "Read", r#"{"path":"é"}"#),
            ("toolu_2", "Read", r#"{"b":2}"#),
            ("toolu_3", "Now", "{}"),
        ]
    );
    assert_eq!(message.finish(), FinishReason::ToolCalls);
}

#[test]
fn broken_arguments_are_no_empty_ones() {
    let message = whole(&[START, CALL, &input(r#"{"text": "a\q"#), STOP_1, TOOL_USE]);
    let arguments = &message.message().tool_calls[0].arguments;
    assert_eq!(*arguments, Arguments::Broken(r#"{"text": "a\q"#.into()));
    let cut = whole(&[START, CALL, STOP_1, &stop_with("max_tokens")]);
    assert_eq!(cut.message().tool_calls[0].arguments, Arguments::Broken(String::new()));
}

#[test]
fn arguments_without_a_call_mean_that_a_call_was_lost() {
    let undecodable = (ErrorCode::StreamFailed, "protocol.undecodable");
    assert_eq!(failed(&stream(&[START, &input("{}"), TOOL_USE])), undecodable);
    assert_eq!(failed(&stream(&[START, TEXT, HI, &input("{}"), TOOL_USE])), undecodable);
}

#[test]
fn an_input_may_come_whole() {
    for whole_input in [r#"{"x": 1}"#, r#""{\"x\": 1}""#] {
        let call = CALL.replace("\"input\":{}", &format!("\"input\":{whole_input}"));
        for events in [
            // At its start, with or without its end.
            vec![START, &call, STOP_1, TOOL_USE],
            vec![START, &call, TOOL_USE],
            // And once more in pieces.
            vec![START, &call, &input(r#"{"x": 1}"#), STOP_1, TOOL_USE],
        ] {
            let message = whole(&events);
            assert_eq!(message.message().tool_calls[0].arguments.as_json(), r#"{"x": 1}"#);
        }
    }
    let inside = r#"{"type":"message_start","message":{"id":"m","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"f","input":{"x":1}}],"stop_reason":"tool_use","usage":{"input_tokens":0}}}"#;
    let message = whole(&[inside, MESSAGE_STOP]);
    assert_eq!(message.message().text, "a");
    assert_eq!(message.message().tool_calls[0].arguments.as_json(), r#"{"x":1}"#);
    assert_eq!(message.finish_raw(), Some("tool_use"));
    assert_eq!(failed(&stream(&[inside])).1, "protocol.ended_early");
}

#[test]
fn a_whole_message_may_answer_a_streaming_request() {
    let document = r#" {"type":"message","id":"m","role":"assistant","content":[
        {"type":"thinking", "thinking":"t","signature":"s" },
        {"type":"text","text":"a"},
        {"type":"tool_use","id":"t","name":"f","input":{"x": 1}}],
        "stop_reason":"tool_use","usage":{"input_tokens":2,"output_tokens":3}}"#;
    for body in [document.to_owned(), format!("data: {}\n\n", document.replace('\n', ""))] {
        let message = decode(&body).unwrap();
        assert_eq!((&*message.message().text, &*message.message().reasoning), ("a", "t"));
        assert_eq!(message.message().tool_calls[0].arguments.as_json(), r#"{"x": 1}"#);
        assert_eq!(message.usage().output_tokens, Some(3));
        assert_eq!(parts(&message)[0], r#"{"type":"thinking", "thinking":"t","signature":"s" }"#);
    }
    let unfinished = document.replace("\"tool_use\",\"usage\"", "null,\"usage\"");
    assert_eq!(failed(&unfinished), (ErrorCode::StreamFailed, "protocol.ended_early"));
    assert_eq!(failed(document.split_at(90).0).1, "protocol.ended_early");
}

#[test]
fn unknown_and_mistyped_fields_are_passed_over() {
    let message = whole(&[
        START,
        r#"{"type":"a_new_event","x":[1]}"#,
        r#"{"type":"content_block_start","index":0,"content_block":null}"#,
        r#"{"type":"content_block_start","index":0,"content_block":7}"#,
        r#"{"type":"content_block_start","index":null,"content_block":{"type":"text","text":null,"citations":null}}"#,
        r#"{"type":"content_block_delta","delta":null}"#,
        r#"{"type":"content_block_delta","index":"0","delta":{"type":"text_delta","text":5}}"#,
        r#"{"type":"content_block_delta","delta":{"text":"b"}}"#,
        r#"{"type":"content_block_stop"}"#,
        r#"{"type":"message_delta","delta":null,"usage":null}"#,
        END_TURN,
    ]);
    assert_eq!(message.message().text, "b");
    // The type may be left to the name of the event.
    let named = "event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"c\"}}\n\n\
                 event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
    assert_eq!(decode(named).unwrap().message().text, "c");
    for event in ["not json", "5", "\"text\"", "{\"a\":1}{\"b\":2}"] {
        assert_eq!(failed(&stream(&[START, event, END_TURN])).1, "protocol.undecodable", "{event}");
    }
}

#[test]
fn a_block_that_cannot_be_read_is_not_lost_in_silence() {
    // Half of a character, which JSON cannot give as text.
    let text = TEXT.replace("\"text\":\"\"", r#""text":"\ud83d""#);
    assert_ne!(text, TEXT);
    let inside = START.replace("[]", r#"[{"type":"text","text":"\ud83d"}]"#);
    assert_ne!(inside, START);
    let undecodable = (ErrorCode::StreamFailed, "protocol.undecodable");
    assert_eq!(failed(&stream(&[START, &text, STOP_0, END_TURN])), undecodable);
    assert_eq!(failed(&stream(&[&inside, END_TURN])), undecodable);
}

#[test]
fn two_messages_in_one_stream_are_no_message() {
    let other = START.replace("msg_1", "msg_2");
    let body = stream(&[START, TEXT, HI, &other, TEXT, HI, STOP_0, END_TURN, MESSAGE_STOP]);
    assert_eq!(failed(&body), (ErrorCode::StreamFailed, "protocol.ended_early"));
    // The same start twice is only told twice, and so is a block.
    let message = whole(&[START, START, TEXT, TEXT, HI, START, STOP_0, END_TURN]);
    assert_eq!(message.message().text, "hi");
    let message = whole(&[START, CALL, CALL, &input(r#"{"x":1}"#), STOP_1, TOOL_USE]);
    assert_eq!(message.message().tool_calls.len(), 1);
}

#[test]
fn signed_thinking_is_kept_to_the_byte() {
    let redacted = r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking", "data":"EqkE+/=="}  }"#;
    let call = CALL.replace("\"index\":1", "\"index\":2");
    let arguments = input(r#"{"b": 1,"a":[ ]}"#).replace("\"index\":1", "\"index\":2");
    let stop = r#"{"type":"content_block_stop","index":2}"#;
    let message = whole(&[
        START, THINK, THOUGHT, SIGNED, STOP_0, redacted, STOP_1, &call, &arguments, stop, TOOL_USE,
    ]);
    assert_eq!(message.message().reasoning, "so \"so\" ");
    assert_eq!(
        parts(&message),
        [
            r#"{"type":"thinking","thinking":"so \"so\" ","signature":"c2ln/+=="}"#,
            r#"{"type":"redacted_thinking", "data":"EqkE+/=="}"#,
            r#"{"type":"tool_use","id":"toolu_1","name":"Read","input":{"b": 1,"a":[ ]}}"#,
        ]
    );
    let native = message.message().native.as_ref().unwrap();
    assert_eq!((&*native.dialect, &*native.model), ("anthropic", "claude-x"));
}

#[test]
fn plain_text_and_calls_are_not_kept_twice() {
    assert_eq!(parts(&whole(&[START, TEXT, HI, STOP_0, END_TURN])), [""; 0]);
    assert_eq!(parts(&whole(&[START, CALL, &input("{}"), STOP_1, TOOL_USE])), [""; 0]);
}

#[test]
fn thinking_that_was_not_ended_is_never_sent_back() {
    for events in [
        // No end of the block, or a limit that came before the signature.
        vec![START, THINK, THOUGHT, SIGNED, END_TURN],
        vec![START, THINK, THOUGHT, STOP_0, TEXT, END_TURN],
    ] {
        assert_eq!(parts(&whole(&events)), [""; 0], "{events:?}");
    }
    let cut = stop_with("max_tokens");
    assert_eq!(parts(&whole(&[START, THINK, THOUGHT, STOP_0, &cut])), [""; 0]);
    // A server that signs nothing gets back what it wrote.
    assert_eq!(parts(&whole(&[START, THINK, THOUGHT, STOP_0, END_TURN])).len(), 1);
}

#[test]
fn a_call_that_cannot_be_matched_to_its_block_drops_the_native_parts() {
    for call in [
        CALL.replace("toolu_1", ""),
        CALL.replace("\"Read\"", "\"\""),
        CALL.replace("\"id\":\"toolu_1\",", ""),
    ] {
        let message = whole(&[START, THINK, THOUGHT, SIGNED, STOP_0, &call, STOP_1, TOOL_USE]);
        assert_eq!(parts(&message), [""; 0], "{call}");
        assert_eq!(message.message().tool_calls.len(), 1);
    }
}

#[test]
fn a_cut_call_is_sent_back_with_nothing_as_it_is_told_to_the_model() {
    let cut = stop_with("max_tokens");
    let begun = input(r#"{"pa"#);
    let message = whole(&[START, THINK, THOUGHT, SIGNED, STOP_0, CALL, &begun, STOP_1, &cut]);
    assert_eq!(message.message().tool_calls[0].arguments, Arguments::Broken(r#"{"pa"#.into()));
    let expected = r#"{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}"#;
    assert_eq!(parts(&message)[1], expected);
}

#[test]
fn what_the_provider_runs_is_kept_and_not_shown() {
    let search = r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}"#;
    let query = r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\": \"x\"}"}}"#;
    let result = r#"{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"text":"hidden"}]}}"#;
    let text = r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":[]}}"#;
    let cited = r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"url": "u"}}}"#;
    let shown =
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"shown"}}"#;
    let stop = r#"{"type":"content_block_stop","index":2}"#;
    let pause = stop_with("pause_turn");
    let message =
        whole(&[START, search, query, STOP_0, result, STOP_1, text, cited, shown, stop, &pause]);
    assert_eq!(message.message().text, "shown");
    assert_eq!(message.message().tool_calls, []);
    assert_eq!(
        parts(&message),
        [
            r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "x"}}"#,
            r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"text":"hidden"}]}"#,
            r#"{"type":"text","text":"shown","citations":[{"url": "u"}]}"#,
        ]
    );
    // A query that the limit cut is left out, one that was garbled drops them all.
    let garbled = query.replace(r#"\"}"#, "");
    let cut = stop_with("max_tokens");
    assert_eq!(parts(&whole(&[START, search, &garbled, STOP_0, &cut])), [""; 0]);
    assert_eq!(parts(&whole(&[START, search, &garbled, STOP_0, END_TURN])), [""; 0]);
}

#[test]
fn a_delta_of_an_unknown_kind_goes_into_its_block() {
    let compaction = r#"{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null,"n":1}}"#;
    let delta = |content: &str| {
        json!({"type": "content_block_delta", "index": 0, "delta": {
            "type": "compaction_delta", "content": content, "n": 2, "sealed": null}})
        .to_string()
    };
    let (one, two) = (delta("so "), delta("far"));
    let message = whole(&[START, compaction, &one, &two, STOP_0, END_TURN]);
    assert_eq!(parts(&message), [r#"{"type":"compaction","content":"so far","n":2}"#]);
    assert_eq!(message.message().text, "");
}

#[test]
fn text_of_a_block_that_never_began_is_shown_but_not_sent_back() {
    let thought = THOUGHT.replace("\"index\":0", "\"index\":5");
    let message = whole(&[START, HI, THINK, SIGNED, STOP_0, &thought, HI, END_TURN]);
    assert_eq!(message.message().text, "hihi");
    assert_eq!(message.message().reasoning, "so \"so\" ");
    assert_eq!(parts(&message), [""; 0]);
}

#[test]
fn a_server_cannot_begin_blocks_or_fields_without_end() {
    let begin = r#"{"type":"content_block_start","content_block":{"type":"text","text":""}}"#;
    let many = vec![begin; 5000];
    let too_large = (ErrorCode::ProviderProtocolMismatch, "protocol.answer_too_large");
    assert_eq!(failed(&stream(&many)), too_large);
    // More fields than any block has are shown to nobody and sent back to nobody.
    let odd = |n: usize| {
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"x","f{n}":1}}}}"#)
    };
    let kept = |count: usize| {
        let deltas: Vec<String> = (0..count).map(odd).collect();
        let mut events = vec![START, TEXT, HI];
        events.extend(deltas.iter().map(String::as_str));
        events.extend([STOP_0, END_TURN]);
        let message = whole(&events);
        assert_eq!(message.message().text, "hi");
        parts(&message).len()
    };
    assert_eq!((kept(64), kept(65)), (1, 0));
}
