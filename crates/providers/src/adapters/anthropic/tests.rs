use std::borrow::Cow;

use secrecy::ExposeSecret;
use serde_json::json;

use super::*;
use crate::{
    FinishReason, Message, StreamEvent, ToolDefinition,
    testing::{ScriptedResponse, ScriptedTransport},
    transport::HttpTransport,
};

fn code(builder: AnthropicBuilder) -> ErrorCode {
    Failure::from(builder.build().unwrap_err()).code()
}

#[test]
fn a_wrong_setting_is_found_before_any_request() {
    for url in ["", "api.example.com", "ftp://x", "https://u:p@example.com"] {
        assert_eq!(code(Anthropic::builder().base_url(url)), ErrorCode::InvalidConfig, "{url}");
    }
    for key in ["", " \n", "two words", "schlüssel"] {
        let built = code(Anthropic::builder().api_key(key));
        assert_eq!(built, ErrorCode::ProviderSecretInvalid, "{key:?}");
    }
    let built = code(Anthropic::builder().header("x", "a\nb"));
    assert_eq!(built, ErrorCode::InvalidConfig);
}

#[test]
fn the_path_is_added_unless_it_is_there() {
    let path =
        |url: &str| Anthropic::builder().base_url(url).build().unwrap().endpoint().to_string();
    let own = Anthropic::builder().build().unwrap().endpoint().to_string();
    assert_eq!(own, "https://api.anthropic.com/v1/messages");
    assert_eq!(path("http://h/anthropic/v1/"), "http://h/anthropic/v1/messages");
    assert_eq!(path("http://h/v1/messages"), "http://h/v1/messages");
}

#[test]
fn no_debug_output_shows_a_secret() {
    let builder = Anthropic::builder()
        .base_url("https://example.com/v1?key=canary-in-query")
        .api_key("canary-key-1")
        .header("x", "canary-header");
    let mut shown = format!("{builder:?}");
    shown += &format!("{:?}", builder.build().unwrap());
    assert!(!shown.contains("canary"), "{shown}");
}

#[test]
fn the_key_is_masked_whatever_the_host_knows() {
    struct Nothing;
    impl Redact for Nothing {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            Cow::Borrowed(text)
        }
    }
    let provider = Anthropic::builder()
        .api_key("plain-looking-word")
        .redactor(Arc::new(Nothing))
        .build()
        .unwrap();
    let masked = provider.connection.wire.redact.redact("it was plain-looking-word");
    assert_eq!(masked, "it was [redacted]");
}

fn through(transport: &Arc<ScriptedTransport>) -> AnthropicBuilder {
    let transport: Arc<dyn HttpTransport> = Arc::<ScriptedTransport>::clone(transport);
    Anthropic::builder().api_key("sk-ant-1\n").transport(transport)
}

#[tokio::test(start_paused = true)]
async fn one_attempt_sends_the_key_the_version_and_the_model() {
    let answer = ScriptedResponse::new(200)
        .event(r#"{"type":"message_start","message":{"id":"m","content":[]}}"#)
        .event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"eA=="}}"#)
        .event(r#"{"type":"content_block_stop","index":0}"#)
        .event(r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"hi"}}"#)
        .event(r#"{"type":"content_block_stop","index":1}"#)
        .event(r#"{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}"#)
        .event(r#"{"type":"message_stop"}"#);
    let transport = Arc::new(ScriptedTransport::new([answer]));
    let provider = through(&transport).header("Anthropic-Version", "2099-01-01").build().unwrap();
    assert_eq!(provider.id(), "anthropic");
    let request = ChatRequest::new("claude-x").with_message(Message::User("hi".into()));
    let mut events = provider.open(&request, AttemptContext::default()).await.unwrap();
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event.unwrap());
    }
    let Some(StreamEvent::Finished(message)) = last else { panic!("{last:?}") };
    assert_eq!((&*message.message().text, message.finish()), ("hi", FinishReason::Pause));
    let native = message.message().native_for("anthropic", "claude-x").unwrap();
    assert_eq!(native[0], r#"{"type":"redacted_thinking","data":"eA=="}"#);

    let sent = transport.requests();
    let header = |wanted: &str| {
        let named = sent[0].headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        named.map(|(_, value)| value.expose_secret().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(header("x-api-key"), ["sk-ant-1"]);
    // The transport sends the last of a name.
    assert_eq!(header("anthropic-version"), [VERSION, "2099-01-01"]);
    assert_eq!(header("authorization"), [""; 0]);
}

#[tokio::test]
async fn a_schema_that_the_api_refuses_is_no_request() {
    let transport = Arc::new(ScriptedTransport::new([]));
    let provider = through(&transport).build().unwrap();
    let mut request = ChatRequest::new("claude-x").with_message(Message::User("hi".into()));
    request.tools = vec![ToolDefinition {
        name: "Read".into(),
        description: String::new(),
        input_schema: json!(true),
    }]
    .into();
    let failure = provider.open(&request, AttemptContext::default()).await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::InvalidRequest);
    let message = failure.message().to_string();
    assert!(message.contains("`Read`") && message.contains("`#`"), "{message}");
    assert_eq!(transport.requests().len(), 0);
}
