use turnbuckle_errors::{ErrorCode, Failure};

use super::*;

fn code(builder: OpenAiChatBuilder) -> ErrorCode {
    Failure::from(builder.build().unwrap_err()).code()
}

#[test]
fn a_wrong_setting_is_found_before_any_request() {
    let good = "https://api.example.com/v1";
    for url in ["", "api.example.com", "ftp://x", "https://u:p@example.com"] {
        assert_eq!(code(OpenAiChat::builder(url)), ErrorCode::InvalidConfig, "{url}");
    }
    for key in ["", " \n", "two words", "line\nbreak", "schlüssel", "tab\tkey"] {
        let built = code(OpenAiChat::builder(good).api_key(key));
        assert_eq!(built, ErrorCode::ProviderSecretInvalid, "{key:?}");
    }
    for (name, value) in [("bad name", "v"), ("", "v"), ("x", "a\nb"), ("x", "é")] {
        let built = code(OpenAiChat::builder(good).header(name, value));
        assert_eq!(built, ErrorCode::InvalidConfig, "{name}: {value}");
    }
}

#[test]
fn a_key_from_a_file_may_end_in_a_line_break() {
    let provider =
        OpenAiChat::builder("http://127.0.0.1:1/v1").api_key("sk-abcdef123\r\n").build().unwrap();
    let (name, value) = &provider.headers[0];
    assert_eq!((name.as_str(), value.expose_secret()), ("authorization", "Bearer sk-abcdef123"));
}

#[test]
fn the_path_is_added_unless_it_is_there() {
    let path = |url: &str| OpenAiChat::builder(url).build().unwrap().endpoint().to_string();
    assert_eq!(path("http://h/v1"), "http://h/v1/chat/completions");
    assert_eq!(path("http://h/v1/"), "http://h/v1/chat/completions");
    assert_eq!(path("http://h/v1/chat/completions"), "http://h/v1/chat/completions");
    assert_eq!(path("http://h"), "http://h/chat/completions");
}

#[test]
fn the_key_is_masked_whatever_the_host_knows() {
    struct Nothing;
    impl Redact for Nothing {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            Cow::Borrowed(text)
        }
    }
    let provider = OpenAiChat::builder("http://h")
        .api_key("plain-looking-word")
        .header("x-other", "another-secret-word")
        .redactor(Arc::new(Nothing))
        .build()
        .unwrap();
    let masked = provider.wire.redact.redact("plain-looking-word and another-secret-word");
    assert_eq!(masked, "[redacted] and [redacted]");
}

#[test]
fn no_debug_output_shows_a_secret() {
    let url = "https://user:canary-in-url@example.com/v1?key=canary-in-query";
    let builder = OpenAiChat::builder(url).api_key("canary-key-1").header("x", "canary-header");
    let shown = format!("{builder:?}") + &format!("{:?}", builder.build().unwrap_err());
    assert!(!shown.contains("canary"), "{shown}");

    let provider = OpenAiChat::builder("https://example.com/v1?key=canary-in-query")
        .api_key("canary-key-1")
        .header("x", "canary-header")
        .build()
        .unwrap();
    let head = ResponseHead::new(200, [("echo".into(), "canary-echo".into())]);
    let error = crate::transport::TransportError::new(
        turnbuckle_errors::Transport::Other,
        Some("canary-in-cause".into()),
    );
    let shown = format!("{provider:?} {head:?} {error:?} {error} {:?}", provider.endpoint());
    assert!(!shown.contains("canary"), "{shown}");
}
