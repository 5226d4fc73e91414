//! Step 4: what a stream that breaks its dialect's rules means.

use super::Verdict;
use crate::{ErrorCode, Origin, Protocol};

pub(super) fn conclude(seen: Protocol) -> Verdict {
    let broken =
        |rule, sentence| Verdict::new(ErrorCode::StreamFailed, Origin::Transport, rule, sentence);
    let foreign = |rule, sentence| {
        Verdict::new(ErrorCode::ProviderProtocolMismatch, Origin::Provider, rule, sentence)
    };
    match seen {
        Protocol::EndedEarly => {
            broken("protocol.ended_early", "the stream ended before its terminal event")
        }
        Protocol::EmptyBody => broken("protocol.empty_body", "the response held no event"),
        Protocol::Undecodable => {
            broken("protocol.undecodable", "an event of the stream cannot be decoded")
        }
        Protocol::Html => {
            foreign("protocol.html", "a web page came where a model's answer should be")
        }
        Protocol::LineTooLong => {
            foreign("protocol.line_too_long", "a line of the stream is longer than 16 MiB")
        }
        Protocol::AnswerTooLarge => {
            foreign("protocol.answer_too_large", "the answer is larger than one answer may be")
        }
    }
}
