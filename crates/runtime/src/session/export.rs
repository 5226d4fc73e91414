//! A session as a Markdown document.

use std::fmt::{self, Write as _};

use serde_json::Value;

use super::{CallMade, Conversation, Entry};

impl Conversation {
    /// Itself as Markdown: a heading for each message, its text as it is, and tool
    /// calls in fences that no content can close.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut document = String::new();
        // A string takes every write.
        let _ = write(self, &mut document);
        document
    }
}

fn write(conversation: &Conversation, out: &mut String) -> fmt::Result {
    writeln!(out, "# Session {}\n", conversation.session_id)?;
    writeln!(out, "- began: {}", conversation.created)?;
    if let Some(workspace) = &conversation.workspace {
        writeln!(out, "- workspace: {workspace}")?;
    }
    if let Some(origin) = &conversation.forked_from {
        writeln!(out, "- forked from {} at message {}", origin.session_id, origin.message)?;
    }
    for entry in &conversation.entries {
        entry_to(entry, out)?;
    }
    Ok(())
}

fn entry_to(entry: &Entry, out: &mut String) -> fmt::Result {
    match entry {
        Entry::User { number, text, images } => {
            writeln!(out, "\n## {number}. User\n\n{}", text.trim_end())?;
            images
                .iter()
                .try_for_each(|image| writeln!(out, "\n*(an image: {})*", image.media_type))
        }
        Entry::Assistant { number, text, reasoning, tool_calls, .. } => {
            writeln!(out, "\n## {number}. Assistant")?;
            if !reasoning.trim().is_empty() {
                writeln!(out, "\n*Reasoning:*\n")?;
                reasoning.trim_end().lines().try_for_each(|line| writeln!(out, "> {line}"))?;
            }
            if !text.trim().is_empty() {
                writeln!(out, "\n{}", text.trim_end())?;
            }
            tool_calls.iter().try_for_each(|call| call_to(call, out))
        }
        Entry::Retry { attempt, failure, .. } => {
            writeln!(out, "\n*(attempt {attempt} failed: {})*", code(failure))
        }
        Entry::Compaction { digest } => {
            writeln!(out, "\n*(the model knows what came before by this digest)*\n")?;
            digest.trim_end().lines().try_for_each(|line| writeln!(out, "> {line}"))
        }
        Entry::Ended { outcome, failure } => match failure {
            Some(failure) => writeln!(out, "\n*(the prompt {outcome}: {})*", code(failure)),
            None => writeln!(out, "\n*(the prompt was {outcome})*"),
        },
        Entry::Repaired { cut_bytes, unreadable } => writeln!(
            out,
            "\n*(the file was damaged: {cut_bytes} bytes cut, {} lines unreadable)*",
            unreadable.len()
        ),
    }
}

fn call_to(call: &CallMade, out: &mut String) -> fmt::Result {
    let arguments = match &call.arguments {
        Some(arguments) => serde_json::to_string_pretty(arguments).unwrap_or_default(),
        None => "(no JSON)".to_owned(),
    };
    writeln!(out, "\n**{}**\n", call.name)?;
    fenced("json", &arguments, out)?;
    let Some(result) = &call.result else { return writeln!(out, "\n*(no result)*") };
    writeln!(out, "\n{}\n", if result.ok { "Result:" } else { "Failed:" })?;
    fenced("", &result.text, out)?;
    let images = &result.images;
    images.iter().try_for_each(|image| writeln!(out, "\n*(an image: {})*", image.media_type))
}

/// Content between fences that are longer than any in it.
fn fenced(language: &str, content: &str, out: &mut String) -> fmt::Result {
    let longest = content.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "{fence}{language}\n{}\n{fence}", content.trim_end_matches('\n'))
}

fn code(failure: &Value) -> &str {
    failure.get("code").and_then(Value::as_str).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    const JOURNAL: &str = r#"
{"record":"session","version":1,"sessionId":"s1","created":"2026-01-02T03:04:05Z","workspace":"demo","forkedFrom":{"sessionId":"s0","message":3}}
{"record":"user","text":"Look at this","images":[{"mediaType":"image/png","base64":"AA=="}]}
{"record":"retry_scheduled","retryId":"r","attempt":1,"delayMs":750,"failure":{"code":"STREAM_FAILED"}}
{"record":"assistant","messageId":"m1","message":{"text":"I read it.","reasoning":"First\nread.","toolCalls":[{"id":"a","name":"Read","arguments":{"whole":"{\"path\": \"x\"}"}},{"id":"b","name":"Read","arguments":{"broken":"{"}}],"native":{"dialect":"anthropic","model":"m","parts":["SECRET"]}},"finish":"tool_calls","usage":{}}
{"record":"tool_result","callId":"a","name":"Read","ok":true,"text":"```\ncode\n```"}
{"record":"tool_result","callId":"b","name":"Read","ok":false,"text":"no JSON"}
{"record":"step_end"}
{"record":"compaction","compactionId":"c","cut":{"of":4,"keepFrom":2},"digest":"They read.\nIt worked."}
{"record":"prompt_end","outcome":"failed","failure":{"code":"TIMEOUT"}}
{"record":"repaired","cutBytes":7,"unreadable":[4]}
"#;

    fn conversation() -> Conversation {
        let records: Vec<Record> =
            JOURNAL.trim().lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        Conversation::of(&records)
    }

    #[test]
    fn a_session_as_a_document() {
        insta::assert_snapshot!(conversation().to_markdown());
    }

    #[test]
    fn a_session_as_json_has_the_documented_shape() {
        insta::assert_json_snapshot!(conversation());
    }

    #[test]
    fn what_a_provider_wrote_for_itself_is_not_shown() {
        let json = serde_json::to_string(&conversation()).unwrap();
        assert!(!json.contains("SECRET") && !conversation().to_markdown().contains("SECRET"));
    }
}
