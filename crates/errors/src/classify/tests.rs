use super::*;
use crate::{ErrorBody, Http2Reason, InBandError, Protocol, StatusFact};

fn status(status: u16, body: &str) -> Facts {
    Facts::new(Phase::Request).with(Fact::Status(StatusFact::new(status, ErrorBody::parse(body))))
}

fn in_band(body: &str) -> Facts {
    Facts::new(Phase::Stream).with(Fact::InBand(InBandError::new(ErrorBody::parse(body))))
}

#[track_caller]
fn check(facts: &Facts, code: ErrorCode, retriable: bool, rule: &str) {
    let seen = classify(facts);
    assert_eq!((seen.code, seen.retriable, seen.rule), (code, retriable, rule), "{facts:?}");
}

#[test]
fn statuses_with_their_bodies() {
    use ErrorCode::*;
    let check = |code: u16, body: &str, expected, retriable, rule| {
        check(&status(code, body), expected, retriable, rule)
    };

    check(401, "", ProviderUnauthorized, false, "status.401");
    check(
        401,
        r#"{"error":{"code":"invalid_request_error","type":"authentication_error"}}"#,
        ProviderUnauthorized,
        false,
        "status.401",
    );
    check(402, "{}", ProviderQuotaExceeded, false, "status.402");
    check(403, "<html><title>Blocked</title>", ProviderUnauthorized, false, "status.403");
    check(
        403,
        r#"{"error":{"code":"content_filter"}}"#,
        ContentFiltered,
        false,
        "status.403+typed.filter",
    );
    check(
        404,
        r#"{"error":{"code":"model_not_found"}}"#,
        ModelNotConfigured,
        false,
        "status.404+typed.model",
    );
    check(
        404,
        r#"{"error":"model \"x\" not found, try pulling it first"}"#,
        ModelNotConfigured,
        false,
        "status.404+wording.model",
    );
    check(404, "404 page not found", ProviderProtocolMismatch, false, "status.404+shape");
    check(
        404,
        "<html><title>the model page</title>",
        ProviderProtocolMismatch,
        false,
        "status.404+shape",
    );
    check(
        404,
        r#"{"error":{"message":"no such deployment"}}"#,
        InvalidRequest,
        false,
        "status.404",
    );
    check(408, "", Timeout, true, "status.408");
    check(413, "", ContextTooLarge, false, "status.413");
    check(
        413,
        "Request too large for model `m` on tokens per minute (TPM): Limit 8000, Requested 9000",
        ProviderRateLimited,
        false,
        "status.413+wording.throttle",
    );
    check(429, "", ProviderRateLimited, true, "status.429");
    check(429, "<html>slow down", ProviderRateLimited, true, "status.429");
    check(
        429,
        r#"{"error":{"code":"insufficient_quota"}}"#,
        ProviderQuotaExceeded,
        false,
        "status.429+typed.quota",
    );
    check(
        429,
        r#"{"error":{"message":"You exceeded your current quota"}}"#,
        ProviderQuotaExceeded,
        false,
        "status.429+wording.quota",
    );
    check(
        429,
        r#"{"error":{"type":"requests","code":"rate_limit_exceeded","message":"exceeded your current quota"}}"#,
        ProviderRateLimited,
        true,
        "status.429+typed.rate",
    );
    check(
        429,
        r#"{"error":{"message":"prompt is too long"}}"#,
        ProviderRateLimited,
        true,
        "status.429",
    );
    check(
        429,
        r#"{"error":{"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota","details":[{"violations":[{"quotaId":"RequestsPerMinutePerProject"}]}]}}"#,
        ProviderRateLimited,
        true,
        "status.429+typed.per_minute",
    );
    check(
        429,
        r#"{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDay"}]}]}}"#,
        ProviderQuotaExceeded,
        false,
        "status.429+typed.per_day",
    );
    check(
        429,
        r#"{"error":{"type":"engine_overloaded_error"}}"#,
        ProviderOverloaded,
        true,
        "status.429+typed.overloaded",
    );
    check(400, "", ContextTooLarge, false, "status.400+empty");
    check(
        400,
        r#"{"error":{"code":"context_length_exceeded"}}"#,
        ContextTooLarge,
        false,
        "status.400+typed.overflow",
    );
    check(
        400,
        r#"{"error":{"type":"invalid_request_error","message":"This model's maximum context length is 5 tokens"}}"#,
        ContextTooLarge,
        false,
        "wording.overflow.context_length",
    );
    check(
        400,
        r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
        ProviderQuotaExceeded,
        false,
        "wording.credit",
    );
    check(
        400,
        r#"{"error":{"message":"Too many tokens, please wait before trying again."}}"#,
        ProviderRateLimited,
        true,
        "wording.throttle",
    );
    check(
        400,
        r#"{"error":{"type":"invalid_request_error","message":"stream ended before it began"}}"#,
        InvalidRequest,
        false,
        "status.400",
    );
    check(
        400,
        r#"{"error":{"details":[],"status":"INVALID_ARGUMENT"}}"#,
        InvalidRequest,
        false,
        "status.400",
    );
    check(
        422,
        r#"{"detail":[{"type":"missing","msg":"field required"}]}"#,
        InvalidRequest,
        false,
        "status.400",
    );
    check(500, "oops", ProviderError, true, "status.5xx");
    check(
        500,
        r#"{"error":{"type":"overloaded_error"}}"#,
        ProviderOverloaded,
        true,
        "status.5xx+typed.overloaded",
    );
    check(501, "", ProviderError, false, "status.not_implemented");
    check(503, "<html>", ProviderOverloaded, true, "status.503");
    check(529, "{}", ProviderOverloaded, true, "status.529");
    check(302, "", ProviderProtocolMismatch, false, "status.3xx");
    check(405, "", InvalidRequest, false, "status.4xx");
    check(418, "", ProviderError, false, "status.other");
}

#[test]
fn one_status_means_several_things() {
    use ErrorCode::*;
    let check = |code: u16, body: &str, expected, retriable, rule| {
        check(&status(code, body), expected, retriable, rule)
    };
    let told = |message: &str| format!(r#"{{"error":{{"message":"{message}"}}}}"#);

    let region = r#"{"error":{"code":"unsupported_country_region_territory"}}"#;
    check(403, region, ProviderUnauthorized, false, "status.403+typed.region");
    let flagged = told("m requires moderation on OpenInference. Your input was flagged");
    check(403, &flagged, ContentFiltered, false, "status.403+wording.filter");
    let limit = told("Key limit exceeded (total limit). Manage it");
    check(403, &limit, ProviderQuotaExceeded, false, "status.403+wording.quota");
    check(403, &told("flagged by a key"), ProviderUnauthorized, false, "status.403");

    let path = told("Invalid URL (POST /v1/chat/model)");
    check(404, &path, ProviderProtocolMismatch, false, "status.404+wording.path");
    let bare = r#"{"detail":"Not Found"}"#;
    check(404, bare, ProviderProtocolMismatch, false, "status.404+wording.path");

    let wrapped = told("prompt is too long: 9 tokens > 5 maximum");
    check(500, &wrapped, ContextTooLarge, false, "wording.overflow.prompt_long");
    check(500, &told("incorrect api key provided"), ProviderError, true, "status.5xx");
    let unknown = r#"{"code":"invalid-argument","error":"Model not found: grok-x"}"#;
    check(400, unknown, ModelNotConfigured, false, "wording.model.unknown");
    let key = r#"{"error":{"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
    check(400, key, ProviderUnauthorized, false, "status.400+typed.auth");
    let day = r#"{"error":{"code":"rate_limit_exceeded","message":"on requests per day (RPD): Limit 9"}}"#;
    check(429, day, ProviderQuotaExceeded, false, "status.429+wording.per_day");
}

#[test]
fn errors_inside_a_stream() {
    use ErrorCode::*;
    let check = |body: &str, code, retriable, rule| check(&in_band(body), code, retriable, rule);

    check(
        r#"{"error":{"type":"server_error","message":"failed"}}"#,
        ProviderError,
        true,
        "inband.typed.server",
    );
    check(
        r#"{"error":{"code":"rate_limit_exceeded"}}"#,
        ProviderRateLimited,
        true,
        "inband.typed.rate",
    );
    check(
        r#"{"error":{"code":"credit_balance_exhausted"}}"#,
        ProviderQuotaExceeded,
        false,
        "inband.typed.quota",
    );
    check(
        r#"{"error":{"type":"overloaded_error"}}"#,
        ProviderOverloaded,
        true,
        "inband.typed.overloaded",
    );
    check(r#"{"error":{"code":502,"message":"upstream"}}"#, ProviderError, true, "inband.status");
    check(
        r#"{"error":{"code":400,"message":"Token limit reached"}}"#,
        InvalidRequest,
        false,
        "inband.status",
    );
    // Groq: the model wrote a call that does not parse; another sample may.
    check(
        r#"{"error":{"type":"invalid_request_error","code":"tool_use_failed"}}"#,
        ProviderError,
        true,
        "inband.typed.sampling",
    );
    check(r#"{"error":{"message":"something new"}}"#, ProviderError, false, "inband.unknown");
}

#[test]
fn the_first_conclusive_fact_decides() {
    let torn = status(401, "").with(Fact::Transport(Transport::Reset));
    check(&torn, ErrorCode::ProviderUnauthorized, false, "status.401");

    let quota = in_band(r#"{"error":{"code":"insufficient_quota"}}"#)
        .with(Fact::Transport(Transport::Reset));
    check(&quota, ErrorCode::ProviderQuotaExceeded, false, "inband.typed.quota");

    let reset = Facts::new(Phase::Stream)
        .with(Fact::Transport(Transport::Reset))
        .with(Fact::Protocol(Protocol::EndedEarly));
    check(&reset, ErrorCode::StreamFailed, true, "transport.reset");
}

#[test]
fn our_own_act_comes_first_whenever_it_came() {
    let facts = status(500, "").with(Fact::Aborted);
    check(&facts, ErrorCode::TurnAborted, false, "abort");
    let facts = Facts::new(Phase::Stream)
        .with(Fact::Transport(Transport::Reset))
        .with(Fact::Clock(Clock::ByteIdle));
    check(&facts, ErrorCode::Timeout, true, "clock.byte_idle");
}

#[test]
fn the_server_can_forbid_a_retry_and_never_force_one() {
    check(
        &status(500, "").with_should_retry(Some(false)),
        ErrorCode::ProviderError,
        false,
        "status.5xx",
    );
    check(
        &status(401, "").with_should_retry(Some(true)),
        ErrorCode::ProviderUnauthorized,
        false,
        "status.401",
    );
}

#[test]
fn headers_before_body_before_wording_say_how_long_to_wait() {
    let body = r#"{"error":{"message":"Please try again in 3s"}}"#;
    let wait = |facts: &Facts| classify(facts).retry_after.map(|wait| wait.as_millis());
    assert_eq!(wait(&status(429, body).with_retry_after(Some(Duration::from_secs(1)))), Some(1000));
    assert_eq!(wait(&status(429, body)), Some(3000));
    let flat = Facts::new(Phase::Request).with(Fact::Message("retry after 4013 ms".into()));
    assert_eq!(wait(&flat), Some(4013));
    check(&flat, ErrorCode::ProviderError, false, "unknown");
}

#[test]
fn delivery_is_told_from_what_came_back() {
    let told = |facts: Facts| classify(&facts).delivered;
    let request = || Facts::new(Phase::Request);
    for cause in [Transport::Refused, Transport::Unresolved, Transport::Tls, Transport::Proxy] {
        assert_eq!(told(request().with(Fact::Transport(cause))), Delivered::No, "{cause:?}");
    }
    assert_eq!(told(request().with(Fact::Clock(Clock::Connect))), Delivered::No);
    assert_eq!(told(request().with(Fact::Transport(Transport::Reset))), Delivered::Unknown);
    assert_eq!(told(request().with(Fact::Clock(Clock::FirstEvent))), Delivered::Unknown);
    assert_eq!(told(status(500, "")), Delivered::Yes);
    assert_eq!(
        told(
            Facts::new(Phase::Stream).with(Fact::Transport(Transport::Http2Reset(Http2Reason(2))))
        ),
        Delivered::Yes
    );
}

#[test]
fn nothing_seen_is_never_retried() {
    check(&Facts::new(Phase::Request), ErrorCode::ProviderError, false, "unknown");
}

/// Rules are a promise like codes: a host may branch on them. This list is held by
/// a snapshot, so that a rename is noticed.
#[test]
fn the_ids_of_all_rules() {
    const SOURCES: [&str; 5] = [
        include_str!("mod.rs"),
        include_str!("protocol.rs"),
        include_str!("status/mod.rs"),
        include_str!("transport.rs"),
        include_str!("wording/rows.rs"),
    ];
    const KINDS: [&str; 6] =
        ["clock.", "inband.", "protocol.", "status.", "transport.", "wording."];
    let is_rule = |text: &&str| {
        let shape = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._+".contains(&b);
        let whole = ["abort", "unknown"].contains(text);
        whole || (KINDS.iter().any(|kind| text.starts_with(kind)) && text.bytes().all(shape))
    };
    let mut rules: std::collections::BTreeSet<&str> =
        SOURCES.iter().flat_map(|source| source.split('"').filter(is_rule)).collect();
    rules.insert("wording.quota+google");
    insta::assert_snapshot!(rules.into_iter().collect::<Vec<_>>().join("\n"));
}
