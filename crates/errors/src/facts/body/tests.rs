use super::*;

#[track_caller]
fn check(
    raw: &str,
    shape: BodyShape,
    kind: Option<&str>,
    code: Option<&str>,
    message: Option<&str>,
) {
    let body = ErrorBody::parse(raw);
    assert_eq!(
        (body.shape, body.kind.as_deref(), body.code.as_deref(), body.message.as_deref()),
        (shape, kind, code, message),
        "{raw}"
    );
}

#[test]
fn bodies_of_every_shape_give_their_fields() {
    use BodyShape::{Empty, Html, Json, Text};
    check("", Empty, None, None, None);
    check(" \r\n", Empty, None, None, None);
    check(
        r#"{"error":{"type":"t","code":"c","message":"m"}}"#,
        Json,
        Some("t"),
        Some("c"),
        Some("m"),
    );
    check(
        r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
        Json,
        Some("overloaded_error"),
        None,
        Some("m"),
    );
    check(
        r#"{"error":{"error":{"code":400,"message":"inner"},"message":"outer"}}"#,
        Json,
        None,
        Some("400"),
        Some("inner"),
    );
    check(
        r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#,
        Json,
        None,
        Some("429"),
        None,
    );
    check(r#"{"error":"plain"}"#, Json, None, None, Some("plain"));
    check(r#""bare""#, Json, None, None, Some("bare"));
    check(r#"{"detail":"Unauthorized"}"#, Json, None, None, Some("Unauthorized"));
    check(
        r#"{"detail":[{"type":"missing","msg":"field required"}]}"#,
        Json,
        Some("missing"),
        None,
        Some("field required"),
    );
    check(
        r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
        Json,
        Some("BadRequestError"),
        Some("400"),
        Some("m"),
    );
    check(r#"{"error":null,"code":null}"#, Json, None, None, None);
    check(
        "<!DOCTYPE html><html><head><TITLE>502 Bad\n Gateway</TITLE></head>",
        Html,
        None,
        None,
        Some("502 Bad Gateway"),
    );
    check("<html>no title", Html, None, None, None);
    check("upstream failed", Text, None, None, Some("upstream failed"));
    check(r#"{"error":{"mess"#, Json, None, None, None);
}

#[test]
fn nesting_without_end_is_bounded() {
    let raw = format!("{}1{}", r#"{"error":"#.repeat(100), "}".repeat(100));
    assert_eq!(ErrorBody::parse(&raw).message, None);
}

#[test]
fn google_quota_ids_and_delays_are_found() {
    let body = ErrorBody::parse(
        r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota","details":[
            {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDay"}]},
            {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"45.5s"}]}}"#,
    );
    assert_eq!(body.quota_ids, ["GenerateRequestsPerDay"]);
    assert_eq!(body.delay, Some(Duration::from_millis(45_500)));
    assert_eq!(body.provider_code(), Some("RESOURCE_EXHAUSTED"));
    assert_eq!(body.numeric_status(), Some(429));
}

#[test]
fn an_error_in_a_text_in_an_error_is_found() {
    let wrapped = r#"{"error":{"message":"{\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}","type":"upstream_error"}}"#;
    check(wrapped, BodyShape::Json, Some("overloaded_error"), None, Some("Overloaded"));
    let openrouter = r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"no credit\"}}"}}}"#;
    check(openrouter, BodyShape::Json, None, Some("insufficient_quota"), Some("no credit"));
    // JSON that a sentence merely quotes is no error.
    let quoted = r#"{"error":{"message":"bad tool result: {\"code\":\"insufficient_quota\"}"}}"#;
    check(
        quoted,
        BodyShape::Json,
        None,
        None,
        Some(r#"bad tool result: {"code":"insufficient_quota"}"#),
    );
}

#[test]
fn a_message_of_any_type_is_read() {
    let mistral = r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","code":null}"#;
    check(
        mistral,
        BodyShape::Json,
        Some("extra_forbidden"),
        None,
        Some("Extra inputs are not permitted"),
    );
    let flat = r#"{"choices":null,"error_type":"BadRequestError","error_message":"context length exceeded","status_code":400}"#;
    check(flat, BodyShape::Json, Some("BadRequestError"), None, Some("context length exceeded"));
    assert_eq!(ErrorBody::parse(flat).numeric_status(), Some(400));
}

#[test]
fn an_event_that_wraps_an_error_types_only_for_want_of_a_better() {
    let bare = r#"{"type":"response.failed","response":{"id":"r","status":"failed","error":null}}"#;
    check(bare, BodyShape::Json, Some("response.failed"), None, None);
    let full = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"x"}}}"#;
    check(full, BodyShape::Json, None, Some("invalid_prompt"), Some("x"));
}

#[test]
fn finer_words_are_kept_beside_the_main_ones() {
    let google = r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"reason":"MODEL_CAPACITY_EXHAUSTED","metadata":{"quota_limit":"RequestsPerDay"}}]}}]"#;
    let body = ErrorBody::parse(google);
    assert_eq!(body.reasons, ["MODEL_CAPACITY_EXHAUSTED"]);
    assert_eq!(body.quota_ids, ["RequestsPerDay"]);
    let azure = ErrorBody::parse(
        r#"{"error":{"code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
    );
    assert_eq!(azure.reasons, ["ResponsibleAIPolicyViolation"]);
    assert_eq!((azure.status_word.as_deref(), azure.http_status), (None, Some(400)));
}

#[test]
fn ten_megabytes_are_read_at_their_beginning() {
    let filler = "x".repeat(10 << 20);
    let json = format!(r#"{{"error":{{"type":"overloaded_error","message":"{filler}"}}}}"#);
    let body = ErrorBody::parse(&json);
    assert_eq!(body.kind.as_deref(), Some("overloaded_error"));
    assert!(body.message.is_some_and(|message| message.len() < MAX_BYTES));
    let page = format!("<html><title>502</title>{filler}");
    assert_eq!(ErrorBody::parse_bytes(page.as_bytes(), None).message.as_deref(), Some("502"));
    assert_eq!(ErrorBody::parse(&"[".repeat(10 << 20)).shape, BodyShape::Text);
    assert_eq!(ErrorBody::parse(&" ".repeat(10 << 20)).shape, BodyShape::Empty);
}

#[test]
fn compressed_bytes_leave_no_garbage_in_the_message() {
    let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\x56\x4a\x2d\x2a\xca\x2f\x52\xb2";
    for body in [
        ErrorBody::parse_bytes(gzip, Some("application/json; charset=utf-8")),
        ErrorBody::parse(&String::from_utf8_lossy(gzip)),
    ] {
        assert_eq!((body.shape, body.message), (BodyShape::Text, None));
    }
}
