//! Errors as servers word them inside a stream.

use super::{ANTHROPIC, CHAT, GEMINI, RESPONSES, row};
use crate::{
    behaviour::{Api, Behaviour, How, Insert, Point},
    catalogue::{DEFAULT_EVENT, Entry, Expected},
};

/// A fault, a name, the API, the verdict, the events.
type Inside = (&'static str, &'static str, &'static [Api], Expected, &'static str);

const fn ends(code: &'static str) -> Expected {
    Expected::last(code, "stream")
}

const BROKEN: Expected = Expected::stream("PROVIDER_ERROR");
const BUSY: Expected = Expected::capacity_in_stream("PROVIDER_OVERLOADED");
const LIMITED: Expected = Expected::capacity_in_stream("PROVIDER_RATE_LIMITED");

const EVENTS: &[Inside] = &[
    (
        "inband_overloaded",
        "anthropic",
        ANTHROPIC,
        BUSY,
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"details\":null,\"type\":\"overloaded_error\",\"message\":\"Overloaded\"},\"request_id\":\"req_x\"}\n\n",
    ),
    (
        "inband_error",
        "anthropic",
        ANTHROPIC,
        BROKEN,
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"Internal server error\"}}\n\n",
    ),
    (
        "inband_error",
        "no_choices",
        CHAT,
        BROKEN,
        "data: {\"id\":\"gen-1\",\"object\":\"chat.completion.chunk\",\"choices\":[],\"error\":{\"code\":502,\"message\":\"upstream broke\",\"metadata\":{\"error_type\":\"provider_unavailable\"}}}\n\n",
    ),
    (
        "inband_error",
        "tool_use_failed",
        CHAT,
        BROKEN,
        "event: error\ndata: {\"error\":{\"message\":\"Failed to call a function.\",\"type\":\"invalid_request_error\",\"code\":\"tool_use_failed\",\"failed_generation\":\"...\",\"status_code\":400}}\n\n",
    ),
    (
        "inband_error",
        "responses_code",
        RESPONSES,
        BROKEN,
        "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"An error occurred while processing your request. You can retry your request\",\"sequence_number\":9}\n\n",
    ),
    (
        "inband_error",
        "gemini",
        GEMINI,
        BROKEN,
        "data: {\"error\":{\"code\":500,\"message\":\"An internal error has occurred.\",\"status\":\"INTERNAL\"}}\r\n\r\n",
    ),
    (
        "inband_rate_limit",
        "nested",
        RESPONSES,
        LIMITED,
        "event: error\ndata: {\"type\":\"error\",\"sequence_number\":2,\"error\":{\"type\":\"too_many_requests\",\"code\":\"too_many_requests\",\"message\":\"Too Many Requests\",\"param\":null}}\n\n",
    ),
    (
        "inband_rate_limit",
        "array",
        GEMINI,
        LIMITED,
        "data: [{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\",\"message\":\"x\"}}]\r\n\r\n",
    ),
    (
        "inband_quota",
        "credit",
        RESPONSES,
        ends("PROVIDER_QUOTA_EXCEEDED"),
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"insufficient_quota\",\"code\":\"credit_balance_exhausted\",\"message\":\"no credits remaining\",\"param\":null},\"sequence_number\":2}\n\n",
    ),
    (
        "inband_overflow",
        "llama",
        CHAT,
        ends("CONTEXT_TOO_LARGE"),
        "data: {\"error\":{\"code\":400,\"type\":\"exceed_context_size_error\",\"message\":\"request (9000 tokens) exceeds the available context size (4096 tokens)\",\"n_ctx\":4096}}\n\n",
    ),
    (
        "inband_filter",
        "azure",
        CHAT,
        ends("CONTENT_FILTERED"),
        "data: {\"error\":{\"message\":\"The response was filtered\",\"code\":\"content_filter\",\"innererror\":{\"code\":\"ResponsibleAIPolicyViolation\"}}}\n\n",
    ),
    (
        "response_failed_final",
        "no_message",
        RESPONSES,
        ends("INVALID_REQUEST"),
        "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"invalid_prompt\",\"message\":null}}}\n\n",
    ),
    (
        "response_failed_bare",
        "null_error",
        RESPONSES,
        BROKEN,
        "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"resp_1\",\"status\":\"failed\",\"error\":null}}\n\n",
    ),
    (
        "inband_overloaded",
        "bare",
        ANTHROPIC,
        BUSY,
        "event: error\ndata: {\"type\":\"overloaded_error\"}\n\n",
    ),
    (
        "inband_quota",
        "then_done",
        CHAT,
        ends("PROVIDER_QUOTA_EXCEEDED"),
        "data: {\"error\":{\"message\":\"quota exceeded\"}}\n\ndata: [DONE]\n\n",
    ),
    (
        "inband_quota",
        "usage_limit",
        RESPONSES,
        ends("PROVIDER_QUOTA_EXCEEDED"),
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"usage_limit_reached\",\"message\":\"The usage limit has been reached\",\"resets_at\":1777936568,\"resets_in_seconds\":13872},\"status_code\":429}\n\n",
    ),
    (
        "inband_error",
        "plain_word",
        CHAT,
        BROKEN,
        "data: {\"error\":\"an error was encountered while running the model: unexpected EOF\"}\n\n",
    ),
];

pub(super) fn rows() -> Vec<Entry> {
    let inside = EVENTS
        .iter()
        .map(|(fault, name, api, expected, events)| row(fault, name, api, *expected, told(events)));
    let mut rows: Vec<Entry> = inside.collect();
    // The server says how long to wait.
    let wish = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\",\"headers\":{\"x-ratelimit-reset-tokens\":\"50.529s\"},\"message\":\"Limit 30000, Used 25265, Requested 8020. Please try again in 6.57s.\"},\"sequence_number\":2}\n\n";
    let made = row("inband_rate_limit", "told_wait", RESPONSES, LIMITED, told(wish));
    rows.push(Entry { wait_ms: Some((6570, 6570)), ..made });
    rows
}

/// These events after some of the answer; then the body ends properly.
fn told(events: &str) -> Behaviour {
    Behaviour::whole()
        .insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Bytes(events.as_bytes().to_vec()))
        .cut(Point::AfterEvent(DEFAULT_EVENT), How::CleanEnd)
}
