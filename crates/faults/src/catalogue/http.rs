//! Faults of HTTP itself: the head, the framing, the redirects, the error bodies.

use std::time::Duration;

use super::{DEFAULT_EVENT, Entry, Expected, answers, fault};
use crate::behaviour::{Behaviour, ErrorReply, How, Http1, Insert, Point};

fn whole() -> Behaviour {
    Behaviour::whole()
}

/// A body of a failing server, long enough to be cut.
fn server_error() -> Behaviour {
    answers::server_error()
}

fn after_terminal(how: How) -> Behaviour {
    whole().cut(Point::AfterTerminal, how)
}

pub(super) const TABLE: &[Entry] = &[
    fault(
        "end_before_status",
        Expected::setup("NETWORK_ERROR"),
        || whole().cut(Point::BeforeStatus, How::Fin),
        "Reads the request, then closes the connection before the status line.",
    ),
    fault(
        "cut_inside_headers",
        Expected::setup("NETWORK_ERROR"),
        || whole().cut(Point::InsideHeaders, How::Fin),
        "Closes the connection in the middle of the response head.",
    ),
    fault(
        "no_status_line",
        Expected::setup("NETWORK_ERROR"),
        || whole().http1(Http1::NoStatusLine),
        "Answers in a protocol that is not HTTP.",
    ),
    fault(
        "two_lengths",
        Expected::setup("NETWORK_ERROR"),
        || whole().http1(Http1::TwoLengths),
        "Announces two lengths that contradict each other.",
    ),
    fault(
        "endless_headers",
        Expected::setup("NETWORK_ERROR"),
        || whole().http1(Http1::EndlessHead),
        "Sends header lines for ever.",
    ),
    fault(
        "large_header",
        Expected::NOTHING,
        || whole().http1(Http1::HugeHeader(64 * 1024)),
        "Answers completely, with a header of 64 KiB.",
    ),
    fault(
        "slow_headers",
        Expected::NOTHING,
        || whole().http1(Http1::SlowHead(Duration::from_millis(1))),
        "Answers completely, the response head one byte at a time.",
    ),
    fault(
        "early_hints",
        Expected::NOTHING,
        || whole().http1(Http1::Informational(103)).http1(Http1::Informational(100)),
        "Answers completely, after informational responses.",
    ),
    fault(
        "informational_for_ever",
        Expected::setup("TIMEOUT"),
        || whole().http1(Http1::InformationalForEver),
        "Sends informational responses for ever, and no other.",
    ),
    fault(
        "trailers",
        Expected::NOTHING,
        || whole().trailers(),
        "Answers completely, with trailers after the body.",
    ),
    fault(
        "chunk_extensions",
        Expected::NOTHING,
        || whole().http1(Http1::ChunkExtensions),
        "Answers completely, with extensions in the size line of each chunk.",
    ),
    fault(
        "content_length_stream",
        Expected::NOTHING,
        || whole().http1(Http1::ExactLength),
        "Streams completely, with a content-length in place of chunks.",
    ),
    fault(
        "close_delimited",
        Expected::NOTHING,
        || whole().http1(Http1::UntilClose),
        "Streams completely by HTTP/1.0, the end told by closing the connection.",
    ),
    fault(
        "close_delimited_cut",
        Expected::stream("STREAM_FAILED"),
        || whole().http1(Http1::UntilClose).cut(Point::AfterEvent(DEFAULT_EVENT), How::Fin),
        "Streams by HTTP/1.0 and closes the connection too early, which HTTP cannot tell from an end.",
    ),
    fault(
        "bytes_beyond_length",
        Expected::NOTHING,
        || whole().http1(Http1::ExactLength).http1(Http1::BytesBeyond(64)),
        "Answers completely, then sends bytes that belong to no response.",
    ),
    fault(
        "no_content_type",
        Expected::NOTHING,
        || whole().without_header("content-type"),
        "Streams completely, without a content-type.",
    ),
    fault(
        "wrong_content_type",
        Expected::NOTHING,
        || whole().header("content-type", "text/plain; charset=iso-8859-1"),
        "Streams completely, with the content-type and the charset of something else.",
    ),
    fault(
        "json_content_type",
        Expected::NOTHING,
        || whole().header("content-type", "application/json"),
        "Streams completely, and says that it is JSON.",
    ),
    fault(
        "document_for_stream",
        Expected::NOTHING,
        || whole().document(),
        "Answers a request for a stream by one whole JSON document.",
    ),
    fault(
        "document_cut",
        Expected::stream("STREAM_FAILED"),
        || whole().document().cut(Point::InsideBody, How::Fin),
        "Answers a request for a stream by one JSON document, and cuts it.",
    ),
    fault(
        "empty_body",
        Expected::stream("STREAM_FAILED"),
        || Behaviour::raw("text/event-stream", ""),
        "Answers 200 with no byte of a body.",
    ),
    fault(
        "comments_only",
        Expected::stream("STREAM_FAILED"),
        || Behaviour::raw("text/event-stream", ": connected\n\n: bye\n\n"),
        "Sends comments, no event, and ends properly.",
    ),
    fault(
        "plain_text_body",
        Expected::stream("STREAM_FAILED"),
        || Behaviour::raw("text/plain", "upstream connect error, please try again\n"),
        "Answers 200 with a line of plain text.",
    ),
    fault(
        "html_error_page",
        Expected::setup("PROVIDER_ERROR"),
        || {
            let page = "<!doctype html>\n<html><head><title>502 Bad Gateway</title></head>\n\
                <body><h1>Bad gateway</h1><p>Ray 8f1c2e</p></body></html>\n";
            Behaviour::raw("text/html", page).status(502)
        },
        "Answers 502 with the HTML page of a gateway.",
    ),
    fault(
        "error_body_cut",
        Expected::setup("PROVIDER_ERROR"),
        || server_error().cut(Point::InsideBody, How::Reset),
        "Answers 500 and resets the connection in the middle of the error body.",
    ),
    fault(
        "error_body_stall",
        Expected::setup("PROVIDER_ERROR"),
        || server_error().cut(Point::InsideBody, How::Silence),
        "Answers 500 and falls silent in the middle of the error body.",
    ),
    fault(
        "error_body_huge",
        Expected::setup("PROVIDER_ERROR"),
        || {
            let prose = "The server had an error. ".repeat(40 * 1024);
            Behaviour::error(ErrorReply::new(500, "server_error", prose))
        },
        "Answers 500 with an error body of 1 MiB.",
    ),
    fault(
        "reset_after_terminal",
        Expected::NOTHING,
        || after_terminal(How::Reset),
        "Completes the answer, then resets the connection before the end of the body.",
    ),
    fault(
        "end_after_terminal",
        Expected::NOTHING,
        || after_terminal(How::Fin),
        "Completes the answer, then closes the connection without an end of the body.",
    ),
    fault(
        "bad_chunk_after_terminal",
        Expected::NOTHING,
        || after_terminal(How::BadChunk),
        "Completes the answer, then sends a chunk whose size is no number.",
    ),
    fault(
        "junk_line",
        Expected::stream("STREAM_FAILED"),
        || {
            let junk = b"upstream error: the connection was closed\n".to_vec();
            whole()
                .insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Bytes(junk))
                .cut(Point::AfterEvent(DEFAULT_EVENT), How::CleanEnd)
        },
        "Adds a line of plain text to some events, as a proxy does whose upstream died, and ends properly.",
    ),
    fault(
        "long_wait",
        Expected::last("PROVIDER_RATE_LIMITED", "request"),
        || answers::rate_limit_waiting(Duration::from_secs(600)),
        "Answers 429 and asks to wait ten minutes, longer than a step may take.",
    ),
    fault(
        "no_retry_wanted",
        Expected::last("PROVIDER_OVERLOADED", "request"),
        || answers::overloaded().header("x-should-retry", "false"),
        "Answers 503 and says by x-should-retry that nobody should try again.",
    ),
    fault(
        "bad_request",
        Expected::last("INVALID_REQUEST", "request"),
        || {
            Behaviour::error(ErrorReply::new(
                400,
                "invalid_request_error",
                "Unknown parameter: 'frobnicate'.",
            ))
        },
        "Answers 400: the request is malformed.",
    ),
    fault(
        "request_timeout",
        Expected::setup("TIMEOUT"),
        || {
            let told = "The server timed out waiting for the request.";
            Behaviour::error(ErrorReply::new(408, "timeout_error", told))
        },
        "Answers 408: it gave up waiting.",
    ),
    fault(
        "proxy_password",
        Expected::setup("NETWORK_ERROR"),
        || Behaviour::raw("text/plain", "Proxy Authentication Required\n").status(407),
        "Answers 407, as a proxy on the way does that wants a password.",
    ),
    fault(
        "not_implemented",
        Expected::last("PROVIDER_ERROR", "request"),
        || {
            let told = "This server does not implement this.";
            Behaviour::error(ErrorReply::new(501, "not_implemented", told))
        },
        "Answers 501: it does not implement this.",
    ),
    fault(
        "wrong_path",
        Expected::last("PROVIDER_PROTOCOL_MISMATCH", "request"),
        || {
            Behaviour::raw("text/html", "<html><body><h1>404 Not Found</h1></body></html>")
                .status(404)
        },
        "Answers 404 with a web page: no model is served at this path.",
    ),
    fault(
        "filtered_prompt",
        Expected::last("CONTENT_FILTERED", "request"),
        || {
            let told = "The response was filtered due to the prompt triggering the content \
                management policy. Please modify your prompt and retry.";
            let reply = ErrorReply::new(400, "invalid_request_error", told);
            Behaviour::error(reply.code("content_filter"))
        },
        "Answers 400 with the code content_filter.",
    ),
];
