//! The table itself: each name with its verdict, and how it is made.

use std::time::Duration;

use super::{DEFAULT_EVENT, Entry, Expected};
use crate::behaviour::{Behaviour, ErrorReply, How, Insert, Point};

/// What `rate_limit` asks the client to wait unless a step says otherwise.
pub const DEFAULT_RETRY_AFTER: Duration = Duration::from_millis(300);

/// The text of the huge line: one step of 64 KiB over the 16 MiB a client
/// should put up with.
const HUGE_LINE: usize = 16 * 1024 * 1024 + 64 * 1024;

const CORE: bool = true;
const MORE: bool = false;

pub(super) static CATALOGUE: &[Entry] = &[
    entry("whole", CORE, Expected::NOTHING, whole, "Answers completely."),
    entry(
        "cut_before_status",
        CORE,
        Expected::setup("NETWORK_ERROR"),
        cut_before_status,
        "Reads the request, then resets the connection before the status line.",
    ),
    entry(
        "cut_after_headers",
        CORE,
        Expected::stream("STREAM_FAILED"),
        cut_after_headers,
        "Sends the headers of a 200 response, then resets the connection.",
    ),
    entry(
        "cut_between_events",
        CORE,
        Expected::stream("STREAM_FAILED"),
        cut_between_events,
        "Sends some whole events, then closes the connection without an end of the body.",
    ),
    entry(
        "cut_inside_event",
        CORE,
        Expected::stream("STREAM_FAILED"),
        cut_inside_event,
        "Resets the connection after half the bytes of an event.",
    ),
    entry(
        "cut_inside_character",
        CORE,
        Expected::stream("STREAM_FAILED"),
        cut_inside_character,
        "Closes the connection between the bytes of one UTF-8 character.",
    ),
    entry(
        "end_before_terminal",
        CORE,
        Expected::stream("STREAM_FAILED"),
        end_before_terminal,
        "Ends the body properly, but without a finish reason or [DONE].",
    ),
    entry(
        "stall",
        CORE,
        Expected::stream("TIMEOUT"),
        stall,
        "Sends some events, then nothing more on an open connection.",
    ),
    entry(
        "rate_limit",
        CORE,
        Expected::capacity("PROVIDER_RATE_LIMITED"),
        rate_limit,
        "Answers 429 and asks to wait by retry-after-ms and retry-after.",
    ),
    entry(
        "server_error",
        CORE,
        Expected::setup("PROVIDER_ERROR"),
        server_error,
        "Answers 500 with an error body.",
    ),
    entry(
        "unauthorized",
        CORE,
        Expected::last("PROVIDER_UNAUTHORIZED", "request"),
        unauthorized,
        "Answers 401, and its message repeats the key it was sent.",
    ),
    entry(
        "inband_error",
        CORE,
        Expected::stream("PROVIDER_ERROR"),
        inband_error,
        "Sends some events of a 200 stream, then an error event, and ends.",
    ),
    entry(
        "html_page",
        MORE,
        Expected::last("PROVIDER_PROTOCOL_MISMATCH", "stream"),
        html_page,
        "Answers 200 with an HTML page, as a captive portal does.",
    ),
    entry(
        "huge_line",
        MORE,
        Expected::last("PROVIDER_PROTOCOL_MISMATCH", "stream"),
        huge_line,
        "Sends one line of over 16 MiB in the middle of a stream.",
    ),
    entry(
        "quota",
        MORE,
        Expected::last("PROVIDER_QUOTA_EXCEEDED", "request"),
        quota,
        "Answers 429 with the code insufficient_quota.",
    ),
    entry(
        "overloaded",
        MORE,
        Expected::capacity("PROVIDER_OVERLOADED"),
        overloaded,
        "Answers 503: the model is overloaded.",
    ),
    entry(
        "malformed_event",
        MORE,
        Expected::stream("STREAM_FAILED"),
        malformed_event,
        "Sends an event that is not JSON in the middle of an otherwise whole stream.",
    ),
    entry(
        "done_without_finish",
        MORE,
        Expected::stream("STREAM_FAILED"),
        done_without_finish,
        "Sends [DONE] and a proper end, but never a finish reason.",
    ),
    entry(
        "model_not_found",
        MORE,
        Expected::last("MODEL_NOT_CONFIGURED", "request"),
        model_not_found,
        "Answers 404 with the code model_not_found.",
    ),
    entry(
        "stall_before_headers",
        MORE,
        Expected::setup("TIMEOUT"),
        stall_before_headers,
        "Reads the request and never answers.",
    ),
];

const fn entry(
    name: &'static str,
    core: bool,
    expected: Expected,
    make: fn() -> Behaviour,
    sentence: &'static str,
) -> Entry {
    Entry { name, sentence, core, expected, make }
}

fn whole() -> Behaviour {
    Behaviour::whole()
}

fn cut_before_status() -> Behaviour {
    Behaviour::whole().cut(Point::BeforeStatus, How::Reset)
}

fn cut_after_headers() -> Behaviour {
    Behaviour::whole().cut(Point::AfterHeaders, How::Reset)
}

fn cut_between_events() -> Behaviour {
    Behaviour::whole().cut(Point::AfterEvent(DEFAULT_EVENT), How::Fin)
}

fn cut_inside_event() -> Behaviour {
    Behaviour::whole().cut(Point::InsideEvent(DEFAULT_EVENT), How::Reset)
}

fn cut_inside_character() -> Behaviour {
    Behaviour::whole().cut(Point::InsideCharacter, How::Fin)
}

fn end_before_terminal() -> Behaviour {
    Behaviour::whole().cut(Point::BeforeTerminal, How::CleanEnd)
}

fn stall() -> Behaviour {
    Behaviour::whole().cut(Point::AfterEvent(DEFAULT_EVENT), How::Silence)
}

fn rate_limit() -> Behaviour {
    let reply = ErrorReply::new(
        429,
        "requests",
        "Rate limit reached for requests per min (RPM): Limit 3, Used 3, Requested 1.",
    );
    Behaviour::error(reply.code("rate_limit_exceeded").retry_after(DEFAULT_RETRY_AFTER))
}

fn server_error() -> Behaviour {
    Behaviour::error(server_error_reply())
}

fn server_error_reply() -> ErrorReply {
    ErrorReply::new(
        500,
        "server_error",
        "The server had an error while processing your request. Sorry about that!",
    )
}

/// api.openai.com shows a part of the key; gateways are seen to repeat all of
/// it, which is the trap.
fn unauthorized() -> Behaviour {
    let reply = ErrorReply::new(
        401,
        "invalid_request_error",
        "Incorrect API key provided: {key}. You can find your API key in your account settings.",
    );
    Behaviour::error(reply.code("invalid_api_key"))
}

fn inband_error() -> Behaviour {
    Behaviour::whole()
        .insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Error(server_error_reply()))
        .cut(Point::AfterEvent(DEFAULT_EVENT), How::CleanEnd)
}

fn html_page() -> Behaviour {
    const PAGE: &str = "<!doctype html>\n<html><head><title>Sign in to the network</title></head>\n\
        <body><h1>Sign in</h1><p>Accept the terms to go on.</p></body></html>\n";
    Behaviour::raw("text/html; charset=utf-8", PAGE)
}

fn huge_line() -> Behaviour {
    Behaviour::whole().insert(Point::AfterEvent(DEFAULT_EVENT), Insert::HugeLine(HUGE_LINE))
}

fn quota() -> Behaviour {
    let reply = ErrorReply::new(
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    );
    Behaviour::error(reply.code("insufficient_quota"))
}

fn overloaded() -> Behaviour {
    Behaviour::error(ErrorReply::new(
        503,
        "server_error",
        "The engine is currently overloaded, please try again later.",
    ))
}

fn malformed_event() -> Behaviour {
    Behaviour::whole().insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Malformed)
}

fn done_without_finish() -> Behaviour {
    Behaviour::whole().without_terminal()
}

fn model_not_found() -> Behaviour {
    let reply = ErrorReply::new(
        404,
        "invalid_request_error",
        "The model does not exist or you do not have access to it.",
    );
    Behaviour::error(reply.code("model_not_found"))
}

fn stall_before_headers() -> Behaviour {
    Behaviour::whole().cut(Point::BeforeStatus, How::Silence)
}
