//! What is wrong with a composition, in the words of those who wrote it: in
//! TOML the keys, in code the types.

use super::error::At;
use crate::behaviour::BehaviourError;

pub(super) fn told(problem: &BehaviourError, at: &At) -> String {
    if at.line.is_none() {
        return problem.to_string();
    }
    match problem {
        BehaviourError::NoEvents(point) => format!(
            "nothing is streamed, so there is no place {point}: write `cut = \"inside_body\"`, or \
             start from `behaviour = \"whole\"`"
        ),
        BehaviourError::NoTerminal => "nothing is streamed, so no terminal event can be left out: \
             start from `behaviour = \"whole\"`"
            .to_owned(),
        BehaviourError::InsertOutsideStream(point) => format!(
            "an event cannot be said {point}: choose a place between two events, e.g. \
             `at = \"after_event\"`"
        ),
        BehaviourError::CleanEndWithoutStatus => "HTTP has no clean end before the status line: \
             write `how = \"fin\"` or `how = \"reset\"`"
            .to_owned(),
        BehaviourError::BodyFaultWithoutStatus(how) => format!(
            "there is no body before the status line to end by {how}: write \
             `cut = \"after_headers\"`"
        ),
        BehaviourError::NotCompressed => "nothing is compressed that could be corrupted: add \
             `gzip = \"flushed\"`"
            .to_owned(),
        BehaviourError::BodyOfStream => "a streamed answer is cut at an event: write \
             `cut = \"inside_event\"` rather than `cut = \"inside_body\"`"
            .to_owned(),
        // The others speak of no type.
        _ => problem.to_string(),
    }
}
