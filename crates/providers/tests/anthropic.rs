//! The Anthropic adapter over real sockets, against a server that fails by script.

#![cfg(feature = "anthropic")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod dialect;

use std::sync::Arc;

use dialect::{attempt, meets_the_catalogue};
use turnbuckle_faults::{DEFAULT_TEXT, FaultServer, Script, Step, Usage};
use turnbuckle_providers::{
    Arguments, ChatRequest, Clocks, Message, ToolResult, anthropic::Anthropic,
    transport::ReqwestTransport,
};

fn provider(server: &FaultServer, clocks: Clocks) -> Anthropic {
    let transport = Arc::new(ReqwestTransport::direct(&clocks).unwrap());
    Anthropic::builder()
        .base_url(server.base_url())
        .api_key("canary-7f3b9a-key")
        .clocks(clocks)
        .transport(transport)
        .build()
        .unwrap()
}

fn hello() -> ChatRequest {
    ChatRequest::new("claude-x").with_message(Message::User("hello".into()))
}

#[tokio::test]
async fn every_core_fault_gets_the_code_that_the_catalogue_expects() {
    meets_the_catalogue(provider, &hello()).await;
}

#[tokio::test]
async fn a_tool_turn_sends_the_signed_thinking_back() {
    let usage = Usage { input: 30, output: 20, cached: 10, reasoning: 5 };
    let calls = Step::named("whole")
        .unwrap()
        .reasoning("let me look")
        .tool_call("Read", &serde_json::json!({"path": "notes — 漢字.txt"}))
        .tool_call("Read", &serde_json::json!({}))
        .usage(usage);
    let script = Script::new(vec![calls, Step::named("whole").unwrap()]).unwrap();
    let server = FaultServer::start_anywhere(script).await.unwrap();
    let provider = provider(&server, Clocks::default());
    let (asked, _) = attempt(&provider, &hello()).await.unwrap();
    assert_eq!(asked.message().reasoning, "let me look");
    assert_eq!(
        (asked.usage().input_tokens, asked.usage().cached_tokens, asked.usage().output_tokens),
        (Some(20), Some(10), Some(15))
    );
    let expected = Arguments::Whole(r#"{"path":"notes — 漢字.txt"}"#.into());
    assert_eq!(asked.message().tool_calls.first().unwrap().arguments, expected);

    let native = asked.message().native_for("anthropic", "claude-x").unwrap();
    assert!(native.first().unwrap().contains("\"signature\":\"Zm"), "{native:?}");
    let mut request = hello().with_message(Message::Assistant(asked.message().clone()));
    for call in &asked.message().tool_calls {
        request = request.with_message(Message::Tool(ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            text: "content".into(),
            images: Vec::new(),
            ok: true,
        }));
    }
    let (answer, _) = attempt(&provider, &request).await.unwrap();
    assert_eq!(answer.message().text, DEFAULT_TEXT);
    let sent = server.requests();
    let content = sent.get(1).unwrap().body.pointer("/messages/1/content").unwrap().to_string();
    assert_eq!(content, format!("[{}]", native.join(",")));
}

/// Small streams of our own, one oddity each, whole and cut in every way.
#[cfg(feature = "test-support")]
#[test]
fn every_stream_of_our_own_reads_as_its_row_expects() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    for seed in 0..20 {
        let report = turnbuckle_providers::conformance::run(&folder, "anthropic", seed).unwrap();
        assert_eq!(report.misses, []);
        assert_eq!((report.rows, report.matched), (13, 13));
        assert!(report.truncations > 100);
    }
}

/// Every signature and every redacted block of a recorded answer is kept, and a
/// block that came whole is kept to the byte.
#[cfg(feature = "test-support")]
#[test]
#[ignore = "needs a corpus; its folder comes in TURNBUCKLE_CORPUS"]
fn no_opaque_part_of_a_recorded_answer_is_lost() {
    use serde_json::{Value, value::RawValue};
    use turnbuckle_providers::{anthropic, transport::ResponseHead};

    #[derive(serde::Deserialize)]
    struct Document<'a> {
        #[serde(borrow)]
        content: Vec<&'a RawValue>,
    }

    let dir = std::env::var_os("TURNBUCKLE_CORPUS").expect("TURNBUCKLE_CORPUS names the corpus");
    let dir = std::path::Path::new(&dir);
    let index = std::fs::read_to_string(dir.join("index.jsonl")).unwrap();
    let (mut messages, mut opaque) = (0, 0);
    for line in index.lines().filter(|line| line.contains("\"protocol\": \"anthropic\"")) {
        let row: Value = serde_json::from_str(line).unwrap();
        let file = row["file"].as_str().unwrap();
        let body = std::fs::read(dir.join(file)).unwrap();
        let head = ResponseHead::new(u16::try_from(row["status"].as_u64().unwrap()).unwrap(), []);
        let ending = anthropic::BodyEnding::Clean;
        let redact = Arc::new(turnbuckle_errors::Opaque);
        let Ok(message) = anthropic::decode_body(head, [body.clone().into()], ending, "m", redact)
        else {
            continue;
        };
        messages += 1;
        let native = message.message().native_for("anthropic", "m").unwrap_or_default();
        let parts: Vec<Value> =
            native.iter().map(|part| serde_json::from_str(part).unwrap()).collect();
        let has = |name: &str| {
            let told = |part: &&Value| part[name].as_str().is_some_and(|text| !text.is_empty());
            u64::try_from(parts.iter().filter(told).count()).unwrap()
        };
        let wanted = |name: &str| row["expect"][name].as_u64().unwrap_or(0);
        let items = row["expect"]["server_items"].as_array().map_or(0, Vec::len);
        assert_eq!(
            (has("signature"), has("data")),
            (wanted("signatures"), wanted("redacted")),
            "{file}"
        );
        let of_server = |part: &&Value| {
            let kind = part["type"].as_str().unwrap();
            !["text", "thinking", "redacted_thinking", "tool_use"].contains(&kind)
        };
        assert_eq!(parts.iter().filter(of_server).count(), items, "{file}");
        opaque += parts.len();
        if let Ok(document) = serde_json::from_slice::<Document<'_>>(&body)
            && !native.is_empty()
        {
            let sent: Vec<_> = document.content.iter().map(|block| block.get()).collect();
            assert_eq!(native, sent, "{file}");
        }
    }
    assert!(messages > 60 && opaque > 100, "{messages} messages, {opaque} opaque parts");
}
