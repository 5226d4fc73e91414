//! A session as people read it: everything that was said and done, also what a
//! compaction took out of the requests.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::Value;
use turnbuckle_providers::{FinishReason, Image, ToolCall, Usage};

use super::{ForkedFrom, Record};

/// A session as people read it. It is content; what a provider wrote for itself
/// is not in it.
///
/// Serialises to the shape that `docs/SESSIONS.md` documents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Conversation {
    /// The session's id.
    pub session_id: String,
    /// When it began, in RFC 3339.
    pub created: String,
    /// The folder that its tools work in, where it is known.
    pub workspace: Option<String>,
    /// Where its first messages come from, if it is a fork.
    pub forked_from: Option<ForkedFrom>,
    /// What happened, in order.
    pub entries: Vec<Entry>,
}

/// One thing that happened. Messages are numbered from 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Entry {
    /// What the user said.
    User {
        /// Its number.
        number: usize,
        /// It.
        text: String,
        /// The images beside it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// A complete message of the model.
    Assistant {
        /// Its number.
        number: usize,
        /// Its id.
        message_id: String,
        /// The visible text.
        text: String,
        /// The reasoning, where the provider shows it.
        #[serde(skip_serializing_if = "String::is_empty")]
        reasoning: String,
        /// The tools it asked for, with what they gave.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<CallMade>,
        /// Why it ended.
        finish: FinishReason,
        /// What it cost.
        usage: Usage,
    },
    /// An attempt failed, and another one followed.
    Retry {
        /// The attempt that failed.
        attempt: u32,
        /// The wait in milliseconds.
        delay_ms: u64,
        /// What ended it, in its wire shape.
        failure: Value,
    },
    /// From here on the model knows what came before by a digest alone.
    Compaction {
        /// What it knows of it.
        digest: String,
    },
    /// A prompt ended otherwise than by an answer.
    Ended {
        /// `failed`, `aborted` or `interrupted`.
        outcome: String,
        /// What ended it, in its wire shape.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Value>,
    },
    /// The file was damaged here or before.
    Repaired {
        /// The bytes that were cut.
        cut_bytes: u64,
        /// The lines that cannot be read.
        unreadable: Vec<u64>,
    },
}

/// A tool call, with its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallMade {
    /// The id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments; null where they were no JSON.
    pub arguments: Option<Value>,
    /// What it gave; null while it has not ended.
    pub result: Option<CallResult>,
}

/// What a tool call gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CallResult {
    /// Whether it did what was asked.
    pub ok: bool,
    /// What the model got to read.
    pub text: String,
    /// The images beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl Conversation {
    /// Reads a journal as people do.
    #[must_use]
    pub fn of(records: &[Record]) -> Self {
        let mut reader = Reader::default();
        for record in records {
            reader.read(record);
        }
        let mut conversation = Self {
            session_id: String::new(),
            created: String::new(),
            workspace: None,
            forked_from: None,
            entries: reader.entries,
        };
        if let Some(Record::Session { session_id, created, workspace, forked_from, .. }) =
            records.first()
        {
            conversation.session_id.clone_from(session_id);
            conversation.created.clone_from(created);
            conversation.workspace.clone_from(workspace);
            conversation.forked_from.clone_from(forked_from);
        }
        conversation
    }

    /// The number of its last message; 0 if it has none.
    #[must_use]
    pub fn last_message(&self) -> usize {
        let mut numbers = self.entries.iter().filter_map(|entry| match entry {
            Entry::User { number, .. } | Entry::Assistant { number, .. } => Some(*number),
            _ => None,
        });
        numbers.next_back().unwrap_or(0)
    }
}

#[derive(Default)]
struct Reader {
    entries: Vec<Entry>,
    messages: usize,
    /// Where the calls of the last message stand: entry and place in it.
    calls: HashMap<String, (usize, usize)>,
}

impl Reader {
    fn read(&mut self, record: &Record) {
        let entry = match record {
            Record::User { text, images } => Entry::User {
                number: self.next_number(),
                text: text.clone(),
                images: images.clone(),
            },
            Record::Assistant { message_id, message, finish, usage } => {
                let entry = self.entries.len();
                let calls = message.tool_calls.iter().enumerate();
                self.calls = calls.map(|(at, call)| (call.id.clone(), (entry, at))).collect();
                Entry::Assistant {
                    number: self.next_number(),
                    message_id: message_id.clone(),
                    text: message.text.clone(),
                    reasoning: message.reasoning.clone(),
                    tool_calls: message.tool_calls.iter().map(call_made).collect(),
                    finish: *finish,
                    usage: *usage,
                }
            }
            Record::ToolResult { call_id, ok, text, images, .. } => {
                let result = CallResult { ok: *ok, text: text.clone(), images: images.clone() };
                return self.answer(call_id, result);
            }
            Record::RetryScheduled { attempt, delay_ms, failure, .. } => {
                Entry::Retry { attempt: *attempt, delay_ms: *delay_ms, failure: failure.clone() }
            }
            Record::Compaction { digest, .. } => Entry::Compaction { digest: digest.clone() },
            Record::PromptEnd { outcome, failure } if outcome != "completed" => {
                Entry::Ended { outcome: outcome.clone(), failure: failure.clone() }
            }
            Record::Repaired { cut_bytes, unreadable } => {
                Entry::Repaired { cut_bytes: *cut_bytes, unreadable: unreadable.clone() }
            }
            _ => return,
        };
        self.entries.push(entry);
    }

    const fn next_number(&mut self) -> usize {
        self.messages += 1;
        self.messages
    }

    fn answer(&mut self, call_id: &str, result: CallResult) {
        let Some((entry, at)) = self.calls.remove(call_id) else { return };
        if let Some(Entry::Assistant { tool_calls, .. }) = self.entries.get_mut(entry)
            && let Some(call) = tool_calls.get_mut(at)
        {
            call.result = Some(result);
        }
    }
}

fn call_made(call: &ToolCall) -> CallMade {
    CallMade {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.value(),
        result: None,
    }
}

/// The records up to message `last`, with the results of its calls: what a fork
/// takes over. `None` if there is no such message.
pub(super) fn up_to(records: &[Record], last: usize) -> Option<&[Record]> {
    let mut messages = 0;
    let mut calls: HashSet<&str> = HashSet::new();
    let mut end = (last == 0).then_some(0);
    for (at, record) in records.iter().enumerate() {
        match record {
            Record::Session { .. } if last == 0 => end = Some(at + 1),
            Record::User { .. } | Record::Assistant { .. } => {
                messages += 1;
                if messages > last {
                    break;
                }
                if messages == last {
                    end = Some(at + 1);
                }
                if let Record::Assistant { message, .. } = record {
                    calls = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
                }
            }
            Record::ToolResult { call_id, .. }
                if messages == last && calls.contains(call_id.as_str()) =>
            {
                end = Some(at + 1);
            }
            Record::StepEnd | Record::PromptEnd { .. } if messages == last && last > 0 => {
                end = Some(at + 1);
            }
            _ => {}
        }
    }
    records.get(..end?)
}
