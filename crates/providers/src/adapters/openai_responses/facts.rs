//! How an answer of this dialect ends, and how it says that it failed.

use serde_json::Value;
use turnbuckle_errors::{ErrorBody, Protocol};

use super::wire::Response;
use crate::{FinishReason, answer::Stop};

/// How an answer ended: our word, and the wire's.
pub(super) type Ending = (FinishReason, String);

/// Reads the end of a whole answer; `None` if it does not say that it is over.
///
/// `event` is the word of the event that brought it, where one did. It decides if
/// the answer itself says nothing else.
pub(super) fn ending(response: &Response<'_>, event: Option<&str>) -> Option<Ending> {
    let (status, reason) = (&*response.status.0, response.reason());
    // Whoever says that something is missing is right. A status of an earlier event
    // (`in_progress`) that a server copied into its last says nothing.
    let incomplete = status == "incomplete" || event == Some("incomplete");
    match reason {
        "" if incomplete => Some((FinishReason::Length, "incomplete".to_owned())),
        "" if status == "completed" || event.is_some() => {
            Some((FinishReason::Stop, "completed".to_owned()))
        }
        "" => None,
        reason if incomplete || status == "completed" || event.is_some() => {
            Some((cut(reason), format!("incomplete:{reason}")))
        }
        _ => None,
    }
}

/// Why an answer is incomplete. A word that is not known is a limit: no call that
/// it cut may be run.
fn cut(reason: &str) -> FinishReason {
    match reason.to_ascii_lowercase().as_str() {
        "content_filter" | "safety" | "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Length,
    }
}

/// An event or a document that is an error, wholly or among other things.
pub(super) fn in_band(json: &str) -> Stop {
    match serde_json::from_str::<Value>(json) {
        Ok(value) => Stop::in_band(ErrorBody::from_json(&value)),
        Err(_) => Stop::protocol(Protocol::Undecodable),
    }
}

/// An answer that failed, by its status or by its error.
pub(super) fn failed(json: &str, response: &Response<'_>) -> Stop {
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return Stop::protocol(Protocol::Undecodable);
    };
    // Only the error speaks: the answer around it repeats the request.
    let mut errors = [value.get("response"), Some(&value)]
        .into_iter()
        .filter_map(|holder| holder?.get("error").filter(|error| !error.is_null()));
    let mut body = errors.next().map(ErrorBody::from_json).unwrap_or_default();
    if body.kind.is_none() && body.code.is_none() {
        // `"error":null` of a `response.failed`: nobody says why, so it is the server.
        body.kind = Some("server_error".to_owned());
    }
    if body.message.is_none() {
        let status = match &*response.status.0 {
            "" => "failed",
            status => status,
        };
        body.message = Some(format!("the server ended the answer with the status `{status}`"));
    }
    Stop::in_band(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str, event: Option<&str>) -> Option<(FinishReason, String)> {
        ending(&serde_json::from_str(json).unwrap(), event)
    }

    #[test]
    fn an_answer_ends_by_its_status_or_else_by_its_event() {
        use FinishReason::{ContentFilter, Length, Stop};
        for (json, event, finish, raw) in [
            (r#"{"status":"completed"}"#, None, Stop, "completed"),
            (r#"{"status":"completed"}"#, Some("completed"), Stop, "completed"),
            ("{}", Some("completed"), Stop, "completed"),
            (r#"{"status":"in_progress"}"#, Some("completed"), Stop, "completed"),
            (r#"{"status":"incomplete"}"#, Some("completed"), Length, "incomplete"),
            ("{}", Some("incomplete"), Length, "incomplete"),
            (
                r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}"#,
                None,
                Length,
                "incomplete:max_output_tokens",
            ),
            (
                r#"{"status":"completed","incomplete_details":{"reason":"content_filter"}}"#,
                Some("completed"),
                ContentFilter,
                "incomplete:content_filter",
            ),
            (
                r#"{"status":"incomplete","incomplete_details":{"reason":"something_new"}}"#,
                None,
                Length,
                "incomplete:something_new",
            ),
        ] {
            assert_eq!(read(json, event), Some((finish, raw.to_owned())), "{json} {event:?}");
        }
    }

    #[test]
    fn a_document_that_is_not_over_has_no_end() {
        for status in ["in_progress", "queued", "complete", "done", ""] {
            let json = serde_json::json!({"status": status}).to_string();
            assert_eq!(read(&json, None), None, "{status}");
        }
        assert_eq!(read("{}", None), None);
    }
}
