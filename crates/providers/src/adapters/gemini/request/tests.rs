use serde_json::{Value, json};

use super::*;
use crate::{
    Arguments, AssistantMessage, Image, Message, Native, ResponseFormat, ToolCall, ToolDefinition,
    ToolResult, UserMessage,
};

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: Arguments::parse(arguments.into()) }
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
    Image { media_type: "image/png".into(), base64: "iVBO".into() }
}

fn conversation(native: Option<Native>) -> ChatRequest {
    let mut request = ChatRequest::new("gemini-2.5-flash")
        .with_message(Message::User(UserMessage {
            text: "hi \"there\"".into(),
            images: vec![image()],
        }))
        .with_message(Message::Assistant(AssistantMessage {
            text: "let me see".into(),
            reasoning: "only in its own words".into(),
            tool_calls: vec![
                call("call_1_2", "Read", r#"{"path": "x",  "n":1.0}"#),
                call("b", "Read", r#"{"pa"#),
            ],
            native,
        }))
        .with_message(Message::Tool(ToolResult {
            images: vec![image()],
            ..result("call_1_2", "content", true)
        }))
        .with_message(Message::Tool(result("b", "no such\nfile", false)))
        .with_message(Message::Assistant(AssistantMessage::default()))
        .with_message(Message::User("go on".into()));
    request.system = Some("be brief".into());
    request
}

fn written(request: &ChatRequest) -> Value {
    serde_json::from_slice(&body(request).unwrap()).unwrap()
}

fn native(model: &str, parts: &[&str]) -> Option<Native> {
    let parts = parts.iter().map(|part| (*part).to_owned()).collect();
    Some(Native { dialect: "gemini".into(), model: model.into(), parts })
}

#[test]
fn a_conversation_is_written_in_the_words_of_the_api() {
    insta::assert_json_snapshot!(written(&conversation(None)));
}

#[test]
fn every_wish_has_its_field() {
    let mut request = ChatRequest::new("gemini-3-pro").with_message(Message::User("x".into()));
    request.tools = vec![
        ToolDefinition {
            name: "Read".into(),
            description: "Reads a file.".into(),
            input_schema: json!({"type": "object", "additionalProperties": false,
                "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        },
        ToolDefinition {
            name: "Now".into(),
            description: "Tells the time.".into(),
            input_schema: json!({"type": "object"}),
        },
    ]
    .into();
    request.max_output_tokens = Some(100);
    request.temperature = Some(0.7);
    request.stop = vec!["END".into()];
    request.tool_choice = ToolChoice::Named("Read".into());
    request.parallel_tool_calls = Some(false);
    request.reasoning_effort = Some("High".into());
    request.response_format = Some(ResponseFormat {
        name: "answer".into(),
        schema: json!({"type": "object", "properties": {"a": {"type": "boolean"}}}),
    });
    request.session_id = Some("s-1".into());
    request.prompt_caching = true;
    insta::assert_json_snapshot!(written(&request));
}

#[test]
fn its_own_parts_go_back_byte_for_byte() {
    let signed = r#"{"text" : "let me\u0020see", "thoughtSignature":"c2ln+/="}"#;
    let first = r#"{"functionCall":{"id":"theirs","name":"Read","args":{"path": "x"}},"thoughtSignature":"Y2Fs"}"#;
    let second = r#"{"functionCall":{"name":"Read","args":{}}}"#;
    let request = conversation(native("gemini-2.5-flash", &[signed, first, second]));
    let sent = String::from_utf8(body(&request).unwrap().to_vec()).unwrap();
    let expected = format!(r#"{{"role":"model","parts":[{signed},{first},{second}]}}"#);
    assert!(sent.contains(&expected), "{sent}");
    // The results name the ids that the API gave, and none where it gave none.
    let results = &written(&request)["contents"][2]["parts"];
    assert_eq!(results[0]["functionResponse"]["id"], "theirs");
    assert_eq!(results[2]["functionResponse"].get("id"), None);
}

#[test]
fn parts_of_others_are_dropped_cleanly() {
    let first = r#"{"functionCall":{"name":"Read","args":{}},"thoughtSignature":"Y2Fs"}"#;
    let plain = written(&conversation(None));
    for (case, native) in [
        ("another model", native("gemini-3-pro", &[first, first])),
        ("other calls", native("gemini-2.5-flash", &[first])),
        ("no parts", native("gemini-2.5-flash", &[])),
        ("no JSON", native("gemini-2.5-flash", &[first, "{"])),
        (
            "another dialect",
            native("gemini-2.5-flash", &[first, first])
                .map(|native| Native { dialect: "anthropic".into(), ..native }),
        ),
    ] {
        assert_eq!(written(&conversation(native)), plain, "{case}");
    }
}

#[test]
fn calls_of_other_models_pass_the_check_of_gemini_3() {
    let mut request = conversation(None);
    let signature = |request: &ChatRequest, n: usize| {
        written(request)["contents"][1]["parts"][n].get("thoughtSignature").cloned()
    };
    assert_eq!(signature(&request, 1), None);
    request.model = "gemini-3-pro-preview".into();
    assert_eq!(signature(&request, 1), Some(json!("skip_thought_signature_validator")));
    assert_eq!(signature(&request, 2), None);
}

#[test]
fn thinking_is_a_level_or_a_budget() {
    for (effort, model, told) in [
        ("low", "gemini-3-pro", json!({"includeThoughts": true, "thinkingLevel": "low"})),
        ("high", "gemini-2.5-pro", json!({"includeThoughts": true, "thinkingBudget": 24_576})),
        ("-1", "gemini-2.5-pro", json!({"includeThoughts": true, "thinkingBudget": -1})),
        ("none", "gemini-2.5-flash", json!({"thinkingBudget": 0})),
        ("new", "gemini-2.5-flash", json!({"includeThoughts": true, "thinkingLevel": "new"})),
    ] {
        assert_eq!(thinking(effort, model), told, "{effort}");
    }
}

#[test]
fn fields_of_the_host_win_and_are_merged_where_several_things_live() {
    let mut request = ChatRequest::new("m").with_message(Message::User("x".into()));
    request.max_output_tokens = Some(100);
    request.temperature = Some(1.0);
    let Value::Object(extra) = json!({
        "generationConfig": {"topK": 5, "temperature": 0.25},
        "toolConfig": {"includeServerSideToolInvocations": true},
        "cachedContent": "cachedContents/x",
        "systemInstruction": null,
    }) else {
        panic!()
    };
    request.system = Some("not sent".into());
    request.extra_body = extra;
    assert_eq!(
        written(&request),
        json!({
            "contents": [{"role": "user", "parts": [{"text": "x"}]}],
            "toolConfig": {"includeServerSideToolInvocations": true},
            "generationConfig": {"maxOutputTokens": 100, "temperature": 0.25, "topK": 5},
            "cachedContent": "cachedContents/x",
            "systemInstruction": null,
        })
    );
}

#[test]
fn a_choice_is_told_only_beside_tools() {
    let mut request = ChatRequest::new("m").with_message(Message::User("x".into()));
    for choice in [ToolChoice::None, ToolChoice::Required] {
        request.tool_choice = choice;
        assert_eq!(written(&request).get(TOOL_CONFIG), None);
        // The host's own tools are some.
        request.extra_body.insert("tools".into(), json!([{"googleSearch": {}}]));
        assert!(written(&request).get(TOOL_CONFIG).is_some());
        request.extra_body.clear();
    }
}

#[test]
fn a_schema_that_cannot_be_sent_is_named_with_its_tool_and_place() {
    let node = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
    let mut request = ChatRequest::new("m");
    request.tools = vec![ToolDefinition {
        name: "Tree".into(),
        description: String::new(),
        input_schema: node.clone(),
    }]
    .into();
    let told = body(&request).unwrap_err().to_string();
    assert!(told.contains("`Tree`") && told.contains("`#/properties/next/$ref"), "{told}");
    request.tools.clear();
    request.response_format = Some(ResponseFormat { name: "answer".into(), schema: node });
    let told = body(&request).unwrap_err().to_string();
    assert!(told.contains("response format `answer`"), "{told}");
    request.response_format = None;
    request.temperature = Some(f32::INFINITY);
    assert_eq!(body(&request).unwrap_err(), Refused::Json);
}

#[test]
fn a_model_names_its_path_and_no_other() {
    let joined = |model: &str| path(model).map(|path| path.join("/"));
    let ending = ":streamGenerateContent";
    for (model, expected) in [
        ("gemini-2.5-flash", "models/gemini-2.5-flash"),
        (" models/x ", "models/x"),
        ("tunedModels/x", "tunedModels/x"),
        ("publishers/google/models/x", "publishers/google/models/x"),
    ] {
        assert_eq!(joined(model).unwrap(), format!("{expected}{ending}"), "{model}");
    }
    for model in ["", " ", "/", "a/", "../x", "models/..", "./x"] {
        assert_eq!(joined(model), Err(Refused::Model), "{model}");
    }
}
