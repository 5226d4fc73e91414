//! Steps to TOML a person would have written: only what was set, in the order
//! the keys are documented.

use std::{fmt::Write as _, time::Duration};

use serde_json::Value;

use super::{
    After, Dealing, Match, Scope, Script, ScriptError, Serving, Step,
    parts::{Place, word_of},
};
use crate::{
    behaviour::{Answer, ErrorReply, Insert},
    content::ToolCall,
};

pub(super) fn script(script: &Script) -> Result<String, ScriptError> {
    let steps = script.steps().iter().enumerate();
    let tables: Result<Vec<_>, _> = steps.map(|(index, one)| step(one, index + 1)).collect();
    let mut all = vec![settings(script.dealing())];
    if script.stated {
        all.push(server(script.serving()));
    }
    all.extend(tables?);
    all.retain(|table| !table.is_empty());
    Ok(all.join("\n"))
}

fn settings(dealing: &Dealing) -> String {
    let mut lines = Lines(String::new());
    lines.set("seed", dealing.seed.map(|seed| seed.to_string()));
    let scope = Some(dealing.scope).filter(|scope| *scope != Scope::default());
    lines.set("scope", scope.map(|scope| quoted(scope.as_str())));
    lines.set("session_header", dealing.session_header.as_deref().map(quoted));
    let after = Some(dealing.after).filter(|after| *after != After::default());
    lines.set("after", after.map(|after| quoted(after.as_str())));
    lines.0
}

fn server(serving: &Serving) -> String {
    let mut lines = Lines("[server]\n".to_owned());
    lines.set("tls", serving.tls.map(|tls| quoted(tls.as_str())));
    lines.set("protocol", Some(quoted(serving.protocol.as_str())));
    lines.set("ca_file", serving.ca_file.as_ref().map(|path| quoted(&path.to_string_lossy())));
    lines.0
}

fn step(step: &Step, number: usize) -> Result<String, ScriptError> {
    if step.is_built_in_code() {
        return Err(ScriptError::NotWritable { step: number });
    }
    let content = &step.content;
    let mut lines = Lines("[[step]]\n".to_owned());
    lines.set("behaviour", step.name().map(quoted));
    lines.set("match", conditions(&step.when));
    // As TOML writes a float: with a point even where it is whole.
    lines.set("probability", step.probability.map(|chance| format!("{chance:?}")));
    lines.set("times", step.times.map(times));
    let parts = &step.parts;
    match &parts.answer {
        Some(Answer::Error(reply)) => lines.set("error", Some(error(reply))),
        Some(Answer::Raw { content_type, body }) => {
            let body = quoted(&String::from_utf8_lossy(body));
            let raw =
                [format!("content_type = {}", quoted(content_type)), format!("body = {body}")];
            lines.set("raw", Some(braces(&raw)));
        }
        Some(Answer::Redirect { status }) => lines.set("redirect", Some(status.to_string())),
        Some(Answer::Handshake(tls)) => lines.set("handshake", Some(quoted(tls.as_str()))),
        // No other answer is read from TOML.
        _ => {}
    }
    lines.set("status", parts.status.map(|status| status.to_string()));
    lines.set("cut", parts.cut.map(|place| quoted(place.as_str())));
    lines.set("without_terminal", parts.without_terminal.then(|| "true".to_owned()));
    lines.set("at_event", step.at_event.map(|n| n.to_string()));
    lines.set("how", step.how.map(|how| quoted(how.as_str())));
    lines.set("http2_code", step.http2_code.map(|code| quoted(code.as_str())));
    lines.set("gzip", step.gzip.map(|gzip| quoted(gzip.as_str())));
    lines.set("hang_up", step.hang_up.map(|hang_up| quoted(hang_up.as_str())));
    lines.set("retry_after_ms", step.retry_after.map(millis));
    lines.set("reasoning", content.reasoning.as_deref().map(quoted));
    lines.set("text", content.text.as_deref().map(quoted));
    lines.set(
        "usage",
        content.usage.map(|u| {
            let extra = match (u.cached, u.reasoning) {
                (0, 0) => String::new(),
                (cached, reasoning) => format!(", cached = {cached}, reasoning = {reasoning}"),
            };
            format!("{{ input = {}, output = {}{extra} }}", u.input, u.output)
        }),
    );
    lines.set("finish", content.finish.map(|finish| quoted(finish.as_str())));
    lines.set("chunk_chars", content.chunk_chars.map(|n| n.to_string()));
    lines.set("headers_delay_ms", step.delays.headers.map(millis));
    lines.set("event_delay_ms", step.delays.event.map(millis));
    lines.set("cut_delay_ms", step.delays.cut.map(millis));
    if !step.headers.is_empty() {
        let pairs = step.headers.iter().map(|(k, v)| format!("{} = {}", key(k), quoted(v)));
        lines.set("headers", Some(braces(&pairs.collect::<Vec<_>>())));
    }
    for (place, what) in &parts.inserts {
        lines.0.push_str("[[step.insert]]\n");
        insert(&mut lines, *place, what);
    }
    for call in &content.tool_calls {
        lines.0.push_str("[[step.tool_call]]\n");
        lines.set("name", Some(quoted(&call.name)));
        lines.set("id", call.id.as_deref().map(quoted));
        lines.set("arguments", Some(arguments(call)));
    }
    Ok(lines.0)
}

fn times(times: usize) -> String {
    if times == Step::ALWAYS { quoted("always") } else { times.to_string() }
}

fn insert(lines: &mut Lines, place: Place, what: &Insert) {
    let word = match what {
        Insert::Error(_) => "error",
        Insert::HugeLine(_) => "huge_line",
        Insert::CorruptGzip => "corrupt_gzip",
        Insert::Bytes(_) => "raw",
        Insert::Noise(noise) | Insert::Endless(noise, _) => word_of(*noise),
        // No other insertion is read from TOML.
        _ => "malformed",
    };
    lines.set("what", Some(quoted(word)));
    lines.set("at", Some(quoted(place.as_str())));
    lines.set("event", place.event.map(|event| event.to_string()));
    match what {
        Insert::Error(reply) => {
            for (key, value) in words(reply) {
                lines.set(key, Some(value));
            }
        }
        Insert::HugeLine(bytes) => lines.set("bytes", Some(bytes.to_string())),
        Insert::Bytes(bytes) => lines.set("text", Some(quoted(&String::from_utf8_lossy(bytes)))),
        Insert::Endless(_, pause) => lines.set("every_ms", Some(millis(*pause))),
        _ => {}
    }
}

fn error(reply: &ErrorReply) -> String {
    let words = words(reply).into_iter().map(|(key, value)| format!("{key} = {value}"));
    braces(&std::iter::once(format!("status = {}", reply.status)).chain(words).collect::<Vec<_>>())
}

fn words(reply: &ErrorReply) -> Vec<(&'static str, String)> {
    let mut words = vec![("type", quoted(&reply.kind))];
    words.extend(reply.code.as_deref().map(|code| ("code", quoted(code))));
    words.push(("message", quoted(&reply.message)));
    words
}

fn conditions(when: &Match) -> Option<String> {
    let text = |key: &str, value: &Option<String>| {
        value.as_deref().map(|value| format!("{key} = {}", quoted(value)))
    };
    let headers: Vec<String> = when
        .headers
        .iter()
        .map(|(name, text)| format!("{} = {}", key(name), quoted(text)))
        .collect();
    let pairs = [
        text("last_user_contains", &when.last_user_contains),
        text("body_contains", &when.body_contains),
        text("model", &when.model),
        text("path_contains", &when.path_contains),
        (!headers.is_empty()).then(|| format!("header = {}", braces(&headers))),
        when.has_tool_result.map(|has| format!("has_tool_result = {has}")),
    ];
    (!when.is_for_all()).then(|| braces(&pairs.into_iter().flatten().collect::<Vec<_>>()))
}

struct Lines(String);

impl Lines {
    fn set(&mut self, key: &str, value: Option<String>) {
        if let Some(value) = value {
            // Writing to a String cannot fail.
            let _ = writeln!(self.0, "{key} = {value}");
        }
    }
}

/// As a table when that is read back to the same bytes, else as the raw text.
fn arguments(call: &ToolCall) -> String {
    let parsed = serde_json::from_str::<Value>(&call.arguments).ok();
    let same = parsed.filter(|value| value.is_object() && spelled_alike(value, &call.arguments));
    same.as_ref().and_then(inline).unwrap_or_else(|| quoted(&call.arguments))
}

/// Whether our own spelling of the value is the one that was given.
fn spelled_alike(value: &Value, given: &str) -> bool {
    let ours = value.to_string();
    ours == given
}

/// A JSON value in TOML; `None` for what TOML cannot say, such as null.
fn inline(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Number(number) if number.is_i64() => Some(number.to_string()),
        // Other numbers may change their spelling on the way.
        Value::Number(_) => None,
        Value::String(text) => Some(quoted(text)),
        Value::Array(items) => {
            let items: Option<Vec<_>> = items.iter().map(inline).collect();
            Some(format!("[{}]", items?.join(", ")))
        }
        Value::Object(map) => {
            let pair = |(name, value): (&String, &Value)| {
                Some(format!("{} = {}", key(name), inline(value)?))
            };
            Some(braces(&map.iter().map(pair).collect::<Option<Vec<_>>>()?))
        }
    }
}

fn braces(pairs: &[String]) -> String {
    if pairs.is_empty() {
        return "{}".to_owned();
    }
    format!("{{ {} }}", pairs.join(", "))
}

fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) {
        return name.to_owned();
    }
    quoted(name)
}

/// A TOML basic string on one line.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn millis(delay: Duration) -> String {
    delay.as_millis().to_string()
}
