//! A loop of tool calls: each request holds the calls and results before it.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use serde_json::{Value, json};
use turnbuckle_providers::{Message, ToolDefinition, ToolResult};

use super::{case::Dialect, ours::Ours, yardstick};

/// A request without a history.
pub(super) const QUESTION: &[u8] = br#"{"model":"a-model","stream":true,"messages":[{"role":"user","content":"What do the notes say?"}]}"#;

/// The same for Gemini, which names the model in the path.
const GEMINI_QUESTION: &[u8] =
    br#"{"contents":[{"role":"user","parts":[{"text":"What do the notes say?"}]}]}"#;

/// What every call of the tool gives: about 1 KB, with line ends to be escaped.
fn result() -> String {
    "a line of the notes, as a tool gives it back\n".repeat(23)
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
}

/// Our adapter is given the whole conversation each time.
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

/// The yardstick writes each message once, and sends what it has written.
pub(super) async fn l2(
    client: &reqwest::Client,
    url: &str,
    dialect: Dialect,
    count: usize,
) -> Result<String> {
    let question = match dialect {
        Dialect::Gemini => GEMINI_QUESTION,
        _ => QUESTION,
    };
    let mut history = question.strip_suffix(b"]}").context("the question is no request")?.to_vec();
    let close = format!(r#"],"tools":[{}]}}"#, tool(dialect));
    let [before, between, after] = around(dialect);
    let mut all = String::new();
    for _ in 0..count {
        let body = Bytes::from([history.as_slice(), close.as_bytes()].concat());
        let answer = yardstick::ask(client, url, dialect, body, || {}).await?;
        all.push_str(&answer.text);
        history.extend_from_slice(before.as_bytes());
        match dialect {
            // The others carry the arguments as a text.
            Dialect::Anthropic | Dialect::Gemini => {
                history.extend_from_slice(answer.text.as_bytes())
            }
            _ => serde_json::to_writer(&mut history, &answer.text)?,
        }
        history.extend_from_slice(between.as_bytes());
        serde_json::to_writer(&mut history, &result())?;
        history.extend_from_slice(after.as_bytes());
    }
    Ok(all)
}

fn tool(dialect: Dialect) -> Value {
    let (name, description) = ("read", "Reads a file");
    match dialect {
        Dialect::Anthropic => {
            json!({"name": name, "description": description, "input_schema": schema()})
        }
        Dialect::Responses => json!({"type": "function", "name": name,
            "description": description, "parameters": schema()}),
        Dialect::Gemini => json!({"functionDeclarations": [
            {"name": name, "description": description, "parametersJsonSchema": schema()}]}),
        Dialect::Chat => json!({"type": "function", "function": {
            "name": name, "description": description, "parameters": schema()}}),
    }
}

/// What stands before the arguments of a call, between them and its result, and
/// after that.
const fn around(dialect: Dialect) -> [&'static str; 3] {
    match dialect {
        Dialect::Anthropic => [
            r#",{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read","input":"#,
            r#"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"#,
            "}]}",
        ],
        Dialect::Responses => [
            r#",{"type":"function_call","call_id":"call_1","name":"read","arguments":"#,
            r#"},{"type":"function_call_output","call_id":"call_1","output":"#,
            "}",
        ],
        Dialect::Gemini => [
            r#",{"role":"model","parts":[{"functionCall":{"name":"read","args":"#,
            r#"}}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"#,
            "}}}]}",
        ],
        Dialect::Chat => [
            r#",{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"#,
            r#"}}]},{"role":"tool","tool_call_id":"call_1","content":"#,
            "}",
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_yardstick_writes_json_in_every_dialect() {
        for dialect in Dialect::ALL {
            let [before, between, after] = around(dialect);
            let (question, list) = match dialect {
                Dialect::Gemini => (GEMINI_QUESTION, "contents"),
                _ => (QUESTION, "messages"),
            };
            let open = std::str::from_utf8(question.strip_suffix(b"]}").unwrap()).unwrap();
            let body = format!(
                r#"{open}{before}"{{}}"{between}"x"{after}],"tools":[{}]}}"#,
                tool(dialect)
            );
            let body: Value = serde_json::from_str(&body).unwrap();
            assert!(body[list].as_array().unwrap().len() == 3, "{body}");
        }
    }
}
