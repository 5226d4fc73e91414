use std::time::Duration;

use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::{Delivered, Opaque, Phase};

use super::*;
use crate::{
    Message, StreamEvent, ToolDefinition,
    testing::{ScriptedResponse, ScriptedTransport},
};

fn code(builder: GeminiBuilder) -> ErrorCode {
    Failure::from(builder.build().unwrap_err()).code()
}

#[test]
fn a_wrong_setting_is_found_before_any_request() {
    for url in ["", "api.example.com", "ftp://x", "https://u:p@example.com"] {
        assert_eq!(code(Gemini::builder().base_url(url)), ErrorCode::InvalidConfig, "{url}");
    }
    for key in ["", " \n", "two words", "line\nbreak", "schlüssel"] {
        let built = code(Gemini::builder().api_key(key));
        assert_eq!(built, ErrorCode::ProviderSecretInvalid, "{key:?}");
    }
    for (name, value) in [("bad name", "v"), ("", "v"), ("x", "a\nb")] {
        let built = code(Gemini::builder().header(name, value));
        assert_eq!(built, ErrorCode::InvalidConfig, "{name}: {value}");
    }
    assert_eq!(code(Gemini::builder().user_agent("")), ErrorCode::InvalidConfig);
}

#[test]
fn the_url_names_the_model_and_asks_for_events() {
    assert_eq!(for_events(" https://h/v1#x"), "https://h/v1?alt=sse");
    assert_eq!(for_events("https://h/v1?a=1&alt=json&"), "https://h/v1?a=1&alt=sse");
    let path = |url: &str, model: &str| {
        let provider = Gemini::builder().base_url(url).build().unwrap();
        provider.http(&ChatRequest::new(model)).unwrap().endpoint.to_string()
    };
    for (url, model, expected) in [
        ("http://h/v1beta", "g", "http://h/v1beta/models/g:streamGenerateContent"),
        ("http://h/v1beta/", "models/g", "http://h/v1beta/models/g:streamGenerateContent"),
        ("http://h/v1beta/models", "g", "http://h/v1beta/models/g:streamGenerateContent"),
        ("http://h", "tunedModels/t", "http://h/tunedModels/t:streamGenerateContent"),
        ("http://h", "a?b c", "http://h/models/a%3Fb%20c:streamGenerateContent"),
    ] {
        assert_eq!(path(url, model), expected, "{url} {model}");
    }
}

#[test]
fn headers_carry_the_key_the_client_and_where_wished_the_session() {
    let provider = Gemini::builder()
        .api_key("AIza-abcdef123\r\n")
        .user_agent("blue/1")
        .affinity(Affinity::Header("x-session"))
        .build()
        .unwrap();
    let request = ChatRequest { session_id: Some("s-1".into()), ..ChatRequest::new("m") };
    let http = provider.http(&request).unwrap();
    let sent = |name: &str| {
        let found = http.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.expose_secret().to_owned())
    };
    assert_eq!(sent("x-goog-api-key").as_deref(), Some("AIza-abcdef123"));
    assert_eq!(sent("user-agent").as_deref(), Some("blue/1"));
    assert_eq!(sent("x-session").as_deref(), Some("s-1"));
    let odd = ChatRequest { session_id: Some("s\n1".into()), ..ChatRequest::new("m") };
    assert_eq!(provider.http(&odd).unwrap().headers.len(), 2);
    assert_eq!((Gemini::builder().build().unwrap().id(), provider.id()), (DIALECT, DIALECT));
}

#[test]
fn no_secret_is_shown_whatever_the_host_masks() {
    let builder = Gemini::builder()
        .base_url("https://example.com/v1?key=canary-in-query")
        .api_key("canary-key-1")
        .header("x", "canary-header")
        .redactor(Arc::new(Opaque));
    let mut shown = format!("{builder:?}");
    shown += &format!("{:?}", builder.build().unwrap());
    assert!(!shown.contains("canary"), "{shown}");
}

fn provider(script: Vec<ScriptedResponse>) -> (Gemini, ScriptedTransport) {
    let transport = ScriptedTransport::new(script);
    let builder = Gemini::builder().api_key("canary-key-1").transport(Arc::new(transport.clone()));
    (builder.build().unwrap(), transport)
}

async fn attempt(provider: &Gemini, request: &ChatRequest) -> Result<CompletedMessage, Failure> {
    let context = AttemptContext::new(CancellationToken::new(), false);
    let mut stream = provider.open(request, context).await?;
    loop {
        match stream.next().await.unwrap()? {
            StreamEvent::Finished(message) => return Ok(*message),
            _ => continue,
        }
    }
}

#[tokio::test]
async fn what_cannot_be_asked_fails_unsent() {
    let (provider, transport) = provider(Vec::new());
    let mut request = ChatRequest::new("m");
    request.tools = vec![ToolDefinition {
        name: "canary-key-1".into(),
        description: String::new(),
        input_schema: serde_json::json!(false),
    }]
    .into();
    for request in [request, ChatRequest::new("../x")] {
        let failure = attempt(&provider, &request).await.unwrap_err();
        assert_eq!(failure.code(), ErrorCode::InvalidRequest);
        assert_eq!(failure.details().phase, Some(Phase::Request));
        assert_eq!(failure.details().delivered, Some(Delivered::No));
        assert!(!failure.message().as_str().contains("canary"), "{failure}");
    }
    assert_eq!(transport.requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn text_after_a_finish_reason_extends_the_grace_and_silence_ends_it() {
    let chunk = |text: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}},\"finishReason\":\"STOP\"}}]}}\n\n"
        )
    };
    let pause = Duration::from_millis(1500);
    let response = ScriptedResponse::new(200)
        .bytes(chunk("a"))
        .wait(pause)
        .bytes(chunk("b"))
        .wait(pause)
        .bytes(chunk("c"))
        // Words without text do not.
        .wait(pause)
        .bytes(chunk(""))
        .wait(pause)
        .bytes(chunk("too late"));
    let (provider, _) = provider(vec![response]);
    let request = ChatRequest::new("m").with_message(Message::User("x".into()));
    let message = attempt(&provider, &request).await.unwrap();
    assert_eq!(message.message().text, "abc");
}

#[tokio::test]
async fn its_own_parts_survive_a_session_that_keeps_ids_apart() {
    let body = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"ls","args":{}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}]}"#;
    let (provider, _) = provider(vec![ScriptedResponse::new(200).bytes(body)]);
    let request = ChatRequest::new("m").with_message(Message::User("x".into()));
    let message = attempt(&provider, &request).await.unwrap();
    let mut taken = std::collections::HashSet::from(["call_1".to_owned()]);
    let message = message.with_ids_apart_from(&mut taken);
    assert_eq!(message.message().tool_calls[0].id, "call_1_2");
    assert_eq!(message.message().native_for(DIALECT, "m").map(<[_]>::len), Some(1));
}

#[tokio::test]
async fn what_google_calls_a_quota_is_a_rate() {
    const SAID: &str = "You exceeded your current quota, please check your plan";
    let refused =
        ScriptedResponse::new(429).bytes(format!(r#"{{"error":{{"message":"{SAID}"}}}}"#));
    let streamed = ScriptedResponse::new(200)
        .header("content-type", "text/event-stream")
        .bytes(format!("data: {{\"error\":{{\"message\":\"{SAID}\"}}}}\n\n"));
    let (provider, _) = provider(vec![refused, streamed]);
    let request = ChatRequest::new("m").with_message(Message::User("x".into()));
    for phase in [Phase::Request, Phase::Stream] {
        let failure = attempt(&provider, &request).await.unwrap_err();
        assert_eq!(failure.details().phase, Some(phase));
        assert_eq!(failure.code(), ErrorCode::ProviderRateLimited, "{failure:?}");
        assert!(failure.retriable());
    }
}
