use serde_json::json;

use super::*;
use crate::{Delivered, ErrorCode, classify};

fn read(report: &Value) -> Result<Facts, BadReport> {
    let now = httpdate::parse_http_date("Mon, 30 Nov 2026 12:00:00 GMT").unwrap();
    Facts::from_json(report, now)
}

#[track_caller]
fn check(report: &Value, code: ErrorCode, rule: &str, delivered: Delivered) {
    let seen = classify(&read(report).unwrap());
    assert_eq!((seen.code, seen.rule, seen.delivered), (code, rule, delivered), "{report}");
}

#[test]
fn what_happened_is_read_from_any_field() {
    use Delivered::{No, Unknown, Yes};
    use ErrorCode::*;
    check(&json!({"aborted": true}), TurnAborted, "abort", Unknown);
    check(&json!({"clock": "byte_idle", "phase": "stream"}), Timeout, "clock.byte_idle", Yes);
    check(&json!({"status": 503}), ProviderOverloaded, "status.503", Yes);
    check(
        &json!({"status": 200, "body": {"error": {"code": 502}}}),
        ProviderError,
        "inband.status",
        Yes,
    );
    check(
        &json!({"event": {"type": "error", "error": {"type": "overloaded_error"}}}),
        ProviderOverloaded,
        "inband.typed.overloaded",
        Yes,
    );
    check(
        &json!({"event": "{\"error\":{\"type\":\"overloaded_error\"}}"}),
        ProviderOverloaded,
        "inband.typed.overloaded",
        Yes,
    );
    check(
        &json!({"protocol": "ended_early", "phase": "stream"}),
        StreamFailed,
        "protocol.ended_early",
        Yes,
    );
    check(&json!({"transport": "refused"}), NetworkError, "transport.refused", No);
    check(&json!({"transport": "http2_reset:7"}), NetworkError, "transport.http2_reset", No);
    check(&json!({"transport": "http2_goaway:0"}), NetworkError, "transport.http2_goaway", Unknown);
    check(&json!({"message": "terminated"}), StreamFailed, "wording.terminated", Yes);
    check(
        &json!({"message": "x", "phase": "request", "provider": null}),
        ProviderError,
        "unknown",
        Unknown,
    );
    check(
        &json!({"status": 401, "body": "", "transport": "reset"}),
        ProviderUnauthorized,
        "status.401",
        Yes,
    );
}

#[test]
fn a_body_that_was_left_out_is_no_empty_body() {
    check(&json!({"status": 400}), ErrorCode::InvalidRequest, "status.400", Delivered::Yes);
    check(
        &json!({"status": 400, "body": ""}),
        ErrorCode::ContextTooLarge,
        "status.400+empty",
        Delivered::Yes,
    );
}

#[test]
fn the_message_of_an_sdk_stands_in_for_the_body() {
    check(
        &json!({"status": 429, "message": "You exceeded your current quota"}),
        ErrorCode::ProviderQuotaExceeded,
        "status.429+wording.quota",
        Delivered::Yes,
    );
    check(
        &json!({"status": 429, "message": "429 {\"error\":{\"type\":\"engine_overloaded_error\"}}"}),
        ErrorCode::ProviderOverloaded,
        "status.429+typed.overloaded",
        Delivered::Yes,
    );
    check(
        &json!({"status": 429, "message": "You exceeded your current quota", "provider": "gemini"}),
        ErrorCode::ProviderRateLimited,
        "status.429",
        Delivered::Yes,
    );
}

#[test]
fn headers_say_how_long_to_wait_and_whether_at_all() {
    let report = json!({"status": 503, "headers": {"Retry-After": "7", "X-Should-Retry": "false"}});
    let seen = classify(&read(&report).unwrap());
    assert_eq!(seen.retry_after, Some(Duration::from_secs(7)));
    assert!(!seen.retriable);
    let date = json!({"status": 503, "headers": {"retry-after": "Mon, 30 Nov 2026 12:00:09 GMT"}});
    assert_eq!(classify(&read(&date).unwrap()).retry_after, Some(Duration::from_secs(9)));
}

#[test]
fn a_bad_report_names_the_field_and_what_it_may_hold() {
    for (report, says) in [
        (json!([1]), "no JSON object"),
        (
            json!({"message": "m", "staus": 1}),
            "field 2 of the report is none of aborted, clock, status",
        ),
        (json!({"status": "429"}), "`status` must be a number from 100 to 599"),
        (json!({"status": 4290}), "`status` must be"),
        (json!({"status": -1}), "`status` must be"),
        (json!({"status": 500, "headers": "x"}), "`headers` must be an object"),
        (json!({"message": 5}), "`message` must be a text"),
        (json!({"message": "m", "phase": "later"}), "`phase` must be `request` or `stream`"),
        (json!({"clock": "wall"}), "`clock` must be `connect`"),
        (json!({"protocol": "x"}), "`protocol` must be `ended_early`"),
        (json!({"transport": "x"}), "`transport` must be `refused`"),
        (json!({"transport": "http2_reset:x"}), "`transport` must be"),
        (json!({"transport": "reset:1"}), "`transport` must be"),
        (json!({"aborted": 1}), "`aborted` must be true or false"),
        (json!({"provider": "openai"}), "nothing says what happened"),
        (json!({}), "nothing says what happened"),
        (json!({"status": 200}), "nothing says what happened"),
    ] {
        let error = read(&report).unwrap_err().to_string();
        assert!(error.contains(says), "{report}: {error}");
    }
}
