//! What a journal lacks when the process ended in the middle of a prompt.

use std::collections::HashSet;

use turnbuckle_providers::ToolCall;

use super::{Record, history::interrupted};

/// The records that close what `records` leave open: a result for each call of
/// the last message that has none, the end of the step, the end of the prompt.
///
/// A call that began may have had an effect: its result says that its outcome is
/// unknown, and it is never run again.
pub(crate) fn closing(records: &[Record]) -> Vec<Record> {
    let mut open = Open::default();
    for record in records {
        open.note(record);
    }
    open.close()
}

#[derive(Default)]
struct Open<'a> {
    prompt: bool,
    step: bool,
    calls: &'a [ToolCall],
    began: HashSet<&'a str>,
    ended: HashSet<&'a str>,
}

impl<'a> Open<'a> {
    fn note(&mut self, record: &'a Record) {
        match record {
            Record::User { .. } => {
                self.prompt = true;
                self.step = true;
            }
            Record::Assistant { message, .. } => {
                (self.prompt, self.step) = (true, true);
                self.calls = &message.tool_calls;
                self.began.clear();
                self.ended.clear();
            }
            Record::ToolStart { call_id, .. } => {
                self.began.insert(call_id);
            }
            Record::ToolResult { call_id, .. } => {
                self.ended.insert(call_id);
            }
            Record::RetryScheduled { .. }
            | Record::RetryStarted { .. }
            | Record::Compaction { .. } => self.step = true,
            Record::StepEnd => {
                self.step = false;
                self.calls = &[];
            }
            Record::PromptEnd { .. } => {
                (self.prompt, self.step) = (false, false);
                self.calls = &[];
            }
            _ => {}
        }
    }

    fn close(self) -> Vec<Record> {
        let unanswered = self.calls.iter().filter(|call| !self.ended.contains(call.id.as_str()));
        let mut records: Vec<Record> = unanswered
            .map(|call| {
                let result = interrupted(call, self.began.contains(call.id.as_str()));
                Record::ToolResult {
                    call_id: result.call_id,
                    name: result.name,
                    ok: result.ok,
                    text: result.text,
                    images: result.images,
                }
            })
            .collect();
        if self.step {
            records.push(Record::StepEnd);
        }
        if self.prompt {
            records.push(Record::PromptEnd { outcome: "interrupted".to_owned(), failure: None });
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use turnbuckle_providers::{Arguments, AssistantMessage, FinishReason, Usage};

    use super::*;

    fn user() -> Record {
        Record::User { text: "go".into(), images: Vec::new() }
    }

    fn asking(ids: &[&str]) -> Record {
        let call = |id: &&str| ToolCall {
            id: (*id).into(),
            name: "f".into(),
            arguments: Arguments::parse(String::new()),
        };
        let tool_calls = ids.iter().map(call).collect();
        Record::Assistant {
            message_id: "m".into(),
            message: AssistantMessage { tool_calls, ..AssistantMessage::default() },
            finish: FinishReason::ToolCalls,
            usage: Usage::default(),
        }
    }

    fn start(id: &str) -> Record {
        Record::ToolStart { call_id: id.into(), name: "f".into() }
    }

    fn result(id: &str) -> Record {
        Record::ToolResult {
            call_id: id.into(),
            name: "f".into(),
            ok: true,
            text: "done".into(),
            images: Vec::new(),
        }
    }

    fn end() -> Record {
        Record::PromptEnd { outcome: "completed".into(), failure: None }
    }

    #[track_caller]
    fn check(records: &[Record], expected: &[&str]) {
        let closed: Vec<String> = closing(records)
            .iter()
            .map(|record| match record {
                Record::ToolResult { call_id, text, ok: false, .. } => {
                    let known = if text.contains("unknown") { "unknown" } else { "not run" };
                    format!("{call_id} {known}")
                }
                Record::StepEnd => "step end".to_owned(),
                Record::PromptEnd { outcome, failure: None } => outcome.clone(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(closed, expected);
    }

    #[test]
    fn what_is_closed_stays_as_it_is() {
        check(&[], &[]);
        check(&[user(), asking(&[]), Record::StepEnd, end()], &[]);
        check(&[user(), asking(&["a"]), result("a"), Record::StepEnd, Record::StepEnd, end()], &[]);
    }

    #[test]
    fn every_place_a_process_can_end_at_is_closed() {
        let step = ["step end", "interrupted"];
        check(&[user()], &step);
        check(&[user(), Record::RetryStarted { retry_id: "r".into() }], &step);
        check(&[user(), asking(&[])], &step);
        check(
            &[user(), asking(&["a", "b"])],
            &["a not run", "b not run", "step end", "interrupted"],
        );
        check(
            &[user(), asking(&["a", "b"]), start("a"), start("b"), result("b")],
            &["a unknown", "step end", "interrupted"],
        );
        check(&[user(), asking(&["a"]), start("a"), result("a")], &step);
        check(&[user(), asking(&["a"]), result("a"), Record::StepEnd], &["interrupted"]);
    }

    #[test]
    fn closing_twice_adds_nothing() {
        let mut records = vec![user(), asking(&["a"]), start("a")];
        records.extend(closing(&records));
        check(&records, &[]);
    }
}
