//! What was seen of a session, as lines with their times: what a host was told, and
//! what the server wrote down.

use std::fmt;

use serde_json::Value;

use super::stage::Seen;

/// One line: milliseconds from the start of the session, and what happened.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Line(u64, String);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>7} ms  {}", self.0, self.1)
    }
}

/// What a host was told, deltas that follow each other in one line.
pub(super) fn events(seen: &Seen) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut deltas = 0_usize;
    for told in &seen.prompts {
        for (event, at) in told.events.iter().zip(&told.at) {
            let at = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
            let kind = text(event, "/type").unwrap_or("?");
            deltas = if kind == "message_update" { deltas + 1 } else { 0 };
            let line = Line(at, line(event, kind, deltas));
            match lines.last_mut() {
                Some(last) if deltas > 1 => *last = line,
                _ => lines.push(line),
            }
        }
    }
    lines
}

fn line(event: &Value, kind: &str, deltas: usize) -> String {
    let mut words = vec![kind.to_owned()];
    if deltas > 1 {
        words.push(format!("({deltas} deltas)"));
    }
    let named = [
        ("", "/failure/code"),
        ("", "/failure/details/phase"),
        ("budget ", "/budget"),
        ("", "/finish"),
        ("", "/name"),
        ("", "/outcome"),
    ];
    for (name, pointer) in named {
        words.extend(text(event, pointer).map(|word| format!("{name}{word}")));
    }
    let wait = event.get("delayMs").and_then(Value::as_u64);
    words.extend(wait.map(|wait| format!("after {wait} ms")));
    if event.get("ok") == Some(&Value::Bool(false)) {
        words.push("not done".to_owned());
    }
    words.extend(text(event, "/failure/message").map(|message| format!("“{message}”")));
    words.join(" ")
}

/// What the server saw of each request.
pub(super) fn requests(seen: &Seen) -> Vec<Line> {
    let line = |request: &turnbuckle_faults::RecordedRequest| {
        let step = request.step.map_or_else(|| "no step".to_owned(), |step| format!("step {step}"));
        let ended = serde_json::to_value(request.ended).unwrap_or_default();
        let took = request.ended_ms.map_or_else(String::new, |ended| {
            format!(" after {} ms", ended.saturating_sub(request.at_ms))
        });
        let text = format!(
            "request {} on connection {}: {step}, {}, ended {}{took}",
            request.seq,
            request.connection,
            request.behaviour.as_deref().unwrap_or("-"),
            ended.as_str().unwrap_or("?"),
        );
        Line(request.at_ms, text)
    };
    seen.requests.iter().map(line).collect()
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_told_in_a_line_and_deltas_are_counted() {
        let retry = json!({"type": "retry_scheduled", "budget": "stream", "delayMs": 750,
            "failure": {"code": "TIMEOUT", "message": "nothing came", "details": {"phase": "stream"}}});
        assert_eq!(
            line(&retry, "retry_scheduled", 0),
            "retry_scheduled TIMEOUT stream budget stream after 750 ms “nothing came”"
        );
        let delta = json!({"type": "message_update", "delta": "x"});
        assert_eq!(line(&delta, "message_update", 3), "message_update (3 deltas)");
    }
}
