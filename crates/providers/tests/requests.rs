//! Everything that a request can say, in each dialect, as it reaches a real socket.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail loudly")]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use turnbuckle_errors::{Delivered, ErrorCode, Failure, Phase};
use turnbuckle_providers::{
    AdapterBuilder, AdapterOptions, Arguments, AssistantMessage, AttemptContext, ChatRequest,
    Image, Message, Native, Provider, ResponseFormat, ToolCall, ToolChoice, ToolDefinition,
    ToolResult, UserMessage, anthropic::Anthropic, gemini::Gemini, openai_chat::OpenAiChat,
    openai_responses::OpenAiResponses, profiles::Affinity,
};

const MODEL: &str = "m-1";

/// Reads requests, and answers each with a 400 that says nothing.
struct Listener {
    url: String,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    requests: Vec<(String, Vec<u8>)>,
}

impl Listener {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                shared.lock().unwrap().connections += 1;
                let mut read = Vec::new();
                while !whole(&read) && socket.read_buf(&mut read).await.unwrap() > 0 {}
                let (head, body) = parts(&read).unwrap();
                shared.lock().unwrap().requests.push((head.to_ascii_lowercase(), body.to_vec()));
                let answer =
                    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                socket.write_all(answer).await.unwrap();
            }
        });
        Self { url, seen }
    }

    fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// Asks, and gives head and body of what came of it.
    async fn asked(
        &self,
        provider: &dyn Provider,
        request: &ChatRequest,
    ) -> Result<(String, Vec<u8>), Failure> {
        let failure = provider.open(request, AttemptContext::default()).await.unwrap_err();
        self.seen.lock().unwrap().requests.pop().ok_or(failure)
    }

    async fn body(&self, provider: &dyn Provider, request: &ChatRequest) -> Value {
        let (_, body) = self.asked(provider, request).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

fn parts(read: &[u8]) -> Option<(&str, &[u8])> {
    let end = read.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((std::str::from_utf8(&read[..end]).ok()?, &read[end + 4..]))
}

fn whole(read: &[u8]) -> bool {
    parts(read).is_some_and(|(head, body)| {
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
        });
        body.len() >= length.unwrap_or(0)
    })
}

fn made<O: AdapterOptions>(builder: AdapterBuilder<O>) -> Box<dyn Provider> {
    Box::new(builder.build().unwrap())
}

/// Chat, Responses, Anthropic, Gemini; each forwards the session id in its own field,
/// where it has one.
fn adapters(url: &str) -> [Box<dyn Provider>; 4] {
    use turnbuckle_providers::anthropic::Affinity as Anthropics;
    [
        made(OpenAiChat::builder(url).affinity(Affinity::PromptCacheKey)),
        made(OpenAiResponses::builder().base_url(url).affinity(Affinity::PromptCacheKey)),
        made(Anthropic::builder().base_url(url).affinity(Anthropics::UserId)),
        made(Gemini::builder().base_url(url).affinity(Affinity::Header("x-session"))),
    ]
}

/// How a dialect says something.
enum Said {
    /// At this place of the body.
    At(&'static str, Value),
    /// In this line of the head.
    Head(&'static str),
    /// Not at all: the body is what it is without it.
    Unsaid,
    /// It cannot, and says so before anything is sent.
    Refused(&'static str),
}

use Said::{At, Head, Refused, Unsaid};

struct Row {
    wish: &'static str,
    ask: fn(&mut ChatRequest),
    said: [Said; 4],
}

fn image() -> Image {
    Image { media_type: "image/png".into(), base64: "iVBO".into() }
}

fn plain() -> ChatRequest {
    ChatRequest::new(MODEL).with_message(Message::User("hi".into()))
}

fn tool(schema: Value) -> ToolDefinition {
    ToolDefinition { name: "read".into(), description: "Reads.".into(), input_schema: schema }
}

fn offer(request: &mut ChatRequest) {
    let path = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    request.tools = vec![tool(path)].into();
}

/// The model called the tool, and this came of it.
fn answer(request: &mut ChatRequest, text: &str, images: Vec<Image>, ok: bool) {
    let call = |id: &str| ToolCall {
        id: id.into(),
        name: "read".into(),
        arguments: Arguments::parse(r#"{"path": "a"}"#.into()),
    };
    request.messages.push(Message::Assistant(AssistantMessage {
        tool_calls: vec![call("c_1"), call("c_2")],
        ..AssistantMessage::default()
    }));
    for (id, text, images, ok) in [("c_1", text, images, ok), ("c_2", "other", Vec::new(), true)] {
        let (call_id, name, text) = (id.into(), "read".into(), text.into());
        request.messages.push(Message::Tool(ToolResult { call_id, name, text, images, ok }));
    }
}

#[rustfmt::skip]
fn said_and_heard() -> Vec<Row> {
    vec![
        Row { wish: "a text", ask: |_| {}, said: [
            At("/messages/0/content", json!("hi")),
            At("/input/0/content/0/text", json!("hi")),
            At("/messages/0/content/0/text", json!("hi")),
            At("/contents/0/parts/0/text", json!("hi"))] },
        Row { wish: "an image", ask: |r| {
            r.messages.push(Message::User(UserMessage { text: "see".into(), images: vec![image()] }));
        }, said: [
            At("/messages/1/content/0/image_url/url", json!("data:image/png;base64,iVBO")),
            At("/input/1/content/0/image_url", json!("data:image/png;base64,iVBO")),
            At("/messages/0/content/1/source", json!({"type": "base64", "media_type": "image/png", "data": "iVBO"})),
            At("/contents/1/parts/0/inlineData", json!({"mimeType": "image/png", "data": "iVBO"}))] },
        Row { wish: "a call", ask: |r| answer(r, "out", vec![], true), said: [
            At("/messages/1/tool_calls/0", json!({"id": "c_1", "type": "function",
                "function": {"name": "read", "arguments": "{\"path\": \"a\"}"}})),
            At("/input/1", json!({"type": "function_call", "call_id": "c_1", "name": "read",
                "arguments": "{\"path\": \"a\"}"})),
            At("/messages/1/content/0", json!({"type": "tool_use", "id": "c_1", "name": "read", "input": {"path": "a"}})),
            At("/contents/1/parts/0/functionCall", json!({"name": "read", "args": {"path": "a"}}))] },
        Row { wish: "a result", ask: |r| answer(r, "out", vec![], true), said: [
            At("/messages/2", json!({"role": "tool", "content": "out", "tool_call_id": "c_1"})),
            At("/input/3", json!({"type": "function_call_output", "call_id": "c_1", "output": "out"})),
            At("/messages/2/content/0", json!({"type": "tool_result", "tool_use_id": "c_1", "content": "out"})),
            At("/contents/2/parts/0/functionResponse", json!({"name": "read", "response": {"output": "out"}}))] },
        Row { wish: "the result of a parallel call", ask: |r| answer(r, "out", vec![], true), said: [
            At("/messages/3/tool_call_id", json!("c_2")),
            At("/input/4/call_id", json!("c_2")),
            At("/messages/2/content/1/tool_use_id", json!("c_2")),
            At("/contents/2/parts/1/functionResponse/response/output", json!("other"))] },
        Row { wish: "an image in a result", ask: |r| answer(r, "out", vec![image()], true), said: [
            At("/messages/4/content/1/image_url/url", json!("data:image/png;base64,iVBO")),
            At("/input/3/output/1/image_url", json!("data:image/png;base64,iVBO")),
            At("/messages/2/content/0/content/1/source/data", json!("iVBO")),
            At("/contents/2/parts/1/inlineData/data", json!("iVBO"))] },
        Row { wish: "a result that is an error", ask: |r| answer(r, "gone", vec![], false), said: [
            At("/messages/2/content", json!("[tool error] gone")),
            At("/input/3/output", json!("[tool error] gone")),
            At("/messages/2/content/0/is_error", json!(true)),
            At("/contents/2/parts/0/functionResponse/response", json!({"error": "gone"}))] },
        Row { wish: "an empty result", ask: |r| answer(r, "", vec![], true), said: [
            At("/messages/2/content", json!("")),
            At("/input/3/output", json!("")),
            At("/messages/2/content/0/content", json!("")),
            At("/contents/2/parts/0/functionResponse/response", json!({"output": ""}))] },
        Row { wish: "a system prompt", ask: |r| r.system = Some("be brief".into()), said: [
            At("/messages/0", json!({"role": "system", "content": "be brief"})),
            At("/instructions", json!("be brief")),
            At("/system", json!("be brief")),
            At("/systemInstruction/parts/0/text", json!("be brief"))] },
    ]
}

#[rustfmt::skip]
fn wishes() -> Vec<Row> {
    vec![
        Row { wish: "the model", ask: |_| {}, said: [
            At("/model", json!(MODEL)), At("/model", json!(MODEL)), At("/model", json!(MODEL)),
            Head("post /v1/models/m-1:streamgeneratecontent?alt=sse http/1.1")] },
        Row { wish: "the most tokens", ask: |r| r.max_output_tokens = Some(7), said: [
            At("/max_tokens", json!(7)), At("/max_output_tokens", json!(7)), At("/max_tokens", json!(7)),
            At("/generationConfig/maxOutputTokens", json!(7))] },
        Row { wish: "a temperature", ask: |r| r.temperature = Some(0.7), said: [
            At("/temperature", json!(0.7)), At("/temperature", json!(0.7)), At("/temperature", json!(0.7)),
            At("/generationConfig/temperature", json!(0.7))] },
        Row { wish: "a stop text", ask: |r| r.stop = vec!["END".into()], said: [
            At("/stop", json!(["END"])), Refused("stop"), At("/stop_sequences", json!(["END"])),
            At("/generationConfig/stopSequences", json!(["END"]))] },
        Row { wish: "a tool", ask: offer, said: [
            At("/tools/0/function/name", json!("read")), At("/tools/0/name", json!("read")),
            At("/tools/0/name", json!("read")), At("/tools/0/functionDeclarations/0/name", json!("read"))] },
        Row { wish: "no tool", ask: |r| { offer(r); r.tool_choice = ToolChoice::None; }, said: [
            At("/tool_choice", json!("none")), At("/tool_choice", json!("none")),
            At("/tool_choice", json!({"type": "none"})),
            At("/toolConfig/functionCallingConfig/mode", json!("NONE"))] },
        Row { wish: "some tool", ask: |r| { offer(r); r.tool_choice = ToolChoice::Required; }, said: [
            At("/tool_choice", json!("required")), At("/tool_choice", json!("required")),
            At("/tool_choice", json!({"type": "any"})),
            At("/toolConfig/functionCallingConfig/mode", json!("ANY"))] },
        Row { wish: "this tool", ask: |r| { offer(r); r.tool_choice = ToolChoice::Named("read".into()); }, said: [
            At("/tool_choice/function/name", json!("read")), At("/tool_choice/name", json!("read")),
            At("/tool_choice", json!({"type": "tool", "name": "read"})),
            At("/toolConfig/functionCallingConfig/allowedFunctionNames", json!(["read"]))] },
        Row { wish: "a tool that is not there", ask: |r| { offer(r); r.tool_choice = ToolChoice::Named("raed".into()); }, said: [
            Refused("`raed`"), Refused("`raed`"), Refused("`raed`"), Refused("`raed`")] },
        Row { wish: "one call at a time", ask: |r| { offer(r); r.parallel_tool_calls = Some(false); }, said: [
            At("/parallel_tool_calls", json!(false)), At("/parallel_tool_calls", json!(false)),
            At("/tool_choice/disable_parallel_tool_use", json!(true)), Unsaid] },
        Row { wish: "an effort", ask: |r| r.reasoning_effort = Some("high".into()), said: [
            At("/reasoning_effort", json!("high")), At("/reasoning/effort", json!("high")),
            At("/thinking/type", json!("enabled")),
            At("/generationConfig/thinkingConfig/thinkingLevel", json!("high"))] },
        Row { wish: "caching", ask: |r| r.prompt_caching = true, said: [
            Unsaid, Unsaid, At("/messages/0/content/0/cache_control/type", json!("ephemeral")), Unsaid] },
        Row { wish: "the session", ask: |r| r.session_id = Some("s-1".into()), said: [
            At("/prompt_cache_key", json!("s-1")), At("/prompt_cache_key", json!("s-1")),
            At("/metadata/user_id", json!("s-1")), Head("x-session: s-1")] },
        Row { wish: "a form of the answer", ask: |r| {
            let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
            r.response_format = Some(ResponseFormat { name: "count".into(), schema });
        }, said: [
            At("/response_format/json_schema/schema/properties/n/type", json!("integer")),
            At("/text/format/schema/properties/n/type", json!("integer")),
            At("/output_config/format/schema/properties/n/type", json!("integer")),
            At("/generationConfig/responseSchema/properties/n/type", json!("integer"))] },
        Row { wish: "a field of the host's", ask: |r| { r.extra_body.insert("odd".into(), json!([1])); }, said: [
            At("/odd", json!([1])), At("/odd", json!([1])), At("/odd", json!([1])), At("/odd", json!([1]))] },
    ]
}

#[tokio::test]
async fn everything_has_its_place_in_each_dialect_or_is_known_to_have_none() {
    let listener = Listener::start().await;
    for Row { wish, ask, said } in said_and_heard().into_iter().chain(wishes()) {
        for (provider, said) in adapters(&listener.url).iter().zip(said) {
            let (mut request, told) = (plain(), format!("{wish} to {}", provider.id()));
            ask(&mut request);
            let before = listener.connections();
            let asked = listener.asked(&**provider, &request).await;
            let (head, body) = match (asked, &said) {
                (Err(failure), Refused(word)) => {
                    assert!(failure.to_string().contains(word), "{told}: {failure}");
                    never_sent(&failure, &told);
                    assert_eq!(listener.connections(), before, "{told}");
                    continue;
                }
                (asked, _) => asked.unwrap(),
            };
            let body: Value = serde_json::from_slice(&body).unwrap();
            match said {
                At(place, value) => assert_eq!(body.pointer(place), Some(&value), "{told}: {body}"),
                Head(line) => assert!(head.lines().any(|it| it == line), "{told}: {head}"),
                Refused(_) => panic!("{told} was sent: {body}"),
                Unsaid => {
                    let mut without = plain();
                    without.tools = request.tools.clone();
                    assert_eq!(body, listener.body(&**provider, &without).await, "{told}");
                }
            }
        }
    }
}

fn never_sent(failure: &Failure, told: &str) {
    assert_eq!(failure.code(), ErrorCode::InvalidRequest, "{told}");
    assert_eq!(failure.phase(), Some(Phase::Request), "{told}");
    assert_eq!(failure.details().delivered, Some(Delivered::No), "{told}");
}

#[tokio::test]
async fn a_schema_that_a_dialect_cannot_take_opens_no_socket() {
    let below = json!({"type": "object", "properties": {"t": {"$ref": "#/$defs/T"}}, "$defs": {
        "T": {"type": "object", "properties": {"next": {"type": "array", "items": {"$ref": "#/$defs/T"}}}}}});
    let everywhere = [
        (json!(true), "`#`"),
        (json!(false), "`#`"),
        (json!({"type": "array", "items": {}}), "`#"),
        (json!({"$ref": "#"}), "`#/$ref"),
        (json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}), "`#/$ref"),
        (
            json!({"type": "object", "properties": {"p": {"$ref": "#/properties/p"}}}),
            "`#/properties/p/$ref",
        ),
        (
            json!({"type": "object", "properties": {"p": {"items": {"$ref": "other.json#/a"}}}}),
            "`#/properties/p",
        ),
        (
            json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/gone"}}}),
            "`#/properties/p/$ref`",
        ),
    ];
    let listener = Listener::start().await;
    for (place, provider) in adapters(&listener.url).iter().enumerate() {
        let gemini = place == 3;
        let recursive = gemini.then(|| (below.clone(), "`#/properties/t/$ref"));
        for (schema, path) in everywhere.iter().cloned().chain(recursive) {
            let told = format!("{schema} to {}", provider.id());
            let mut request = plain();
            request.tools = vec![tool(json!({"type": "object"}))].into();
            request.tools.push(ToolDefinition { name: "wrong".into(), ..tool(schema) });
            let failure = listener.asked(&**provider, &request).await.unwrap_err();
            let said = failure.to_string();
            assert!(said.contains("`wrong`") && said.contains(path), "{told}: {said}");
            never_sent(&failure, &told);
        }
        assert_eq!(listener.connections(), 0, "{}", provider.id());
    }
    // The others take a type that contains itself, as it is.
    for provider in &adapters(&listener.url)[..3] {
        let mut request = plain();
        request.tools = vec![tool(below.clone())].into();
        let body = listener.body(&**provider, &request).await.to_string();
        assert!(body.contains(r##""items":{"$ref":"#/$defs/T"}"##), "{body}");
    }
}

#[tokio::test]
async fn opaque_parts_go_back_to_whoever_wrote_them_and_to_nobody_else() {
    let listener = Listener::start().await;
    for (provider, dialect, part, sent) in [
        (
            0,
            "openai-chat/custom",
            r#"{"reasoning_details":[{"type":"reasoning.encrypted", "data":"T3BhcXVl"}]}"#,
            r#""reasoning_details":[{"type":"reasoning.encrypted", "data":"T3BhcXVl"}]"#,
        ),
        (
            1,
            "openai-responses",
            r#"{"type":"message","id":"T3BhcXVl" ,"role":"assistant","content":[{"type":"output_text","text":"said"}]}"#,
            "",
        ),
        (2, "anthropic", r#"{"type":"redacted_thinking" ,"data":"T3BhcXVl"}"#, ""),
        (3, "gemini", r#"{"text":"said" ,"thoughtSignature":"T3BhcXVl"}"#, ""),
    ] {
        let adapters = adapters(&listener.url);
        let provider = &*adapters[provider];
        let said = |dialect: &str, model: &str| {
            let native =
                Native { dialect: dialect.into(), model: model.into(), parts: vec![part.into()] };
            plain().with_message(Message::Assistant(AssistantMessage {
                text: "said".into(),
                native: Some(native),
                ..AssistantMessage::default()
            }))
        };
        let text = async |request: ChatRequest| {
            let (_, body) = listener.asked(provider, &request).await.unwrap();
            String::from_utf8(body).unwrap()
        };
        let same = text(said(dialect, MODEL)).await;
        assert!(same.contains(if sent.is_empty() { part } else { sent }), "{dialect}: {same}");
        for (dialect, model) in [(dialect, "m-2"), ("another", MODEL)] {
            let other = text(said(dialect, model)).await;
            assert!(other.contains("said") && !other.contains("T3BhcXVl"), "{dialect}: {other}");
        }
    }
}

#[tokio::test]
async fn headers_are_set_alike_in_each_dialect() {
    let listener = Listener::start().await;
    for provider in &adapters(&listener.url) {
        let (head, _) = listener.asked(&**provider, &plain()).await.unwrap();
        let version = concat!("user-agent: turnbuckle/", env!("CARGO_PKG_VERSION"));
        for line in [version, "accept-encoding: identity", "content-type: application/json"] {
            assert!(head.lines().any(|it| it == line), "{line} to {}: {head}", provider.id());
        }
    }
    fn dressed<O: AdapterOptions>(builder: AdapterBuilder<O>, url: &str) -> Box<dyn Provider> {
        made(builder.base_url(url).user_agent("my-app/1.0").header("x-team", "blue").api_key("k-1"))
    }
    let url = &*listener.url;
    let affinity = Affinity::Header("x-affinity");
    let by_header = turnbuckle_providers::anthropic::Affinity::Header("x-affinity");
    for (provider, key) in [
        (dressed(OpenAiChat::builder(url).affinity(affinity), url), "authorization: bearer k-1"),
        (dressed(OpenAiResponses::builder().affinity(affinity), url), "authorization: bearer k-1"),
        (dressed(Anthropic::builder().affinity(by_header), url), "x-api-key: k-1"),
        (dressed(Gemini::builder().affinity(affinity), url), "x-goog-api-key: k-1"),
    ] {
        let mut request = plain();
        request.session_id = Some("s-1".into());
        let (head, _) = listener.asked(&*provider, &request).await.unwrap();
        for line in ["user-agent: my-app/1.0", "x-team: blue", "x-affinity: s-1", key] {
            assert!(head.lines().any(|it| it == line), "{line} to {}: {head}", provider.id());
        }
    }
}
