//! Any bytes as an error body, as an event of a stream and as a flattened message:
//! nothing panics, and no rule of the classifier is broken.
//!
//! The first two bytes say which status it came with and what was claimed of it;
//! the rest is the body.

#![no_main]

use libfuzzer_sys::fuzz_target;
use turnbuckle_errors::{
    ErrorBody, ErrorCode, Fact, Facts, InBandError, Phase, StatusFact, classify, explain,
};

const CONTENT_TYPES: [Option<&str>; 4] = [
    None,
    Some("application/json; charset=utf-8"),
    Some("text/plain;charset=\"UTF-16\""),
    Some("text/html; charset=iso-8859-1"),
];

fuzz_target!(|data: &[u8]| {
    let [first, second, rest @ ..] = data else { return };
    let status = 300 + (u16::from(*first) * 4 + u16::from(*second % 4)) % 300;
    let content_type = CONTENT_TYPES[usize::from(second / 4) % CONTENT_TYPES.len()];
    let body = ErrorBody::parse_bytes(rest, content_type);
    let text = String::from_utf8_lossy(rest).into_owned();

    check(&Facts::new(Phase::Request).with(Fact::Status(StatusFact::new(429, body.clone()))));
    check(&Facts::new(Phase::Request).with(Fact::Status(StatusFact::new(status, body.clone()))));
    check(&Facts::new(Phase::Stream).with(Fact::InBand(InBandError::new(body))));
    check(&Facts::new(Phase::Request).with(Fact::Message(text.clone())));
    check(&Facts::new(Phase::Stream).with(Fact::Message(text)).with_provider("gemini"));
});

fn check(facts: &Facts) {
    let seen = classify(facts);
    assert!(!seen.retriable || seen.code.retriable(), "{seen:?} is retried against its code");
    if seen.rule.ends_with("unknown") || seen.rule == "status.other" {
        assert!(!seen.retriable, "a catch-all is retried: {seen:?}");
    }
    if let [Fact::Status(head)] = facts.seen() {
        assert!(head.status != 429 || seen.code != ErrorCode::ContextTooLarge, "{seen:?}");
        assert!(head.status != 401 || seen.code == ErrorCode::ProviderUnauthorized, "{seen:?}");
    }
    if let Some(wait) = seen.retry_after {
        assert!(!wait.is_zero(), "a loop without delay");
    }
    let explained = explain(facts);
    let decided = explained.weighed.iter().find(|fact| fact.decided).and_then(|fact| fact.rule);
    assert!(decided.is_none_or(|rule| rule == seen.rule), "{decided:?} is not {seen:?}");
    assert!(facts.status().is_none_or(|status| (300..600).contains(&status)));
}
