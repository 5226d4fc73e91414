//! Rows of one mechanism: the statuses with each shape of body, the spellings of a
//! server's wish to wait, the codes of HTTP/2, and errors as servers word them.
//!
//! What is expected stands here in the words of the taxonomy, written down apart from
//! any classifier, so that a changed one is noticed.

use super::{Entry, Expected, Make};
use crate::behaviour::{Api, Behaviour, How, Http2Code, Insert, Point, Tls};

mod delays;
mod events;
mod shaped;
mod statuses;
mod worded;

pub(super) fn rows() -> Vec<Entry> {
    let mut rows = statuses::rows();
    rows.extend(delays::rows());
    rows.extend(http2());
    rows.extend(bodies());
    rows.extend(worded::rows());
    rows.extend(events::rows());
    rows.extend(shaped::rows());
    rows
}

/// A row of this fault, shown by one API, which is enough for what none of them reads
/// differently.
fn row(
    fault: &'static str,
    name: &str,
    api: &'static [Api],
    expected: Expected,
    behaviour: Behaviour,
) -> Entry {
    // Made once in the life of a program.
    let name: &'static str = Box::leak(format!("{fault}/{name}").into_boxed_str());
    Entry {
        name,
        sentence: "",
        core: false,
        expected,
        wait_ms: None,
        heard: None,
        variant_of: Some(fault),
        apis: api,
        make: Make::Value(Box::new(behaviour)),
    }
}

/// Each code of HTTP/2, by RST_STREAM and by GOAWAY, before the headers and in the body.
fn http2() -> Vec<Entry> {
    let mut rows = Vec::new();
    for code in Http2Code::all() {
        let ways = [
            ("http2_reset_before_status", "http2_reset_in_body", How::RstStream(code)),
            ("http2_goaway_before_status", "http2_goaway_in_body", How::GoAway(code)),
        ];
        for (before, within, how) in ways {
            let name = code.as_str().to_ascii_lowercase();
            let early = Behaviour::whole().cut(Point::BeforeStatus, how);
            rows.push(row(before, &name, CHAT, Expected::setup("NETWORK_ERROR"), early));
            let late = Behaviour::whole().cut(Point::AfterEvent(super::DEFAULT_EVENT), how);
            rows.push(row(within, &name, CHAT, Expected::stream("STREAM_FAILED"), late));
        }
    }
    rows
}

const CHAT: &[Api] = &[Api::Chat];
const RESPONSES: &[Api] = &[Api::Responses];
const ANTHROPIC: &[Api] = &[Api::Anthropic];
const GEMINI: &[Api] = &[Api::Gemini];

/// Bodies and handshakes that differ in nothing but their words.
fn bodies() -> Vec<Entry> {
    let empty = |name: &str, body: &str| {
        let behaviour = Behaviour::raw("text/event-stream", body);
        row("empty_body", name, CHAT, Expected::stream("STREAM_FAILED"), behaviour)
    };
    let last = Expected::last("NETWORK_ERROR", "request");
    vec![
        empty("blank_lines", "\n\n\n\n"),
        empty("carriage_returns", "\r\r\r\r"),
        empty("bom", "\u{feff}"),
        row("tls_expired", "not_yet_valid", CHAT, last, Behaviour::handshake(Tls::NotYetValid)),
        row(
            "bad_chunk",
            "after_headers",
            CHAT,
            Expected::stream("STREAM_FAILED"),
            Behaviour::whole().cut(Point::AfterHeaders, How::BadChunk),
        ),
        row(
            "malformed_event",
            "half_json",
            CHAT,
            Expected::stream("STREAM_FAILED"),
            Behaviour::whole().insert(
                Point::AfterEvent(super::DEFAULT_EVENT),
                Insert::Bytes(b"data: {\"choices\": [\n\n".to_vec()),
            ),
        ),
    ]
}
