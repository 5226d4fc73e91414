//! OpenAI Chat Completions, as api.openai.com streams it; reasoning is sent as
//! `reasoning_content`, the spelling of DeepSeek's API and of vLLM.

use serde_json::{Map, Value, json};

use super::{Ask, Dialect, Frame, Turn};
use crate::{
    behaviour::{Api, ErrorReply},
    content::{Content, ToolCall, Usage},
};

/// The time every answer claims, so that runs are equal byte for byte.
pub(super) const CREATED: u64 = 1_764_547_200;

/// Argument fragments are this many characters: enough that a fragment is
/// hardly ever JSON by itself.
const FRAGMENT_CHARS: usize = 9;

/// The dialect of `POST …/chat/completions`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chat;

impl Dialect for Chat {
    fn api(&self) -> Api {
        Api::Chat
    }

    fn ping(&self) -> &'static str {
        "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n"
    }

    fn read(&self, body: &Value) -> Result<Ask, String> {
        let Some(body) = body.as_object() else {
            return Err("the request body must be a JSON object".into());
        };
        let Some(model) = body.get("model").and_then(Value::as_str) else {
            return Err("you must provide a model parameter: a string".into());
        };
        let messages = match body.get("messages") {
            Some(Value::Array(messages)) if !messages.is_empty() => messages,
            _ => return Err("`messages` must be an array with at least one message".into()),
        };
        let usage = body.get("stream_options").and_then(|o| o.get("include_usage"));
        Ok(Ask {
            model: model.to_owned(),
            stream: read_bool(body.get("stream"), "stream")?,
            usage: read_bool(usage, "stream_options.include_usage")?,
            prompt_bytes: messages.iter().map(|m| m.to_string().len()).sum(),
        })
    }

    fn frames(&self, content: &Content, ask: &Ask, turn: Turn) -> Vec<Frame> {
        let chunk = |delta: Value| data(&chunk(ask, turn, delta, Value::Null), false);
        let mut frames = vec![chunk(json!({"role": "assistant", "content": "", "refusal": null}))];
        for piece in content.deltas(content.reasoning.as_deref().unwrap_or("")) {
            frames.push(chunk(json!({"reasoning_content": piece})));
        }
        for piece in content.deltas(content.text()) {
            frames.push(chunk(json!({"content": piece})));
        }
        for (index, call) in content.tool_calls.iter().enumerate() {
            let id = call_id(call, turn, index);
            frames.push(chunk(json!({"tool_calls": [{
                "index": index, "id": id, "type": "function",
                "function": {"name": call.name, "arguments": ""},
            }]})));
            for piece in fragments(&call.arguments) {
                frames.push(chunk(json!({"tool_calls": [{
                    "index": index, "function": {"arguments": piece},
                }]})));
            }
        }
        let finish = content.finish().as_str().into();
        let last = self::chunk(ask, turn, json!({}), finish);
        frames.push(data(&last, true));
        if ask.usage {
            let mut tail = self::chunk(ask, turn, json!({}), Value::Null);
            tail.insert("choices".into(), json!([]));
            tail.insert("usage".into(), usage(content, ask));
            frames.push(data(&tail, false));
        }
        frames.push(Frame { bytes: b"data: [DONE]\n\n".to_vec(), terminal: false });
        frames
    }

    fn document(&self, content: &Content, ask: &Ask, turn: Turn) -> Value {
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        let text = content.text();
        // OpenAI sends `null` rather than an empty text beside tool calls.
        let silent = text.is_empty() && !content.tool_calls.is_empty();
        message.insert("content".into(), if silent { Value::Null } else { text.into() });
        if let Some(reasoning) = &content.reasoning {
            message.insert("reasoning_content".into(), reasoning.as_str().into());
        }
        if !content.tool_calls.is_empty() {
            message.insert("tool_calls".into(), whole_calls(&content.tool_calls, turn));
        }
        json!({
            "id": answer_id(turn),
            "object": "chat.completion",
            "created": CREATED,
            "model": ask.model,
            "choices": [{
                "index": 0,
                "message": message,
                "logprobs": null,
                "finish_reason": content.finish().as_str(),
            }],
            "usage": usage(content, ask),
        })
    }

    fn unfinish(&self, document: &mut Value) {
        if let Some(finish) = document.pointer_mut("/choices/0/finish_reason") {
            *finish = Value::Null;
        }
    }

    fn error(&self, reply: &ErrorReply) -> Value {
        json!({"error": {
            "message": reply.message,
            "type": reply.kind,
            "param": null,
            "code": reply.code,
        }})
    }

    fn error_frame(&self, reply: &ErrorReply) -> Vec<u8> {
        format!("data: {}\n\n", self.error(reply)).into_bytes()
    }

    fn open_line(&self, ask: &Ask, turn: Turn) -> (Vec<u8>, Vec<u8>) {
        const MARK: &str = "\u{1}here";
        let line = Value::Object(chunk(ask, turn, json!({"content": MARK}), Value::Null));
        let line = format!("data: {line}\n\n");
        // serde_json writes the mark's control character as an escape; no model name can
        // hold it unescaped, so the last match is ours.
        let (before, after) = line.rsplit_once("\\u0001here").unwrap_or((&line, ""));
        (before.as_bytes().to_vec(), after.as_bytes().to_vec())
    }
}

pub(super) fn read_bool(value: Option<&Value>, name: &str) -> Result<bool, String> {
    match value {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(yes)) => Ok(*yes),
        Some(other) => Err(format!("`{name}` must be true or false, not {other}")),
    }
}

fn chunk(ask: &Ask, turn: Turn, delta: Value, finish: Value) -> Map<String, Value> {
    let mut chunk = Map::new();
    chunk.insert("id".into(), answer_id(turn).into());
    chunk.insert("object".into(), "chat.completion.chunk".into());
    chunk.insert("created".into(), CREATED.into());
    chunk.insert("model".into(), ask.model.as_str().into());
    chunk.insert("service_tier".into(), "default".into());
    chunk.insert("system_fingerprint".into(), "fp_faults".into());
    let mut choice = Map::new();
    choice.insert("index".into(), 0.into());
    choice.insert("delta".into(), delta);
    choice.insert("logprobs".into(), Value::Null);
    choice.insert("finish_reason".into(), finish);
    chunk.insert("choices".into(), Value::Array(vec![Value::Object(choice)]));
    if ask.usage {
        // api.openai.com: every chunk but the last then says `"usage": null`.
        chunk.insert("usage".into(), Value::Null);
    }
    chunk
}

fn data(chunk: &Map<String, Value>, terminal: bool) -> Frame {
    let json = serde_json::to_string(chunk).unwrap_or_default();
    Frame { bytes: format!("data: {json}\n\n").into_bytes(), terminal }
}

fn answer_id(turn: Turn) -> String {
    format!("chatcmpl-fault-{}", turn.attempt)
}

pub(super) fn call_id(call: &ToolCall, turn: Turn, index: usize) -> String {
    let numbered = || format!("call_{}", turn.earlier_calls + index + 1);
    call.id.clone().unwrap_or_else(numbered)
}

fn whole_calls(calls: &[ToolCall], turn: Turn) -> Value {
    let whole = |(index, call): (usize, &ToolCall)| {
        json!({
            "id": call_id(call, turn, index),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        })
    };
    calls.iter().enumerate().map(whole).collect()
}

pub(super) fn fragments(arguments: &str) -> Vec<String> {
    let chars: Vec<char> = arguments.chars().collect();
    chars.chunks(FRAGMENT_CHARS).map(|piece| piece.iter().collect()).collect()
}

/// The usage the step gives; else about four bytes a token, as prose comes out.
pub(super) fn default_usage(content: &Content, ask: &Ask) -> Usage {
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
    content.usage.unwrap_or_else(|| {
        let called: usize = content.tool_calls.iter().map(|c| c.arguments.len()).sum();
        let reasoning = tokens(content.reasoning.as_deref().map_or(0, str::len));
        Usage {
            input: tokens(ask.prompt_bytes),
            output: tokens(content.text().len() + called) + reasoning,
            cached: 0,
            reasoning,
        }
    })
}

fn usage(content: &Content, ask: &Ask) -> Value {
    let usage = default_usage(content, ask);
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input.saturating_add(usage.output),
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> Ask {
        Ask { model: "m".into(), usage: true, ..Ask::probe() }
    }

    fn events(content: &Content) -> Vec<String> {
        let frames = Chat.frames(content, &ask(), Turn::FIRST);
        frames.into_iter().map(|f| String::from_utf8(f.bytes).unwrap()).collect()
    }

    fn parsed(event: &str) -> Value {
        serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap()
    }

    #[test]
    fn a_stream_has_role_deltas_finish_usage_and_done_in_this_order() {
        let content = Content { reasoning: Some("why".into()), ..Content::default() };
        let events = events(&content);
        let (done, chunks) = events.split_last().unwrap();
        assert_eq!(done, "data: [DONE]\n\n");
        let chunks: Vec<Value> = chunks.iter().map(|e| parsed(e)).collect();
        assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(chunks[1]["choices"][0]["delta"]["reasoning_content"], "w");
        let text: String =
            chunks.iter().filter_map(|c| c["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(text, crate::DEFAULT_TEXT);
        let [finish, usage] = &chunks[chunks.len() - 2..] else { panic!("{chunks:?}") };
        assert_eq!(finish["choices"][0]["finish_reason"], "stop");
        assert_eq!(usage["choices"], json!([]));
        assert!(usage["usage"]["total_tokens"].as_u64().unwrap() > 0);
        assert_eq!(chunks[3]["usage"], Value::Null);
    }

    #[test]
    fn tool_arguments_are_streamed_in_fragments_that_join_to_the_whole() {
        let arguments = json!({"path": "notes.txt", "old_string": "wrold — 漢字"});
        let content = Content {
            tool_calls: vec![ToolCall::new("Edit", &arguments), ToolCall::new("Read", &json!({}))],
            ..Content::default()
        };
        let calls: Vec<Value> = events(&content)
            .iter()
            .filter(|e| e.contains("tool_calls\":"))
            .map(|e| parsed(e)["choices"][0]["delta"]["tool_calls"][0].clone())
            .collect();
        let opened: Vec<_> = calls.iter().filter(|c| c.get("id").is_some()).collect();
        assert_eq!(opened[0]["id"], "call_1");
        assert_eq!(opened[1]["id"], "call_2");
        let first: Vec<&str> = calls
            .iter()
            .filter(|c| c["index"] == 0)
            .filter_map(|c| c["function"]["arguments"].as_str())
            .collect();
        assert!(first.len() > 4, "{first:?}");
        assert_eq!(serde_json::from_str::<Value>(&first.concat()).unwrap(), arguments);
    }

    #[test]
    fn ids_of_tool_calls_go_on_counting_over_the_attempts() {
        let content =
            Content { tool_calls: vec![ToolCall::new("Read", &json!({}))], ..Content::default() };
        let turn = Turn { attempt: 3, earlier_calls: 4 };
        let document = Chat.document(&content, &ask(), turn);
        assert_eq!(document["choices"][0]["message"]["tool_calls"][0]["id"], "call_5");
        assert_eq!(document["choices"][0]["message"]["content"], Value::Null);
    }

    #[test]
    fn an_open_line_closes_to_one_valid_event_even_with_a_hostile_model_name() {
        let mut ask = ask();
        ask.model = "\u{1}here".into();
        let (before, after) = Chat.open_line(&ask, Turn::FIRST);
        let line = String::from_utf8([before, b"aaa".to_vec(), after].concat()).unwrap();
        assert_eq!(parsed(&line)["choices"][0]["delta"]["content"], "aaa");
    }

    #[test]
    fn a_request_is_refused_with_the_parameter_that_is_wrong() {
        for (body, part) in [
            (json!([]), "object"),
            (json!({"messages": [{}]}), "model"),
            (json!({"model": "m"}), "messages"),
            (json!({"model": "m", "messages": []}), "messages"),
            (json!({"model": "m", "messages": [{}], "stream": "yes"}), "stream"),
        ] {
            let error = Chat.read(&body).unwrap_err();
            assert!(error.contains(part), "{body}: {error}");
        }
    }
}
