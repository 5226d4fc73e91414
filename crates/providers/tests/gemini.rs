//! The Gemini adapter over real sockets, against a server that fails by script.

#![cfg(feature = "gemini")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod dialect;

use std::sync::Arc;

use dialect::{attempt, meets_the_catalogue};
use turnbuckle_faults::{DEFAULT_TEXT, FaultServer, Script, Step, Usage};
use turnbuckle_providers::{
    Arguments, ChatRequest, Clocks, FinishReason, Message, ToolResult, gemini::Gemini,
    transport::ReqwestTransport,
};

fn provider(server: &FaultServer, clocks: Clocks) -> Gemini {
    let transport = Arc::new(ReqwestTransport::direct(&clocks).unwrap());
    Gemini::builder()
        .base_url(server.base_url())
        .api_key("canary-7f3b9a-key")
        .clocks(clocks)
        .transport(transport)
        .build()
        .unwrap()
}

fn hello() -> ChatRequest {
    ChatRequest::new("gemini-x").with_message(Message::User("hello".into()))
}

#[tokio::test]
async fn every_core_fault_gets_the_code_that_the_catalogue_expects() {
    meets_the_catalogue(provider, &hello()).await;
}

#[tokio::test]
async fn a_tool_turn_sends_the_signed_call_back() {
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
    assert_eq!(asked.finish(), FinishReason::ToolCalls);
    assert_eq!(
        (asked.usage().input_tokens, asked.usage().cached_tokens, asked.usage().output_tokens),
        (Some(20), Some(10), Some(15))
    );
    let expected = Arguments::Whole(r#"{"path":"notes — 漢字.txt"}"#.into());
    assert_eq!(asked.message().tool_calls.first().unwrap().arguments, expected);

    let native = asked.message().native_for("gemini", "gemini-x").unwrap();
    assert!(native.iter().any(|part| part.contains("\"thoughtSignature\":\"Zm")), "{native:?}");
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
    let body = &sent.get(1).unwrap().body;
    let parts = body.pointer("/contents/1/parts").unwrap().to_string();
    assert_eq!(parts, format!("[{}]", native.join(",")));
    assert_eq!(body.pointer("/contents/2/parts").unwrap().as_array().unwrap().len(), 2);
}

/// Small streams of our own, one oddity each, whole and cut in every way.
#[cfg(feature = "test-support")]
#[test]
fn every_stream_of_our_own_reads_as_its_row_expects() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    for seed in 0..20 {
        let report = turnbuckle_providers::conformance::run(&folder, "gemini", seed).unwrap();
        assert_eq!(report.misses, []);
        assert_eq!((report.rows, report.matched), (10, 10));
        assert!(report.truncations > 50);
    }
}

/// Every signature and every item of a server tool in a recorded answer is kept.
#[cfg(feature = "test-support")]
#[test]
#[ignore = "needs a corpus; its folder comes in TURNBUCKLE_CORPUS"]
fn no_opaque_part_of_a_recorded_answer_is_lost() {
    use serde_json::Value;
    use turnbuckle_providers::{gemini, transport::ResponseHead};

    let dir = std::env::var_os("TURNBUCKLE_CORPUS").expect("TURNBUCKLE_CORPUS names the corpus");
    let dir = std::path::Path::new(&dir);
    let index = std::fs::read_to_string(dir.join("index.jsonl")).unwrap();
    let (mut messages, mut signatures, mut of_server) = (0, 0, 0);
    for line in index.lines().filter(|line| line.contains("\"protocol\": \"gemini\"")) {
        let row: Value = serde_json::from_str(line).unwrap();
        let file = row["file"].as_str().unwrap();
        let body = std::fs::read(dir.join(file)).unwrap();
        let head = ResponseHead::new(u16::try_from(row["status"].as_u64().unwrap()).unwrap(), []);
        let ending = gemini::BodyEnding::Clean;
        let redact = Arc::new(turnbuckle_errors::Opaque);
        let Ok(message) = gemini::decode_body(head, [body.clone().into()], ending, redact) else {
            continue;
        };
        messages += 1;
        // The decoder of recordings was asked for no model.
        let native = message.message().native_for("gemini", "").unwrap_or_default();
        let parts: Vec<Value> =
            native.iter().map(|part| serde_json::from_str(part).unwrap()).collect();
        let signed = parts.iter().filter(|part| part["thoughtSignature"].is_string()).count();
        let wanted = row["expect"]["signatures"].as_u64().unwrap_or(0);
        assert_eq!(u64::try_from(signed).unwrap(), wanted, "{file}");
        let items = row["expect"]["server_items"].as_array().cloned().unwrap_or_default();
        for item in &items {
            let name = item.as_str().unwrap();
            assert!(parts.iter().any(|part| part[name].is_object()), "{file}: {name}");
        }
        signatures += signed;
        of_server += items.len();
        // What came as one document goes back to the byte.
        let text = String::from_utf8_lossy(&body);
        for part in native.iter().filter(|part| part.contains("thoughtSignature")) {
            let rebuilt = text.contains("partialArgs") || text.contains("willContinue");
            assert!(rebuilt || text.contains(part.as_str()), "{file}: {part}");
        }
    }
    assert!(
        messages > 40 && signatures > 20 && of_server > 8,
        "{messages} {signatures} {of_server}"
    );
}
