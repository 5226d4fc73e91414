//! Faults of what is said: nothing, too little, or what a filter left of it.

use super::{DEFAULT_EVENT, Entry, Expected, fault};
use crate::{
    behaviour::{Api, Behaviour, Change, How, Insert, Point, Spot},
    content::Finish,
};

fn whole() -> Behaviour {
    Behaviour::whole()
}

pub(super) const TABLE: &[Entry] = &[
    fault(
        "empty_answer",
        Expected::silent(),
        || whole().text(""),
        "Finishes properly and says nothing.",
    ),
    fault(
        "blank_answer",
        Expected::silent(),
        || whole().text(" \n\t  \n"),
        "Finishes properly and says only white space.",
    ),
    fault(
        "reasoning",
        Expected::NOTHING,
        || whole().reasoning("The user wants the notes. I should read them first."),
        "Reasons, then answers completely.",
    ),
    fault(
        "reasoning_only",
        Expected::silent(),
        || whole().text("").reasoning("The user wants the notes. I should read them first."),
        "Finishes properly and only reasons.",
    ),
    fault(
        "length_cut",
        Expected::NOTHING,
        || whole().finish(Finish::Length),
        "Is cut by the limit of its output in the middle of the text, and says so.",
    ),
    fault(
        "filtered_answer",
        Expected::last("CONTENT_FILTERED", "stream"),
        || whole().finish(Finish::ContentFilter),
        "Is stopped by a safety filter in the middle of the answer, and says so.",
    ),
    fault(
        "prompt_blocked",
        Expected::last("CONTENT_FILTERED", "stream"),
        || {
            let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"PROHIBITED_CONTENT\"},\
                \"usageMetadata\":{\"promptTokenCount\":9}}\r\n\r\n";
            whole()
                .insert(Point::AfterHeaders, Insert::In(Api::Gemini, blocked.into()))
                .cut(Point::AfterHeaders, How::CleanEnd)
        },
        "Blocks the prompt: a response without a candidate.",
    )
    .only(&[Api::Gemini]),
    fault(
        "malformed_function_call",
        Expected::stream("PROVIDER_ERROR"),
        || {
            whole().text("").edit_in(
                Api::Gemini,
                Spot::Terminal,
                Change::Replace("\"STOP\"", "\"MALFORMED_FUNCTION_CALL\""),
            )
        },
        "Finishes because the model wrote a call that cannot be read.",
    )
    .only(&[Api::Gemini]),
    fault(
        "candidate_without_content",
        Expected::NOTHING,
        || {
            whole().edit_in(
                Api::Gemini,
                Spot::Terminal,
                Change::Replace(
                    "\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},",
                    "",
                ),
            )
        },
        "Finishes in a candidate that has no content.",
    )
    .only(&[Api::Gemini]),
    fault(
        "context_window_stop",
        Expected::NOTHING,
        || {
            whole().edit_in(
                Api::Anthropic,
                Spot::FirstHolding("\"end_turn\""),
                Change::Replace("\"end_turn\"", "\"model_context_window_exceeded\""),
            )
        },
        "Is cut because the context window is full, and says so as a stop reason.",
    )
    .only(&[Api::Anthropic]),
    fault(
        "refusal",
        Expected::last("CONTENT_FILTERED", "stream"),
        || {
            whole().edit_in(
                Api::Anthropic,
                Spot::FirstHolding("\"end_turn\""),
                Change::Replace("\"end_turn\"", "\"refusal\""),
            )
        },
        "Refuses in the middle of the answer, by the stop reason \"refusal\".",
    )
    .only(&[Api::Anthropic]),
    fault(
        "refusal_field",
        Expected::NOTHING,
        || {
            whole()
                .edit_in(
                    Api::Chat,
                    Spot::Holding("\"delta\":{\"content\""),
                    Change::Replace("\"delta\":{\"content\"", "\"delta\":{\"refusal\""),
                )
                .edit_in(
                    Api::Responses,
                    Spot::Holding("output_text"),
                    Change::Replace("output_text", "refusal"),
                )
                .edit_in(
                    Api::Responses,
                    Spot::Holding("refusal"),
                    Change::Replace("\"text\":\"", "\"refusal\":\""),
                )
        },
        "Refuses in a field of its own in place of the text.",
    )
    .only(&[Api::Chat, Api::Responses]),
    fault(
        "signature_cut",
        Expected::stream("STREAM_FAILED"),
        || {
            whole()
                .reasoning("Step by step, then. First the notes, and after them the rest.")
                .cut(Point::InsideEvent(DEFAULT_EVENT), How::Fin)
        },
        "Breaks off while it reasons.",
    ),
    fault(
        "incomplete_status",
        Expected::stream("STREAM_FAILED"),
        || whole().document().without_terminal(),
        "Answers by one document that does not say that it is complete.",
    ),
];
