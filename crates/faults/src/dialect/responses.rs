//! OpenAI Responses, as api.openai.com streams it to a client that has nothing
//! stored; reasoning comes as a summary beside its encrypted form.

use serde_json::{Map, Value, json};

use super::{
    Ask, Dialect, Frame, Turn,
    chat::{CREATED, Chat, call_id, default_usage, fragments, read_bool},
};
use crate::{
    behaviour::{Api, ErrorReply},
    content::{Content, Finish, ToolCall},
};

/// The encrypted reasoning of every answer, which no server can read.
const ENCRYPTED: &str = "gAAAAABmYXVsdHMtYXJlLW5vdC1lbmNyeXB0ZWQ=";

/// The dialect of `POST …/responses`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Responses;

impl Dialect for Responses {
    fn api(&self) -> Api {
        Api::Responses
    }

    fn ping(&self) -> &'static str {
        "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":0}\n\n"
    }

    fn read(&self, body: &Value) -> Result<Ask, String> {
        let Some(body) = body.as_object() else {
            return Err("the request body must be a JSON object".into());
        };
        let Some(model) = body.get("model").and_then(Value::as_str) else {
            return Err("missing required parameter: 'model'".into());
        };
        let prompt_bytes = match body.get("input") {
            Some(Value::String(text)) if !text.is_empty() => text.len(),
            Some(Value::Array(items)) if !items.is_empty() => {
                items.iter().map(|item| item.to_string().len()).sum()
            }
            _ => return Err("`input` must be a text or an array with at least one item".into()),
        };
        Ok(Ask {
            model: model.to_owned(),
            stream: read_bool(body.get("stream"), "stream")?,
            usage: true,
            prompt_bytes,
        })
    }

    fn frames(&self, content: &Content, ask: &Ask, turn: Turn) -> Vec<Frame> {
        let mut frames = Frames::default();
        for kind in ["response.created", "response.in_progress"] {
            frames.push(kind, json!({"response": answer(content, ask, turn, State::Begun)}));
        }
        for (index, item) in items(content, turn).into_iter().enumerate() {
            item.stream(index, content, &mut frames);
        }
        let kind = match incomplete(content) {
            None => "response.completed",
            Some(_) => "response.incomplete",
        };
        frames.push(kind, json!({"response": answer(content, ask, turn, State::Over)}));
        if let Some(last) = frames.list.last_mut() {
            last.terminal = true;
        }
        frames.list
    }

    fn document(&self, content: &Content, ask: &Ask, turn: Turn) -> Value {
        answer(content, ask, turn, State::Over)
    }

    fn unfinish(&self, document: &mut Value) {
        if let Some(status) = document.get_mut("status") {
            *status = Value::Null;
        }
        if let Some(details) = document.get_mut("incomplete_details") {
            *details = Value::Null;
        }
    }

    fn error(&self, reply: &ErrorReply) -> Value {
        // OpenAI answers with the same error wherever it is asked.
        Chat.error(reply)
    }

    fn error_frame(&self, reply: &ErrorReply) -> Vec<u8> {
        let mut frames = Frames::default();
        frames.push("error", self.error(reply));
        frames.list.pop().map(|frame| frame.bytes).unwrap_or_default()
    }

    fn open_line(&self, _: &Ask, turn: Turn) -> (Vec<u8>, Vec<u8>) {
        let before = format!(
            "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\
             \"output_index\":0,\"content_index\":0,\"item_id\":\"{}\",\"delta\":\"",
            item_id("msg", turn, 0)
        );
        (before.into_bytes(), b"\"}\n\n".to_vec())
    }
}

/// The events so far; each has its number.
#[derive(Default)]
struct Frames {
    list: Vec<Frame>,
}

impl Frames {
    fn push(&mut self, kind: &str, fields: Value) {
        let mut event = Map::new();
        event.insert("type".into(), kind.into());
        event.insert("sequence_number".into(), self.list.len().into());
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        let bytes = format!("event: {kind}\ndata: {}\n\n", Value::Object(event)).into_bytes();
        self.list.push(Frame { bytes, terminal: false });
    }
}

/// One item of an answer, whole.
enum Item<'a> {
    Reasoning { id: String, text: &'a str },
    Message { id: String, text: &'a str },
    Call { id: String, call_id: String, call: &'a ToolCall },
}

fn items(content: &Content, turn: Turn) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    if let Some(text) = content.reasoning.as_deref() {
        items.push(Item::Reasoning { id: item_id("rs", turn, 0), text });
    }
    if !content.text().is_empty() {
        items.push(Item::Message { id: item_id("msg", turn, 0), text: content.text() });
    }
    for (index, call) in content.tool_calls.iter().enumerate() {
        let call_id = call_id(call, turn, index);
        items.push(Item::Call { id: item_id("fc", turn, index), call_id, call });
    }
    items
}

impl Item<'_> {
    fn whole(&self) -> Value {
        match self {
            Self::Reasoning { id, text } => json!({
                "id": id, "type": "reasoning", "encrypted_content": ENCRYPTED,
                "summary": [{"type": "summary_text", "text": text}],
            }),
            Self::Message { id, text } => json!({
                "id": id, "type": "message", "status": "completed", "role": "assistant",
                "content": [text_part(text)],
            }),
            Self::Call { id, call_id, call } => json!({
                "id": id, "type": "function_call", "status": "completed",
                "arguments": call.arguments, "call_id": call_id, "name": call.name,
            }),
        }
    }

    fn begun(&self) -> Value {
        let mut item = self.whole();
        let empty = match self {
            Self::Reasoning { .. } => ("summary", json!([])),
            Self::Message { .. } => ("content", json!([])),
            Self::Call { .. } => ("arguments", json!("")),
        };
        if let Value::Object(fields) = &mut item {
            fields.insert(empty.0.into(), empty.1);
            if fields.contains_key("status") {
                fields.insert("status".into(), "in_progress".into());
            }
        }
        item
    }

    fn stream(&self, index: usize, content: &Content, frames: &mut Frames) {
        frames.push(
            "response.output_item.added",
            json!({"output_index": index, "item": self.begun()}),
        );
        match self {
            Self::Reasoning { id, text } => {
                let place = json!({"item_id": id, "output_index": index, "summary_index": 0});
                let part = |text: &str| json!({"part": {"type": "summary_text", "text": text}});
                frames.push("response.reasoning_summary_part.added", with(&place, part("")));
                for piece in content.deltas(text) {
                    let delta = with(&place, json!({"delta": piece}));
                    frames.push("response.reasoning_summary_text.delta", delta);
                }
                let whole = with(&place, json!({"text": text}));
                frames.push("response.reasoning_summary_text.done", whole);
                frames.push("response.reasoning_summary_part.done", with(&place, part(text)));
            }
            Self::Message { id, text } => {
                let place = json!({"item_id": id, "output_index": index, "content_index": 0});
                let part = |text: &str| json!({"part": text_part(text)});
                frames.push("response.content_part.added", with(&place, part("")));
                for piece in content.deltas(text) {
                    let delta = with(&place, json!({"delta": piece, "logprobs": []}));
                    frames.push("response.output_text.delta", delta);
                }
                let whole = with(&place, json!({"text": text, "logprobs": []}));
                frames.push("response.output_text.done", whole);
                frames.push("response.content_part.done", with(&place, part(text)));
            }
            Self::Call { id, call, .. } => {
                let place = json!({"item_id": id, "output_index": index});
                for piece in fragments(&call.arguments) {
                    let delta = with(&place, json!({"delta": piece}));
                    frames.push("response.function_call_arguments.delta", delta);
                }
                let whole = with(&place, json!({"arguments": call.arguments}));
                frames.push("response.function_call_arguments.done", whole);
            }
        }
        frames.push(
            "response.output_item.done",
            json!({"output_index": index, "item": self.whole()}),
        );
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

fn with(place: &Value, more: Value) -> Value {
    let mut fields = place.clone();
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
        fields.extend(more);
    }
    fields
}

fn item_id(prefix: &str, turn: Turn, index: usize) -> String {
    format!("{prefix}_fault_{}_{index}", turn.attempt)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Begun,
    Over,
}

/// Why an answer is incomplete, in the words of this API.
fn incomplete(content: &Content) -> Option<&'static str> {
    match content.finish() {
        // A call needs no word of its own here: the answer is completed.
        Finish::Stop | Finish::ToolCalls => None,
        Finish::Length => Some("max_output_tokens"),
        Finish::ContentFilter => Some("content_filter"),
    }
}

fn answer(content: &Content, ask: &Ask, turn: Turn, state: State) -> Value {
    let over = state == State::Over;
    let reason = incomplete(content).filter(|_| over);
    let status = match reason {
        _ if !over => "in_progress",
        None => "completed",
        Some(_) => "incomplete",
    };
    let output: Vec<Value> = match over {
        true => items(content, turn).iter().map(Item::whole).collect(),
        false => Vec::new(),
    };
    json!({
        "id": format!("resp_fault_{}", turn.attempt),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": reason.map(|reason| json!({"reason": reason})),
        "model": ask.model,
        "output": output,
        "parallel_tool_calls": true,
        "store": false,
        "usage": over.then(|| usage(content, ask)),
    })
}

fn usage(content: &Content, ask: &Ask) -> Value {
    let usage = default_usage(content, ask);
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input.saturating_add(usage.output),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> Ask {
        Ask { model: "m".into(), usage: true, ..Ask::probe() }
    }

    fn events(content: &Content) -> Vec<Value> {
        let frames = Responses.frames(content, &ask(), Turn::FIRST);
        let parsed = |(number, frame): (usize, Frame)| {
            let text = String::from_utf8(frame.bytes).unwrap();
            let (name, data) = text.split_once('\n').unwrap();
            let value: Value =
                serde_json::from_str(data.trim().strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(name, format!("event: {}", value["type"].as_str().unwrap()));
            assert_eq!(value["sequence_number"], number);
            value
        };
        frames.into_iter().enumerate().map(parsed).collect()
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
    fn a_stream_is_items_between_a_beginning_and_the_whole_answer() {
        let events = events(&full());
        assert_eq!(events[0]["type"], "response.created");
        assert_eq!(events[0]["response"]["output"], json!([]));
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.completed");
        let whole: Vec<&Value> = events
            .iter()
            .filter(|event| event["type"] == "response.output_item.done")
            .map(|event| &event["item"])
            .collect();
        assert_eq!(whole.len(), 4);
        assert_eq!(last["response"]["output"], json!(whole));
        let joined = |index: usize| -> String {
            let of = |event: &&Value| event["output_index"] == index;
            events.iter().filter(of).filter_map(|event| event["delta"].as_str()).collect()
        };
        assert_eq!((&*joined(0), &*joined(1)), ("why", "so it is"));
        let arguments: Value = serde_json::from_str(&joined(2)).unwrap();
        assert_eq!(arguments["old_string"], "漢字");
        assert!(last["response"]["usage"]["total_tokens"].as_u64().unwrap() > 0);
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
            let ours = before(Responses.frames(&content, &ask(), Turn::FIRST));
            assert!(ours >= chat, "{content:?}: {ours:?}");
        }
    }

    #[test]
    fn what_is_cut_or_filtered_is_incomplete() {
        for (word, reason) in
            [("length", "max_output_tokens"), ("content_filter", "content_filter")]
        {
            let content = Content { finish: Finish::from_word(word), ..Content::default() };
            let events = events(&content);
            let last = events.last().unwrap();
            assert_eq!(last["type"], "response.incomplete");
            assert_eq!(last["response"]["status"], "incomplete");
            assert_eq!(last["response"]["incomplete_details"]["reason"], reason);
        }
    }

    #[test]
    fn a_document_says_the_same_and_can_be_left_unfinished() {
        let turn = Turn { attempt: 2, earlier_calls: 4 };
        let mut document = Responses.document(&full(), &ask(), turn);
        assert_eq!(document["output"][2]["call_id"], "call_5");
        assert_eq!(document["output"][1]["content"][0]["text"], "so it is");
        assert_eq!(document["status"], "completed");
        Responses.unfinish(&mut document);
        assert_eq!(document["status"], Value::Null);
    }

    #[test]
    fn an_error_comes_in_a_body_or_as_an_event_of_its_own() {
        let reply = ErrorReply::new(429, "requests", "slow down");
        assert_eq!(Responses.error(&reply)["error"]["type"], "requests");
        let frame = String::from_utf8(Responses.error_frame(&reply)).unwrap();
        let data = frame.strip_prefix("event: error\ndata: ").unwrap();
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(event["type"], "error");
        assert_eq!(event["error"]["message"], "slow down");
    }

    #[test]
    fn an_open_line_closes_to_one_valid_event() {
        let (before, after) = Responses.open_line(&ask(), Turn::FIRST);
        let line = String::from_utf8([before, b"aaa".to_vec(), after].concat()).unwrap();
        let (_, data) = line.split_once("\ndata: ").unwrap();
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(event["delta"], "aaa");
    }

    #[test]
    fn a_request_is_read_or_told_what_it_lacks() {
        let read = |body: Value| Responses.read(&body);
        let item = json!([{"role": "user", "content": "hi"}]);
        let ask = read(json!({"model": "m", "stream": true, "input": item})).unwrap();
        assert!(ask.stream && ask.usage && ask.prompt_bytes > 10);
        assert_eq!(read(json!({"model": "m", "input": "hello"})).unwrap().prompt_bytes, 5);
        for body in [
            json!([]),
            json!({"input": "hello"}),
            json!({"model": "m"}),
            json!({"model": "m", "input": []}),
            json!({"model": "m", "input": "hello", "stream": "yes"}),
        ] {
            assert!(read(body.clone()).is_err(), "{body}");
        }
    }
}
