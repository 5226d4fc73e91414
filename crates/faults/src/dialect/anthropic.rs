//! Anthropic Messages, as api.anthropic.com streams it.

use serde_json::{Value, json};

use super::{
    Ask, Dialect, Frame, Turn,
    chat::{call_id, default_usage, fragments, read_bool},
};
use crate::{
    behaviour::{Api, ErrorReply},
    content::{Content, Finish},
};

/// The signature of every thinking block, which no server ever made.
const SIGNATURE: &str = "ZmF1bHRzLWFyZS1ub3Qtc2lnbmVk+/==";

/// The dialect of `POST …/messages`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn api(&self) -> Api {
        Api::Anthropic
    }

    fn ping(&self) -> &'static str {
        "event: ping\ndata: {\"type\": \"ping\"}\n\n"
    }

    fn read(&self, body: &Value) -> Result<Ask, String> {
        let Some(body) = body.as_object() else {
            return Err("the request body must be a JSON object".into());
        };
        let Some(model) = body.get("model").and_then(Value::as_str) else {
            return Err("model: Field required".into());
        };
        if body.get("max_tokens").and_then(Value::as_u64).is_none_or(|limit| limit == 0) {
            return Err("max_tokens: Field required, a number that is at least 1".into());
        }
        let messages = match body.get("messages") {
            Some(Value::Array(messages)) if !messages.is_empty() => messages,
            _ => return Err("messages: at least one message is required".into()),
        };
        Ok(Ask {
            model: model.to_owned(),
            stream: read_bool(body.get("stream"), "stream")?,
            usage: true,
            prompt_bytes: messages.iter().map(|m| m.to_string().len()).sum(),
        })
    }

    fn frames(&self, content: &Content, ask: &Ask, turn: Turn) -> Vec<Frame> {
        let usage = usage(content, ask);
        let message = message(ask, turn, &json!([]), &usage, None);
        let mut frames = vec![event(&json!({"type": "message_start", "message": message}), false)];
        let mut blocks = 0;
        let reasoning = content.reasoning.as_deref().unwrap_or("");
        if !reasoning.is_empty() {
            let begun = json!({"type": "thinking", "thinking": "", "signature": ""});
            let deltas = content.deltas(reasoning).into_iter();
            let deltas = deltas.map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
            let signed = json!({"type": "signature_delta", "signature": SIGNATURE});
            block(&mut frames, &mut blocks, &begun, deltas.chain([signed]));
        }
        if !content.text().is_empty() {
            let begun = json!({"type": "text", "text": ""});
            let deltas = content.deltas(content.text()).into_iter();
            let deltas = deltas.map(|piece| json!({"type": "text_delta", "text": piece}));
            block(&mut frames, &mut blocks, &begun, deltas);
        }
        for (index, call) in content.tool_calls.iter().enumerate() {
            let id = call_id(call, turn, index);
            let begun = json!({"type": "tool_use", "id": id, "name": call.name, "input": {}});
            let deltas = fragments(&call.arguments).into_iter();
            let deltas =
                deltas.map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
            block(&mut frames, &mut blocks, &begun, deltas);
        }
        let last = json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(content), "stop_sequence": null},
            "usage": usage,
        });
        frames.push(event(&last, true));
        // It would complete the answer too, if the stop reason were left out.
        frames.push(event(&json!({"type": "message_stop"}), true));
        frames
    }

    fn document(&self, content: &Content, ask: &Ask, turn: Turn) -> Value {
        let mut blocks = Vec::new();
        if let Some(reasoning) = &content.reasoning {
            blocks.push(json!({
                "type": "thinking", "thinking": reasoning, "signature": SIGNATURE,
            }));
        }
        if !content.text().is_empty() {
            blocks.push(json!({"type": "text", "text": content.text()}));
        }
        for (index, call) in content.tool_calls.iter().enumerate() {
            let input = serde_json::from_str(&call.arguments)
                .unwrap_or_else(|_| Value::from(call.arguments.as_str()));
            let id = call_id(call, turn, index);
            blocks.push(json!({"type": "tool_use", "id": id, "name": call.name, "input": input}));
        }
        let reason = Some(stop_reason(content));
        message(ask, turn, &blocks.into(), &usage(content, ask), reason)
    }

    fn unfinish(&self, document: &mut Value) {
        if let Some(reason) = document.get_mut("stop_reason") {
            *reason = Value::Null;
        }
    }

    fn error(&self, reply: &ErrorReply) -> Value {
        json!({
            "type": "error",
            "error": {"type": kind(reply), "message": reply.message},
            "request_id": null,
        })
    }

    fn error_frame(&self, reply: &ErrorReply) -> Vec<u8> {
        event(&self.error(reply), false).bytes
    }

    fn open_line(&self, _: &Ask, _: Turn) -> (Vec<u8>, Vec<u8>) {
        const BEFORE: &str = "event: content_block_delta\n\
            data: {\"type\":\"content_block_delta\",\"index\":0,\
            \"delta\":{\"type\":\"text_delta\",\"text\":\"";
        (BEFORE.into(), b"\"}}\n\n".to_vec())
    }
}

/// The error's type in the words of this API: scripts speak of errors in those of
/// OpenAI, whose types are not Anthropic's. A word of the script's own stays.
fn kind(reply: &ErrorReply) -> &str {
    match (reply.kind.as_str(), reply.status) {
        ("insufficient_quota", _) => "billing_error",
        ("server_error", 503 | 529) => "overloaded_error",
        ("server_error", _) => "api_error",
        ("requests" | "tokens", 429) => "rate_limit_error",
        ("invalid_request_error", 401) => "authentication_error",
        ("invalid_request_error", 403) => "permission_error",
        ("invalid_request_error", 404) => "not_found_error",
        ("invalid_request_error", 413) => "request_too_large",
        (own, _) => own,
    }
}

fn stop_reason(content: &Content) -> &'static str {
    match content.finish() {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolCalls => "tool_use",
        Finish::ContentFilter => "refusal",
    }
}

fn message(
    ask: &Ask,
    turn: Turn,
    content: &Value,
    usage: &Value,
    stop_reason: Option<&str>,
) -> Value {
    json!({
        "model": ask.model,
        "id": format!("msg_fault_{}", turn.attempt),
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage,
    })
}

/// One block: its start, its deltas and its end.
fn block(
    frames: &mut Vec<Frame>,
    blocks: &mut usize,
    begun: &Value,
    deltas: impl Iterator<Item = Value>,
) {
    let index = *blocks;
    *blocks += 1;
    let start = json!({"type": "content_block_start", "index": index, "content_block": begun});
    frames.push(event(&start, false));
    for delta in deltas {
        let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
        frames.push(event(&delta, false));
    }
    frames.push(event(&json!({"type": "content_block_stop", "index": index}), false));
}

fn event(json: &Value, terminal: bool) -> Frame {
    let name = json.get("type").and_then(Value::as_str).unwrap_or("message");
    Frame { bytes: format!("event: {name}\ndata: {json}\n\n").into_bytes(), terminal }
}

/// This API counts what came from a cache beside the input.
fn usage(content: &Content, ask: &Ask) -> Value {
    let usage = default_usage(content, ask);
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{content::ToolCall, dialect::Chat};

    fn ask() -> Ask {
        Ask { model: "m".into(), usage: true, ..Ask::probe() }
    }

    fn events(content: &Content) -> Vec<Value> {
        let frames = Anthropic.frames(content, &ask(), Turn::FIRST);
        let parsed = |frame: Frame| {
            let text = String::from_utf8(frame.bytes).unwrap();
            let (name, data) = text.split_once('\n').unwrap();
            let value: Value =
                serde_json::from_str(data.trim().strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(name, format!("event: {}", value["type"].as_str().unwrap()));
            value
        };
        frames.into_iter().map(parsed).collect()
    }

    fn full() -> Content {
        Content {
            reasoning: Some("why".into()),
            text: Some("so it is".into()),
            tool_calls: vec![
                ToolCall::new("Edit", &json!({"path": "notes.txt", "old_string": "漢字"})),
                ToolCall::new("Read", &json!({})),
            ],
            ..Content::default()
        }
    }

    #[test]
    fn a_stream_is_blocks_between_a_start_and_a_stop_reason() {
        let events = events(&full());
        let kinds: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
        assert_eq!(kinds[0], "message_start");
        assert_eq!(kinds[kinds.len() - 2..], ["message_delta", "message_stop"]);
        assert_eq!(kinds.iter().filter(|kind| **kind == "content_block_start").count(), 4);
        let joined = |index: usize, field: &str| -> String {
            let of = |event: &&Value| event["index"] == index;
            let pieces =
                events.iter().filter(of).filter_map(|event| event["delta"][field].as_str());
            pieces.collect()
        };
        assert_eq!(joined(0, "thinking"), "why");
        assert_eq!(joined(0, "signature"), SIGNATURE);
        assert_eq!(joined(1, "text"), "so it is");
        let arguments: Value = serde_json::from_str(&joined(2, "partial_json")).unwrap();
        assert_eq!(arguments["old_string"], "漢字");
        assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
    }

    #[test]
    fn it_has_an_event_for_every_event_that_a_script_may_name() {
        for content in [
            Content::default(),
            full(),
            Content { text: Some(String::new()), ..Content::default() },
        ] {
            let before = |frames: Vec<Frame>| frames.iter().position(|frame| frame.terminal);
            let chat = before(Chat.frames(&content, &ask(), Turn::FIRST));
            let ours = before(Anthropic.frames(&content, &ask(), Turn::FIRST));
            assert!(ours >= chat, "{content:?}: {ours:?}");
        }
    }

    #[test]
    fn a_document_says_the_same_and_can_be_left_unfinished() {
        let mut document =
            Anthropic.document(&full(), &ask(), Turn { attempt: 2, earlier_calls: 4 });
        assert_eq!(document["content"][2]["id"], "call_5");
        assert_eq!(document["content"][1]["text"], "so it is");
        assert_eq!(document["stop_reason"], "tool_use");
        Anthropic.unfinish(&mut document);
        assert_eq!(document["stop_reason"], Value::Null);
    }

    #[test]
    fn errors_are_typed_as_the_api_types_them() {
        for (status, own, expected) in [
            (401, "invalid_request_error", "authentication_error"),
            (404, "invalid_request_error", "not_found_error"),
            (400, "invalid_request_error", "invalid_request_error"),
            (429, "requests", "rate_limit_error"),
            (429, "insufficient_quota", "billing_error"),
            (500, "server_error", "api_error"),
            (503, "server_error", "overloaded_error"),
            (500, "timeout_error", "timeout_error"),
        ] {
            let reply = ErrorReply::new(status, own, "m");
            let error = Anthropic.error(&reply);
            assert_eq!(
                (&error["type"], &error["error"]["type"]),
                (&json!("error"), &json!(expected))
            );
            let frame = String::from_utf8(Anthropic.error_frame(&reply)).unwrap();
            assert!(frame.starts_with("event: error\ndata: {"), "{frame}");
        }
    }

    #[test]
    fn an_open_line_closes_to_one_valid_event() {
        let (before, after) = Anthropic.open_line(&ask(), Turn::FIRST);
        let line = String::from_utf8([before, b"aaa".to_vec(), after].concat()).unwrap();
        let (_, data) = line.split_once("data: ").unwrap();
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(event["delta"]["text"], "aaa");
    }

    #[test]
    fn a_request_is_refused_with_the_parameter_that_is_wrong() {
        for (body, part) in [
            (json!([]), "object"),
            (json!({"max_tokens": 1, "messages": [{}]}), "model"),
            (json!({"model": "m", "messages": [{}]}), "max_tokens"),
            (json!({"model": "m", "max_tokens": 0, "messages": [{}]}), "max_tokens"),
            (json!({"model": "m", "max_tokens": 1, "messages": []}), "messages"),
            (json!({"model": "m", "max_tokens": 1, "messages": [{}], "stream": 1}), "stream"),
        ] {
            let error = Anthropic.read(&body).unwrap_err();
            assert!(error.contains(part), "{body}: {error}");
        }
    }
}
