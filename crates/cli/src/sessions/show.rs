//! `turnbuckle sessions show`.

use serde_json::Value;
use turnbuckle_errors::Failure;
use turnbuckle_runtime::{CallMade, Conversation, Entry, SessionFolder};

use super::{print, read};
use crate::output::{describe_call, printable};

pub(super) fn show(folder: &SessionFolder, id: &str) -> Result<(), Failure> {
    print(&page(&read(folder, id)?))
}

/// The session as text that cannot steer a terminal.
fn page(conversation: &Conversation) -> String {
    let mut lines = vec![format!("session {}", conversation.session_id)];
    lines.push(format!("  began {}", conversation.created));
    lines.extend(conversation.workspace.iter().map(|workspace| format!("  in {workspace}")));
    lines.extend(conversation.forked_from.iter().map(|origin| {
        format!("  forked from {} at message {}", origin.session_id, origin.message)
    }));
    for entry in &conversation.entries {
        lines.extend(shown(entry));
    }
    printable(&(lines.join("\n") + "\n"))
}

fn shown(entry: &Entry) -> Vec<String> {
    match entry {
        Entry::User { number, text, images } => {
            let mut lines = vec![format!("\n[{number}] user"), text.trim_end().to_owned()];
            lines.extend(images.iter().map(|image| format!("(an image: {})", image.media_type)));
            lines
        }
        Entry::Assistant { number, text, tool_calls, .. } => {
            let mut lines = vec![format!("\n[{number}] model")];
            lines.extend((!text.trim().is_empty()).then(|| text.trim_end().to_owned()));
            lines.extend(tool_calls.iter().map(call));
            lines
        }
        Entry::Retry { attempt, failure, .. } => {
            vec![format!("· attempt {attempt} failed: {}", code(failure))]
        }
        Entry::Compaction { .. } => {
            vec!["· the model knows what came before by a digest".to_owned()]
        }
        Entry::Ended { outcome, failure: Some(failure) } => {
            vec![format!("· the prompt {outcome}: {}", code(failure))]
        }
        Entry::Ended { outcome, failure: None } => vec![format!("· the prompt was {outcome}")],
        Entry::Repaired { cut_bytes, unreadable } => vec![format!(
            "· the file was damaged: {cut_bytes} bytes cut, {} lines unreadable",
            unreadable.len()
        )],
        _ => Vec::new(),
    }
}

fn call(call: &CallMade) -> String {
    let what = describe_call(&call.name, call.arguments.as_ref());
    match &call.result {
        Some(result) if result.ok => format!("· {what}"),
        Some(result) => {
            format!("· {what}: {}", result.text.lines().next().unwrap_or("failed"))
        }
        None => format!("· {what}: no result yet"),
    }
}

fn code(failure: &Value) -> &str {
    failure.get("code").and_then(Value::as_str).unwrap_or("unknown")
}
