//! How servers of this dialect say why an answer ended, and that it failed.

use serde_json::Value;
use turnbuckle_errors::{ErrorBody, Protocol};

use crate::{FinishReason, answer::Stop};

/// What a finish reason means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Finish {
    /// Nothing: the field has its default.
    Unsaid,
    Reason(FinishReason),
    /// The server broke the answer off, and says so in this field.
    BrokenOff(Stop),
}

/// Reads the word of a finish reason. A word that is not known ends the message
/// normally: the server did say that it is over.
pub(super) fn finish(word: &str) -> Finish {
    let upper = word.to_ascii_uppercase();
    let reason = match upper.as_str() {
        "" | "FINISH_REASON_UNSPECIFIED" => return Finish::Unsaid,
        // `LENGTH` comes through gateways to Chat Completions.
        "MAX_TOKENS" | "LENGTH" => FinishReason::Length,
        // Google flags an answer in a language that it does not support as it flags
        // an unsafe one; Model Armor is Vertex AI's filter.
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR"
        | "CONTENT_FILTER" => FinishReason::ContentFilter,
        // What the request lacked, it lacks the next time as well.
        "MISSING_THOUGHT_SIGNATURE" => return broken_off(word, "invalid_request_error"),
        // `OTHER` and `NO_IMAGE` end an answer that is not there, or only half.
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE"
        | "IMAGE_OTHER"
        | "NO_IMAGE"
        | "OTHER"
        | "ERROR" => return broken_off(word, "server_error"),
        _ => FinishReason::Stop,
    };
    Finish::Reason(reason)
}

/// The word of a block that says something.
pub(super) fn block_reason(word: &str) -> Option<&str> {
    Some(word).filter(|word| !word.is_empty() && *word != "BLOCK_REASON_UNSPECIFIED")
}

/// An answer that was broken off with this word and no other explanation; `kind` is
/// the type that an error of this kind has elsewhere.
fn broken_off(word: &str, kind: &str) -> Finish {
    let mut body = ErrorBody::default();
    body.kind = Some(kind.to_owned());
    body.code = Some(word.to_owned());
    body.message = Some(format!("the server ended the answer with the finish reason `{word}`"));
    Finish::BrokenOff(Stop::in_band(body))
}

/// A response that is an error, wholly or among other things.
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
    fn finish_reasons_read_as_ours() {
        for (word, expected) in [
            ("STOP", FinishReason::Stop),
            ("stop", FinishReason::Stop),
            ("SOMETHING_NEW", FinishReason::Stop),
            ("MAX_TOKENS", FinishReason::Length),
            ("SAFETY", FinishReason::ContentFilter),
            ("RECITATION", FinishReason::ContentFilter),
            ("LANGUAGE", FinishReason::ContentFilter),
            ("SPII", FinishReason::ContentFilter),
        ] {
            assert_eq!(finish(word), Finish::Reason(expected), "{word}");
        }
        for word in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER"] {
            assert!(matches!(finish(word), Finish::BrokenOff(_)), "{word}");
        }
        for word in ["", "FINISH_REASON_UNSPECIFIED"] {
            assert_eq!(finish(word), Finish::Unsaid, "{word}");
        }
    }

    #[test]
    fn a_block_says_why() {
        assert_eq!(block_reason("SAFETY"), Some("SAFETY"));
        assert_eq!(block_reason("BLOCK_REASON_UNSPECIFIED"), None);
        assert_eq!(block_reason(""), None);
    }
}
