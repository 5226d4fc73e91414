//! Faults of tool calls. The tool is `Read`, which every test of an agent has, and the
//! file is `notes.txt`.

use super::{Entry, Expected, fault};
use crate::{
    behaviour::{Api, Behaviour, Change, ErrorReply, How, Insert, Point, Spot},
    content::{Finish, ToolCall},
};

const ARGUMENTS: &str = r#"{"path":"notes.txt"}"#;

fn read() -> ToolCall {
    ToolCall::with_raw_arguments("Read", ARGUMENTS).id("call_read")
}

/// An answer that calls `Read` and says nothing.
fn call() -> Behaviour {
    Behaviour::whole().text("").call(read())
}

/// The same, each event of the call changed.
fn each(from: &'static str, to: &'static str) -> Behaviour {
    call().edit(Spot::Holding("\"tool_calls\":["), Change::Replace(from, to))
}

/// A call, then this error in place of the end.
fn then(reply: ErrorReply) -> Behaviour {
    call()
        .insert(Point::BeforeTerminal, Insert::Error(reply))
        .cut(Point::BeforeTerminal, How::CleanEnd)
}

/// Arguments that are sent as they are.
fn raw(arguments: &str) -> Behaviour {
    Behaviour::whole().text("").call(ToolCall::with_raw_arguments("Read", arguments))
}

const CHAT: &[Api] = &[Api::Chat];
const STREAMED: &[Api] = &[Api::Chat, Api::Responses, Api::Anthropic];

pub(super) const TABLE: &[Entry] = &[
    fault("call", Expected::NOTHING, call, "Calls a tool, as it should be done."),
    fault(
        "call_cut",
        Expected::stream("STREAM_FAILED"),
        || call().cut(Point::BeforeTerminal, How::Fin),
        "Breaks off after the whole of a call, before it is complete.",
    ),
    fault(
        "call_then_error",
        Expected::stream("PROVIDER_ERROR"),
        || then(ErrorReply::new(500, "server_error", "The server had an error.")),
        "Tells an error after the whole of a call.",
    ),
    fault(
        "call_then_overloaded",
        Expected::capacity_in_stream("PROVIDER_OVERLOADED"),
        || then(ErrorReply::new(503, "overloaded_error", "Overloaded").code("overloaded")),
        "Says after the whole of a call that it is overloaded.",
    ),
    fault(
        "call_cut_by_length",
        Expected::call_refused("INVALID_ARGUMENT"),
        || raw(r#"{"path":"notes.t"#).finish(Finish::Length),
        "Is cut by the limit of its output in the middle of a call, and says so.",
    )
    .only(STREAMED),
    fault(
        "call_filtered",
        Expected::last("CONTENT_FILTERED", "stream"),
        || call().finish(Finish::ContentFilter),
        "Is stopped by a safety filter after a call.",
    ),
    fault(
        "call_broken_arguments",
        Expected::call_refused("INVALID_ARGUMENT"),
        || raw(r#"{"path":"notes.txt""#),
        "Calls a tool with arguments that are not JSON.",
    )
    .only(STREAMED),
    fault(
        "call_no_arguments",
        Expected::call_refused("INVALID_ARGUMENT"),
        || raw(""),
        "Calls a tool with empty arguments, where one is required.",
    ),
    fault(
        "call_unknown_tool",
        Expected::call_refused("TOOL_NOT_FOUND"),
        || Behaviour::whole().text("").call(ToolCall::with_raw_arguments("Frobnicate", ARGUMENTS)),
        "Calls a tool that does not exist.",
    ),
    fault(
        "calls_same_id",
        Expected::NOTHING,
        || call().call(read()),
        "Makes two calls with the same id.",
    ),
    fault(
        "call_finish_stop",
        Expected::NOTHING,
        || call().finish(Finish::Stop),
        "Calls a tool and finishes as if it had not.",
    ),
    fault(
        "call_without_id",
        Expected::NOTHING,
        || each("\"id\":\"call_read\",", ""),
        "Gives its call no id.",
    )
    .only(CHAT),
    fault(
        "call_without_type",
        Expected::NOTHING,
        || each("\"type\":\"function\",", "\"type\":\"\","),
        "Gives its call an empty type.",
    )
    .only(CHAT),
    fault(
        "call_without_index",
        Expected::NOTHING,
        || each("\"tool_calls\":[{\"index\":0,", "\"tool_calls\":[{"),
        "Gives its call no index.",
    )
    .only(CHAT),
    fault(
        "call_index_from_one",
        Expected::NOTHING,
        || each("\"tool_calls\":[{\"index\":0,", "\"tool_calls\":[{\"index\":1,"),
        "Counts its calls from one.",
    )
    .only(CHAT),
    fault(
        "calls_without_index",
        Expected::NOTHING,
        || {
            let second = read().id("call_again");
            call()
                .call(second)
                .edit(
                    Spot::Holding("\"tool_calls\":[{\"index\":0,"),
                    Change::Replace("[{\"index\":0,", "[{"),
                )
                .edit(
                    Spot::Holding("\"tool_calls\":[{\"index\":1,"),
                    Change::Replace("[{\"index\":1,", "[{"),
                )
        },
        "Makes two calls without an index.",
    )
    .only(CHAT),
    fault(
        "calls_same_index",
        Expected::NOTHING,
        || {
            let second = read().id("call_again");
            let (from, to) = ("[{\"index\":1,", "[{\"index\":0,");
            call()
                .call(second)
                .edit(Spot::Holding("\"tool_calls\":[{\"index\":1,"), Change::Replace(from, to))
        },
        "Makes two calls with the same index.",
    )
    .only(CHAT),
    fault(
        "call_id_null",
        Expected::NOTHING,
        || {
            let named = "[{\"index\":0,\"id\":\"null\",\"function\":{\"arg";
            each("[{\"index\":0,\"function\":{\"arg", named)
        },
        "Says the word null for the id of a call in all pieces but the first.",
    )
    .only(CHAT),
    fault(
        "call_id_changes",
        Expected::NOTHING,
        || {
            let named = "[{\"index\":0,\"id\":\"call_other\",\"function\":{\"arg";
            each("[{\"index\":0,\"function\":{\"arg", named)
        },
        "Changes the id of a call between its pieces.",
    )
    .only(CHAT),
    fault(
        "call_arguments_repeated",
        Expected::NOTHING,
        || {
            call()
                .edit(
                    Spot::SecondHolding("\"function\":{\"arguments\":\""),
                    Change::Replace(":{\"arguments\":\"", ":{\"arguments\":\"{\\\"path\\\":\\\""),
                )
                .edit(
                    Spot::FirstHolding("\"function\":{\"arguments\":\"\\\"}\""),
                    Change::Replace(
                        ":{\"arguments\":\"\\\"}\"",
                        ":{\"arguments\":\"{\\\"path\\\":\\\"notes.txt\\\"}\"",
                    ),
                )
        },
        "Repeats in each piece of the arguments all that came before.",
    )
    .only(CHAT),
    fault(
        "call_arguments_object",
        Expected::NOTHING,
        || {
            call().edit(Spot::Holding("\"function\":{\"arguments\""), Change::Drop).edit(
                Spot::Holding("\"name\":\"Read\""),
                Change::Replace("\"arguments\":\"\"", "\"arguments\":{\"path\":\"notes.txt\"}"),
            )
        },
        "Gives the arguments of a call as an object.",
    )
    .only(CHAT),
    fault(
        "call_nameless",
        Expected::call_refused("TOOL_NOT_FOUND"),
        || each("\"name\":\"Read\"", "\"name\":\"\""),
        "Calls a tool without saying which.",
    )
    .only(CHAT),
    fault(
        "call_reordered",
        Expected::NOTHING,
        || call().edit(Spot::FirstHolding("\"name\":\"Read\""), Change::AfterNext),
        "Sends the first piece of the arguments before the name of the tool.",
    )
    .only(CHAT),
    fault(
        "call_before_start",
        Expected::stream("STREAM_FAILED"),
        || call().edit_in(Api::Anthropic, Spot::FirstHolding("\"tool_use\""), Change::AfterNext),
        "Sends the first piece of the arguments before the event that opens their call.",
    )
    .only(&[Api::Anthropic]),
    fault(
        "call_at_end_only",
        Expected::NOTHING,
        || {
            call().edit_in(
                Api::Responses,
                Spot::Holding("response.function_call_arguments.delta"),
                Change::Drop,
            )
        },
        "Sends the arguments of a call only when they are whole.",
    )
    .only(&[Api::Responses]),
];
