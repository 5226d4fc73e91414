//! Nothing here prints a secret, however it is printed.

use std::{
    panic,
    sync::{Arc, Mutex},
};

use turnbuckle_diagnostics::{AttemptTiming, Redactor, SafeUrl, Secret, SecretString};
use turnbuckle_errors::{ErrorCode, Failure, Redact as _, SafeText, SafeToken};

const CANARY: &str = "canary-0123456789-secret";

fn redactor() -> Redactor {
    Redactor::new([SecretString::from(CANARY)])
}

/// Every public type that holds or has seen a secret, printed in every way.
fn printed() -> Vec<String> {
    let redactor = redactor();
    let secret = Secret::new(CANARY.to_owned());
    let url = SafeUrl::new(format!("https://{CANARY}@host/v1?key={CANARY}#token={CANARY}"));
    let mut stream = redactor.stream();
    let fed = stream.feed(&format!("line\nheld {CANARY}"));
    let text = SafeText::redacted(&format!("the key {CANARY}"), &redactor);
    let failure = Failure::new(ErrorCode::ProviderUnauthorized, text.clone());
    let mut json = serde_json::json!({ "note": CANARY, CANARY: 1 });
    redactor.redact_json(&mut json);
    vec![
        format!("{redactor:?} {redactor:#?}"),
        format!("{secret} {secret:?} {secret:#?} {:?}", Some(&secret)),
        format!("{:?}", secret.to_secret_string()),
        format!("{url} {url:?} {url:#?}"),
        format!("{stream:?} {stream:#?} {fed}"),
        format!("{text} {text:?}"),
        format!("{failure} {failure:?} {}", serde_json::to_string(&failure).unwrap_or_default()),
        format!("{:?}", SafeToken::new(CANARY, &redactor)),
        format!("{:?}", redactor.redact_headers([("x-other", CANARY), ("authorization", CANARY)])),
        redactor.redact_url(&format!("http://h/{CANARY}")).into_owned(),
        json.to_string(),
        format!("{:?}", AttemptTiming::default()),
    ]
}

#[test]
fn no_public_type_prints_a_secret() {
    for text in printed() {
        assert!(!text.contains(CANARY) && !text.contains("canary"), "{text}");
    }
}

fn refused<E>(error: E) -> Result<(), E> {
    Err(error)
}

#[test]
fn a_panic_that_shows_our_types_shows_no_secret() {
    let said = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&said);
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| *heard.lock().unwrap() += &format!("{info}\n")));
    for text in printed() {
        let secret = Secret::new(CANARY.to_owned());
        let url = SafeUrl::new(format!("https://u:{CANARY}@h"));
        assert!(panic::catch_unwind(|| refused(text).unwrap()).is_err());
        let refused = panic::AssertUnwindSafe(|| refused((secret, url)).unwrap());
        assert!(panic::catch_unwind(refused).is_err());
    }
    panic::set_hook(before);
    let said = said.lock().unwrap();
    assert!(said.contains("Secret([redacted])"), "{said}");
    assert!(!said.contains("canary"), "{said}");
}

#[test]
fn a_code_that_is_a_secret_is_no_code() {
    assert_eq!(SafeToken::new(CANARY, &redactor()), None);
    assert!(SafeToken::new("rate_limit_exceeded", &redactor()).is_some());
    assert_eq!(redactor().redact("rate_limit_exceeded"), "rate_limit_exceeded");
}
