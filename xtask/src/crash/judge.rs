//! What is wrong with a session after an end. Pure, over what was left behind.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

use serde_json::Value;
use turnbuckle_runtime::Record;

/// What a session file holds for certain: its whole records.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) bytes: Vec<u8>,
    pub(super) records: Vec<Record>,
}

impl Committed {
    /// Reads line by line, apart from the code under test. A record that lacks
    /// nothing but its line break is whole.
    pub(super) fn of(mut bytes: Vec<u8>) -> Self {
        let mut records = Vec::new();
        let mut whole = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Ok(record) = serde_json::from_slice(line) else { break };
            records.push(record);
            whole += line.len();
        }
        bytes.truncate(whole);
        Self { bytes, records }
    }
}

/// One message, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    User(String),
    Model(String, Vec<String>),
    Tool(String),
}

/// The history that a request has to hold, by the records alone.
pub(super) fn history(records: &[Record]) -> Vec<Said> {
    let mut said = Vec::new();
    for record in records {
        match record {
            Record::User { text, .. } => said.push(Said::User(text.clone())),
            Record::Assistant { message, .. } => {
                let calls: Vec<String> =
                    message.tool_calls.iter().map(|call| call.id.clone()).collect();
                said.push(Said::Model(message.text.clone(), calls.clone()));
                said.extend(calls.into_iter().map(Said::Tool));
            }
            _ => {}
        }
    }
    said
}

/// The history of a request in the dialect of OpenAI Chat.
fn asked(body: &Value) -> Vec<Said> {
    let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    let field = |message: &Value, name: &str| message.get(name).map(text).unwrap_or_default();
    let messages = body.get("messages").and_then(Value::as_array).cloned().unwrap_or_default();
    let said = messages.iter().filter_map(|message| match field(message, "role").as_str() {
        "user" => Some(Said::User(field(message, "content"))),
        "assistant" => {
            let calls = message.get("tool_calls").and_then(Value::as_array);
            let ids = calls.into_iter().flatten().map(|call| field(call, "id"));
            Some(Said::Model(field(message, "content"), ids.collect()))
        }
        "tool" => Some(Said::Tool(field(message, "tool_call_id"))),
        _ => None,
    });
    said.collect()
}

/// Nothing that was committed may be gone from the file.
pub(super) fn kept(before: &Committed, now: &[u8]) -> Vec<String> {
    let kept = now.starts_with(&before.bytes);
    let complaint = || {
        format!(
            "{} committed bytes are not in the file of {} any more",
            before.bytes.len(),
            now.len()
        )
    };
    (!kept).then(complaint).into_iter().collect()
}

/// The next request begins with all that was committed.
pub(super) fn remembered(before: &Committed, body: &Value) -> Vec<String> {
    let (committed, asked) = (history(&before.records), asked(body));
    let knows = asked.starts_with(&committed);
    let complaint = || format!("committed was {committed:?}, asked was {asked:?}");
    (!knows).then(complaint).into_iter().collect()
}

/// What a host was shown of a step before the one it ended in is in the file.
pub(super) fn missing(events: &[Value], left: &Committed) -> Vec<String> {
    let of = |event: &Value, name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
    let turn = |event: &Value| event.get("turn").and_then(Value::as_u64).unwrap_or(0);
    let last = events.iter().map(turn).max().unwrap_or(0);
    let known: HashSet<&str> = left
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Assistant { message_id, .. } => Some(message_id.as_str()),
            _ => None,
        })
        .collect();
    events
        .iter()
        .filter(|event| of(event, "type").as_deref() == Some("message_end") && turn(event) < last)
        .filter_map(|event| of(event, "messageId"))
        .filter(|id| !known.contains(id.as_str()))
        .map(|id| format!("message {id} was shown in a step that ended, and is not in the file"))
        .collect()
}

/// Whether a call that may change something had begun, and has no result.
pub(super) fn in_a_tool(records: &[Record]) -> bool {
    let mut open: HashSet<&str> = HashSet::new();
    for record in records {
        match record {
            Record::ToolStart { call_id, .. } => drop(open.insert(call_id)),
            Record::ToolResult { call_id, .. } => drop(open.remove(call_id.as_str())),
            _ => {}
        }
    }
    !open.is_empty()
}

/// Each counted call changed something once, if it began at all.
pub(super) fn effects(records: &[Record], log: &str) -> Vec<String> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for id in log.lines() {
        *counts.entry(id).or_default() += 1;
    }
    let mut began: HashSet<&str> = HashSet::new();
    let mut done: HashSet<&str> = HashSet::new();
    for record in records {
        match record {
            Record::ToolStart { call_id, .. } => drop(began.insert(call_id)),
            Record::ToolResult { call_id, name, ok: true, .. } if name == "Bash" => {
                done.insert(call_id);
            }
            _ => {}
        }
    }
    let mut complaints = Vec::new();
    for (id, count) in &counts {
        if *count > 1 {
            complaints.push(format!("call {id} ran {count} times"));
        }
        if !began.contains(id) {
            complaints.push(format!("call {id} ran, and the file does not know that it began"));
        }
    }
    let undone = done.iter().filter(|id| !counts.contains_key(**id));
    complaints.extend(undone.map(|id| format!("call {id} has a result, and changed nothing")));
    complaints
}

/// A file whose writing has a result is there, and whole.
pub(super) fn files(records: &[Record], workspace: &Path) -> Vec<String> {
    let written = records.iter().filter_map(|record| match record {
        Record::ToolResult { call_id, name, ok: true, .. } if name == "Write" => {
            call_id.strip_prefix('w')
        }
        _ => None,
    });
    written
        .filter(|step| {
            let file = workspace.join(format!("file-{step}"));
            std::fs::read_to_string(file).ok() != Some(format!("whole {step}"))
        })
        .map(|step| format!("file-{step} was written, and is not whole"))
        .collect()
}

/// Why a provider would refuse a request, or must not get it.
pub(super) fn invalid(body: &Value) -> Option<String> {
    let said = asked(body);
    let mut open: Vec<&str> = Vec::new();
    for message in &said {
        match message {
            Said::Tool(id) if open.first() == Some(&id.as_str()) => drop(open.remove(0)),
            Said::Tool(id) => return Some(format!("a request has a result of {id} out of place")),
            _ if !open.is_empty() => return Some(format!("a request has no result of {open:?}")),
            Said::Model(text, calls) if text.trim().is_empty() && calls.is_empty() => {
                return Some("a request has a blank message".to_owned());
            }
            Said::Model(_, calls) => open.extend(calls.iter().map(String::as_str)),
            Said::User(_) => {}
        }
    }
    if !open.is_empty() {
        return Some(format!("a request ends without a result of {open:?}"));
    }
    if !matches!(said.first(), Some(Said::User(_))) {
        return Some("a request does not begin with the user".to_owned());
    }
    let arguments = body.pointer("/messages").and_then(Value::as_array).into_iter().flatten();
    let mut arguments = arguments
        .filter_map(|message| message.get("tool_calls")?.as_array())
        .flatten()
        .filter_map(|call| call.pointer("/function/arguments")?.as_str());
    if arguments.any(|raw| serde_json::from_str::<Value>(raw).is_err()) {
        return Some("a request has arguments that are no JSON".to_owned());
    }
    let lost = body.to_string().contains("lost words");
    lost.then(|| "a request has words of a failed attempt".to_owned())
}

#[cfg(test)]
mod tests;
