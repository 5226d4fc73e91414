//! How servers of this dialect say that an answer failed, besides HTTP.

use serde_json::Value;
use turnbuckle_errors::{ErrorBody, Protocol};

use crate::{FinishReason, answer::Stop};

/// What a finish reason means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Finish {
    Reason(FinishReason),
    /// The server broke the answer off, and says so in this field.
    Failed(Stop),
}

/// Reads the word of a finish reason. A word that is not known ends the message
/// normally: the server did say that it is over.
pub(super) fn finish(word: &str) -> Finish {
    let lower = word.to_ascii_lowercase();
    let reason = match lower.as_str() {
        // `model_length` is Mistral's, `max_tokens` of gateways to Anthropic and Gemini.
        "length" | "max_tokens" | "model_length" | "max_output_tokens" => FinishReason::Length,
        // `tool_use` of gateways to Anthropic.
        "tool_calls" | "function_call" | "tool_use" | "tool_call" => FinishReason::ToolCalls,
        // `sensitive` is Z.ai's; the others come through gateways to Gemini.
        "content_filter" | "sensitive" | "safety" | "refusal" | "prohibited_content"
        | "blocklist" | "recitation" | "spii" => FinishReason::ContentFilter,
        // OpenRouter; Z.ai; vLLM and SGLang, when the engine gives a request up.
        "error" | "network_error" | "abort" => return broken_off("server_error", word),
        // DeepSeek, when its machines are full.
        "insufficient_system_resource" => return broken_off("server_overloaded", word),
        _ => FinishReason::Stop,
    };
    Finish::Reason(reason)
}

fn broken_off(kind: &str, word: &str) -> Finish {
    let mut body = ErrorBody::default();
    body.kind = Some(kind.to_owned());
    body.message = Some(format!("the server ended the answer with the finish reason `{word}`"));
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
    fn finish_words_read_as_ours() {
        for (word, expected) in [
            ("stop", FinishReason::Stop),
            ("STOP", FinishReason::Stop),
            ("end_turn", FinishReason::Stop),
            ("something_new", FinishReason::Stop),
            ("length", FinishReason::Length),
            ("MAX_TOKENS", FinishReason::Length),
            ("tool_calls", FinishReason::ToolCalls),
            ("function_call", FinishReason::ToolCalls),
            ("content_filter", FinishReason::ContentFilter),
        ] {
            assert_eq!(finish(word), Finish::Reason(expected), "{word}");
        }
        for word in ["error", "network_error", "abort", "insufficient_system_resource"] {
            assert!(matches!(finish(word), Finish::Failed(_)), "{word}");
        }
    }
}
