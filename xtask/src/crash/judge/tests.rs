use serde_json::json;

use super::*;

const FILE: &str = r#"{"record":"session","version":1,"sessionId":"s","created":""}
{"record":"user","text":"go"}
{"record":"assistant","messageId":"m1","message":{"text":"a","toolCalls":[{"id":"c1","name":"Bash","arguments":{"whole":"{}"}}]},"finish":"tool_calls","usage":{}}
{"record":"tool_start","callId":"c1","name":"Bash"}
{"record":"tool_result","callId":"c1","name":"Bash","ok":true,"text":""}
"#;

fn committed() -> Committed {
    Committed::of(FILE.as_bytes().to_vec())
}

fn body(messages: &[Value]) -> Value {
    json!({ "messages": messages })
}

fn asking(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({"id": id, "function": {"name": "Bash", "arguments": "{}"}});
    json!({"role": "assistant", "content": "a", "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
}

fn tool(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": ""})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn what_is_whole_is_committed_and_no_more() {
    let whole = committed();
    assert_eq!((whole.records.len(), whole.bytes.len()), (5, FILE.len()));
    let torn = Committed::of(FILE.as_bytes()[..FILE.len() - 5].to_vec());
    assert_eq!(torn.records.len(), 4);
    assert!(FILE.as_bytes().starts_with(&torn.bytes) && torn.bytes.ends_with(b"\n"));
    assert_eq!(Committed::of(FILE.as_bytes()[..FILE.len() - 1].to_vec()).records.len(), 5);
}

#[test]
fn a_byte_that_is_gone_is_a_loss() {
    let before = committed();
    assert!(kept(&before, format!("{FILE}more").as_bytes()).is_empty());
    assert_eq!(kept(&before, &FILE.as_bytes()[..FILE.len() - 1]).len(), 1);
    assert_eq!(kept(&before, FILE.replace("go", "no").as_bytes()).len(), 1);
}

#[test]
fn a_request_that_forgets_is_a_loss() {
    let before = committed();
    let whole = [user("go"), asking(&["c1"]), tool("c1"), user("go on")];
    assert!(remembered(&before, &body(&whole)).is_empty());
    assert_eq!(remembered(&before, &body(&whole[..2])).len(), 1);
    assert_eq!(remembered(&before, &body(&[user("go on")])).len(), 1);
}

#[test]
fn a_message_that_was_shown_and_is_gone_is_a_loss() {
    let shown = |id: &str| json!({"type": "message_end", "messageId": id, "turn": 1});
    let next = json!({"type": "turn_start", "turn": 2});
    assert!(missing(&[shown("m1"), next.clone()], &committed()).is_empty());
    assert_eq!(missing(&[shown("m2"), next], &committed()).len(), 1);
    // The step that was cut is not promised.
    assert!(missing(&[shown("m2")], &committed()).is_empty());
}

#[test]
fn a_change_happens_once_and_only_after_it_was_noted() {
    let records = committed().records;
    assert!(effects(&records, "c1\n").is_empty());
    assert_eq!(effects(&records, "c1\nc1\n").len(), 1);
    assert_eq!(effects(&records, "").len(), 1);
    assert_eq!(effects(&records, "c1\nc9\n").len(), 1);
    assert!(effects(&records[..4], "").is_empty());
}

#[test]
fn a_change_without_a_result_is_under_way() {
    let records = committed().records;
    assert!(in_a_tool(&records[..4]) && !in_a_tool(&records[..3]) && !in_a_tool(&records));
}

#[test]
fn requests_that_a_provider_refuses_are_told() {
    let fine = [user("go"), asking(&["a", "b"]), tool("a"), tool("b"), user("on")];
    assert_eq!(invalid(&body(&fine)), None);
    let blank = json!({"role": "assistant", "content": " "});
    let broken = json!({"role": "assistant", "content": "a",
        "tool_calls": [{"id": "a", "function": {"arguments": "{"}}]});
    for wrong in [
        vec![user("go"), asking(&["a", "b"]), tool("b"), tool("a")],
        vec![user("go"), asking(&["a"]), user("on")],
        vec![user("go"), asking(&["a"])],
        vec![user("go"), tool("a")],
        vec![user("go"), blank],
        vec![asking(&[])],
        vec![user("go"), broken, tool("a")],
        vec![user("go"), user("the lost words")],
    ] {
        assert!(invalid(&body(&wrong)).is_some(), "{wrong:?}");
    }
}
