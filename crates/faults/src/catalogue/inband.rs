//! Errors that are told inside a 200 response, in all the ways they are told.

use super::{DEFAULT_EVENT, Entry, Expected, fault};
use crate::behaviour::{Api, Behaviour, Change, ErrorReply, How, Insert, Point, Spot};

const OVERFLOW: &str = "This model's maximum context length is 8192 tokens. However, your messages \
    resulted in 9213 tokens. Please reduce the length of the messages.";

/// The error after some events; then the body ends properly.
fn told(reply: ErrorReply) -> Behaviour {
    Behaviour::whole()
        .insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Error(reply))
        .cut(Point::AfterEvent(DEFAULT_EVENT), How::CleanEnd)
}

fn reply(status: u16, kind: &str, message: &str) -> ErrorReply {
    ErrorReply::new(status, kind, message)
}

fn overflow() -> ErrorReply {
    reply(400, "invalid_request_error", OVERFLOW).code("context_length_exceeded")
}

/// These bytes after some events of one API; then the body ends properly.
fn said(api: Api, bytes: &str) -> Behaviour {
    Behaviour::whole()
        .insert(Point::AfterEvent(DEFAULT_EVENT), Insert::In(api, bytes.into()))
        .cut(Point::AfterEvent(DEFAULT_EVENT), How::CleanEnd)
}

pub(super) const TABLE: &[Entry] = &[
    fault(
        "inband_overloaded",
        Expected::capacity_in_stream("PROVIDER_OVERLOADED"),
        || told(reply(503, "server_error", "Overloaded").code("server_is_overloaded")),
        "Sends some events, then an error event: overloaded.",
    ),
    fault(
        "inband_rate_limit",
        Expected::capacity_in_stream("PROVIDER_RATE_LIMITED"),
        || {
            let reply = reply(429, "requests", "Rate limit reached for requests per minute.");
            told(reply.code("rate_limit_exceeded"))
        },
        "Sends some events, then an error event: a rate limit.",
    ),
    fault(
        "inband_quota",
        Expected::last("PROVIDER_QUOTA_EXCEEDED", "stream"),
        || {
            let reply = reply(
                429,
                "insufficient_quota",
                "You exceeded your current quota, please check your plan and billing details.",
            );
            told(reply.code("insufficient_quota"))
        },
        "Sends some events, then an error event: the credit is used up.",
    ),
    fault(
        "inband_overflow",
        Expected::last("CONTEXT_TOO_LARGE", "stream"),
        || Behaviour::whole()
            .insert(Point::AfterHeaders, Insert::Error(overflow()))
            .cut(Point::AfterHeaders, How::CleanEnd),
        "Answers 200, and the first event is an error: the prompt is too long.",
    ),
    fault(
        "inband_filter",
        Expected::last("CONTENT_FILTERED", "stream"),
        || {
            let reply = reply(
                400,
                "invalid_request_error",
                "The response was filtered due to the prompt triggering the content management policy.",
            );
            Behaviour::whole()
                .insert(Point::AfterHeaders, Insert::Error(reply.code("content_filter")))
                .cut(Point::AfterHeaders, How::CleanEnd)
        },
        "Answers 200, and the only event is an error: the prompt was filtered.",
    ),
    fault(
        "inband_error_then_end",
        Expected::stream("PROVIDER_ERROR"),
        || {
            let error = reply(500, "server_error", "The server had an error.");
            Behaviour::whole().insert(Point::BeforeTerminal, Insert::Error(error))
        },
        "Sends an error event, and then completes the answer as if nothing had been.",
    ),
    fault(
        "error_document",
        Expected::last("CONTEXT_TOO_LARGE", "stream"),
        || Behaviour::error(overflow()).status(200),
        "Answers 200 with an error as a JSON document.",
    ),
    fault(
        "error_unframed",
        Expected::last("CONTEXT_TOO_LARGE", "stream"),
        || Behaviour::error(overflow()).status(200).header("content-type", "text/event-stream"),
        "Answers 200 as an event stream, and its body is an error in bare JSON.",
    ),
    fault(
        "error_tail",
        Expected::capacity_in_stream("PROVIDER_OVERLOADED"),
        || {
            let tail = "{\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\",\
                \"message\":\"The model is overloaded. Please try again later.\"}}";
            Behaviour::whole()
                .insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Bytes(tail.into()))
                .cut(Point::AfterEvent(DEFAULT_EVENT), How::CleanEnd)
        },
        "Sends some events, then an error in bare JSON, and ends.",
    )
    .only(&[Api::Gemini]),
    fault(
        "error_array",
        Expected::capacity("PROVIDER_OVERLOADED"),
        || {
            let body = "[{\"error\":{\"code\":503,\"message\":\"No capacity available.\",\
                \"status\":\"UNAVAILABLE\"}}]";
            Behaviour::raw("application/json", body).status(503)
        },
        "Answers 503 with an array that holds one error.",
    )
    .only(&[Api::Gemini]),
    fault(
        "error_field",
        Expected::last("CONTEXT_TOO_LARGE", "stream"),
        || {
            let field = "error: {\"code\":400,\"message\":\"the request exceeds the available \
                context size\",\"type\":\"exceed_context_size_error\"}\n\n";
            Behaviour::whole()
                .insert(Point::AfterHeaders, Insert::In(Api::Chat, field.into()))
                .cut(Point::AfterHeaders, How::CleanEnd)
        },
        "Tells an error in a field named error in place of data.",
    )
    .only(&[Api::Chat]),
    fault(
        "error_beside_choices",
        Expected::stream("PROVIDER_ERROR"),
        || {
            said(
                Api::Chat,
                "data: {\"id\":\"e\",\"object\":\"chat.completion.chunk\",\
                 \"error\":{\"code\":502,\"message\":\"Provider disconnected\"},\
                 \"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\
                 \"finish_reason\":\"error\"}]}\n\ndata: [DONE]\n\n",
            )
        },
        "Tells an error beside choices that look whole, and ends by [DONE].",
    )
    .only(&[Api::Chat]),
    fault(
        "finish_reason_error",
        Expected::stream("PROVIDER_ERROR"),
        || Behaviour::whole().edit(Spot::Terminal, Change::Replace("\"stop\"", "\"error\"")),
        "Finishes for the reason \"error\", and says no more about it.",
    )
    .only(&[Api::Chat]),
    fault(
        "error_flat_fields",
        Expected::last("CONTEXT_TOO_LARGE", "stream"),
        || {
            said(
                Api::Chat,
                "data: {\"choices\":null,\"error_type\":\"invalid_request_error\",\
                 \"error_code\":\"context_length_exceeded\",\"error_message\":\"This model's \
                 maximum context length is 8192 tokens.\"}\n\ndata: [DONE]\n\n",
            )
        },
        "Tells an error in fields beside choices that are null.",
    )
    .only(&[Api::Chat]),
    fault(
        "error_flat_event",
        Expected::stream("PROVIDER_ERROR"),
        || {
            said(
                Api::Responses,
                "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\
                 \"message\":\"The server had an error.\",\"param\":null,\"sequence_number\":9}\n\n",
            )
        },
        "Sends an error event whose fields stand in the event itself.",
    )
    .only(&[Api::Responses]),
    fault(
        "response_failed",
        Expected::stream("PROVIDER_ERROR"),
        || {
            said(
                Api::Responses,
                "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":\
                 {\"id\":\"resp_1\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\
                 \"message\":\"The model failed to generate a response.\"},\"usage\":null}}\n\n",
            )
        },
        "Ends by response.failed with an error inside the response.",
    )
    .only(&[Api::Responses]),
    fault(
        "response_failed_bare",
        Expected::stream("PROVIDER_ERROR"),
        || {
            said(
                Api::Responses,
                "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":\
                 {\"id\":\"resp_1\",\"status\":\"failed\"}}\n\n",
            )
        },
        "Ends by response.failed without saying why.",
    )
    .only(&[Api::Responses]),
    fault(
        "response_failed_final",
        Expected::last("INVALID_REQUEST", "stream"),
        || {
            said(
                Api::Responses,
                "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":\
                 {\"id\":\"resp_1\",\"status\":\"failed\",\"error\":{\"code\":\"invalid_prompt\",\
                 \"message\":\"The prompt is not valid.\"},\"usage\":null}}\n\n",
            )
        },
        "Ends by response.failed because the prompt is not valid.",
    )
    .only(&[Api::Responses]),
    fault(
        "error_without_type",
        Expected::last("PROVIDER_ERROR", "stream"),
        || {
            said(
                Api::Responses,
                "event: error\ndata: {\"type\":\"error\",\"message\":\"<internal detail>\"}\n\n",
            )
        },
        "Sends an error event that says in prose alone what is wrong.",
    )
    .only(&[Api::Responses]),
    fault(
        "error_as_text",
        Expected::capacity_in_stream("PROVIDER_RATE_LIMITED"),
        || {
            let told = "{\"message\":\"Too many tokens, please wait before trying again.\"}";
            Behaviour::whole()
                .text(told)
                .edit(Spot::Terminal, Change::Replace("\"stop\"", "\"error_finish\""))
        },
        "Says an error as if the model had said it, and finishes for the reason \"error_finish\".",
    )
    .only(&[Api::Chat]),
    fault(
        "event_not_object",
        Expected::stream("STREAM_FAILED"),
        || {
            let bytes = b"data: \"an answer\"\n\n".to_vec();
            Behaviour::whole().insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Bytes(bytes))
        },
        "Sends an event whose data is JSON, but no object.",
    ),
];
