//! How servers of this dialect say that an answer failed, besides HTTP.

use serde_json::Value;
use turnbuckle_errors::{
    ErrorBody, ErrorCode, Fact, Facts, InBandError, Phase, Protocol, classify,
};

use crate::{FinishReason, answer::Stop};

/// What a finish reason means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    Reason(FinishReason),
    /// The server broke the answer off, and says so in this field; the type that
    /// an error of this kind has elsewhere.
    BrokenOff(&'static str),
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
        // DeepSeek, when its machines are full.
        "insufficient_system_resource" => return Finish::BrokenOff("server_overloaded"),
        // vLLM and SGLang, when the engine gives a request up.
        "abort" => return Finish::BrokenOff("server_error"),
        // OpenRouter's `error`, Z.ai's `network_error`, a Bedrock relay's
        // `error_finish`: whatever calls itself an error is no end.
        word if word.contains("error") => return Finish::BrokenOff("server_error"),
        _ => FinishReason::Stop,
    };
    Finish::Reason(reason)
}

/// An answer that was broken off with this word and no other explanation.
pub(super) fn broken_off(kind: &str, word: &str) -> Stop {
    let mut body = ErrorBody::default();
    body.kind = Some(kind.to_owned());
    body.message = Some(format!("the server ended the answer with the finish reason `{word}`"));
    Stop::in_band(body)
}

/// The error that a relay wrote into the text of an answer it then broke off: all
/// of the text, or its last line. One that is not known is of this `kind`.
pub(super) fn error_in(text: &str, kind: &str) -> Option<Stop> {
    let text = text.trim();
    let last = text.rsplit('\n').next().unwrap_or_default();
    let value: Value = [text, last].into_iter().find_map(|part| {
        part.starts_with(['{', '[']).then(|| serde_json::from_str(part).ok()).flatten()
    })?;
    let mut body = ErrorBody::from_json(&value);
    if body.message.is_none() && body.words().next().is_none() {
        return None;
    }
    let fact = Fact::InBand(InBandError::new(body.clone()));
    let meant = classify(&Facts::new(Phase::Stream).with(fact));
    if meant.code == ErrorCode::ProviderError && !meant.retriable {
        body.kind = Some(kind.to_owned());
    }
    Some(Stop::in_band(body))
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
        for word in [
            "error",
            "ERROR",
            "network_error",
            "error_finish",
            "abort",
            "insufficient_system_resource",
        ] {
            assert!(matches!(finish(word), Finish::BrokenOff(_)), "{word}");
        }
    }
}
