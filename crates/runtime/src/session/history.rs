//! From a journal back to the history that the next request is made of.

use std::collections::{HashSet, VecDeque};

use turnbuckle_providers::{AssistantMessage, Message, ToolCall, ToolResult, Usage, UserMessage};

use super::Record;
use crate::Transcript;

/// In the place of a first message that cannot be read any more.
pub(super) const LOST: &str = "[a message here cannot be read: the session file is damaged]";

/// Rebuilds the history, of which nothing is copied. Calls that have no result get
/// one that says so: they may have had an effect, and are never run again.
pub(crate) fn rebuild(records: impl IntoIterator<Item = Record>) -> Transcript {
    extend(Transcript::new(), records)
}

/// The history after some more records.
pub(crate) fn extend(
    mut transcript: Transcript,
    records: impl IntoIterator<Item = Record>,
) -> Transcript {
    let mut open: Option<Open> = None;
    for record in records {
        match record {
            Record::User { text, images } => {
                close(&mut transcript, open.take());
                transcript.commit_user(UserMessage { text, images });
            }
            Record::Assistant { message, .. } => {
                close(&mut transcript, open.take());
                if transcript.messages().is_empty() {
                    // No provider takes a history that the model begins.
                    transcript.commit_user(LOST);
                }
                open = Some(Open { message, started: Vec::new(), results: VecDeque::new() });
            }
            Record::ToolStart { call_id, .. } => {
                if let Some(open) = &mut open {
                    open.started.push(call_id);
                }
            }
            Record::ToolResult { call_id, name, ok, text, images } => {
                if let Some(open) = &mut open {
                    open.results.push_back(ToolResult { call_id, name, text, images, ok });
                }
            }
            Record::Compaction { cut, digest, .. } => {
                close(&mut transcript, open.take());
                // A cut that does not fit was made for a journal that lost a line since;
                // the longer history is right, and can be cut again.
                if let Some(smaller) = transcript.compacted(&cut, &digest) {
                    transcript = smaller;
                }
            }
            _ => {}
        }
    }
    close(&mut transcript, open);
    transcript
}

/// The ids of all calls that were ever made, also of those that a compaction has
/// left out of the history.
pub(crate) fn call_ids(records: &[Record]) -> HashSet<String> {
    let asked = records.iter().filter_map(|record| match record {
        Record::Assistant { message, .. } => Some(&message.tool_calls),
        _ => None,
    });
    asked.flatten().map(|call| call.id.clone()).collect()
}

/// The last answer, and what the provider counted for it; `None` if the history was
/// made smaller since.
pub(crate) fn last_answer(records: &[Record]) -> Option<(AssistantMessage, Usage)> {
    let last = records.iter().rev().find_map(|record| match record {
        Record::Assistant { message, usage, .. } => Some(Some((message.clone(), *usage))),
        Record::Compaction { .. } => Some(None),
        _ => None,
    });
    last?
}

/// How many messages of the history the request for that answer had; `None` if it is
/// not in the history.
pub(crate) fn before(answer: &AssistantMessage, transcript: &Transcript) -> Option<usize> {
    let is_answer =
        |message: &Message| matches!(message, Message::Assistant(said) if said == answer);
    transcript.messages().iter().rposition(is_answer)
}

/// A message whose results are still being read.
struct Open {
    message: AssistantMessage,
    started: Vec<String>,
    results: VecDeque<ToolResult>,
}

fn close(transcript: &mut Transcript, open: Option<Open>) {
    let Some(mut open) = open else { return };
    let mut results = Vec::new();
    for call in &open.message.tool_calls {
        let at = open.results.iter().position(|result| result.call_id == call.id);
        let found = at.and_then(|at| open.results.remove(at));
        results.push(found.unwrap_or_else(|| interrupted(call, open.started.contains(&call.id))));
    }
    // One result was made for each call, in order, so they pair.
    let _ = transcript.append(open.message, results);
}

/// The result of a call that has none. It may have had an effect once it began,
/// and is never run again.
pub(super) fn interrupted(call: &ToolCall, began: bool) -> ToolResult {
    let text = if began {
        "interrupted: the call had begun and its outcome is unknown; it was not run again"
    } else {
        "interrupted: the call was not run"
    };
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        text: text.into(),
        images: Vec::new(),
        ok: false,
    }
}

#[cfg(test)]
mod tests {
    use turnbuckle_providers::{Arguments, FinishReason};

    use super::*;

    fn asking(ids: &[&str]) -> Record {
        let call = |id: &&str| ToolCall {
            id: (*id).into(),
            name: "f".into(),
            arguments: Arguments::parse(String::new()),
        };
        Record::Assistant {
            message_id: "m".into(),
            message: AssistantMessage {
                tool_calls: ids.iter().map(call).collect(),
                ..AssistantMessage::default()
            },
            finish: FinishReason::ToolCalls,
            usage: Usage::default(),
        }
    }

    fn texts(records: &[Record]) -> Vec<String> {
        rebuild(records.to_vec())
            .messages()
            .iter()
            .filter_map(|message| match message {
                Message::Tool(result) => {
                    Some(format!("{} {} {}", result.call_id, result.ok, result.text))
                }
                _ => None,
            })
            .collect()
    }

    #[test]
    fn results_go_back_in_call_order_and_the_interrupted_ones_are_told() {
        let records = [
            Record::User { text: "go".into(), images: Vec::new() },
            asking(&["a", "b", "c"]),
            Record::ToolStart { call_id: "b".into(), name: "f".into() },
            Record::ToolResult {
                call_id: "c".into(),
                name: "f".into(),
                ok: true,
                text: "third".into(),
                images: Vec::new(),
            },
        ];
        assert_eq!(
            texts(&records),
            [
                "a false interrupted: the call was not run",
                "b false interrupted: the call had begun and its outcome is unknown; it was not run again",
                "c true third",
            ]
        );
    }

    fn said(text: &str) -> Record {
        Record::User { text: text.into(), images: Vec::new() }
    }

    fn cut(of: usize, keep_from: usize) -> Record {
        let cut = serde_json::from_value(serde_json::json!({"of": of, "keepFrom": keep_from}));
        Record::Compaction { compaction_id: "c".into(), cut: cut.unwrap(), digest: "so far".into() }
    }

    #[test]
    fn a_compaction_is_made_again_where_it_stands() {
        // An interrupted call gets its result before the cut counts messages.
        let records = [said("one"), asking(&["a"]), said("two"), cut(4, 3), said("three")];
        let rebuilt = rebuild(records.clone());
        let messages: Vec<&Message> = rebuilt.messages().iter().collect();
        assert_eq!(messages.len(), 3);
        assert!(matches!(messages[0], Message::User(digest) if digest.text.ends_with("so far")));
        assert!(matches!(messages[1], Message::User(user) if user.text == "two"));
        assert!(call_ids(&records).contains("a"));
    }

    #[test]
    fn a_compaction_of_another_history_leaves_the_longer_one() {
        let whole = rebuild([said("one"), asking(&["a"]), said("two")]);
        for wrong in [cut(3, 2), cut(5, 3), cut(4, 2), cut(4, 4)] {
            assert_eq!(rebuild([said("one"), asking(&["a"]), said("two"), wrong]), whole);
        }
    }

    #[test]
    fn the_last_count_belongs_to_the_messages_before_its_answer() {
        let mut answer = asking(&["a"]);
        if let Record::Assistant { usage, .. } = &mut answer {
            usage.input_tokens = Some(7);
        }
        let mut records = vec![said("one"), said("two"), answer];
        let (answer, usage) = last_answer(&records).unwrap();
        assert_eq!(
            (before(&answer, &rebuild(records.clone())), usage.input_tokens),
            (Some(2), Some(7))
        );
        assert_eq!(before(&answer, &Transcript::new()), None);
        records.push(cut(4, 2));
        assert_eq!(last_answer(&records), None);
        assert_eq!(last_answer(&[]), None);
    }
}
