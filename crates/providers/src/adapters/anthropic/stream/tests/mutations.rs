//! Two thousand streams that were damaged in transit, by seed.

use std::collections::HashSet;

use super::*;

/// A stream with most of what the API sends.
fn rich() -> Vec<String> {
    let call = r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}}"#;
    let text = TEXT.replace("\"index\":0", "\"index\":1");
    let mut events: Vec<String> =
        [START, THINK, THOUGHT, SIGNED, STOP_0, &text].map(Into::into).into();
    for word in ["alpha ", "beta ", "gämma ", "🦀 "] {
        let delta = json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "text_delta", "text": word}});
        events.push(delta.to_string());
    }
    events.push(STOP_1.into());
    events.push(call.into());
    for piece in [r#"{"path":"#, r#""notes.txt""#, "}"] {
        events.push(input(piece).replace("\"index\":1", "\"index\":2"));
    }
    events.push(r#"{"type":"content_block_stop","index":2}"#.into());
    events.push(TOOL_USE.into());
    events.push(MESSAGE_STOP.into());
    events
}

fn mutate(events: &mut Vec<String>, random: &mut fastrand::Rng) {
    let at = random.usize(0..events.len());
    match random.u8(0..5) {
        0 => {
            events.remove(at);
        }
        1 => events.insert(at, events[at].clone()),
        2 => {
            let other = random.usize(0..events.len());
            events.swap(at, other);
        }
        3 => events.truncate(at.max(1)),
        _ => {
            let mut chars: Vec<char> = events[at].chars().collect();
            let place = random.usize(0..chars.len());
            // Nothing that could be taken for a text that was sent.
            chars[place] = ['{', '"', '\\', '}', ':', ','][random.usize(0..6)];
            events[at] = chars.into_iter().collect();
        }
    }
}

/// Every text that one of the events holds in some field, and what a text field
/// gives when it is read from there.
fn sent(events: &[String]) -> HashSet<String> {
    fn collect(value: &Value, into: &mut HashSet<String>) {
        match value {
            Value::String(text) => {
                into.insert(text.clone());
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
            Value::Object(fields) => fields.values().for_each(|item| collect(item, into)),
            _ => {}
        }
    }
    let mut texts = HashSet::new();
    for event in events {
        collect(&serde_json::from_str(event).unwrap_or_default(), &mut texts);
    }
    texts
}

/// Whether `text` is made of nothing but texts that were sent.
fn made_of(text: &str, sent: &HashSet<String>) -> bool {
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for at in 0..text.len() {
        if reached[at] && text.is_char_boundary(at) {
            for piece in sent.iter().filter(|piece| text[at..].starts_with(piece.as_str())) {
                reached[at + piece.len()] = true;
            }
        }
    }
    reached[text.len()]
}

fn ends(events: &[String]) -> bool {
    events.iter().any(|event| {
        let value: Value = serde_json::from_str(event).unwrap_or_default();
        let reason = value["delta"]["stop_reason"].as_str().is_some_and(|word| !word.is_empty());
        value["type"] == "message_stop" || reason
    })
}

#[test]
fn no_damage_makes_it_panic_invent_text_or_succeed_without_an_end() {
    let mut random = fastrand::Rng::with_seed(4);
    let (mut wholes, mut failures) = (0, 0);
    for round in 0..2000 {
        let mut events = rich();
        for _ in 0..random.usize(1..5) {
            if !events.is_empty() {
                mutate(&mut events, &mut random);
            }
        }
        let lines: Vec<&str> = events.iter().map(String::as_str).collect();
        let (text, reasoning) = match decode(&stream(&lines)) {
            Ok(message) => {
                wholes += 1;
                assert!(ends(&events), "{round}: {events:#?}");
                for call in &message.message().tool_calls {
                    let known = ["{}", r#"{"path":"notes.txt"}"#];
                    let whole = call.arguments.value().is_some();
                    let fits = known.contains(&call.arguments.as_json());
                    assert!(fits || !whole || made_of(call.arguments.as_json(), &sent(&events)));
                }
                let message = message.into_message();
                (message.text, message.reasoning)
            }
            Err(failed) => {
                failures += 1;
                (failed.1.text, failed.1.reasoning)
            }
        };
        let sent = sent(&events);
        assert!(made_of(&text, &sent), "{round}: {text:?} of {events:#?}");
        assert!(made_of(&reasoning, &sent), "{round}: {reasoning:?} of {events:#?}");
    }
    assert!(wholes > 200 && failures > 200, "{wholes} whole, {failures} failed");
}
