use serde_json::{Value, json};

use super::*;
use crate::{
    Arguments, AssistantMessage, Image, Message, Native, ResponseFormat, ToolCall, ToolDefinition,
    ToolResult, UserMessage,
};

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

fn image() -> Image {
    Image { media_type: "image/png".into(), base64: "iVBORw0=".into() }
}

fn signed(model: &str) -> AssistantMessage {
    let part = r#"{"type":"thinking" ,"thinking":"t ","signature":"c2ln/+=="}"#;
    let tool = r#"{"name":"Read","type":"tool_use","id":"c","input":{"b": 1,"a":1e2}}"#;
    AssistantMessage {
        text: "looking".into(),
        reasoning: "t ".into(),
        tool_calls: vec![call("c", r#"{"b": 1,"a":1e2}"#)],
        native: Some(Native {
            dialect: "anthropic".into(),
            model: model.into(),
            parts: vec![part.into(), tool.into()],
        }),
    }
}

fn conversation() -> ChatRequest {
    let mut seen = result("a", "a picture", true);
    seen.images = vec![image()];
    let mut request = ChatRequest::new("claude-sonnet-4-6")
        .with_message(Message::User(UserMessage {
            text: "hi \"there\"".into(),
            images: vec![image()],
        }))
        .with_message(Message::Assistant(AssistantMessage {
            reasoning: "unsigned".into(),
            tool_calls: vec![call("a", r#"{"path": "x"}"#), call("b", r#"{"pa"#), call("d", "{}")],
            ..AssistantMessage::default()
        }))
        .with_message(Message::Tool(seen))
        .with_message(Message::Tool(result("b", "", false)))
        .with_message(Message::Tool(result("d", "", true)))
        .with_message(Message::User("and now".into()))
        .with_message(Message::Assistant(signed("claude-sonnet-4-6")))
        .with_message(Message::Tool(result("c", "content", true)));
    request.system = Some("be brief".into());
    request.session_id = Some("s-1".into());
    request.max_output_tokens = Some(100);
    request.temperature = Some(0.7);
    request.stop = vec!["END".into()];
    request.tool_choice = ToolChoice::Named("Read".into());
    request.parallel_tool_calls = Some(false);
    request.prompt_caching = true;
    request.tools = vec![ToolDefinition {
        name: "Read".into(),
        description: "Reads a file.".into(),
        input_schema: json!({"type": "object"}),
    }]
    .into();
    request.response_format =
        Some(ResponseFormat { name: "answer".into(), schema: json!({"type": "object"}) });
    request
}

fn text(request: &ChatRequest) -> String {
    String::from_utf8(body(request, Options::default(), "api.anthropic.com").unwrap().into())
        .unwrap()
}

fn value(request: &ChatRequest) -> Value {
    serde_json::from_str(&text(request)).unwrap()
}

#[test]
fn a_conversation_is_written_in_the_words_of_the_api() {
    insta::assert_json_snapshot!(value(&conversation()));
}

#[test]
fn a_request_says_no_more_than_it_was_told() {
    let request =
        ChatRequest::new("claude-3-opus-20240229").with_message(Message::User("hi".into()));
    assert_eq!(
        text(&request),
        r#"{"model":"claude-3-opus-20240229","max_tokens":4096,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#
    );
}

#[test]
fn equal_requests_give_equal_bytes() {
    assert_eq!(text(&conversation()), text(&conversation().clone()));
}

#[test]
fn the_providers_own_words_go_back_to_the_byte() {
    let written = text(&conversation());
    let expected = r#"{"role":"assistant","content":[{"type":"thinking" ,"thinking":"t ","signature":"c2ln/+=="},{"name":"Read","type":"tool_use","id":"c","input":{"b": 1,"a":1e2}}]}"#;
    assert!(written.contains(expected), "{written}");
    // The same, whatever a gateway is told besides.
    let mut request = conversation();
    request.extra_body = json!({"service_tier": "auto"}).as_object().cloned().unwrap();
    assert!(text(&request).contains(expected));
}

#[test]
fn another_model_gets_text_and_calls_alone() {
    let mut of_another_dialect = signed("claude-sonnet-4-6");
    of_another_dialect.native.as_mut().unwrap().dialect = "gemini".into();
    let mut torn = signed("claude-sonnet-4-6");
    torn.native.as_mut().unwrap().parts[0] = r#"{"type":"thi"#.into();
    for said in [signed("claude-opus-4-6"), of_another_dialect, torn] {
        let request = ChatRequest::new("claude-sonnet-4-6").with_message(Message::Assistant(said));
        let expected = r#""content":[{"type":"text","text":"looking"},{"type":"tool_use","id":"c","name":"Read","input":{"b": 1,"a":1e2}}]"#;
        let written = text(&request);
        assert!(written.contains(expected) && !written.contains("c2ln"), "{written}");
    }
}

#[test]
fn what_the_api_would_refuse_is_not_sent() {
    let mut odd = call("call.1|fc", "[1]");
    odd.name = "two words".into();
    let request = ChatRequest::new("m")
        .with_message(Message::User(" \n".into()))
        .with_message(Message::Assistant(AssistantMessage {
            text: " ".into(),
            tool_calls: vec![odd],
            ..AssistantMessage::default()
        }))
        .with_message(Message::Tool(result("call.1|fc", "x", true)));
    assert_eq!(
        value(&request)["messages"],
        json!([
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "call_1_fc", "name": "two_words", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1_fc", "content": "x"}]},
        ])
    );
}

#[test]
fn extra_fields_win_over_ours() {
    let mut request = conversation();
    request.extra_body = json!({"max_tokens": 7, "stream": false, "messages": [], "top_k": 3})
        .as_object()
        .cloned()
        .unwrap();
    let written = text(&request);
    assert!(!written.contains("\"max_tokens\":100") && !written.contains("and now"), "{written}");
    let written = value(&request);
    assert_eq!(
        (&written["max_tokens"], &written["stream"], &written["top_k"]),
        (&json!(7), &json!(false), &json!(3))
    );
}

#[test]
fn tools_are_chosen_in_the_words_of_the_api() {
    let choice = |choice: ToolChoice, parallel| {
        let mut request = conversation();
        request.tool_choice = choice;
        request.parallel_tool_calls = parallel;
        value(&request).get("tool_choice").cloned()
    };
    assert_eq!(choice(ToolChoice::Auto, None), None);
    assert_eq!(choice(ToolChoice::Auto, Some(true)), None);
    assert_eq!(
        choice(ToolChoice::Auto, Some(false)),
        Some(json!({"type": "auto", "disable_parallel_tool_use": true}))
    );
    assert_eq!(choice(ToolChoice::None, Some(false)), Some(json!({"type": "none"})));
    assert_eq!(choice(ToolChoice::Required, None), Some(json!({"type": "any"})));
    assert_eq!(
        choice(ToolChoice::Named("Read".into()), None),
        Some(json!({"type": "tool", "name": "Read"}))
    );
    let mut without_tools = conversation();
    without_tools.tools.clear();
    let refused = body(&without_tools, Options::default(), "x").unwrap_err();
    assert_eq!(refused, Refused::Choice("Read".into()));
    without_tools.tool_choice = ToolChoice::Required;
    assert_eq!(value(&without_tools).get("tool_choice"), None);
}

#[test]
fn cache_markers_stand_at_the_end_of_what_stays() {
    let marks = |request: &ChatRequest| text(request).matches("cache_control").count();
    let mut request = conversation();
    assert_eq!(marks(&request), 3);
    request.system = None;
    let written = value(&request);
    assert_eq!(written["tools"][0]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(marks(&request), 3);
    request.prompt_caching = false;
    assert_eq!(marks(&request), 0);
}

#[test]
fn an_effort_is_written_as_the_model_takes_it() {
    let asked = |model: &str, effort: &str| {
        let mut request = ChatRequest::new(model);
        request.reasoning_effort = Some(effort.into());
        let written = value(&request);
        (written.get("thinking").cloned(), written.get("output_config").cloned())
    };
    assert_eq!(
        asked("claude-opus-4-6", "high"),
        (
            Some(json!({"type": "adaptive", "display": "summarized"})),
            Some(json!({"effort": "high"}))
        )
    );
    assert_eq!(
        asked("claude-sonnet-4-5", "low"),
        (Some(json!({"type": "enabled", "budget_tokens": 4096})), None)
    );
    assert_eq!(asked("claude-sonnet-4-5", "none"), (Some(json!({"type": "disabled"})), None));
    let mut request = ChatRequest::new("claude-sonnet-4-5");
    request.reasoning_effort = Some("hard".into());
    let refused = body(&request, Options::default(), "x").unwrap_err();
    assert_eq!(refused, Refused::Effort("hard".into()));
}

#[test]
fn the_session_id_goes_only_where_it_is_known_to_be_taken() {
    let user = |affinity, host: &str| {
        let options = Options { affinity, ..Options::default() };
        let written = body(&conversation(), options, host).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        written["metadata"]["user_id"].clone()
    };
    assert_eq!(user(Affinity::ByHost, "api.anthropic.com"), "s-1");
    assert_eq!(user(Affinity::ByHost, "api.anthropic.com.example.org"), Value::Null);
    assert_eq!(user(Affinity::UserId, "localhost"), "s-1");
    assert_eq!(user(Affinity::Off, "api.anthropic.com"), Value::Null);
}

#[test]
fn a_limit_is_always_sent() {
    let limit = |default_limit, asked| {
        let mut request = ChatRequest::new("claude-opus-4-1");
        request.max_output_tokens = asked;
        let options = Options { default_limit, ..Options::default() };
        let written = body(&request, options, "x").unwrap();
        serde_json::from_slice::<Value>(&written).unwrap()["max_tokens"].clone()
    };
    assert_eq!(limit(None, None), 32_000);
    assert_eq!(limit(Some(500), None), 500);
    assert_eq!(limit(Some(500), Some(9)), 9);
}
