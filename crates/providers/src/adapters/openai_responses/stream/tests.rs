use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use turnbuckle_errors::{ErrorCode, Opaque};

use crate::{
    Arguments, CompletedMessage, FinishReason,
    openai_responses::{BodyEnding, FailedAnswer, decode_body},
    transport::ResponseHead,
};

mod cases;
mod mutated;

fn decode(body: &str) -> Result<CompletedMessage, FailedAnswer> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    decode_body(ResponseHead::new(200, []), [body], BodyEnding::Clean, Arc::new(Opaque))
}

fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[track_caller]
fn whole(events: &[Value]) -> CompletedMessage {
    decode(&stream(events)).unwrap()
}

#[track_caller]
fn failed(body: &str) -> (ErrorCode, &'static str) {
    let failed = decode(body).unwrap_err();
    (failed.0.code(), failed.0.details().rule.unwrap())
}

fn text(delta: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0,
        "item_id": "msg_1", "delta": delta})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": []}})
}

fn incomplete(reason: &str) -> Value {
    json!({"type": "response.incomplete", "response": {"status": "incomplete",
        "incomplete_details": {"reason": reason}, "output": []}})
}

fn added(index: u64, item: Value) -> Value {
    item_event("response.output_item.added", index, item)
}

fn done(index: u64, item: Value) -> Value {
    item_event("response.output_item.done", index, item)
}

fn item_event(kind: &str, index: u64, item: Value) -> Value {
    let mut event = json!({"type": kind, "output_index": index});
    event["item"] = item;
    event
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "Read",
        "arguments": arguments, "status": "completed"})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA=="})
}

fn arguments(index: u64, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": index,
        "item_id": format!("fc_{index}"), "delta": delta})
}

#[test]
fn only_the_last_event_completes_a_message() {
    let message = whole(&[text("a"), completed()]);
    assert_eq!((&*message.message().text, message.finish_raw()), ("a", Some("completed")));
    assert_eq!(whole(&[text("a"), completed()]).finish(), FinishReason::Stop);
    let cut = whole(&[text("a"), incomplete("max_output_tokens")]);
    assert_eq!(cut.finish(), FinishReason::Length);
    assert_eq!(cut.finish_raw(), Some("incomplete:max_output_tokens"));
    let filtered = whole(&[text("a"), incomplete("content_filter")]);
    assert_eq!(filtered.finish(), FinishReason::ContentFilter);

    let early = (ErrorCode::StreamFailed, "protocol.ended_early");
    let item = done(0, self::message("a"));
    for events in [
        vec![text("a")],
        vec![text("a"), item.clone()],
        vec![text("a"), json!({"type": "response.done"})],
        vec![
            text("a"),
            json!({"type": "response.in_progress", "response": {"status": "completed"}}),
        ],
    ] {
        assert_eq!(failed(&stream(&events)), early, "{events:?}");
        assert_eq!(failed(&format!("{}data: [DONE]\n\n", stream(&events))), early);
    }
    assert_eq!(failed(""), (ErrorCode::StreamFailed, "protocol.empty_body"));
    assert_eq!(failed(": ping\n\n"), (ErrorCode::StreamFailed, "protocol.empty_body"));
}

#[test]
fn what_comes_after_the_end_is_not_part_of_the_message() {
    let message = whole(&[text("a"), completed(), text("b"), completed(), incomplete("x")]);
    assert_eq!((&*message.message().text, message.finish()), ("a", FinishReason::Stop));
    let torn = format!("{}data: {{torn\n\n", stream(&[text("a"), completed()]));
    assert_eq!(decode(&torn).unwrap().message().text, "a");
}

#[test]
fn an_event_that_cannot_be_decoded_fails_the_stream() {
    for event in ["not json", "{\"type\":", "5", "\"text\"", "{\"a\":1}{\"b\":2}"] {
        let body = format!("{}data: {event}\n\n{}", stream(&[text("a")]), stream(&[completed()]));
        assert_eq!(failed(&body), (ErrorCode::StreamFailed, "protocol.undecodable"), "{event}");
    }
    let cut = format!("{}data: {{\"type\":\"respon", stream(&[text("a")]));
    assert_eq!(failed(&cut), (ErrorCode::StreamFailed, "protocol.ended_early"));
}

#[test]
fn unknown_missing_and_mistyped_fields_are_passed_over() {
    let message = whole(&[
        json!({"type": "response.created", "response": null}),
        json!({"type": "response.brand_new.delta", "delta": "x", "output_index": "y"}),
        json!({"type": "response.output_text.delta", "delta": null}),
        json!({"type": "response.output_text.delta", "delta": 5, "output_index": null}),
        json!({"type": "response.output_text.delta", "delta": "a"}),
        json!({"type": "response.output_text.delta", "delta": "b", "output_index": -1}),
        json!({"type": "response.output_item.added", "item": null}),
        json!({"type": "response.output_item.done", "item": 7}),
        json!({"type": "response.output_item.done", "output_index": 4, "item": {"type": "new"}}),
        json!({"type": "response.output_text.annotation.added", "annotation": {}}),
        json!({"type": "response.completed", "response": {"status": null, "usage": null,
            "output": [null, 5, {}], "error": null, "incomplete_details": null}}),
    ]);
    assert_eq!(message.message().text, "ab");
    assert_eq!(message.finish(), FinishReason::Stop);
    // A gateway that names its events in the framing alone.
    let body = "event: response.output_text.delta\ndata: {\"delta\":\"a\"}\n\n\
        event: response.completed\ndata: {\"response\":{\"status\":\"completed\"}}\n\n";
    assert_eq!(decode(body).unwrap().message().text, "a");
}

#[test]
fn text_that_only_comes_whole_is_taken_once() {
    let part = json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0,
        "text": "a"});
    let item = done(0, message("a"));
    let last = json!({"type": "response.completed", "response": {"status": "completed",
        "output": [message("a")]}});
    for events in [
        vec![text("a"), part.clone(), item.clone(), last.clone()],
        vec![part.clone(), item.clone(), last.clone()],
        vec![item.clone(), last.clone()],
        vec![part, completed()],
        vec![item, completed()],
        vec![last.clone()],
    ] {
        assert_eq!(whole(&events).message().text, "a", "{events:?}");
    }
    // vLLM numbers the only part 1; Copilot gives every event another id.
    let odd = json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 1,
        "item_id": "other", "delta": "a"});
    assert_eq!(whole(&[odd, done(0, message("a")), last.clone()]).message().text, "a");
    // Neither index nor id at all.
    let bare = json!({"type": "response.output_text.delta", "delta": "a"});
    assert_eq!(whole(&[bare, last]).message().text, "a");
}

#[test]
fn reasoning_comes_from_summaries_and_from_its_own_text() {
    let message = whole(&[
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0,
            "summary_index": 0, "delta": "a"}),
        json!({"type": "response.reasoning_summary_text.done", "output_index": 0,
            "summary_index": 0, "text": "a"}),
        json!({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0,
            "delta": "b"}),
        done(
            0,
            json!({"type": "reasoning", "id": "r",
            "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "c"}],
            "content": [{"type": "reasoning_text", "text": "b"}]}),
        ),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "!"}),
        completed(),
    ]);
    assert_eq!((&*message.message().reasoning, &*message.message().text), ("abc", "!"));
}

#[test]
fn a_refusal_is_visible_and_never_an_empty_success() {
    let parts = json!({"type": "message", "content": [{"type": "refusal", "refusal": "no"}]});
    for events in [
        vec![json!({"type": "response.refusal.delta", "output_index": 0, "delta": "no"})],
        vec![json!({"type": "response.refusal.done", "output_index": 0, "refusal": "no"})],
        vec![done(0, parts)],
    ] {
        let message = whole(&[events, vec![completed()]].concat());
        assert_eq!(message.message().text, "no");
        assert!(message.is_refusal());
        assert_eq!(message.refusal_text(), Some("no"));
    }
}

#[test]
fn parallel_calls_are_put_together_from_interleaved_pieces() {
    let message = whole(&[
        added(0, call("a", "")),
        added(1, call("b", "")),
        arguments(0, r#"{"x":"#),
        arguments(1, r#"{"y":"#),
        arguments(0, "1}"),
        arguments(1, "2}"),
        done(0, call("a", r#"{"x":1}"#)),
        done(1, call("b", r#"{"y":2}"#)),
        completed(),
    ]);
    let calls = &message.message().tool_calls;
    assert_eq!(message.finish(), FinishReason::ToolCalls);
    assert_eq!((&*calls[0].id, &calls[0].arguments), ("a", &Arguments::Whole(r#"{"x":1}"#.into())));
    assert_eq!((&*calls[1].id, &calls[1].arguments), ("b", &Arguments::Whole(r#"{"y":2}"#.into())));
    assert_eq!(calls.len(), 2);
}

#[test]
fn a_calls_arguments_come_in_pieces_or_whole_and_the_whole_wins() {
    let told = json!({"type": "response.function_call_arguments.done", "output_index": 0,
        "arguments": r#"{"x":12}"#});
    let as_object = done(
        0,
        json!({"type": "function_call", "call_id": "a", "name": "Read",
        "arguments": {"x":12}}),
    );
    let last = json!({"type": "response.completed", "response": {"status": "completed",
        "output": [call("a", r#"{"x":12}"#)]}});
    for events in [
        // A piece was lost on the way.
        vec![added(0, call("a", "")), arguments(0, r#"{"x":1"#), told.clone(), completed()],
        vec![added(0, call("a", "")), told, completed()],
        vec![added(0, call("a", "")), done(0, call("a", r#"{"x":12}"#)), completed()],
        vec![done(0, call("a", r#"{"x":12}"#)), completed()],
        vec![as_object, completed()],
        vec![added(0, call("a", r#"{"x":12}"#)), completed()],
        vec![added(0, call("a", r#"{"x":1"#)), last.clone()],
        vec![arguments(0, r#"{"x":12}"#), last.clone()],
        vec![last],
    ] {
        let message = whole(&events);
        let calls = &message.message().tool_calls;
        assert_eq!(calls.len(), 1, "{events:?}");
        assert_eq!((&*calls[0].id, &*calls[0].name), ("a", "Read"), "{events:?}");
        assert_eq!(calls[0].arguments, Arguments::Whole(r#"{"x":12}"#.into()), "{events:?}");
    }
}

#[test]
fn a_free_text_call_is_a_text_and_is_broken_where_it_was_cut() {
    let custom = |input: &str, status: &str| {
        json!({"type": "custom_tool_call", "id": "ctc", "call_id": "a", "name": "f",
            "input": input, "status": status})
    };
    let piece = json!({"type": "response.custom_tool_call_input.delta", "output_index": 0,
        "delta": "4 + 4"});
    let begin = added(0, custom("", "in_progress"));
    let message =
        whole(&[begin.clone(), piece.clone(), done(0, custom("4 + 4", "completed")), completed()]);
    let calls = &message.message().tool_calls;
    assert_eq!(calls[0].arguments, Arguments::Whole(r#""4 + 4""#.into()));
    assert!(message.message().native.is_some());
    for events in [
        vec![begin.clone(), piece.clone(), incomplete("max_output_tokens")],
        vec![begin, piece, done(0, custom("4 + 4", "incomplete")), incomplete("max_output_tokens")],
    ] {
        let message = whole(&events);
        let calls = &message.message().tool_calls;
        assert_eq!(calls[0].arguments, Arguments::Broken("4 + 4".into()));
        assert_eq!(message.message().native, None);
    }
}

#[test]
fn counts_are_disjoint_and_unknown_stays_unknown() {
    let usage = |usage: Value| {
        let last = json!({"type": "response.completed", "response": {"usage": usage}});
        *whole(&[text("a"), last]).usage()
    };
    let all = usage(json!({"input_tokens": 10, "output_tokens": 9, "total_tokens": 19,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
        "output_tokens_details": {"reasoning_tokens": 7}}));
    assert_eq!((all.input_tokens, all.cached_tokens), (Some(3), Some(4)));
    assert_eq!((all.cache_write_tokens, all.output_tokens), (Some(3), Some(2)));
    assert_eq!(all.reasoning_tokens, Some(7));
    let few = usage(json!({"input_tokens": 10, "output_tokens": null}));
    assert_eq!((few.input_tokens, few.output_tokens, few.cached_tokens), (Some(10), None, None));
    assert_eq!((few.reasoning_tokens, few.cache_write_tokens), (None, None));
}

#[test]
fn an_error_wins_wherever_it_stands() {
    let error = json!({"type": "error", "error": {"type": "server_error", "message": "m"}});
    let flat = json!({"type": "error", "code": "server_error", "message": "m"});
    let fail = json!({"type": "response.failed", "response": {"status": "failed",
        "error": {"code": "server_error", "message": "m"}}});
    for events in [
        vec![error.clone()],
        vec![text("a"), error.clone()],
        vec![text("a"), completed(), error.clone()],
        vec![text("a"), flat],
        vec![text("a"), fail.clone()],
        vec![text("a"), completed(), fail],
        vec![text("a"), json!({"error": {"message": "m", "type": "server_error"}})],
        vec![json!({"type": "response.completed", "response": {"status": "failed"}})],
        vec![json!({"type": "response.completed", "response": {"status": "cancelled"}})],
        vec![json!({"type": "response.completed", "response": {"status": "completed",
            "error": {"code": "server_error"}}})],
    ] {
        assert_eq!(failed(&stream(&events)).0, ErrorCode::ProviderError, "{events:?}");
    }
    for body in [
        error.to_string(),
        format!("[{error}]"),
        format!("event: error\ndata: {error}\n\n"),
        format!("{}error: {error}\n\n", stream(&[text("a")])),
        json!({"object": "response", "status": "failed", "error": null}).to_string(),
    ] {
        assert_eq!(failed(&body).0, ErrorCode::ProviderError, "{body}");
    }
    // A field that says nothing is no error, and what a server's tool could not do
    // is told to the model.
    for nothing in [json!(null), json!(false), json!(""), json!({})] {
        let mut event = text("a");
        event["error"] = nothing;
        assert_eq!(whole(&[event, completed()]).message().text, "a");
    }
    let tool = json!({"type": "response.mcp_call.failed", "error": {"message": "no"}});
    assert_eq!(whole(&[tool, text("a"), completed()]).message().text, "a");
}

#[test]
fn a_failed_answer_tells_what_it_cost() {
    let failed = decode(&stream(&[
        text("a"),
        json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": "server_error", "message": "m"},
            "usage": {"input_tokens": 5, "output_tokens": 2}}}),
    ]))
    .unwrap_err();
    assert_eq!(failed.0.details().usage.unwrap().input_tokens, Some(5));
    assert_eq!(failed.1.text, "a");
}

#[test]
fn a_whole_answer_may_answer_a_streaming_request() {
    let answer = json!({"object": "response", "status": "completed", "error": null,
        "output": [reasoning(), message("a"), call("c", r#"{"x":1}"#)],
        "usage": {"input_tokens": 2}});
    for body in [
        format!(" {answer}"),
        format!("[{answer}]"),
        format!("\u{feff}{answer}"),
        format!("data: {answer}\n\n"),
    ] {
        let message = decode(&body).unwrap();
        assert_eq!(message.message().text, "a", "{body}");
        assert_eq!(message.finish(), FinishReason::ToolCalls);
        assert_eq!(message.message().native.as_ref().unwrap().parts.len(), 3);
        assert_eq!(message.usage().input_tokens, Some(2));
    }
    let body = answer.to_string();
    let torn = body.split_at(body.len() - 5).0;
    assert_eq!(failed(torn), (ErrorCode::StreamFailed, "protocol.ended_early"));
    for status in ["in_progress", "queued", "complete"] {
        let mut answer = answer.clone();
        answer["status"] = status.into();
        assert_eq!(failed(&answer.to_string()).0, ErrorCode::StreamFailed, "{status}");
    }
}

/// The parts that would go back, each as the server wrote it.
fn native(events: &[Value]) -> Option<Vec<Value>> {
    let native = whole(events).into_message().native?;
    assert_eq!(native.dialect, "openai-responses");
    Some(native.parts.iter().map(|part| serde_json::from_str(part).unwrap()).collect())
}

#[test]
fn items_are_kept_byte_for_byte_in_order() {
    let raw =
        r#"{"id":"rs_1",  "encrypted_content":"gA\u0041A==","type":"reasoning", "summary":[]}"#;
    let body = format!(
        "data: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{raw}}}\n\n{}",
        stream(&[text("x").to_owned(), done(0, message("x")), completed()].map(|mut event| {
            if event.get("output_index").is_some() {
                event["output_index"] = 1.into();
            }
            event
        }))
    );
    let native = decode(&body).unwrap().into_message().native.unwrap();
    assert_eq!(native.parts[0], raw);
    assert_eq!(native.parts.len(), 2);
}

#[test]
fn items_of_the_servers_own_tools_are_kept_and_do_no_harm() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
        "action": {"type": "search", "query": "q"}});
    let shell = json!({"type": "shell_call", "call_id": "s", "action": {}});
    let output = json!({"type": "shell_call_output", "call_id": "s", "output": []});
    let events = [
        added(0, search.clone()),
        json!({"type": "response.web_search_call.searching", "output_index": 0}),
        done(0, search.clone()),
        done(1, shell.clone()),
        done(2, output.clone()),
        done(3, message("found")),
        completed(),
    ];
    assert_eq!(whole(&events).message().text, "found");
    assert_eq!(native(&events), Some(vec![search, shell, output, message("found")]));
}

#[test]
fn parts_that_the_server_would_not_take_back_are_dropped_cleanly() {
    let mut stored = reasoning();
    stored["encrypted_content"] = Value::Null;
    let mut nameless = call("a", "{}");
    nameless["call_id"] = Value::Null;
    for (why, events) in [
        ("reasoning kept only at the server", vec![done(0, stored), done(1, message("a"))]),
        ("a call without an id of its own", vec![done(0, nameless)]),
        ("two calls of one id", vec![done(0, call("a", "{}")), done(1, call("a", "{}"))]),
        ("arguments that are no JSON", vec![done(0, call("a", "{"))]),
        (
            "a tool that we cannot run",
            vec![done(
                0,
                json!({"type": "local_shell_call",
            "call_id": "l"}),
            )],
        ),
        (
            "a text whose item never came",
            vec![
                done(0, reasoning()),
                json!({
            "type": "response.output_text.delta", "output_index": 1, "delta": "a"}),
            ],
        ),
    ] {
        assert_eq!(native(&[events, vec![completed()]].concat()), None, "{why}");
    }
}

#[test]
fn an_answer_without_end_is_bounded() {
    let mut body = String::new();
    for index in 0..5000 {
        body.push_str(&format!(
            "data: {{\"type\":\"response.output_item.done\",\"output_index\":{index},\"item\":{{\"type\":\"new\"}}}}\n\n"
        ));
    }
    assert_eq!(failed(&body).1, "protocol.answer_too_large");
    // All of them in the last event, told by nothing that came before.
    let list = vec![json!({"type": "message"}); 5000];
    let last = json!({"type": "response.completed", "response": {"output": list}});
    assert_eq!(failed(&stream(&[text("a"), last])).1, "protocol.answer_too_large");
}
