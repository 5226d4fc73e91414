//! What is wrong with what was seen: the promises of the product, checked against
//! the server's record and the host's events, and against nothing else.

mod host;
mod server;

use serde_json::Value;

use super::{
    due::{self, Due},
    stage::{Part, Seen, Told},
};

/// Every broken promise, one sentence each.
pub(crate) fn complaints(part: &Part, seen: &Seen) -> Vec<String> {
    against(part, seen).1
}

/// The way that the session went, and what was broken on it. Where chance decides
/// between several ways, it is the one with the fewest complaints.
pub(crate) fn against(part: &Part, seen: &Seen) -> (Due, Vec<String>) {
    let attempts: usize = seen.prompts.iter().map(Told::attempts).sum();
    let mut best: Option<(Due, Vec<String>)> = None;
    for due in due::ways(&part.script, part.until, attempts, seen.dealt) {
        let complaints = on_the_way(part, &due, seen);
        if complaints.is_empty() {
            return (due, complaints);
        }
        if best.as_ref().is_none_or(|(_, fewest)| complaints.len() < fewest.len()) {
            best = Some((due, complaints));
        }
    }
    best.unwrap_or_default()
}

fn on_the_way(part: &Part, due: &Due, seen: &Seen) -> Vec<String> {
    let mut complaints = Vec::new();
    if seen.prompts.len() != due.prompts.len() {
        complaints.push(format!(
            "{} prompts were played, {} are due",
            seen.prompts.len(),
            due.prompts.len()
        ));
    }
    for (number, told) in seen.prompts.iter().enumerate() {
        let found = host::complaints(due, number, told);
        let several = seen.prompts.len() > 1;
        let prompt = if several { format!("prompt {}: ", number + 1) } else { String::new() };
        complaints.extend(found.into_iter().map(|complaint| prompt.clone() + &complaint));
    }
    complaints.extend(server::complaints(part, due, seen));
    complaints
}

/// A complaint, unless it holds.
fn unless(holds: bool, complaint: impl FnOnce() -> String) -> Option<String> {
    (!holds).then(complaint)
}

/// A word somewhere in a JSON value.
fn word<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("nothing")
}

fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

fn kind(event: &Value) -> &str {
    word(event, "/type")
}

#[cfg(test)]
mod tests;
