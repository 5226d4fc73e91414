//! Gemini `generateContent`, as generativelanguage.googleapis.com streams it with
//! `alt=sse`. The model stands in the path, and so does the wish for a stream.

use serde_json::{Map, Value, json};

use super::{
    Ask, Dialect, Frame, Turn,
    chat::{default_usage, fragments},
};
use crate::{
    behaviour::{Api, ErrorReply},
    content::{Content, Finish, ToolCall},
};

/// The signature of the first call of every answer, which no server ever made.
const SIGNATURE: &str = "ZmF1bHRzLWFyZS1ub3Qtc2lnbmVk+/==";

/// The dialect of `POST …/models/{model}:generateContent`, streaming or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gemini {
    pub(crate) stream: bool,
}

impl Dialect for Gemini {
    fn api(&self) -> Api {
        Api::Gemini
    }

    fn ping(&self) -> &'static str {
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"index\":0}]}\r\n\r\n"
    }

    fn read(&self, body: &Value) -> Result<Ask, String> {
        let Some(body) = body.as_object() else {
            return Err("the request body must be a JSON object".into());
        };
        let contents = match body.get("contents") {
            Some(Value::Array(contents)) if !contents.is_empty() => contents,
            _ => return Err("* GenerateContentRequest.contents: contents is not specified".into()),
        };
        let has_parts = |content: &Value| {
            content.get("parts").and_then(Value::as_array).is_some_and(|parts| !parts.is_empty())
        };
        if !contents.iter().all(has_parts) {
            return Err("* GenerateContentRequest.contents: a content must have parts".into());
        }
        Ok(Ask {
            model: "gemini-faults".into(),
            stream: self.stream,
            usage: true,
            prompt_bytes: contents.iter().map(|content| content.to_string().len()).sum(),
        })
    }

    fn frames(&self, content: &Content, ask: &Ask, turn: Turn) -> Vec<Frame> {
        let event = |part: Value| data(&response(ask, turn, &json!([part]), None), false);
        // Empty texts are sent by the API itself where it has nothing to say.
        let empty = || event(json!({"text": ""}));
        let mut frames = vec![empty()];
        for piece in content.deltas(content.reasoning.as_deref().unwrap_or("")) {
            frames.push(event(json!({"text": piece, "thought": true})));
        }
        for piece in content.deltas(content.text()) {
            frames.push(event(json!({"text": piece})));
        }
        for (index, call) in content.tool_calls.iter().enumerate() {
            // A call comes whole; a script may still name as many events as it has
            // fragments elsewhere.
            frames.push(event(call_part(call, index)));
            frames.extend(fragments(&call.arguments).iter().map(|_| empty()));
        }
        let end = json!([{"text": ""}]);
        frames.push(data(&response(ask, turn, &end, Some(content)), true));
        frames
    }

    fn document(&self, content: &Content, ask: &Ask, turn: Turn) -> Value {
        let mut parts = Vec::new();
        if let Some(reasoning) = &content.reasoning {
            parts.push(json!({"text": reasoning, "thought": true}));
        }
        if !content.text().is_empty() {
            parts.push(json!({"text": content.text()}));
        }
        parts.extend(content.tool_calls.iter().enumerate().map(|(n, call)| call_part(call, n)));
        response(ask, turn, &parts.into(), Some(content))
    }

    fn unfinish(&self, document: &mut Value) {
        if let Some(Value::Object(candidate)) = document.pointer_mut("/candidates/0") {
            candidate.remove("finishReason");
        }
    }

    fn error(&self, reply: &ErrorReply) -> Value {
        let mut error = Map::new();
        error.insert("code".into(), reply.status.into());
        error.insert("message".into(), reply.message.as_str().into());
        error.insert("status".into(), status_word(reply).into());
        let details = details(reply);
        if !details.is_empty() {
            error.insert("details".into(), details.into());
        }
        json!({"error": error})
    }

    fn error_frame(&self, reply: &ErrorReply) -> Vec<u8> {
        format!("data: {}\r\n\r\n", self.error(reply)).into_bytes()
    }

    fn open_line(&self, _: &Ask, _: Turn) -> (Vec<u8>, Vec<u8>) {
        const BEFORE: &str = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"";
        const AFTER: &str = "\"}],\"role\":\"model\"},\"index\":0}]}\r\n\r\n";
        (BEFORE.into(), AFTER.into())
    }
}

/// A response with these parts; `end` is the content whose end it tells.
fn response(ask: &Ask, turn: Turn, parts: &Value, end: Option<&Content>) -> Value {
    let mut candidate = Map::new();
    candidate.insert("content".into(), json!({"parts": parts, "role": "model"}));
    let mut response = Map::new();
    if let Some(content) = end {
        candidate.insert("finishReason".into(), finish_reason(content).into());
        response.insert("usageMetadata".into(), usage(content, ask));
    }
    candidate.insert("index".into(), 0.into());
    response.insert("candidates".into(), json!([candidate]));
    response.insert("modelVersion".into(), ask.model.as_str().into());
    response.insert("responseId".into(), format!("fault-{}", turn.attempt).into());
    response.into()
}

fn data(response: &Value, terminal: bool) -> Frame {
    Frame { bytes: format!("data: {response}\r\n\r\n").into_bytes(), terminal }
}

/// A whole call. Most of the API's models give none an id; one that the script gave
/// is sent.
fn call_part(call: &ToolCall, index: usize) -> Value {
    let args = serde_json::from_str(&call.arguments)
        .unwrap_or_else(|_| Value::from(call.arguments.as_str()));
    let mut inner = Map::new();
    if let Some(id) = &call.id {
        inner.insert("id".into(), id.as_str().into());
    }
    inner.insert("name".into(), call.name.as_str().into());
    inner.insert("args".into(), args);
    match index {
        0 => json!({"functionCall": inner, "thoughtSignature": SIGNATURE}),
        _ => json!({"functionCall": inner}),
    }
}

/// This API says `STOP` also where it calls tools.
fn finish_reason(content: &Content) -> &'static str {
    match content.finish() {
        Finish::Stop | Finish::ToolCalls => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
    }
}

/// The error's status in the words of Google's APIs.
fn status_word(reply: &ErrorReply) -> &'static str {
    match reply.status {
        400 | 413 | 422 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}

/// What Google types in details: which quota is used up, and a script's own code.
fn details(reply: &ErrorReply) -> Vec<Value> {
    let mut details = Vec::new();
    if reply.kind == "insufficient_quota" {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
        }));
    } else if let Some(code) = &reply.code {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": code.to_uppercase(),
            "domain": "googleapis.com",
        }));
    }
    details
}

/// This API counts reasoning beside the answer.
fn usage(content: &Content, ask: &Ask) -> Value {
    let usage = default_usage(content, ask);
    json!({
        "promptTokenCount": usage.input,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": usage.input.saturating_add(usage.output),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Chat;

    const GEMINI: Gemini = Gemini { stream: true };

    fn ask() -> Ask {
        Ask { model: "m".into(), usage: true, ..Ask::probe() }
    }

    fn events(content: &Content) -> Vec<Value> {
        let parsed = |frame: Frame| {
            let text = String::from_utf8(frame.bytes).unwrap();
            serde_json::from_str(text.strip_prefix("data: ").unwrap()).unwrap()
        };
        GEMINI.frames(content, &ask(), Turn::FIRST).into_iter().map(parsed).collect()
    }

    fn full() -> Content {
        Content {
            reasoning: Some("why".into()),
            text: Some("so it is".into()),
            tool_calls: vec![
                ToolCall::new("Edit", &json!({"path": "notes.txt", "old_string": "漢字"})),
                ToolCall::new("Read", &json!({})).id("own"),
            ],
            ..Content::default()
        }
    }

    #[test]
    fn a_stream_is_parts_and_a_last_one_with_the_finish_reason() {
        let events = events(&full());
        let parts: Vec<&Value> =
            events.iter().map(|event| &event["candidates"][0]["content"]["parts"][0]).collect();
        let joined = |thought: bool| -> String {
            let of = |part: &&&Value| part["thought"].as_bool().unwrap_or(false) == thought;
            parts.iter().filter(of).filter_map(|part| part["text"].as_str()).collect()
        };
        assert_eq!((&*joined(true), &*joined(false)), ("why", "so it is"));
        let calls: Vec<_> = parts.iter().filter(|part| part["functionCall"].is_object()).collect();
        assert_eq!(calls[0]["functionCall"]["args"]["old_string"], "漢字");
        assert_eq!(calls[0]["thoughtSignature"], SIGNATURE);
        assert_eq!(calls[1]["functionCall"], json!({"name": "Read", "args": {}, "id": "own"}));
        let (last, others) = events.split_last().unwrap();
        assert_eq!(last["candidates"][0]["finishReason"], "STOP");
        assert!(last["usageMetadata"]["totalTokenCount"].as_u64().unwrap() > 0);
        assert!(others.iter().all(|event| event["candidates"][0]["finishReason"].is_null()));
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
            let ours = before(GEMINI.frames(&content, &ask(), Turn::FIRST));
            assert!(ours >= chat, "{content:?}: {ours:?}");
        }
    }

    #[test]
    fn a_document_says_the_same_and_can_be_left_unfinished() {
        let mut document = GEMINI.document(&full(), &ask(), Turn::FIRST);
        let parts = document["candidates"][0]["content"]["parts"].as_array().unwrap();
        assert_eq!((parts.len(), &parts[1]["text"]), (4, &json!("so it is")));
        assert_eq!(document["candidates"][0]["finishReason"], "STOP");
        GEMINI.unfinish(&mut document);
        assert_eq!(document["candidates"][0].get("finishReason"), None);
    }

    #[test]
    fn errors_are_typed_as_the_api_types_them() {
        for (status, word) in [
            (400, "INVALID_ARGUMENT"),
            (401, "UNAUTHENTICATED"),
            (404, "NOT_FOUND"),
            (429, "RESOURCE_EXHAUSTED"),
            (500, "INTERNAL"),
            (503, "UNAVAILABLE"),
        ] {
            let reply = ErrorReply::new(status, "any", "m");
            let error = json!({"error": {"code": status, "message": "m", "status": word}});
            assert_eq!(GEMINI.error(&reply), error);
            let frame = String::from_utf8(GEMINI.error_frame(&reply)).unwrap();
            assert_eq!(frame, format!("data: {error}\r\n\r\n"));
        }
        let reply = ErrorReply::new(404, "any", "m").code("model_not_found");
        assert_eq!(GEMINI.error(&reply)["error"]["details"][0]["reason"], "MODEL_NOT_FOUND");
        let reply = ErrorReply::new(429, "insufficient_quota", "m");
        let quota = &GEMINI.error(&reply)["error"]["details"][0]["violations"][0]["quotaId"];
        assert!(quota.as_str().unwrap().contains("PerDay"));
    }

    #[test]
    fn an_open_line_closes_to_one_valid_event() {
        let (before, after) = GEMINI.open_line(&ask(), Turn::FIRST);
        let line = String::from_utf8([before, b"aaa".to_vec(), after].concat()).unwrap();
        let event: Value = serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(event["candidates"][0]["content"]["parts"][0]["text"], "aaa");
    }

    #[test]
    fn a_request_is_refused_with_the_parameter_that_is_wrong() {
        for (body, part) in [
            (json!([]), "object"),
            (json!({}), "contents"),
            (json!({"contents": []}), "contents"),
            (json!({"contents": [{"role": "user"}]}), "parts"),
            (json!({"contents": [{"parts": []}]}), "parts"),
        ] {
            let error = GEMINI.read(&body).unwrap_err();
            assert!(error.contains(part), "{body}: {error}");
        }
    }
}
