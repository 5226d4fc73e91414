//! How the faults of an answer and its stream are made.

use std::time::Duration;

use super::DEFAULT_EVENT;
use crate::behaviour::{Behaviour, ErrorReply, How, Insert, Point};

/// What `rate_limit` asks the client to wait unless a step says otherwise.
pub const DEFAULT_RETRY_AFTER: Duration = Duration::from_millis(300);

/// The text of the huge line: one step of 64 KiB over the 16 MiB a client
/// should put up with.
const HUGE_LINE: usize = 16 * 1024 * 1024 + 64 * 1024;

pub(super) fn whole() -> Behaviour {
    Behaviour::whole()
}

pub(super) fn cut_before_status() -> Behaviour {
    Behaviour::whole().cut(Point::BeforeStatus, How::Reset)
}

pub(super) fn cut_after_headers() -> Behaviour {
    Behaviour::whole().cut(Point::AfterHeaders, How::Reset)
}

pub(super) fn cut_between_events() -> Behaviour {
    Behaviour::whole().cut(Point::AfterEvent(DEFAULT_EVENT), How::Fin)
}

pub(super) fn cut_inside_event() -> Behaviour {
    Behaviour::whole().cut(Point::InsideEvent(DEFAULT_EVENT), How::Reset)
}

pub(super) fn cut_inside_character() -> Behaviour {
    Behaviour::whole().cut(Point::InsideCharacter, How::Fin)
}

pub(super) fn end_before_terminal() -> Behaviour {
    Behaviour::whole().cut(Point::BeforeTerminal, How::CleanEnd)
}

pub(super) fn stall() -> Behaviour {
    Behaviour::whole().cut(Point::AfterEvent(DEFAULT_EVENT), How::Silence)
}

pub(super) fn rate_limit() -> Behaviour {
    rate_limit_waiting(DEFAULT_RETRY_AFTER)
}

pub(super) fn rate_limit_waiting(delay: Duration) -> Behaviour {
    let reply = ErrorReply::new(
        429,
        "requests",
        "Rate limit reached for requests per min (RPM): Limit 3, Used 3, Requested 1.",
    );
    Behaviour::error(reply.code("rate_limit_exceeded").retry_after(delay))
}

pub(super) fn server_error() -> Behaviour {
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
pub(super) fn unauthorized() -> Behaviour {
    let reply = ErrorReply::new(
        401,
        "invalid_request_error",
        "Incorrect API key provided: {key}. You can find your API key in your account settings.",
    );
    Behaviour::error(reply.code("invalid_api_key"))
}

pub(super) fn inband_error() -> Behaviour {
    Behaviour::whole()
        .insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Error(server_error_reply()))
        .cut(Point::AfterEvent(DEFAULT_EVENT), How::CleanEnd)
}

pub(super) fn html_page() -> Behaviour {
    const PAGE: &str = "<!doctype html>\n<html><head><title>Sign in to the network</title></head>\n\
        <body><h1>Sign in</h1><p>Accept the terms to go on.</p></body></html>\n";
    Behaviour::raw("text/html; charset=utf-8", PAGE)
}

pub(super) fn huge_line() -> Behaviour {
    Behaviour::whole().insert(Point::AfterEvent(DEFAULT_EVENT), Insert::HugeLine(HUGE_LINE))
}

pub(super) fn quota() -> Behaviour {
    let reply = ErrorReply::new(
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    );
    Behaviour::error(reply.code("insufficient_quota"))
}

pub(super) fn context_overflow() -> Behaviour {
    let reply = ErrorReply::new(
        400,
        "invalid_request_error",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in \
         9213 tokens. Please reduce the length of the messages.",
    );
    Behaviour::error(reply.code("context_length_exceeded"))
}

pub(super) fn overloaded() -> Behaviour {
    Behaviour::error(ErrorReply::new(
        503,
        "server_error",
        "The engine is currently overloaded, please try again later.",
    ))
}

pub(super) fn malformed_event() -> Behaviour {
    Behaviour::whole().insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Malformed)
}

pub(super) fn done_without_finish() -> Behaviour {
    Behaviour::whole().without_terminal()
}

pub(super) fn model_not_found() -> Behaviour {
    let reply = ErrorReply::new(
        404,
        "invalid_request_error",
        "The model does not exist or you do not have access to it.",
    );
    Behaviour::error(reply.code("model_not_found"))
}

pub(super) fn stall_before_headers() -> Behaviour {
    Behaviour::whole().cut(Point::BeforeStatus, How::Silence)
}
