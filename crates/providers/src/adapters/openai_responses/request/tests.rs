use serde_json::json;

use super::*;
use crate::{
    Arguments, AssistantMessage, Image, Message, Native, ResponseFormat, ToolCall, ToolResult,
    UserMessage, profiles::Affinity,
};

const REASONING: &str =
    r#"{"id": "rs_1",  "type":"reasoning","summary":[],"encrypted_content":"gAAA=="}"#;
const CALL: &str = r#"{"type":"function_call","id":"fc_1","call_id":"a","name":"Read","arguments":"{\"n\": 1.0}","status":"completed"}"#;

fn image() -> Image {
    Image { media_type: "image/png".into(), base64: "iVBORw0=".into() }
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "Read".into(), arguments: Arguments::parse(arguments.into()) }
}

fn result(id: &str, text: &str, ok: bool) -> ToolResult {
    ToolResult {
        call_id: id.into(),
        name: "Read".into(),
        text: text.into(),
        images: Vec::new(),
        ok,
    }
}

fn conversation() -> ChatRequest {
    let with_image = ToolResult { images: vec![image()], ..result("c", "see", true) };
    let mut request = ChatRequest::new("gpt-5")
        .with_message(Message::User(UserMessage { text: "hi".into(), images: vec![image()] }))
        .with_message(Message::Assistant(AssistantMessage {
            text: "one moment".into(),
            reasoning: "never sent back by its text".into(),
            tool_calls: vec![call("a", r#"{"path": "x"}"#), call("b", r#"{"pa"#), call("c", "")],
            native: None,
        }))
        .with_message(Message::Tool(result("a", "", true)))
        .with_message(Message::Tool(result("b", "no such\nfile", false)))
        .with_message(Message::Tool(with_image));
    request.system = Some("be brief".into());
    request.tools = vec![ToolDefinition {
        name: "Read".into(),
        description: "Reads a file.".into(),
        input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    }]
    .into();
    request
}

fn written(request: &ChatRequest) -> Value {
    written_to(request, &Options::default(), "localhost")
}

fn written_to(request: &ChatRequest, options: &Options, host: &str) -> Value {
    serde_json::from_slice(&body(request, options, host).unwrap()).unwrap()
}

#[test]
fn a_conversation_is_written_in_the_words_of_the_api() {
    insta::assert_json_snapshot!(written(&conversation()));
}

#[test]
fn every_wish_has_its_field() {
    let mut request = ChatRequest::new("gpt-5").with_message(Message::User("hi".into()));
    request.max_output_tokens = Some(100);
    request.temperature = Some(0.7);
    request.tools = conversation().tools;
    request.tool_choice = ToolChoice::Named("Read".into());
    request.parallel_tool_calls = Some(false);
    request.reasoning_effort = Some("low".into());
    request.session_id = Some("s-1".into());
    request.response_format = Some(ResponseFormat {
        name: "answer".into(),
        schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
    });
    let options = Options {
        affinity: Affinity::PromptCacheKey,
        reasoning_summary: Some("auto".into()),
        ..Options::default()
    };
    insta::assert_json_snapshot!(written_to(&request, &options, "localhost"));
}

#[test]
fn what_is_not_wished_is_not_sent() {
    let request = ChatRequest::new("gpt-4.1").with_message(Message::User("hi".into()));
    assert_eq!(
        written(&request),
        json!({
            "model": "gpt-4.1",
            "input": [{"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "hi"}]}],
            "stream": true,
            "store": false,
        })
    );
}

#[test]
fn tool_choices_are_words_or_a_tool() {
    for (choice, expected) in [
        (ToolChoice::Auto, None),
        (ToolChoice::None, Some(json!("none"))),
        (ToolChoice::Required, Some(json!("required"))),
        (ToolChoice::Named("Read".into()), Some(json!({"type": "function", "name": "Read"}))),
    ] {
        let request = ChatRequest { tool_choice: choice.clone(), ..conversation() };
        assert_eq!(written(&request).get("tool_choice").cloned(), expected, "{choice:?}");
    }
}

#[test]
fn nothing_is_said_about_tools_without_any() {
    let mut request = ChatRequest::new("m").with_message(Message::User("x".into()));
    (request.tool_choice, request.parallel_tool_calls) = (ToolChoice::Required, Some(false));
    let said = |request: &ChatRequest| {
        let body = written(request);
        ["tool_choice", "parallel_tool_calls"].map(|name| body.get(name).is_some())
    };
    assert_eq!(said(&request), [false, false]);
    // The host's own tools are some.
    request.extra_body.insert("tools".into(), json!([{"type": "web_search"}]));
    assert_eq!(said(&request), [true, true]);
}

#[test]
fn encrypted_reasoning_is_not_asked_of_models_that_do_not_reason() {
    let asked = |model: &str, wish| {
        let options = Options { encrypted_reasoning: wish, ..Options::default() };
        written_to(&ChatRequest::new(model), &options, "x").get("include").is_some()
    };
    for model in ["gpt-5", "o3", "grok-4", "openai/gpt-5-nano", "gpt-oss-20b", "some-model"] {
        assert!(asked(model, EncryptedReasoning::ByModel), "{model}");
        assert!(!asked(model, EncryptedReasoning::Never), "{model}");
    }
    for model in ["gpt-4.1", "gpt-4o-mini", "openai/gpt-4o", "gpt-5-chat-latest"] {
        assert!(!asked(model, EncryptedReasoning::ByModel), "{model}");
        assert!(asked(model, EncryptedReasoning::Always), "{model}");
    }
}

#[test]
fn the_session_id_goes_only_where_it_is_known_to_be_taken() {
    let key = |affinity, host, id: &str| {
        let options = Options { affinity, ..Options::default() };
        let request = ChatRequest { session_id: Some(id.to_owned()), ..ChatRequest::new("m") };
        written_to(&request, &options, host).get("prompt_cache_key").cloned()
    };
    assert_eq!(key(Affinity::ByHost, "api.openai.com", "s"), Some("s".into()));
    assert_eq!(key(Affinity::ByHost, "api.openai.com.example.org", "s"), None);
    assert_eq!(key(Affinity::PromptCacheKey, "localhost", "s"), Some("s".into()));
    assert_eq!(key(Affinity::Off, "api.openai.com", "s"), None);
    let long = "é".repeat(70);
    assert_eq!(key(Affinity::ByHost, "api.openai.com", &long), Some("é".repeat(64).into()));
}

#[test]
fn fields_of_the_host_win_over_ours() {
    let mut request = conversation();
    request.extra_body = json!({"store": true, "stream": false, "top_k": 3, "tools": []})
        .as_object()
        .unwrap()
        .clone();
    let text = body(&request, &Options::default(), "x").unwrap();
    let written: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(written["store"], true);
    assert_eq!(written["stream"], false);
    assert_eq!(written["top_k"], 3);
    assert_eq!(written["tools"], json!([]));
    let text = String::from_utf8(text.to_vec()).unwrap();
    assert_eq!(text.matches("\"store\":").count(), 1);
}

fn with_native(dialect: &str, model: &str, parts: &[&str]) -> ChatRequest {
    ChatRequest::new("gpt-5")
        .with_message(Message::Assistant(AssistantMessage {
            text: "by its text".into(),
            reasoning: String::new(),
            tool_calls: vec![call("a", r#"{"n":1.0}"#)],
            native: Some(Native {
                dialect: dialect.into(),
                model: model.into(),
                parts: parts.iter().map(|part| (*part).to_owned()).collect(),
            }),
        }))
        .with_message(Message::Tool(result("a", "fine", true)))
}

#[test]
fn a_message_goes_back_byte_for_byte_to_the_model_that_wrote_it() {
    let request = with_native(DIALECT, "gpt-5", &[REASONING, CALL]);
    let text = body(&request, &Options::default(), "x").unwrap();
    let text = std::str::from_utf8(&text).unwrap();
    assert!(text.contains(&format!("\"input\":[{REASONING},{CALL},{{")), "{text}");
    assert!(!text.contains("by its text"));
}

#[test]
fn opaque_parts_of_others_are_dropped_and_the_message_is_told_by_text_and_calls() {
    for (dialect, model, parts) in [
        ("anthropic", "gpt-5", &[REASONING, CALL][..]),
        (DIALECT, "gpt-5-mini", &[REASONING, CALL]),
        (DIALECT, "gpt-5", &[REASONING, "{torn"]),
        (DIALECT, "gpt-5", &[]),
    ] {
        let input = &written(&with_native(dialect, model, parts))["input"];
        let kinds: Vec<&str> =
            input.as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["message", "function_call", "function_call_output"], "{dialect}");
        assert_eq!(input[0]["content"], json!([{"type": "output_text", "text": "by its text"}]));
        assert_eq!(input[1]["arguments"], r#"{"n":1.0}"#);
        assert_eq!(input[1].get("id"), None);
    }
}

#[test]
fn reasoning_that_led_to_nothing_is_kept_and_not_sent() {
    let request = with_native(DIALECT, "gpt-5", &[CALL, REASONING, REASONING]);
    let input = written(&request)["input"].clone();
    assert_eq!(input[0], serde_json::from_str::<Value>(CALL).unwrap());
    assert_eq!(input[1]["type"], "function_call_output");
    let alone = written(&with_native(DIALECT, "gpt-5", &[REASONING]))["input"].clone();
    assert_eq!(alone[0]["type"], "message");
}

#[test]
fn the_result_of_a_custom_tool_is_told_as_one() {
    let custom = r#"{"type":"custom_tool_call","call_id":"a","name":"f","input":"4 + 4"}"#;
    let input = written(&with_native(DIALECT, "gpt-5", &[custom]))["input"].clone();
    assert_eq!(
        input[1],
        json!({"type": "custom_tool_call_output", "call_id": "a", "output": "fine"})
    );
    // Whoever gets it rebuilt was told of a function.
    let input = written(&with_native(DIALECT, "other", &[custom]))["input"].clone();
    assert_eq!(input[2]["type"], "function_call_output");
}

#[test]
fn a_schema_is_sent_strict_only_if_strict_mode_would_take_it() {
    let strict = |schema: Value| {
        let format = Some(ResponseFormat { name: "n".into(), schema });
        let request = ChatRequest { response_format: format, ..ChatRequest::new("m") };
        written(&request)["text"]["format"]["strict"].as_bool().unwrap()
    };
    assert!(strict(json!({"type": "object", "additionalProperties": false})));
    assert!(!strict(json!({"type": "object"})));
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let refused = |change: fn(&mut ChatRequest)| {
        let mut request = conversation();
        change(&mut request);
        let unfit = body(&request, &Options::default(), "x").unwrap_err();
        assert_eq!(unfit.code(), ErrorCode::InvalidRequest);
        unfit.to_string()
    };
    let named = |name: &str| Some(ResponseFormat { name: name.into(), schema: json!({}) });
    let schema = refused(|request| request.tools[0].input_schema = json!(true));
    assert!(schema.starts_with("the tool `Read` cannot be sent: its schema at `#`"), "{schema}");
    assert!(refused(|request| request.stop = vec!["END".into()]).contains("extra_body"));
    let choice = refused(|request| request.tool_choice = ToolChoice::Named("Raed".into()));
    assert!(choice.contains("`Raed`"));
    for name in ["", "two words", "é"] {
        let mut request = conversation();
        request.response_format = named(name);
        assert!(body(&request, &Options::default(), "x").is_err(), "{name:?}");
    }
    refused(|request| {
        let schema = json!({"$ref": "#/nothing"});
        request.response_format = Some(ResponseFormat { name: "a".into(), schema });
    });
}

#[test]
fn a_schema_without_a_type_is_that_of_an_object() {
    let mut request = conversation();
    request.tools[0].input_schema = json!({"properties": {"a": {"$ref": "#"}}});
    assert_eq!(
        written(&request)["tools"][0]["parameters"],
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}})
    );
}
