//! How servers of this dialect say why an answer ended, and that it failed.

use serde_json::Value;
use turnbuckle_errors::{ErrorBody, Protocol};

use crate::{FinishReason, answer::Stop};

/// What a stop reason means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Finish {
    Reason(FinishReason),
    /// The server broke the answer off, and says so in this field.
    Failed(Stop),
}

/// Reads the word of a stop reason. A word that is not known ends the message
/// normally: the server did say that it is over.
pub(super) fn finish(word: &str) -> Finish {
    let lower = word.to_ascii_lowercase();
    let reason = match lower.as_str() {
        // The window is full before the limit is: the answer is cut all the same.
        // `length` comes through gateways to Chat Completions.
        "max_tokens" | "model_context_window_exceeded" | "length" => FinishReason::Length,
        "tool_use" | "tool_calls" | "function_call" => FinishReason::ToolCalls,
        // `compaction` is sent where the request asked to stop after a compaction.
        "pause_turn" | "compaction" => FinishReason::Pause,
        // `content_filter` comes through gateways to Chat Completions, `sensitive` is
        // Z.ai's.
        "refusal" | "content_filter" | "sensitive" | "safety" => FinishReason::ContentFilter,
        // Seen where a gateway translates an answer that its server broke off.
        "error" | "network_error" | "abort" => return broken_off(word),
        _ => FinishReason::Stop,
    };
    Finish::Reason(reason)
}

fn broken_off(word: &str) -> Finish {
    let mut body = ErrorBody::default();
    body.kind = Some("api_error".to_owned());
    body.message = Some(format!("the server ended the answer with the stop reason `{word}`"));
    Finish::Failed(Stop::in_band(body))
}

/// An event that is an error, wholly or among other things.
pub(super) fn in_band(json: &str) -> Stop {
    match serde_json::from_str::<Value>(json) {
        Ok(value) => Stop::in_band(ErrorBody::from_json(&value)),
        Err(_) => Stop::protocol(Protocol::Undecodable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_reasons_read_as_ours() {
        for (word, expected) in [
            ("end_turn", FinishReason::Stop),
            ("stop_sequence", FinishReason::Stop),
            ("something_new", FinishReason::Stop),
            ("max_tokens", FinishReason::Length),
            ("MAX_TOKENS", FinishReason::Length),
            ("model_context_window_exceeded", FinishReason::Length),
            ("tool_use", FinishReason::ToolCalls),
            ("pause_turn", FinishReason::Pause),
            ("compaction", FinishReason::Pause),
            ("refusal", FinishReason::ContentFilter),
            ("sensitive", FinishReason::ContentFilter),
        ] {
            assert_eq!(finish(word), Finish::Reason(expected), "{word}");
        }
        for word in ["error", "network_error", "abort"] {
            assert!(matches!(finish(word), Finish::Failed(_)), "{word}");
        }
    }
}
