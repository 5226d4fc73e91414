use std::sync::Arc;

use secrecy::ExposeSecret;
use turnbuckle_errors::{Delivered, ErrorCode, Failure, Opaque, Phase};

use super::*;

fn code(builder: OpenAiResponsesBuilder) -> ErrorCode {
    Failure::from(builder.build().unwrap_err()).code()
}

#[test]
fn a_wrong_setting_is_found_before_any_request() {
    for url in ["", "api.example.com", "ftp://x", "https://u:p@example.com"] {
        let built = code(OpenAiResponses::builder().base_url(url));
        assert_eq!(built, ErrorCode::InvalidConfig, "{url}");
    }
    for key in ["", " \n", "two words", "line\nbreak", "schlüssel"] {
        let built = code(OpenAiResponses::builder().api_key(key));
        assert_eq!(built, ErrorCode::ProviderSecretInvalid, "{key:?}");
    }
    for (name, value) in [("bad name", "v"), ("", "v"), ("x", "a\nb"), ("x", "é")] {
        let built = code(OpenAiResponses::builder().header(name, value));
        assert_eq!(built, ErrorCode::InvalidConfig, "{name}: {value}");
    }
}

#[test]
fn the_key_is_a_bearer_token_and_the_path_is_added_unless_it_is_there() {
    let built = |url: &str| {
        OpenAiResponses::builder().base_url(url).api_key("sk-abcdef123\r\n").build().unwrap()
    };
    let (name, value) = &built("http://h").connection.headers[0];
    assert_eq!((name.as_str(), value.expose_secret()), ("authorization", "Bearer sk-abcdef123"));
    for (url, endpoint) in [
        ("http://h/v1", "http://h/v1/responses"),
        ("http://h/v1/", "http://h/v1/responses"),
        ("http://h/v1/responses", "http://h/v1/responses"),
        ("http://h", "http://h/responses"),
    ] {
        assert_eq!(built(url).endpoint().to_string(), endpoint);
    }
}

#[test]
fn no_secret_is_shown_whatever_the_host_masks() {
    let builder = OpenAiResponses::builder()
        .base_url("https://example.com/v1?key=canary-in-query")
        .api_key("canary-key-1")
        .header("x", "canary-header")
        .redactor(Arc::new(Opaque));
    let mut shown = format!("{builder:?}");
    let provider = builder.build().unwrap();
    shown += &format!("{provider:?}");
    assert!(!shown.contains("canary"), "{shown}");
    struct Nothing;
    impl Redact for Nothing {
        fn redact<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
            text.into()
        }
    }
    let provider = OpenAiResponses::builder()
        .api_key("plain-looking-word")
        .header("x-other", "another-secret-word")
        .redactor(Arc::new(Nothing))
        .build()
        .unwrap();
    let masked =
        provider.connection.wire.redact.redact("plain-looking-word and another-secret-word");
    assert_eq!(masked, "[redacted] and [redacted]");
}

#[test]
fn a_profile_brings_address_key_header_and_name() {
    let provider =
        OpenAiResponses::for_profile(&profiles::XAI).api_key("xai-123456").build().unwrap();
    assert_eq!(provider.id(), profiles::XAI.name);
    assert!(provider.endpoint().to_string().ends_with("/responses"));
    assert_eq!(OpenAiResponses::builder().build().unwrap().id(), "openai-responses");
}

#[test]
fn what_cannot_be_asked_fails_the_request_phase_unsent() {
    let provider = OpenAiResponses::builder().api_key("canary-key-1").build().unwrap();
    let mut request = ChatRequest::new("m");
    request.tools = vec![crate::ToolDefinition {
        name: "canary-key-1".into(),
        description: String::new(),
        input_schema: serde_json::json!(false),
    }]
    .into();
    let failure = provider.http(&request).unwrap_err();
    assert_eq!(failure.code(), ErrorCode::InvalidRequest);
    assert_eq!(failure.details().phase, Some(Phase::Request));
    assert_eq!(failure.details().delivered, Some(Delivered::No));
    assert!(!failure.message().as_str().contains("canary"));
}

#[test]
fn the_session_id_may_go_into_a_header_and_the_name_of_the_client_can_be_set() {
    let provider = OpenAiResponses::builder()
        .affinity(Affinity::Header("x-session"))
        .user_agent("blue/1")
        .build()
        .unwrap();
    let request = ChatRequest { session_id: Some("s-1".into()), ..ChatRequest::new("m") };
    let http = provider.http(&request).unwrap();
    let sent = |name: &str| {
        let found = http.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.expose_secret().to_owned())
    };
    assert_eq!(sent("x-session").as_deref(), Some("s-1"));
    assert_eq!(sent("user-agent").as_deref(), Some("blue/1"));
    let odd = ChatRequest { session_id: Some("s\n1".into()), ..ChatRequest::new("m") };
    assert_eq!(provider.http(&odd).unwrap().headers.len(), 1);
    assert_eq!(code(OpenAiResponses::builder().user_agent("")), ErrorCode::InvalidConfig);
}
