use super::{messages::id, *};
use crate::{
    Arguments, AssistantMessage, Image, Message, ResponseFormat, ToolCall, ToolDefinition,
    ToolResult, UserMessage,
    profiles::{self, Affinity, ToolIds},
};

fn conversation() -> ChatRequest {
    let call = |id: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: "Read".into(),
        arguments: Arguments::parse(arguments.into()),
    };
    let result = |id: &str, text: &str, ok| {
        Message::Tool(ToolResult {
            call_id: id.into(),
            name: "Read".into(),
            text: text.into(),
            images: Vec::new(),
            ok,
        })
    };
    let mut request = ChatRequest::new("m")
        .with_message(Message::User("hi \"there\"".into()))
        .with_message(Message::Assistant(AssistantMessage {
            text: String::new(),
            reasoning: "never sent back".into(),
            tool_calls: vec![call("a", r#"{"path": "x"}"#), call("b", r#"{"pa"#)],
            native: None,
        }))
        .with_message(result("a", "content", true))
        .with_message(result("b", "no such\nfile", false))
        .with_message(Message::Assistant(AssistantMessage {
            text: "done".into(),
            ..AssistantMessage::default()
        }));
    request.system = Some("be brief".into());
    request.session_id = Some("s-1".into());
    request.max_output_tokens = Some(100);
    request.temperature = Some(0.5);
    request.tools = vec![ToolDefinition {
        name: "Read".into(),
        description: "Reads a file.".into(),
        input_schema: serde_json::json!({"type": "object"}),
    }]
    .into();
    request
}

fn written(request: &ChatRequest, profile: &Profile) -> Value {
    serde_json::from_slice(&body(request, profile, "localhost").unwrap()).unwrap()
}

fn picture(base64: &str) -> Image {
    Image { media_type: "image/png".into(), base64: base64.into() }
}

#[test]
fn a_conversation_is_written_in_the_words_of_the_api() {
    insta::assert_json_snapshot!(written(&conversation(), &profiles::CUSTOM));
}

#[test]
fn the_session_id_goes_only_where_it_is_known_to_be_taken() {
    let key = |affinity, host| {
        let profile = Profile { affinity, ..profiles::CUSTOM };
        let body = body(&conversation(), &profile, host).unwrap();
        serde_json::from_slice::<Value>(&body).unwrap().get("prompt_cache_key").cloned()
    };
    assert_eq!(key(Affinity::ByHost, "api.openai.com"), Some("s-1".into()));
    assert_eq!(key(Affinity::ByHost, "api.openai.com.example.org"), None);
    assert_eq!(key(Affinity::PromptCacheKey, "localhost"), Some("s-1".into()));
    assert_eq!(key(Affinity::Off, "api.openai.com"), None);
    assert_eq!(key(Affinity::Header("x-session"), "api.openai.com"), None);
}

#[test]
fn the_limit_goes_into_one_field() {
    let body = written(&conversation(), &profiles::OPENAI);
    assert_eq!(body["max_completion_tokens"], 100);
    assert_eq!(body.get("max_tokens"), None);
}

#[test]
fn every_wish_has_its_field() {
    let mut request = conversation();
    request.stop = vec!["END".into(), "\n\n".into()];
    request.tool_choice = ToolChoice::Named("Read".into());
    request.parallel_tool_calls = Some(false);
    request.reasoning_effort = Some("high".into());
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    request.response_format = Some(ResponseFormat { name: "count".into(), schema: schema.clone() });
    let body = written(&request, &profiles::CUSTOM);
    assert_eq!(body["stop"], json!(["END", "\n\n"]));
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "Read"}}));
    assert_eq!(body["parallel_tool_calls"], false);
    assert_eq!(body["reasoning_effort"], "high");
    assert_eq!(
        body["response_format"],
        json!({"type": "json_schema",
            "json_schema": {"name": "count", "schema": schema, "strict": true}})
    );
    assert_eq!(written(&request, &profiles::OPENROUTER)["reasoning"], json!({"effort": "high"}));
    for (choice, word) in [(ToolChoice::None, "none"), (ToolChoice::Required, "required")] {
        request.tool_choice = choice;
        assert_eq!(written(&request, &profiles::CUSTOM)["tool_choice"], word);
    }
    request.tools.clear();
    let body = written(&request, &profiles::CUSTOM);
    assert_eq!((body.get("tool_choice"), body.get("parallel_tool_calls")), (None, None));
}

#[test]
fn a_server_that_knows_no_schema_is_told_it_in_the_prompt() {
    let mut request = conversation();
    let schema = json!({"type": "object"});
    request.response_format = Some(ResponseFormat { name: "any".into(), schema });
    let body = written(&request, &profiles::DEEPSEEK);
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("be brief\n\n") && system.contains(r#"{"type":"object"}"#));
    request.system = None;
    let system = &written(&request, &profiles::DEEPSEEK)["messages"][0];
    assert!(system["role"] == "system" && system["content"].as_str().unwrap().contains("JSON"));
}

#[test]
fn fields_of_the_host_win_over_ours() {
    let mut request = conversation();
    for (name, value) in [("temperature", json!(1)), ("model", json!("other")), ("x", json!(null))]
    {
        request.extra_body.insert(name.into(), value);
    }
    let text = String::from_utf8(body(&request, &profiles::CUSTOM, "h").unwrap().to_vec()).unwrap();
    assert_eq!(text.matches("\"model\"").count(), 1, "{text}");
    let body = written(&request, &profiles::CUSTOM);
    assert_eq!((&body["temperature"], &body["model"]), (&json!(1), &json!("other")));
    assert!(body.as_object().unwrap().contains_key("x"));
}

#[test]
fn images_stand_before_the_text_as_data() {
    let said = UserMessage { text: "what is it?".into(), images: vec![picture("AAA=")] };
    let request = ChatRequest::new("m").with_message(Message::User(said.clone()));
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAA="}});
    let body = written(&request, &profiles::CUSTOM);
    assert_eq!(
        body["messages"][0]["content"],
        json!([image, {"type": "text", "text": "what is it?"}])
    );
    let alone = UserMessage { text: String::new(), ..said };
    let request = ChatRequest::new("m").with_message(Message::User(alone));
    assert_eq!(written(&request, &profiles::CUSTOM)["messages"][0]["content"], json!([image]));
}

#[test]
fn images_of_results_follow_all_results_of_the_step() {
    let result = |id: &str, text: &str, images| {
        Message::Tool(ToolResult {
            call_id: id.into(),
            name: "Read".into(),
            text: text.into(),
            images,
            ok: true,
        })
    };
    let request = ChatRequest::new("m")
        .with_message(result("a", "", vec![picture("AAA=")]))
        .with_message(result("b", "two", vec![picture("BBB="), picture("CCC=")]))
        .with_message(result("c", "none", Vec::new()))
        .with_message(Message::User("go on".into()));
    let body = written(&request, &profiles::CUSTOM);
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["tool", "tool", "tool", "user", "user"]);
    assert_eq!(messages[0]["content"], "(images alone; they follow in the next message)");
    assert_eq!(messages[1]["content"], "two");
    let parts: Vec<&str> = messages[3]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["text"].as_str().or(part["image_url"]["url"].as_str()).unwrap())
        .collect();
    assert_eq!(
        parts,
        [
            "Images in the result of Read (call a):",
            "data:image/png;base64,AAA=",
            "Images in the result of Read (call b):",
            "data:image/png;base64,BBB=",
            "data:image/png;base64,CCC=",
        ]
    );
}

#[test]
fn a_profile_decides_what_else_is_sent() {
    let mut request = conversation();
    request.prompt_caching = true;
    let plain = written(&request, &profiles::CUSTOM);
    assert_eq!(plain["stream_options"], json!({"include_usage": true}));
    assert_eq!(plain["messages"][2].get("reasoning_content"), None);
    assert_eq!(plain["messages"][0]["content"], "be brief");

    let mistral = written(&request, &profiles::MISTRAL);
    assert_eq!(mistral.get("stream_options"), None);
    let call = &mistral["messages"][2]["tool_calls"][0]["id"];
    assert_eq!(call.as_str().unwrap().len(), 9);
    assert_eq!(call, &mistral["messages"][3]["tool_call_id"]);
    assert_ne!(call, &mistral["messages"][4]["tool_call_id"]);

    let deepseek = written(&request, &profiles::DEEPSEEK);
    assert_eq!(deepseek["messages"][2]["reasoning_content"], "never sent back");
    assert_eq!(deepseek["messages"][5].get("reasoning_content"), None);

    let openrouter = written(&request, &profiles::OPENROUTER);
    let marked = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(openrouter["messages"][0]["content"], marked("be brief"));
    assert_eq!(openrouter["messages"][1]["content"], marked("hi \"there\""));
    request.prompt_caching = false;
    assert_eq!(written(&request, &profiles::OPENROUTER)["messages"][0]["content"], "be brief");
}

#[test]
fn an_id_that_fits_is_sent_as_it_is() {
    assert_eq!(id("abcDEF123", ToolIds::NineAlphanumeric), "abcDEF123");
    assert_eq!(id("call_1", ToolIds::Any), "call_1");
    for odd in ["", "call_1", "abcdefgh_", "abcdefghé"] {
        let sent = id(odd, ToolIds::NineAlphanumeric);
        assert!(
            sent.len() == 9 && sent.bytes().all(|b| b.is_ascii_alphanumeric()),
            "{odd}: {sent}"
        );
        assert_eq!(sent, id(odd, ToolIds::NineAlphanumeric));
    }
}

#[test]
fn what_the_api_cannot_take_is_told_with_its_place() {
    let refused = |change: &dyn Fn(&mut ChatRequest)| {
        let mut request = conversation();
        change(&mut request);
        let unfit = body(&request, &profiles::CUSTOM, "h").unwrap_err();
        assert_eq!(unfit.code(), ErrorCode::InvalidRequest);
        unfit.to_string()
    };
    let message = refused(&|request| request.tools[0].input_schema = json!(true));
    assert!(message.contains("`Read`") && message.contains("`#` is a boolean"), "{message}");
    let message = refused(&|request| request.tools[0].input_schema = json!({"$ref": "#"}));
    assert!(message.contains("`#/$ref` refers to itself"), "{message}");
    let message = refused(&|request| request.tool_choice = ToolChoice::Named("Raed".into()));
    assert!(message.contains("`Raed`"), "{message}");
    for name in ["", "two words", &"n".repeat(65)] {
        let format = ResponseFormat { name: name.into(), schema: json!({}) };
        refused(&|request| request.response_format = Some(format.clone()));
    }
    let format = ResponseFormat { name: "n".into(), schema: json!({"type": "string"}) };
    let message = refused(&|request| request.response_format = Some(format.clone()));
    assert!(message.contains("`#/type`"), "{message}");
}
