//! Errors, by whatever way they come.

use super::*;

#[test]
fn an_error_wins_wherever_it_stands() {
    let error = r#"{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#;
    let all = [START, TEXT, HI, STOP_0, END_TURN];
    for at in 0..=all.len() {
        let (before, after) = all.split_at(at);
        let body = stream(before) + &stream(&[error]) + &stream(after) + &stream(&[MESSAGE_STOP]);
        assert_eq!(failed(&body).0, ErrorCode::ProviderOverloaded, "{at}");
        // The name of the event is not needed.
        let unnamed = body.replace("event: error\n", "");
        assert_eq!(failed(&unnamed).0, ErrorCode::ProviderOverloaded, "{at}");
    }
    assert_eq!(failed(error).0, ErrorCode::ProviderOverloaded);
    assert_eq!(failed(&format!("[{error}]")).0, ErrorCode::ProviderOverloaded);
    for told in [r#"{"detail":"no such route"}"#, r#"{"message":"m"}"#, r#"{"error":"m"}"#] {
        let failed = decode(told).unwrap_err();
        assert_eq!(failed.0.code(), ErrorCode::ProviderError, "{told}");
    }
    let abort = stop_with("error");
    assert_eq!(failed(&stream(&[START, TEXT, HI, &abort])).0, ErrorCode::ProviderError);
}

#[test]
fn an_error_keeps_what_the_attempt_had_cost() {
    let error = r#"{"type":"error","error":{"type":"api_error","message":"m"}}"#;
    let failed = decode(&stream(&[START, TEXT, HI, error])).unwrap_err();
    assert_eq!(failed.0.details().usage.unwrap().input_tokens, Some(7));
    assert_eq!(failed.1.text, "hi");
}

#[test]
fn an_error_in_the_stream_is_judged_by_its_type_and_not_by_the_200() {
    for (kind, message, code) in [
        ("overloaded_error", "Overloaded", ErrorCode::ProviderOverloaded),
        (
            "rate_limit_error",
            "This request would exceed your limit",
            ErrorCode::ProviderRateLimited,
        ),
        ("api_error", "Internal server error", ErrorCode::ProviderError),
        ("timeout_error", "Request timed out", ErrorCode::Timeout),
        ("authentication_error", "invalid x-api-key", ErrorCode::ProviderUnauthorized),
        ("billing_error", "Your credit balance is too low", ErrorCode::ProviderQuotaExceeded),
        ("invalid_request_error", "messages: text content", ErrorCode::InvalidRequest),
        (
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8 maximum",
            ErrorCode::ContextTooLarge,
        ),
    ] {
        let error = json!({"type": "error", "error": {"type": kind, "message": message}});
        let (got, _) = failed(&stream(&[START, TEXT, HI, &error.to_string()]));
        assert_eq!(got, code, "{kind}: {message}");
    }
}

#[test]
fn a_status_and_its_body_give_the_code_together() {
    for (status, kind, message, code) in [
        (400, "invalid_request_error", "temperature: range: 0..1", ErrorCode::InvalidRequest),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            ErrorCode::ContextTooLarge,
        ),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API",
            ErrorCode::ProviderQuotaExceeded,
        ),
        (401, "authentication_error", "invalid x-api-key", ErrorCode::ProviderUnauthorized),
        (402, "billing_error", "Check your billing details", ErrorCode::ProviderQuotaExceeded),
        (403, "permission_error", "no access to this resource", ErrorCode::ProviderUnauthorized),
        (404, "not_found_error", "model: claude-x", ErrorCode::ModelNotConfigured),
        (413, "request_too_large", "Request exceeds the maximum size", ErrorCode::ContextTooLarge),
        (
            429,
            "rate_limit_error",
            "Number of request tokens has exceeded your per-minute rate limit",
            ErrorCode::ProviderRateLimited,
        ),
        (500, "api_error", "Internal server error", ErrorCode::ProviderError),
        (529, "overloaded_error", "Overloaded", ErrorCode::ProviderOverloaded),
    ] {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": null});
        let head = ResponseHead::new(status, [("request-id".into(), "req_1".into())]);
        let pieces = [Bytes::from(body.to_string())];
        let failed =
            decode_body(head, pieces, BodyEnding::Clean, "m", Arc::new(Opaque)).unwrap_err();
        assert_eq!(failed.0.code(), code, "{status} {message}");
        let details = failed.0.details();
        assert_eq!(details.provider_status, Some(status));
    }
}
