//! Faults of TLS, HTTP/2 and compression beyond the first ones.

use super::{DEFAULT_EVENT, Entry, Expected, fault};
use crate::behaviour::{Behaviour, Gzip, HangUp, How, Http2Code, Point, Protocol, Tls};

fn midway(how: How) -> Behaviour {
    Behaviour::whole().cut(Point::AfterEvent(DEFAULT_EVENT), how)
}

pub(super) const TABLE: &[Entry] = &[
    fault(
        "tls_silence",
        Expected::setup("TIMEOUT"),
        || Behaviour::handshake(Tls::Silence),
        "Takes the first message of the TLS handshake and never answers it.",
    ),
    fault(
        "tls_alert",
        Expected::last("NETWORK_ERROR", "request"),
        || Behaviour::handshake(Tls::Alert),
        "Refuses the TLS handshake by a fatal alert.",
    ),
    fault(
        "tls_not_spoken",
        Expected::last("NETWORK_ERROR", "request"),
        || Behaviour::handshake(Tls::NoTls),
        "Answers the TLS handshake in plain HTTP.",
    ),
    fault(
        "tls_close_before_status",
        Expected::setup("NETWORK_ERROR"),
        || Behaviour::whole().cut(Point::BeforeStatus, How::FinWithoutNotify),
        "Reads the request, then closes the connection without the close_notify of TLS.",
    ),
    fault(
        "tls_close_after_terminal",
        Expected::NOTHING,
        || Behaviour::whole().cut(Point::AfterTerminal, How::FinWithoutNotify),
        "Completes the answer, then closes the connection without close_notify and without an end of the body.",
    ),
    fault(
        "tls_bad_record_before_status",
        Expected::setup("NETWORK_ERROR"),
        || Behaviour::whole().cut(Point::BeforeStatus, How::BadRecord),
        "Reads the request, then answers it by bytes that are no TLS record.",
    ),
    fault(
        "tls_bad_record",
        Expected::stream("STREAM_FAILED"),
        || midway(How::BadRecord),
        "Sends bytes that are no TLS record in the middle of a stream.",
    ),
    fault(
        "http2_goaway_after_answer",
        Expected::NOTHING,
        || Behaviour::whole().hang_up(HangUp::GoAway),
        "Answers completely, then closes the HTTP/2 connection by a graceful GOAWAY.",
    ),
    fault(
        "http2_reset_after_terminal",
        Expected::NOTHING,
        || Behaviour::whole().cut(Point::AfterTerminal, How::RstStream(Http2Code::NoError)),
        "Completes the answer, then resets the HTTP/2 stream before its end.",
    ),
    fault(
        "http2_bad_frame",
        Expected::stream("STREAM_FAILED"),
        || midway(How::BadFrame),
        "Sends a frame that HTTP/2 forbids in the middle of a stream.",
    ),
    fault(
        "http2_end_in_body",
        Expected::stream("STREAM_FAILED"),
        || midway(How::Fin).over(Protocol::Http2),
        "Closes the HTTP/2 connection after some events without a GOAWAY.",
    ),
    fault(
        "http2_connection_reset",
        Expected::stream("STREAM_FAILED"),
        || midway(How::Reset).over(Protocol::Http2),
        "Resets the TCP connection under an HTTP/2 stream.",
    ),
    fault(
        "http2_stall",
        Expected::stream("TIMEOUT"),
        || midway(How::Silence).over(Protocol::Http2),
        "Answers the pings of HTTP/2, and sends nothing more on the stream.",
    ),
    fault(
        "http2_end_before_terminal",
        Expected::stream("STREAM_FAILED"),
        || Behaviour::whole().cut(Point::BeforeTerminal, How::CleanEnd).over(Protocol::Http2),
        "Ends the HTTP/2 stream properly before the answer is complete.",
    ),
    fault(
        "http2_trailers",
        Expected::NOTHING,
        || Behaviour::whole().trailers().over(Protocol::Http2),
        "Answers completely over HTTP/2, with trailers.",
    ),
    fault(
        "gzip_held",
        Expected::NOTHING,
        || Behaviour::whole().gzip(Gzip::Held),
        "Answers completely, compressed, and holds events back until a block is full.",
    ),
    fault(
        "gzip_no_trailer",
        Expected::NOTHING,
        || Behaviour::whole().gzip(Gzip::NoTrailer),
        "Sends all events compressed, without the checksum at the end.",
    ),
    fault(
        "gzip_unlabelled",
        Expected::stream("STREAM_FAILED"),
        || Behaviour::whole().gzip(Gzip::Unlabelled),
        "Compresses the body and does not say so.",
    ),
    fault(
        "unknown_coding",
        Expected::NOTHING,
        || Behaviour::whole().header("content-encoding", "identity, x-none"),
        "Names a content coding that nobody knows, and sends the body plain.",
    ),
];
