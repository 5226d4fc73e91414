//! Steps to TOML a person would have written: only what was set, in the order
//! the keys are documented.

use std::{fmt::Write as _, time::Duration};

use serde_json::Value;

use super::{Script, ScriptError, Serving, Step};
use crate::content::ToolCall;

pub(super) fn script(script: &Script) -> Result<String, ScriptError> {
    let steps = script.steps().iter().enumerate();
    let tables: Result<Vec<_>, _> = steps.map(|(index, one)| step(one, index + 1)).collect();
    let mut tables = tables?;
    if script.stated {
        tables.insert(0, server(script.serving()));
    }
    Ok(tables.join("\n"))
}

fn server(serving: &Serving) -> String {
    let mut lines = Lines("[server]\n".to_owned());
    lines.set("tls", serving.tls.map(|tls| quoted(tls.as_str())));
    lines.set("protocol", Some(quoted(serving.protocol.as_str())));
    lines.set("ca_file", serving.ca_file.as_ref().map(|path| quoted(&path.to_string_lossy())));
    lines.0
}

fn step(step: &Step, number: usize) -> Result<String, ScriptError> {
    let Some(name) = step.name() else {
        return Err(ScriptError::NotWritable { step: number });
    };
    let content = &step.content;
    let mut lines = Lines("[[step]]\n".to_owned());
    lines.set("behaviour", Some(quoted(name)));
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
    for call in &content.tool_calls {
        lines.0.push_str("[[step.tool_call]]\n");
        lines.set("name", Some(quoted(&call.name)));
        lines.set("id", call.id.as_deref().map(quoted));
        lines.set("arguments", Some(arguments(call)));
    }
    Ok(lines.0)
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
