//! The way a cell took, in a line that is the same each time: what a host is told,
//! without its texts, its times, and how many deltas there were.

use std::fmt::Write as _;

use serde_json::Value;

use super::stage::Seen;

/// The way a session took.
pub(crate) fn path(seen: &Seen) -> String {
    let mut line = String::new();
    for (number, told) in seen.prompts.iter().enumerate() {
        if number > 0 {
            line.push_str(" | ");
        }
        for event in &told.events {
            let word = |pointer: &str| {
                event.pointer(pointer).and_then(Value::as_str).unwrap_or("?").to_owned()
            };
            let told = match word("/type").as_str() {
                "turn_start" => "ask".to_owned(),
                "retry_scheduled" => {
                    format!(
                        "{}/{} again({})",
                        word("/failure/code"),
                        word("/phase"),
                        word("/budget")
                    )
                }
                "message_end" if event.get("failure").is_none() => word("/finish"),
                "message_end" => format!("({})", word("/finish")),
                "tool_execution_end" => {
                    let ok = event.get("ok") == Some(&Value::Bool(true));
                    if ok { "tool".to_owned() } else { word("/failure/code") }
                }
                "compaction_end" => "smaller".to_owned(),
                "error" => word("/failure/code"),
                "agent_end" => word("/outcome"),
                _ => continue,
            };
            if !line.is_empty() && !line.ends_with(' ') {
                line.push(' ');
            }
            line.push_str(&told);
        }
    }
    let ends: Vec<String> = seen.requests.iter().map(|request| ended(request.ended)).collect();
    let _ = write!(line, "; {}", ends.join(" "));
    line
}

fn ended(ended: turnbuckle_faults::Ended) -> String {
    serde_json::to_value(ended)
        .ok()
        .and_then(|word| Some(word.as_str()?.to_owned()))
        .unwrap_or_default()
}
