//! Two thousand mutated streams: whatever a server garbles, nothing is invented and
//! nothing unfinished is called whole.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use turnbuckle_errors::Opaque;

use super::Responses;
use crate::{StreamEvent, intake::Intake, transport::ResponseHead};

/// How many streams are mutated.
const STREAMS: u64 = 2_000;

fn part(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}}]})
}

/// A stream with everything in it; its texts need no escapes, so that each can be
/// searched for in the bytes.
fn events() -> Vec<String> {
    let mut events: Vec<Value> = vec![
        part(&json!([{"text": "thinking hard", "thought": true}])),
        part(&json!([{"text": "The answer"}])),
        part(&json!([{"text": " is near, "}, {"text": "says he."}])),
        part(&json!([{"executableCode": {"code": "1+1"}}])),
        part(
            &json!([{"functionCall": {"name": "Read", "args": {"path": "a"}}, "thoughtSignature": "c2ln"}]),
        ),
        part(&json!([{"functionCall": {"name": "Edit", "willContinue": true}}])),
        part(
            &json!([{"functionCall": {"partialArgs": [{"jsonPath": "$.old[0]", "stringValue": "x"}], "willContinue": true}}]),
        ),
        part(&json!([{"functionCall": {}}])),
        part(&json!([{"text": "", "thoughtSignature": "ZW5k"}])),
    ];
    let mut last = part(&json!([{"text": " Done."}]));
    last["candidates"][0]["finishReason"] = "STOP".into();
    last["usageMetadata"] = json!({"promptTokenCount": 9, "candidatesTokenCount": 4});
    events.push(last);
    events.iter().map(|event| format!("data: {event}\r\n\r\n")).collect()
}

fn mutated(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut events: Vec<Vec<u8>> = events().into_iter().map(String::into_bytes).collect();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(0..events.len());
        match random.u8(0..5) {
            0 if events.len() > 1 => drop(events.remove(at)),
            1 => events.insert(at, events[at].clone()),
            2 => {
                let other = random.usize(0..events.len());
                events.swap(at, other);
            }
            3 => {
                let event = &mut events[at];
                event.truncate(random.usize(0..=event.len()));
            }
            _ => {
                let event = &mut events[at];
                for _ in 0..random.usize(1..6) {
                    if !event.is_empty() {
                        let byte = random.usize(0..event.len());
                        event[byte] = random.u8(..);
                    }
                }
            }
        }
    }
    let mut body = events.concat();
    if random.bool() {
        body.truncate(random.usize(0..=body.len()));
    }
    body
}

/// Whether the bytes hold an event that ends an answer. It reads them in its own way.
fn has_end(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let lines: Vec<&str> = text.split(['\n', '\r']).collect();
    let data = |line: &&str| line.strip_prefix("data:").map(str::to_owned);
    let ends = |json: &str| {
        let Ok(event) = serde_json::from_str::<Value>(json) else { return false };
        event["candidates"][0]["finishReason"].is_string()
            || event["promptFeedback"]["blockReason"].is_string()
    };
    // Events whose blank line was lost join into one.
    let mut joined = String::new();
    for line in &lines {
        match data(line) {
            Some(json) if ends(&json) => return true,
            Some(json) => joined.push_str(&json),
            None => {}
        }
    }
    ends(&joined)
}

#[test]
fn a_mutated_stream_invents_nothing_and_never_succeeds_without_its_end() {
    let (mut succeeded, mut failed) = (0, 0);
    for seed in 0..STREAMS {
        let mut random = fastrand::Rng::with_seed(seed);
        let body = mutated(&mut random);
        let sent = String::from_utf8_lossy(&body).into_owned();
        let head = ResponseHead::new(200, []);
        let dialect = Responses::new("m");
        let mut intake = Intake::new(head, dialect, Arc::new(Opaque), std::time::Duration::ZERO);
        let mut given = String::new();
        for piece in body.chunks(random.usize(1..300)) {
            if intake.has_ended() {
                break;
            }
            intake.bytes(&Bytes::copy_from_slice(piece), std::time::Duration::ZERO);
        }
        if !intake.has_ended() {
            intake.body_ended(None);
        }
        while let Some(event) = intake.decoder.answer.take_event() {
            if let StreamEvent::Text(text) = event {
                // A corrupted escape (`\n` out of a letter) is the server's text as well.
                let written = serde_json::to_string(&text).unwrap();
                let written = written.trim_matches('"');
                let known = sent.contains(written) || sent.contains(&text) || sent.contains('\\');
                assert!(known, "seed {seed}: {text:?} was never sent");
                given.push_str(&text);
            }
        }
        match intake.conclude().unwrap() {
            Ok(message) => {
                succeeded += 1;
                assert!(has_end(&body), "seed {seed}: a success without an end\n{sent}");
                assert_eq!(message.message().text, given, "seed {seed}");
            }
            Err(failure) => {
                failed += 1;
                assert!(failure.details().rule.is_some(), "seed {seed}");
            }
        }
    }
    // Both happen often, or the mutations test nothing.
    assert!(succeeded > 200 && failed > 200, "{succeeded} and {failed}");
}
