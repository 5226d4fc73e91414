//! Faults of time and amount: silence, noise, floods, and bytes that come one by one.

use std::time::Duration;

use super::{DEFAULT_EVENT, Entry, Expected, fault};
use crate::behaviour::{Behaviour, How, Insert, Noise, Point};

const TICK: Duration = Duration::from_millis(20);

fn endless(point: Point, noise: Noise, pause: Duration) -> Behaviour {
    Behaviour::whole().insert(point, Insert::Endless(noise, pause))
}

pub(super) const TABLE: &[Entry] = &[
    fault(
        "stall_after_headers",
        Expected::stream("TIMEOUT"),
        || Behaviour::whole().cut(Point::AfterHeaders, How::Silence),
        "Sends the headers of a 200 response, then nothing more.",
    ),
    fault(
        "stall_inside_event",
        Expected::stream("TIMEOUT"),
        || Behaviour::whole().cut(Point::InsideEvent(DEFAULT_EVENT), How::Silence),
        "Falls silent after half the bytes of an event.",
    ),
    fault(
        "stall_after_terminal",
        Expected::NOTHING,
        || Behaviour::whole().cut(Point::AfterTerminal, How::Silence),
        "Completes the answer, then neither ends the body nor says more.",
    ),
    fault(
        "keep_alives_before_events",
        Expected::stream("TIMEOUT"),
        || endless(Point::AfterHeaders, Noise::Comment, TICK),
        "Sends comments for ever, and no event.",
    ),
    fault(
        "keep_alives_for_ever",
        Expected::stream("TIMEOUT"),
        || endless(Point::AfterEvent(DEFAULT_EVENT), Noise::Comment, TICK),
        "Sends some events, then comments for ever.",
    ),
    fault(
        "pings_for_ever",
        Expected::stream("TIMEOUT"),
        || endless(Point::AfterEvent(DEFAULT_EVENT), Noise::Ping, TICK),
        "Sends some events, then events that say nothing for ever.",
    ),
    fault(
        "comment_flood",
        Expected::stream("TIMEOUT"),
        || endless(Point::AfterEvent(DEFAULT_EVENT), Noise::Comment, Duration::ZERO),
        "Sends some events, then comments for ever, as fast as they are taken.",
    ),
    fault(
        "keep_alives_after_terminal",
        Expected::NOTHING,
        || endless(Point::AfterTerminal, Noise::Comment, TICK),
        "Completes the answer, then sends comments for ever.",
    ),
    fault(
        "pings",
        Expected::NOTHING,
        || {
            let ping = || Insert::Noise(Noise::Ping);
            Behaviour::whole()
                .insert(Point::AfterEvent(1), ping())
                .insert(Point::AfterEvent(DEFAULT_EVENT), ping())
                .insert(Point::BeforeTerminal, ping())
        },
        "Answers completely, with events in between that say nothing.",
    ),
    fault(
        "slow_events",
        Expected::NOTHING,
        || Behaviour::whole().event_delay(Duration::from_millis(5)),
        "Answers completely, with a wait before each event.",
    ),
    fault(
        "drip",
        Expected::NOTHING,
        || Behaviour::whole().drip(1),
        "Answers completely, one byte at a time.",
    ),
    fault(
        "large_line",
        Expected::NOTHING,
        || {
            // No text of the answer: a field that no client reads.
            let comment = format!(": {}\n\n", "a".repeat(4 * 1024 * 1024));
            Behaviour::whole()
                .insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Bytes(comment.into()))
        },
        "Answers completely, with a comment of 4 MiB on one line.",
    ),
    fault(
        "answer_too_large",
        Expected::last("PROVIDER_PROTOCOL_MISMATCH", "stream"),
        || {
            let line = |behaviour: Behaviour, _| {
                let at = Point::AfterEvent(DEFAULT_EVENT);
                behaviour.insert(at, Insert::HugeLine(10 * 1024 * 1024))
            };
            (0..7).fold(Behaviour::whole(), line)
        },
        "Sends more text in one answer than any model can, each line of a lawful length.",
    ),
];
