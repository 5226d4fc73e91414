//! No public type of this crate prints what came from outside unredacted.

use std::{borrow::Cow, fmt::Debug, time::SystemTime};

use serde_json::json;
use turnbuckle_errors::{
    BadReport, ErrorBody, ErrorCode, Fact, Facts, Failure, InBandError, Opaque, Phase, Redact,
    SafeText, SafeToken, StatusFact, classify, explain, render_chain,
};

const CANARY: &str = "sk-canary-0123456789abcdef";

/// Knows the canary, as the real redactor knows the keys in use.
struct Known;

impl Redact for Known {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Owned(text.replace(CANARY, "[redacted]"))
    }
}

#[track_caller]
fn silent(printed: &[String]) {
    for text in printed {
        assert!(!text.contains("canary"), "{text}");
    }
}

fn debug(value: &impl Debug) -> [String; 2] {
    [format!("{value:?}"), format!("{value:#?}")]
}

fn facts() -> Facts {
    let body = format!(
        r#"{{"error":{{"type":"{CANARY}","code":"{CANARY}","status":"{CANARY}","message":"bad key {CANARY}",
            "innererror":{{"code":"{CANARY}"}},"details":[{{"violations":[{{"quotaId":"{CANARY}"}}]}}]}}}}"#
    );
    let body = ErrorBody::parse(&body);
    assert_eq!(body.words().count(), 4);
    Facts::new(Phase::Request)
        .with(Fact::Status(StatusFact::new(401, body.clone())))
        .with(Fact::InBand(InBandError::new(body)))
        .with(Fact::Message(format!("Error: {CANARY}")))
}

#[test]
fn facts_and_what_is_made_of_them_print_no_outside_text() {
    let facts = facts();
    silent(&debug(&facts));
    silent(&debug(&classify(&facts)));
    silent(&debug(&explain(&facts)));
    for fact in facts.seen() {
        silent(&debug(fact));
    }
}

#[test]
fn a_failure_prints_redacted_text_alone() {
    for redact in [&Known as &dyn Redact, &Opaque] {
        let failure = Failure::from_facts(&facts(), redact)
            .with_causes(render_chain(&std::io::Error::other(CANARY), redact))
            .with_details(|details| {
                details.target = Some(SafeText::redacted(CANARY, redact));
                details.mismatches = vec![SafeText::redacted(CANARY, redact)];
                details.provider_request_id = SafeToken::new(CANARY, redact);
            });
        silent(&debug(&failure));
        silent(&[failure.to_string(), json!(failure).to_string()]);
        let panicked = std::panic::catch_unwind(|| std::panic::panic_any(failure.to_string()));
        silent(&[format!("{:?}", panicked.unwrap_err().downcast_ref::<String>())]);
    }
}

#[test]
fn safe_texts_print_what_they_are() {
    let text = SafeText::redacted(&format!("bad {CANARY}"), &Known);
    silent(&debug(&text));
    silent(&[text.to_string()]);
    assert_eq!(SafeToken::new(CANARY, &Known), None);
    silent(&debug(&SafeToken::new("fine", &Known)));
}

#[test]
fn a_bad_report_prints_nothing_of_the_report() {
    for report in [
        json!(CANARY),
        json!({ CANARY: 1 }),
        json!({ "phase": CANARY }),
        json!({ "status": CANARY }),
        json!({ "headers": CANARY }),
        json!({ "transport": CANARY }),
        json!({ "transport": format!("http2_reset:{CANARY}") }),
        json!({ "clock": CANARY }),
        json!({ "protocol": CANARY }),
        json!({ "aborted": CANARY }),
        json!({ "provider": CANARY }),
    ] {
        let error: BadReport = match Facts::from_json(&report, SystemTime::UNIX_EPOCH) {
            Err(error) => error,
            Ok(facts) => panic!("{report} is read as {facts:?}"),
        };
        silent(&debug(&error));
        silent(&[error.to_string()]);
    }
    let unknown = CANARY.parse::<ErrorCode>().unwrap_err();
    silent(&debug(&unknown));
    silent(&[unknown.to_string()]);
}
