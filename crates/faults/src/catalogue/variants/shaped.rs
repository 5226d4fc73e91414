//! Rows whose events or framing are shaped in another way than their fault's.

use super::{ANTHROPIC, CHAT, GEMINI, row};
use crate::{
    behaviour::{Api, Behaviour, Change, How, Insert, Point, Spot},
    catalogue::{Entry, Expected},
    content::ToolCall,
};

fn call() -> Behaviour {
    let read = ToolCall::with_raw_arguments("Read", r#"{"path":"notes.txt"}"#);
    Behaviour::whole().text("").call(read.id("call_read"))
}

/// An answer with this delta of reasoning before its text.
fn reasons(delta: &str) -> Behaviour {
    let chunk = format!(
        "data: {{\"id\":\"r\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\
         \"delta\":{delta},\"finish_reason\":null}}]}}\n\n"
    );
    Behaviour::whole().insert(Point::AfterEvent(1), Insert::Bytes(chunk.into_bytes()))
}

pub(super) fn rows() -> Vec<Entry> {
    let mut rows = reasoning();
    rows.extend(calls());
    rows.extend([
        row(
            "stall_before_headers",
            "inside_headers",
            CHAT,
            Expected::setup("TIMEOUT"),
            Behaviour::whole().cut(Point::InsideHeaders, How::Silence),
        ),
        row(
            "malformed_function_call",
            "unexpected_tool_call",
            GEMINI,
            Expected::stream("PROVIDER_ERROR"),
            Behaviour::whole()
                .text("")
                .edit_in(
                    Api::Gemini,
                    Spot::Terminal,
                    Change::Replace(
                        "\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},",
                        "",
                    ),
                )
                .edit_in(
                    Api::Gemini,
                    Spot::Terminal,
                    Change::Replace("\"STOP\"", "\"UNEXPECTED_TOOL_CALL\""),
                ),
        ),
        row(
            "error_unframed",
            "no_code",
            CHAT,
            Expected::last("CONTEXT_TOO_LARGE", "stream"),
            Behaviour::raw(
                "text/event-stream",
                r#"{"error":{"code":400,"message":"request (19185 tokens) exceeds the available context size (16384 tokens)"}}"#,
            ),
        ),
        row(
            "bad_request",
            "409_should_retry",
            CHAT,
            Expected::last("INVALID_REQUEST", "request"),
            Behaviour::raw("application/json", "{}").status(409).header("x-should-retry", "true"),
        ),
    ]);
    rows
}

/// The names under which servers of Chat send reasoning.
fn reasoning() -> Vec<Entry> {
    let rows = [
        ("other_name", r#"{"reasoning":"We"}"#),
        ("both_names", r#"{"reasoning":"We","reasoning_content":"We"}"#),
        (
            "details",
            r#"{"content":"","reasoning":"We","reasoning_details":[{"type":"reasoning.text","text":"We","index":0}]}"#,
        ),
    ];
    rows.into_iter()
        .map(|(name, delta)| row("reasoning", name, CHAT, Expected::NOTHING, reasons(delta)))
        .collect()
}

fn calls() -> [Entry; 4] {
    [
        row(
            "call_nameless",
            "without_id",
            CHAT,
            Expected::call_refused("TOOL_NOT_FOUND"),
            call()
                .edit(
                    Spot::Holding("\"name\":\"Read\""),
                    Change::Replace("\"name\":\"Read\"", "\"name\":\"\""),
                )
                .edit(
                    Spot::Holding("\"id\":\"call_read\""),
                    Change::Replace("\"call_read\"", "\"\""),
                ),
        ),
        row(
            "call_without_index",
            "foreign_field",
            CHAT,
            Expected::NOTHING,
            call()
                .edit(
                    Spot::Holding("\"tool_calls\":[{\"index\":0,"),
                    Change::Replace(
                        "\"tool_calls\":[{\"index\":0,",
                        "\"tool_calls\":[{\"extra_content\":{\"google\":{\"thought_signature\":\"c2ln\"}},",
                    ),
                )
                .edit(Spot::Terminal, Change::Replace("\"tool_calls\"", "\"stop\"")),
        ),
        row(
            "candidate_without_content",
            "no_parts",
            GEMINI,
            Expected::NOTHING,
            call().edit_in(
                Api::Gemini,
                Spot::Terminal,
                Change::Replace("\"parts\":[{\"text\":\"\"}],", ""),
            ),
        ),
        row(
            "refusal",
            "pending_call",
            ANTHROPIC,
            Expected::last("CONTENT_FILTERED", "stream"),
            call().edit_in(
                Api::Anthropic,
                Spot::FirstHolding("\"stop_reason\":\"tool_use\""),
                Change::Replace("\"stop_reason\":\"tool_use\"", "\"stop_reason\":\"refusal\""),
            ),
        ),
    ]
}
