use std::borrow::Cow;

use secrecy::ExposeSecret;
use turnbuckle_errors::{Delivered, ErrorCode, Failure, Phase};

use super::*;
use crate::{
    Message, StreamEvent, ToolDefinition,
    testing::{ScriptedResponse, ScriptedTransport},
};

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
    let (name, value) = &provider.connection.headers[0];
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
    let masked =
        provider.connection.wire.redact.redact("plain-looking-word and another-secret-word");
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

/// The one request that an adapter of this profile makes.
async fn sent(builder: OpenAiChatBuilder, request: &ChatRequest) -> Result<HttpRequest, Failure> {
    let transport = ScriptedTransport::new([ScriptedResponse::new(200)]);
    let provider = builder.transport(Arc::new(transport.clone())).build().unwrap();
    provider.open(request, AttemptContext::default()).await?;
    Ok(transport.requests().remove(0))
}

fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().rfind(|(known, _)| known == name);
    found.map(|(_, value)| value.expose_secret())
}

#[tokio::test]
async fn a_profile_gives_the_address_the_key_and_the_session_their_places() {
    let mut request = ChatRequest::new("m");
    request.session_id = Some("s-1".into());
    let xai = OpenAiChat::for_profile(&profiles::XAI).api_key("key-123456");
    let http = sent(xai, &request).await.unwrap();
    assert_eq!(http.endpoint.to_string(), "https://api.x.ai/v1/chat/completions");
    assert_eq!(header(&http, "authorization"), Some("Bearer key-123456"));
    assert_eq!(header(&http, "x-grok-conv-id"), Some("s-1"));

    let azure = OpenAiChat::for_profile(&profiles::AZURE)
        .base_url("https://r.openai.azure.com/openai/v1")
        .api_key("key-123456")
        .user_agent("mine/2");
    let http = sent(azure, &request).await.unwrap();
    assert_eq!(header(&http, "api-key"), Some("key-123456"));
    assert_eq!(header(&http, "authorization"), None);
    assert_eq!(header(&http, "user-agent"), Some("mine/2"));

    // A session id that no header carries is left out, and costs nothing but a cache.
    request.session_id = Some("né".into());
    let http = sent(OpenAiChat::for_profile(&profiles::XAI), &request).await.unwrap();
    assert_eq!(header(&http, "x-grok-conv-id"), None);
}

#[test]
fn a_profile_names_the_provider_and_sets_its_clock() {
    let openrouter = OpenAiChat::for_profile(&profiles::OPENROUTER).build().unwrap();
    assert_eq!(openrouter.id(), "openrouter");
    assert_eq!(openrouter.connection.wire.clocks.byte_idle.as_secs(), 60);
    assert_eq!(OpenAiChat::builder("http://h").build().unwrap().id(), "openai-chat");
    assert_eq!(code(OpenAiChat::for_profile(&profiles::AZURE)), ErrorCode::InvalidConfig);
    let agent = OpenAiChat::builder("http://h").user_agent("two\nlines");
    assert_eq!(code(agent), ErrorCode::InvalidConfig);
}

#[tokio::test]
async fn a_tool_that_cannot_be_sent_fails_before_any_request() {
    let mut request = ChatRequest::new("m");
    request.tools = vec![ToolDefinition {
        name: "mcp__x__any".into(),
        description: String::new(),
        input_schema: true.into(),
    }]
    .into();
    let transport = ScriptedTransport::new([]);
    let provider =
        OpenAiChat::builder("http://h").transport(Arc::new(transport.clone())).build().unwrap();
    let failure = provider.open(&request, AttemptContext::default()).await.unwrap_err();
    assert_eq!(
        (failure.code(), failure.phase()),
        (ErrorCode::InvalidRequest, Some(Phase::Request))
    );
    assert_eq!(failure.details().delivered, Some(Delivered::No));
    assert!(!failure.retriable() && failure.message().as_str().contains("`mcp__x__any`"));
    assert!(transport.requests().is_empty());
}

#[tokio::test]
async fn think_tags_are_reasoning_where_the_profile_says_so() {
    for (profile, text) in [(&profiles::PERPLEXITY, "b"), (&profiles::OPENAI, "<think>a</think>b")]
    {
        let response = ScriptedResponse::new(200)
            .event(r#"{"choices":[{"delta":{"content":"<think>a</think>b"}}]}"#)
            .event(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#);
        let transport = Arc::new(ScriptedTransport::new([response]));
        let provider = OpenAiChat::for_profile(profile).transport(transport).build().unwrap();
        let mut stream =
            provider.open(&ChatRequest::new("m"), AttemptContext::default()).await.unwrap();
        while let Some(event) = stream.next().await {
            event.unwrap();
        }
        assert_eq!(stream.partial().text, text, "{}", profile.name);
    }
}

/// The finished message of a stream of these events, from the server of a profile.
async fn answered(profile: &Profile, events: &[&str]) -> CompletedMessage {
    let response = ScriptedResponse::new(200);
    let response = events.iter().fold(response, |response, event| response.event(event));
    let transport = Arc::new(ScriptedTransport::new([response]));
    let provider = OpenAiChat::for_profile(profile).transport(transport).build().unwrap();
    let mut stream =
        provider.open(&ChatRequest::new("m"), AttemptContext::default()).await.unwrap();
    loop {
        if let StreamEvent::Finished(message) = stream.next().await.unwrap().unwrap() {
            return *message;
        }
    }
}

/// What goes back of `message` when this model of this server is asked next.
fn sent_back(message: &CompletedMessage, profile: &Profile, model: &str) -> serde_json::Value {
    let request =
        ChatRequest::new(model).with_message(Message::Assistant(message.message().clone()));
    let body = request::body(&request, profile, "h").unwrap();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    body["messages"][0].clone()
}

#[tokio::test]
async fn opaque_parts_go_back_to_the_server_and_model_that_wrote_them() {
    let message = answered(
        &profiles::OPENROUTER,
        &[
            r#"{"choices":[{"delta":{"reasoning":"We","reasoning_details":[{"type":"reasoning.text","text":"We","index":0,"signature":null}]}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":" go","reasoning_details":[{"type":"reasoning.text","text":" go","index":0}]}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","signature":"c2ln","index":0},{"type":"reasoning.encrypted","data":"zz","index":1}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        ],
    )
    .await;
    assert_eq!(message.message().reasoning, "We go");
    let back = sent_back(&message, &profiles::OPENROUTER, "m");
    assert_eq!(
        back["reasoning_details"],
        serde_json::json!([
            {"type": "reasoning.text", "text": "We go", "index": 0, "signature": "c2ln"},
            {"type": "reasoning.encrypted", "data": "zz", "index": 1},
        ])
    );
    assert_eq!(
        back["tool_calls"][0]["extra_content"],
        serde_json::json!({"google": {"thought_signature": "c2ln"}})
    );
    for (profile, model) in [(&profiles::OPENROUTER, "other"), (&profiles::LITELLM, "m")] {
        let back = sent_back(&message, profile, model);
        assert_eq!(back.get("reasoning_details"), None, "{} {model}", profile.name);
        assert_eq!(back["tool_calls"][0].get("extra_content"), None);
        assert_eq!(back["tool_calls"][0]["id"], "c");
    }
}

#[tokio::test]
async fn a_message_without_opaque_parts_keeps_none() {
    let message = answered(
        &profiles::OPENAI,
        &[
            r#"{"choices":[{"delta":{"content":"a","reasoning_details":null}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_details":"odd","tool_calls":[{"id":"c","function":{"name":"f"},"extra_content":7}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        ],
    )
    .await;
    assert_eq!(message.message().native, None);
    // Half a character cannot be told again as it came, in text or in the details.
    for delta in [
        r#"{"content":"\ud83d","reasoning_details":[{"text":"a"}]}"#,
        r#"{"content":"a","reasoning_details":[{"text":"\ud83d"}]}"#,
    ] {
        let event = format!(r#"{{"choices":[{{"delta":{delta},"finish_reason":"stop"}}]}}"#);
        assert_eq!(answered(&profiles::OPENROUTER, &[&event]).await.message().native, None);
    }
}
