//! The Responses adapter over real sockets, against a server that fails by script.

#![cfg(feature = "openai-responses")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod dialect;

use std::sync::Arc;

use dialect::{attempt, meets_the_catalogue};
use turnbuckle_faults::{DEFAULT_TEXT, FaultServer, Script, Step, Usage};
use turnbuckle_providers::{
    Arguments, ChatRequest, Clocks, Message, ToolResult, openai_responses::OpenAiResponses,
    transport::ReqwestTransport,
};

fn provider(server: &FaultServer, clocks: Clocks) -> OpenAiResponses {
    let transport = Arc::new(ReqwestTransport::direct(&clocks).unwrap());
    OpenAiResponses::builder()
        .base_url(server.base_url())
        .api_key("canary-7f3b9a-key")
        .clocks(clocks)
        .transport(transport)
        .build()
        .unwrap()
}

fn hello() -> ChatRequest {
    ChatRequest::new("gpt-x").with_message(Message::User("hello".into()))
}

#[tokio::test]
async fn every_core_fault_gets_the_code_that_the_catalogue_expects() {
    meets_the_catalogue(provider, &hello()).await;
}

#[tokio::test]
async fn a_tool_turn_sends_the_encrypted_reasoning_back() {
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

    let native = asked.message().native_for("openai-responses", "gpt-x").unwrap();
    assert!(native.first().unwrap().contains("\"encrypted_content\":\"gAAA"), "{native:?}");
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
    let input = sent.get(1).unwrap().body.pointer("/input").unwrap().to_string();
    let results = ["call_1", "call_2"].map(|id| {
        format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"content"}}"#)
    });
    assert!(input.ends_with(&format!(",{},{}]", native.join(","), results.join(","))), "{input}");
}

/// Small streams of our own, one oddity each, whole and cut in every way.
#[cfg(feature = "test-support")]
#[test]
fn every_stream_of_our_own_reads_as_its_row_expects() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    for seed in 0..20 {
        let report = turnbuckle_providers::conformance::run(&folder, "responses", seed).unwrap();
        assert_eq!(report.misses, []);
        assert_eq!((report.rows, report.matched), (12, 12));
        assert!(report.truncations > 100);
    }
}

/// Every encrypted reasoning of a recorded answer is kept, and every item that came
/// whole is kept to the byte.
#[cfg(feature = "test-support")]
#[test]
#[ignore = "needs a corpus; its folder comes in TURNBUCKLE_CORPUS"]
fn no_opaque_part_of_a_recorded_answer_is_lost() {
    use serde_json::{Value, value::RawValue};
    use turnbuckle_providers::{openai_responses, transport::ResponseHead};

    #[derive(serde::Deserialize)]
    struct Document<'a> {
        #[serde(borrow)]
        output: Vec<&'a RawValue>,
    }

    let dir = std::env::var_os("TURNBUCKLE_CORPUS").expect("TURNBUCKLE_CORPUS names the corpus");
    let dir = std::path::Path::new(&dir);
    let (mut messages, mut opaque, mut rebuilt) = (0, 0, Vec::new());
    let index = std::fs::read_to_string(dir.join("index.jsonl")).unwrap();
    for line in index.lines().filter(|line| line.contains("\"protocol\": \"responses\"")) {
        let row: Value = serde_json::from_str(line).unwrap();
        let file = row["file"].as_str().unwrap();
        let body = std::fs::read(dir.join(file)).unwrap();
        let head = ResponseHead::new(u16::try_from(row["status"].as_u64().unwrap()).unwrap(), []);
        let redact = Arc::new(turnbuckle_errors::Opaque);
        let ending = openai_responses::BodyEnding::Clean;
        let pieces = [body.clone().into()];
        let Ok(message) = openai_responses::decode_body(head, pieces, ending, redact) else {
            continue;
        };
        messages += 1;
        let Some(native) = message.message().native_for("openai-responses", "") else {
            rebuilt.push(file.to_owned());
            continue;
        };
        let encrypted = native.iter().filter(|part| {
            let part: Value = serde_json::from_str(part).unwrap();
            part["type"] == "reasoning" && part["encrypted_content"].is_string()
        });
        let wanted = row["expect"]["encrypted"].as_u64().unwrap_or(0);
        assert_eq!(u64::try_from(encrypted.count()).unwrap(), wanted, "{file}");
        opaque += wanted;
        if let Ok(document) = serde_json::from_slice::<Document<'_>>(&body) {
            let sent: Vec<_> = document.output.iter().map(|item| item.get()).collect();
            assert_eq!(native, sent, "{file}");
        }
    }
    // Answers that their own server would not take back: reasoning that only it
    // stored, tools that nobody ran, a call that was cut.
    assert!(rebuilt.len() <= 15, "{rebuilt:#?}");
    assert!(messages > 65 && opaque > 20, "{messages} messages, {opaque} opaque parts");
}
