//! A loop of tool calls: each request holds the calls and results before it.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use serde_json::{Value, json};
use turnbuckle_providers::{Message, ToolDefinition, ToolResult};

use super::{case::Dialect, ours::Ours, yardstick};

/// A request without a history.
pub(super) const QUESTION: &[u8] = br#"{"model":"a-model","stream":true,"messages":[{"role":"user","content":"What do the notes say?"}]}"#;

/// What every call of the tool gives: about 1 KB, with line ends to be escaped.
fn result() -> String {
    "a line of the notes, as a tool gives it back\n".repeat(23)
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
}

/// Our adapter builds each request from the whole conversation.
pub(super) async fn ours(ours: &Ours, count: usize) -> Result<String> {
    let mut request = Ours::question();
    request.tools.push(ToolDefinition {
        name: "read".to_owned(),
        description: "Reads a file".to_owned(),
        input_schema: schema(),
    });
    let mut all = String::new();
    for _ in 0..count {
        let message = ours.ask(&request, || {}).await?;
        let call = message.tool_calls.first().context("no tool was called")?;
        all.push_str(call.arguments.as_json());
        let result = ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            text: result(),
            images: Vec::new(),
            ok: true,
        };
        request.messages.push(Message::Assistant(message));
        request.messages.push(Message::Tool(result));
    }
    Ok(all)
}

/// The yardstick writes each message once, and sends what it has written (Chat).
pub(super) async fn l2(
    client: &reqwest::Client,
    url: &str,
    dialect: Dialect,
    count: usize,
) -> Result<String> {
    let open = QUESTION.strip_suffix(b"]}").context("the question is no request")?;
    let mut history = open.to_vec();
    let tool = json!({"type": "function", "function": {
        "name": "read", "description": "Reads a file", "parameters": schema()}});
    let close = format!(r#"],"tools":[{tool}]}}"#);
    let mut all = String::new();
    for _ in 0..count {
        let body = Bytes::from([history.as_slice(), close.as_bytes()].concat());
        let answer = yardstick::ask(client, url, dialect, body, || {}).await?;
        all.push_str(&answer.text);
        history.extend_from_slice(br#",{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"#);
        serde_json::to_writer(&mut history, &answer.text)?;
        history.extend_from_slice(br#"}}]},{"role":"tool","tool_call_id":"call_1","content":"#);
        serde_json::to_writer(&mut history, &result())?;
        history.push(b'}');
    }
    Ok(all)
}
