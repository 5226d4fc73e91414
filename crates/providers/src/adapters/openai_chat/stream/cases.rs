//! Streams that users reported as broken, one row each: what we make of them.
//!
//! The ids are those of the collection that the cases come from. Not here: cases
//! of other dialects, of HTTP statuses and headers (the classifier's tables), of
//! bytes and connections (the SSE decoder's and the transport's tests) and of
//! retries (the runtime's).

use std::sync::Arc;

use bytes::Bytes;
use turnbuckle_errors::{Failure, Opaque};

use super::Chat;
use crate::{
    CompletedMessage, PartialMessage, ToolCall,
    intake::{BodyEnding, decode_recorded},
    transport::ResponseHead,
};

fn decode(body: String, chat: Chat) -> Result<CompletedMessage, Box<(Failure, PartialMessage)>> {
    let head = ResponseHead::new(200, []);
    decode_recorded(head, [Bytes::from(body)], BodyEnding::Clean, chat, Arc::new(Opaque))
}

/// An outcome in one line: `stop text [reasoning] name(arguments)`, or
/// `CODE retried|final text`.
fn told(body: String, chat: Chat) -> String {
    let calls = |calls: &[ToolCall]| -> String {
        let one = |call: &ToolCall| {
            let whole = call.arguments.value().is_some();
            let arguments = if whole { call.arguments.as_json() } else { "cut" };
            format!(" {}={}({arguments})", call.id, call.name)
        };
        calls.iter().map(one).collect()
    };
    match decode(body, chat) {
        Ok(message) => {
            let said = message.message();
            let reasoning = match said.reasoning.as_str() {
                "" => String::new(),
                text => format!(" [{text}]"),
            };
            let text = if said.text.is_empty() { "" } else { " " };
            format!(
                "{}{text}{}{reasoning}{}",
                message.finish().as_str(),
                said.text,
                calls(&said.tool_calls)
            )
        }
        Err(failed) => {
            let (failure, partial) = *failed;
            let again = if failure.retriable() { "retried" } else { "final" };
            let text = if partial.text.is_empty() { "" } else { " " };
            format!("{} {again}{text}{}", failure.code(), partial.text)
        }
    }
}

fn events(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#)
}

/// Deltas of tool calls, then this finish reason.
fn calls(lists: &[&str], finish: &str) -> String {
    let lists = lists.iter().map(|list| delta(&format!(r#"{{"tool_calls":[{list}]}}"#)));
    let last = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{finish}"}}]}}"#);
    let all: Vec<String> = lists.chain([last]).collect();
    events(&all.iter().map(String::as_str).collect::<Vec<_>>())
}

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const HALF: &str = r#"{"choices":[{"index":0,"delta":{"content":"half"}}]}"#;

#[track_caller]
fn check(rows: Vec<(&str, String, &str)>) {
    let wrong: Vec<String> = rows
        .into_iter()
        .filter_map(|(id, body, expected)| {
            let told = told(body, Chat::default());
            (told != expected).then(|| format!("{id}: {told}, not {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn reported_ends_read_as_they_should() {
    check(vec![
        ("S014", events(&[HALF]), "STREAM_FAILED retried half"),
        ("S015", events(&[HALF, "[DONE]"]), "STREAM_FAILED retried half"),
        (
            "S016",
            events(&[r#"{"choices":[{"index":0,"delta":{"reasoning_content":"let me"}}]}"#])
                + "upstream error: read ECONNRESET\n",
            "STREAM_FAILED retried",
        ),
        ("S125", "\n\n\n\n".into(), "STREAM_FAILED retried"),
        ("S148", events(&[HALF, STOP]) + "data: [DONE]", "stop half"),
        (
            "S152",
            events(&[
                r#"{"id":"","object":"","choices":[],"prompt_filter_results":[{}]}"#,
                HALF,
                STOP,
            ]),
            "stop half",
        ),
        (
            "S154",
            events(&[r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":""}]}"#]),
            "STREAM_FAILED retried Hi",
        ),
        (
            "S155",
            events(&[HALF, r#"{"choices":[{"delta":{},"finish_reason":"eos_token"}]}"#]),
            "stop half",
        ),
        (
            "S158",
            events(&[
                r#"{"choices":[{"delta":{"role":"assistant","content":"a","tool_calls":null,"refusal":null}}]}"#,
                STOP,
            ]),
            "stop a",
        ),
        (
            "S159",
            events(&[
                HALF,
                r#"{"choices":[{"delta":{},"finish_reason":"length"}],"usage":null}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":259,"completion_tokens":16}}"#,
                "[DONE]",
            ]),
            "length half",
        ),
        (
            "S163",
            events(&[HALF, r#"{"choices":[{"inde"#, STOP, "[DONE]"]),
            "STREAM_FAILED retried half",
        ),
        // The runtime makes EMPTY_MODEL_RESPONSE of these; the stream itself is whole.
        (
            "S123",
            events(&[
                r#"{"choices":[{"delta":{"reasoning_content":"I should"}}]}"#,
                STOP,
                "[DONE]",
            ]),
            "stop [I should]",
        ),
        (
            "S124",
            events(&[r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#, STOP]),
            "stop",
        ),
        // And CONTENT_FILTERED of this.
        (
            "S085",
            events(&[
                r#"{"choices":[{"delta":{"content":null},"finish_reason":"content_filter"}]}"#,
            ]),
            "content_filter",
        ),
        (
            "S138",
            "data:{\"choices\":[{\"delta\":{\"content\":\" a\"},\"finish_reason\":\"stop\"}]}\n\n"
                .into(),
            "stop  a",
        ),
        ("S144", format!("\u{feff}{}", events(&[HALF, STOP])), "stop half"),
        ("S146", format!(":\n\n:\n\n{}", events(&[HALF, STOP])), "stop half"),
    ]);
}

#[test]
fn reported_errors_inside_a_stream_read_as_they_should() {
    let error = |error: &str| events(&[error]);
    check(vec![
        ("S026", error(r#"{"id":"gen-1","object":"chat.completion.chunk","choices":[],"error":{"code":502,"message":"provider request limit reached","metadata":{"error_type":"provider_unavailable"}}}"#), "PROVIDER_ERROR retried"),
        ("S027", events(&[HALF, r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"server_error","message":"Provider disconnected"}}"#, "[DONE]"]), "PROVIDER_ERROR retried half"),
        ("S028", error(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#), "PROVIDER_ERROR retried"),
        (
            "S030",
            events(&[
                r#"{"choices":[{"delta":{"content":"{\"message\":\"Too many tokens, please wait "}}]}"#,
                r#"{"choices":[{"delta":{"content":"before trying again.\"}"}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"error_finish"}]}"#,
            ]),
            "PROVIDER_RATE_LIMITED retried",
        ),
        (
            "S030 after text",
            events(&[
                r#"{"choices":[{"delta":{"content":"Well.\n{\"message\":\"Too many tokens, please wait before trying again.\"}"}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"error_finish"}]}"#,
            ]),
            "PROVIDER_RATE_LIMITED retried",
        ),
        ("S030 without an error", events(&[HALF, r#"{"choices":[{"delta":{},"finish_reason":"error_finish"}]}"#]), "PROVIDER_ERROR retried half"),
        (
            "S030 with one that nobody knows",
            events(&[
                r#"{"choices":[{"delta":{"content":"{\"message\":\"hm\"}"},"finish_reason":"upstream_error"}]}"#,
            ]),
            "PROVIDER_ERROR retried",
        ),
        ("S031", error(r#"{"id":"x","choices":null,"error_type":"BadRequestError","error_message":"context length exceeded","status_code":400}"#), "CONTEXT_TOO_LARGE final"),
        ("S031 without words", error(r#"{"id":"x","choices":null,"status_code":400}"#), "INVALID_REQUEST final"),
        // Quota by its words, since nothing else is said; [DONE] changes nothing.
        ("S033", events(&[r#"{"error":{"message":"quota exceeded"}}"#, "[DONE]"]), "PROVIDER_QUOTA_EXCEEDED final"),
        ("S034", "error: {\"code\":400,\"message\":\"the request exceeds the available context size. try increasing the context size\",\"type\":\"invalid_request_error\"}\n\ndata: [DONE]\n\n".into(), "CONTEXT_TOO_LARGE final"),
        ("S035", error(r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request (9000 tokens) exceeds the available context size (4096 tokens)","n_prompt_tokens":9000,"n_ctx":4096}}"#), "CONTEXT_TOO_LARGE final"),
        ("S036", r#"{"error":{"code":400,"message":"request (19185 tokens) exceeds the available context size (16384 tokens)"}}"#.into(), "CONTEXT_TOO_LARGE final"),
        ("S047", error(r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x"}}]"#), "PROVIDER_RATE_LIMITED retried"),
        ("S047, not an object", error(r#""message""#), "STREAM_FAILED retried"),
        ("S048", "event: error\ndata: {\"error\":{\"message\":\"Failed to call a function.\",\"type\":\"invalid_request_error\",\"code\":\"tool_use_failed\",\"failed_generation\":\"x\",\"status_code\":400}}\n\n".into(), "PROVIDER_ERROR retried"),
        ("S050", error(r#"{"error":{"message":"The response was filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#), "CONTENT_FILTERED final"),
        ("S057", error(r#"{"message":"Too many tokens per day, please wait before trying again."}"#), "PROVIDER_QUOTA_EXCEEDED final"),
        ("S151", error(r#"{"error":"an error was encountered while running the model: unexpected EOF"}"#), "PROVIDER_ERROR retried"),
        // Nothing says what would repeat: a catch-all is never tried again.
        ("S201", error(r#"{"type":"error","message":"<internal detail>"}"#), "PROVIDER_ERROR final"),
        // Said by whom? A server's word for a policy is no cut connection.
        ("S205", error(r#"{"error":{"message":"run terminated by policy"}}"#), "PROVIDER_ERROR final"),
    ]);
}

#[test]
fn reported_tool_calls_read_as_they_should() {
    let call = |id: &str, arguments: &str| {
        format!(r#"{{"index":0,"id":"{id}","function":{{"name":"s","arguments":"{arguments}"}}}}"#)
    };
    let more = |fields: &str| format!(r#"{{"index":0,{fields}}}"#);
    check(vec![
        (
            "S164",
            calls(
                &[
                    r#"{"id":"c","type":"function","function":{"name":"w","arguments":"{\"city\":\"X\"}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}"#,
                ],
                "stop",
            ),
            r#"tool_calls c=w({"city":"X"})"#,
        ),
        (
            "S165",
            calls(
                &[
                    r#"{"id":"a","function":{"name":"s","arguments":"{\"q\":1}"}}"#,
                    r#"{"id":"b","function":{"name":"s","arguments":"{\"q\":2}"}}"#,
                ],
                "tool_calls",
            ),
            r#"tool_calls a=s({"q":1}) b=s({"q":2})"#,
        ),
        (
            "S166",
            calls(&[&call("a", r#"{\"q\":1}"#), &call("b", r#"{\"q\":2}"#)], "tool_calls"),
            r#"tool_calls a=s({"q":1}) b=s({"q":2})"#,
        ),
        (
            "S169",
            calls(
                &[&call("a", "{"), &more(r#""id":"null","function":{"name":"","arguments":"}"}"#)],
                "tool_calls",
            ),
            "tool_calls a=s({})",
        ),
        (
            "S170",
            calls(
                &[&call("a", ""), &more(r#""id":"toolcall0","function":{"arguments":"{}"}"#)],
                "tool_calls",
            ),
            "tool_calls a=s({})",
        ),
        (
            "S171",
            calls(
                &[&more(r#""id":"c1","type":"","function":{"name":"ls","arguments":"{}"}"#)],
                "tool_calls",
            ),
            "tool_calls c1=ls({})",
        ),
        // The collection wants a failed attempt. The call gets an id and a name
        // instead, so the history stays valid; the tool is not found, the model is
        // told so, and can ask again without a retry of ours.
        (
            "S172",
            calls(
                &[&more(r#""id":"","function":{"name":"","arguments":"{\"x\":1}"}"#)],
                "tool_calls",
            ),
            r#"tool_calls call_1=unnamed({"x":1})"#,
        ),
        // Made from its place; the runtime keeps it apart from the session's others.
        (
            "S173",
            calls(
                &[&more(r#""type":"function","function":{"name":"ls","arguments":"{}"}"#)],
                "tool_calls",
            ),
            "tool_calls call_1=ls({})",
        ),
        (
            "S174",
            calls(
                &[
                    r#"{"index":1,"id":"t1","function":{"name":"j","arguments":""}}"#,
                    r#"{"index":1,"function":{"arguments":"{}"}}"#,
                ],
                "tool_calls",
            ),
            "tool_calls t1=j({})",
        ),
        ("S175", calls(&[&call("a", "{}")], "stop"), "tool_calls a=s({})"),
        (
            "S176",
            calls(
                &[
                    &call("a", r#"{\"a\""#),
                    &more(r#""function":{"arguments":"{\"a\":1"}"#),
                    &more(r#""function":{"arguments":"{\"a\":1}"}"#),
                ],
                "tool_calls",
            ),
            r#"tool_calls a=s({"a":1})"#,
        ),
        // No piece begins with the one before: broken, never {}.
        (
            "S176, not so",
            calls(
                &[&call("a", r#"{\"a\""#), &more(r#""function":{"arguments":"{}"}"#)],
                "tool_calls",
            ),
            "tool_calls a=s(cut)",
        ),
        ("S177", calls(&[&call("a", "")], "tool_calls"), "tool_calls a=s({})"),
        ("S178", calls(&[&call("a", r#"{\"path\":\"r.md\",\"cont"#)], "length"), "length a=s(cut)"),
        ("S179", calls(&[&call("a", r#"{\"text\": \"a\\x"#)], "tool_calls"), "tool_calls a=s(cut)"),
        (
            "S181",
            calls(&[r#"{"function":{"name":"read","arguments":{"path":"README.md"}}}"#], "stop"),
            r#"tool_calls call_1=read({"path":"README.md"})"#,
        ),
    ]);
}

#[test]
fn reported_reasoning_reads_as_it_should() {
    let with_stop = |deltas: &[&str]| {
        let mut all: Vec<String> = deltas.iter().map(|one| delta(one)).collect();
        all.push(STOP.into());
        events(&all.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let tags = [r#"{"content":"<think>secret</thi"}"#, r#"{"content":"nk>ANSWER"}"#];
    let orphan = [r#"{"reasoning_content":"x"}"#, r#"{"content":"</think>\n\nDone"}"#];
    check(vec![
        ("S182", with_stop(&[r#"{"reasoning":"We"}"#]), "stop [We]"),
        ("S183", with_stop(&[r#"{"reasoning":"We","reasoning_content":"We"}"#]), "stop [We]"),
        (
            "S184",
            with_stop(&[
                r#"{"content":"","reasoning":"We","reasoning_details":[{"type":"reasoning.text","text":"We","index":0}]}"#,
            ]),
            "stop [We]",
        ),
        // Only a profile makes reasoning of tags.
        ("S185, no profile", with_stop(&tags), "stop <think>secret</think>ANSWER"),
        ("S186, no profile", with_stop(&orphan), "stop </think>\n\nDone [x]"),
    ]);
    for (deltas, expected) in [
        (&tags[..], "stop ANSWER [secret]"),
        (&orphan[..], "stop Done [x]"),
        (&[r#"{"content":"a <"}"#], "stop a <"),
        (&[r#"{"content":"<thi"}"#], "stop <thi"),
    ] {
        assert_eq!(told(with_stop(deltas), Chat::with_think_tags()), expected);
    }
}

#[test]
fn what_is_no_answer_is_undecodable_and_begins_nothing() {
    for body in [
        r#"{"foo":1}"#.to_owned(),
        "{}".into(),
        "[]".into(),
        "[1]".into(),
        r#"[{"foo":1},{"bar":2}]"#.into(),
        events(&[r#"{"foo":1}"#]),
        events(&[r#"[{"foo":1}]"#, "[DONE]"]),
        events(&["[5]"]),
    ] {
        let failed = decode(body.clone(), Chat::default()).unwrap_err();
        assert_eq!(failed.0.details().rule, Some("protocol.undecodable"), "{body}");
        assert_eq!(failed.0.details().events_received.unwrap_or(0), 0, "{body}");
    }
}

#[test]
fn half_a_character_is_joined_across_deltas_or_shown_as_lost() {
    let text = |deltas: &[&str]| {
        let deltas: Vec<String> =
            deltas.iter().map(|text| delta(&format!(r#"{{"content":"{text}"}}"#))).collect();
        let mut all: Vec<&str> = deltas.iter().map(String::as_str).collect();
        all.push(STOP);
        told(events(&all), Chat::default())
    };
    assert_eq!(text(&[r"a\ud83d", r"\ude00b"]), "stop a😀b");
    assert_eq!(text(&[r"a\ud83d"]), "stop a\u{fffd}");
    assert_eq!(text(&[r"\ude00a", "b"]), "stop \u{fffd}ab");
    let piece =
        |arguments: &str| format!(r#"{{"index":0,"function":{{"arguments":"{arguments}"}}}}"#);
    let first = r#"{"index":0,"id":"a","function":{"name":"s","arguments":"{\"q\":\"\ud83d"}}"#;
    let joined = calls(&[first, &piece(r#"\ude00\"}"#)], "tool_calls");
    assert_eq!(told(joined, Chat::default()), r#"tool_calls a=s({"q":"😀"})"#);
    let lost = calls(&[first, &piece(r#"\"}"#)], "tool_calls");
    assert_eq!(told(lost, Chat::default()), "tool_calls a=s({\"q\":\"\u{fffd}\"})");
    let other = r#"{"index":1,"id":"b","function":{"name":"t","arguments":"{}"}}"#;
    let cut = calls(&[first, other], "tool_calls");
    assert_eq!(told(cut, Chat::default()), "tool_calls a=s(cut) b=t({})");
}
