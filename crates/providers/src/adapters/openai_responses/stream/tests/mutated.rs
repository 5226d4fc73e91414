//! Two thousand streams with events dropped, doubled, swapped, torn and cut off.

use std::collections::HashSet;

use super::*;

/// A stream with most of what servers send.
fn rich() -> Vec<Value> {
    let summary = |delta: &str| {
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0,
            "summary_index": 0, "delta": delta})
    };
    let said = |delta: &str| {
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0,
            "delta": delta})
    };
    let search = json!({"type": "web_search_call", "id": "ws", "status": "completed"});
    let custom = json!({"type": "custom_tool_call", "id": "ctc", "call_id": "e", "name": "f",
        "input": "4 + 4"});
    vec![
        json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
        added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        summary("[think] "),
        summary("hard "),
        done(0, reasoning()),
        added(1, json!({"type": "message", "id": "msg_1", "content": []})),
        said("[one] "),
        said("zwei 🦀 "),
        said("three "),
        json!({"type": "response.output_text.done", "output_index": 1, "content_index": 0,
            "text": "[one] zwei 🦀 three "}),
        done(1, message("[one] zwei 🦀 three ")),
        done(2, search),
        added(3, call("c", "")),
        arguments(3, r#"{"path":"#),
        arguments(3, r#""x"}"#),
        json!({"type": "response.function_call_arguments.done", "output_index": 3,
            "arguments": r#"{"path":"x"}"#}),
        done(3, call("c", r#"{"path":"x"}"#)),
        json!({"type": "response.custom_tool_call_input.delta", "output_index": 4,
            "delta": "4 + 4"}),
        done(4, custom),
        json!({"type": "response.completed", "response": {"status": "completed",
            "output": [reasoning(), message("[one] zwei 🦀 three ")],
            "usage": {"input_tokens": 3, "output_tokens": 4}}}),
    ]
}

/// A mutated stream, and whether its end is still in it.
fn mutate(random: &mut fastrand::Rng) -> (Vec<u8>, bool) {
    let mut events: Vec<(bool, Vec<u8>)> = rich()
        .into_iter()
        .map(|event| {
            let last = event["type"] == "response.completed";
            (last, format!("data: {event}\n\n").into_bytes())
        })
        .collect();
    for _ in 0..random.usize(1..5) {
        if events.is_empty() {
            break;
        }
        let at = random.usize(0..events.len());
        match random.u8(0..5) {
            0 => drop(events.remove(at)),
            1 => events.insert(at, events[at].clone()),
            2 => {
                let other = random.usize(0..events.len());
                events.swap(at, other);
            }
            3 => {
                events.truncate(at + 1);
                let last = &mut events[at];
                last.1.truncate(random.usize(0..last.1.len().max(1)));
                last.0 = false;
            }
            _ => {
                let event = &mut events[at].1;
                if !event.is_empty() {
                    let place = random.usize(0..event.len());
                    event[place] = random.u8(..);
                }
            }
        }
    }
    let has_end = events.iter().any(|(last, _)| *last);
    (events.into_iter().flat_map(|(_, bytes)| bytes).collect(), has_end)
}

/// Whether `text` is nothing but texts of the stream, one after the other.
fn was_sent(text: &str, stream: &str) -> bool {
    let mut sent = HashSet::new();
    for line in stream.split(['\n', '\r']) {
        let event = line.strip_prefix("data: ").and_then(|json| serde_json::from_str(json).ok());
        event.iter().for_each(|event| texts(event, &mut sent));
    }
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for at in 0..text.len() {
        if reached[at] {
            let next = sent.iter().filter(|part| text[at..].starts_with(part.as_str()));
            next.for_each(|part| reached[at + part.len()] = true);
        }
    }
    reached[text.len()]
}

fn texts(value: &Value, sent: &mut HashSet<String>) {
    match value {
        Value::String(text) if !text.is_empty() => drop(sent.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| texts(item, sent)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, sent)),
        _ => {}
    }
}

#[test]
fn the_check_tells_a_text_that_was_not_sent() {
    let stream = "data: {\"delta\":\"ab\",\"x\":[\"c\"]}\n\n";
    assert!(was_sent("abcab", stream) && was_sent("", stream));
    assert!(!was_sent("a", stream) && !was_sent("abd", stream));
}

#[test]
fn no_mutation_makes_it_panic_invent_text_or_succeed_without_the_end() {
    let mut random = fastrand::Rng::with_seed(4);
    let (mut whole, mut broken) = (0, 0);
    for round in 0..2000 {
        let (body, has_end) = mutate(&mut random);
        let shown = String::from_utf8_lossy(&body).into_owned();
        let size = random.usize(1..64);
        let pieces: Vec<Bytes> = body.chunks(size).map(Bytes::copy_from_slice).collect();
        let run = |pieces: Vec<Bytes>| {
            let head = ResponseHead::new(200, []);
            decode_body(head, pieces, BodyEnding::Clean, Arc::new(Opaque))
        };
        let outcome = run(vec![Bytes::from(body.clone())]);
        let same = match (&outcome, &run(pieces)) {
            (Ok(one), Ok(other)) => one == other,
            (Err(one), Err(other)) => one.0.code() == other.0.code() && one.1 == other.1,
            _ => false,
        };
        assert!(same, "round {round}: cut into {size} bytes, it reads otherwise:\n{shown}");
        let text = match &outcome {
            Ok(message) => {
                whole += 1;
                assert!(has_end, "round {round}: a message without an end:\n{shown}");
                let ids: HashSet<&str> =
                    message.message().tool_calls.iter().map(|call| &*call.id).collect();
                assert_eq!(ids.len(), message.message().tool_calls.len(), "round {round}");
                message.message().text.clone()
            }
            Err(failed) => {
                broken += 1;
                failed.1.text.clone()
            }
        };
        assert!(was_sent(&text, &shown), "round {round}: {text:?} was not sent:\n{shown}");
    }
    assert!(whole > 300 && broken > 300, "{whole} whole, {broken} broken");
}
