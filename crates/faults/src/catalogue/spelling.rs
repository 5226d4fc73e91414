//! Lawful, unusual spellings of server-sent events, and events out of place.

use super::{DEFAULT_EVENT, Entry, Expected, fault};
use crate::behaviour::{Api, Behaviour, Change, Insert, Noise, Point, Spelling, Spot};

fn spelt(spelling: Spelling) -> Behaviour {
    Behaviour::whole().spelling(spelling)
}

/// A text whose deltas can be told apart.
const COUNTED: &str = "one two three four five six seven eight nine ten eleven twelve thirteen";

/// The APIs that neither number their deltas nor repeat the whole text.
const UNNUMBERED: &[Api] = &[Api::Chat, Api::Anthropic, Api::Gemini];

pub(super) const TABLE: &[Entry] = &[
    fault(
        "sse_crlf",
        Expected::NOTHING,
        || spelt(Spelling::CrLf),
        "Ends each line by CR LF.",
    ),
    fault(
        "sse_cr",
        Expected::NOTHING,
        || spelt(Spelling::Cr),
        "Ends each line by CR alone.",
    ),
    fault(
        "sse_crlf_drip",
        Expected::NOTHING,
        || spelt(Spelling::CrLf).drip(1),
        "Ends each line by CR LF, and sends each of the two by itself.",
    ),
    fault(
        "sse_bom",
        Expected::NOTHING,
        || spelt(Spelling::ByteOrderMark).drip(1),
        "Begins the stream with a byte order mark, in three pieces.",
    ),
    fault(
        "sse_no_space",
        Expected::NOTHING,
        || spelt(Spelling::NoSpace),
        "Leaves out the space after each colon.",
    ),
    fault(
        "sse_more_fields",
        Expected::NOTHING,
        || spelt(Spelling::MoreFields),
        "Gives each event an id, a wait for reconnecting, and a field nobody knows.",
    ),
    fault(
        "sse_many_lines",
        Expected::NOTHING,
        || spelt(Spelling::ManyLines),
        "Writes the data of an event on several lines.",
    ),
    fault(
        "sse_comments",
        Expected::NOTHING,
        || spelt(Spelling::Comments),
        "Puts comments, an empty one too, and blank lines between events.",
    ),
    fault(
        "sse_no_last_newline",
        Expected::NOTHING,
        || spelt(Spelling::NoLastNewline),
        "Ends the body without the newline of its last event.",
    ),
    fault(
        "sse_unicode_separators",
        Expected::NOTHING,
        || Behaviour::whole().text("one\u{2028}two\u{2029}three\u{85}four five six"),
        "Says characters that other protocols take for line ends.",
    ),
    fault(
        "sse_invalid_utf8",
        Expected::NOTHING,
        || {
            let comment = b": \xff\xfe\xc3\n\n".to_vec();
            Behaviour::whole().insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Bytes(comment))
        },
        "Sends a comment that is not UTF-8.",
    ),
    fault(
        "unknown_event",
        Expected::NOTHING,
        || {
            let event = "event: telemetry\ndata: {\"type\":\"telemetry\",\"load\":[1,2]}\n\n";
            Behaviour::whole()
                .insert(Point::AfterEvent(DEFAULT_EVENT), Insert::Bytes(event.into()))
        },
        "Sends an event of a type that nobody knows.",
    ),
    fault(
        "unknown_fields",
        Expected::NOTHING,
        || {
            let more = "data: {\"x_new\":{\"a\":[null]},";
            Behaviour::whole().edit(Spot::Holding("data: {"), Change::Replace("data: {", more))
        },
        "Adds a field that nobody knows to each event.",
    ),
    fault(
        "first_event_twice",
        Expected::NOTHING,
        || Behaviour::whole().edit(Spot::First, Change::Twice),
        "Sends the event that opens the answer twice.",
    ),
    fault(
        "terminal_twice",
        Expected::NOTHING,
        || Behaviour::whole().edit(Spot::Terminal, Change::Twice),
        "Sends the event that completes the answer twice.",
    ),
    fault(
        "text_after_terminal",
        Expected::NOTHING,
        || Behaviour::whole().insert(Point::AfterTerminal, Insert::Noise(Noise::Delta)),
        "Says more after the event that completes the answer.",
    )
    // Old models of Gemini put a finish reason into every response, so there it belongs
    // to the answer.
    .only(&[Api::Chat, Api::Responses, Api::Anthropic]),
    fault(
        "delta_twice",
        Expected::NOTHING,
        || Behaviour::whole().text(COUNTED).edit(Spot::FirstHolding("two"), Change::Twice),
        "Sends a delta of the text twice, which nothing tells from a model that repeats itself.",
    )
    .only(UNNUMBERED)
    .heard("one two two three four five six seven eight nine ten eleven twelve thirteen"),
    fault(
        "deltas_reordered",
        Expected::NOTHING,
        || Behaviour::whole().text(COUNTED).edit(Spot::FirstHolding("two"), Change::AfterNext),
        "Sends two deltas of the text in the wrong order, which nothing tells.",
    )
    .only(UNNUMBERED)
    .heard("one three two four five six seven eight nine ten eleven twelve thirteen"),
    fault(
        "delta_before_start",
        Expected::NOTHING,
        || {
            Behaviour::whole().text(COUNTED).edit_in(Api::Anthropic, Spot::FirstHolding("content_block_start"), Change::AfterNext)
        },
        "Sends the first delta of a block of text before the event that opens it.",
    )
    .only(&[Api::Anthropic]),
    fault(
        "no_end_marker",
        Expected::NOTHING,
        || Behaviour::whole().edit(Spot::Last, Change::Drop),
        "Leaves out the last event, which only repeats that the answer is complete.",
    )
    .only(&[Api::Chat, Api::Anthropic]),
    fault(
        "usage_only",
        Expected::stream("STREAM_FAILED"),
        || {
            let usage = "data: {\"id\":\"u\",\"object\":\"chat.completion.chunk\",\"choices\":[],\
                \"usage\":{\"prompt_tokens\":9,\"completion_tokens\":0,\"total_tokens\":9}}\n\n\
                data: [DONE]\n\n";
            let gemini = "data: {\"usageMetadata\":{\"promptTokenCount\":9}}\r\n\r\n";
            Behaviour::whole()
                .insert(Point::AfterHeaders, Insert::In(Api::Chat, usage.into()))
                .insert(Point::AfterHeaders, Insert::In(Api::Gemini, gemini.into()))
                .cut(Point::AfterHeaders, crate::How::CleanEnd)
        },
        "Reports usage, and nothing else.",
    )
    .only(&[Api::Chat, Api::Gemini]),
    fault(
        "empty_choices_first",
        Expected::NOTHING,
        || {
            let first = "data: {\"id\":\"\",\"object\":\"\",\"model\":\"\",\"choices\":[],\
                \"prompt_filter_results\":[{\"prompt_index\":0}]}\n\n";
            Behaviour::whole().edit(Spot::First, Change::After(first))
        },
        "Begins with a chunk that has no choices.",
    )
    .only(&[Api::Chat]),
    fault(
        "null_fields",
        Expected::NOTHING,
        || {
            let nulls = "{\"tool_calls\":null,\"function_call\":null,\"refusal\":null,\"role\":null,\"content\"";
            Behaviour::whole()
                .edit(Spot::Holding("\"delta\":{\"content\""), Change::Replace("{\"content\"", nulls))
                .edit(Spot::First, Change::Replace("\"content\":\"\"", "\"content\":null"))
        },
        "Says null where it has nothing to say.",
    )
    .only(&[Api::Chat]),
    fault(
        "empty_finish_reason",
        Expected::NOTHING,
        || {
            Behaviour::whole().edit(
                Spot::Holding("\"finish_reason\":null"),
                Change::Replace("\"finish_reason\":null", "\"finish_reason\":\"\""),
            )
        },
        "Says an empty finish reason until the true one.",
    )
    .only(&[Api::Chat]),
    fault(
        "unknown_finish_reason",
        Expected::NOTHING,
        || {
            Behaviour::whole()
                .edit_in(Api::Chat, Spot::Terminal, Change::Replace("\"stop\"", "\"eos_token\""))
                .edit_in(
                    Api::Anthropic,
                    Spot::FirstHolding("\"end_turn\""),
                    Change::Replace("\"end_turn\"", "\"eos_token\""),
                )
                .edit_in(Api::Gemini, Spot::Terminal, Change::Replace("\"STOP\"", "\"EOS_TOKEN\""))
        },
        "Finishes for a reason that nobody knows.",
    )
    .only(&[Api::Chat, Api::Anthropic, Api::Gemini]),
];
