//! What a host is told of one prompt.

use serde_json::Value;

use super::{kind, number, unless, word};
use crate::faults::{
    due::{Attempt, Call, Due, Ending, Failing},
    stage::Told,
};

pub(super) fn complaints(due: &Due, prompt: usize, told: &Told) -> Vec<String> {
    let one =
        One { attempts: due.of_prompt(prompt).collect(), ending: due.prompts.get(prompt), told };
    let promises = [frame, steps, attempts, retries, messages, ending, tools];
    promises.iter().flat_map(|promise| promise(&one)).collect()
}

/// One prompt: what is due, and what was told.
struct One<'a> {
    attempts: Vec<&'a Attempt>,
    ending: Option<&'a Ending>,
    told: &'a Told,
}

impl<'a> One<'a> {
    fn of_kind(&self, wanted: &str) -> impl Iterator<Item = &'a Value> {
        self.told.events.iter().filter(move |event| kind(event) == wanted)
    }

    fn whole(&self) -> impl Iterator<Item = &'a Attempt> {
        self.attempts.iter().copied().filter(|attempt| attempt.fails.is_none())
    }
}

/// One `agent_start` first, one `agent_end` last, numbers without a gap, and an
/// `error` just before the end of what failed, nowhere else.
fn frame(one: &One<'_>) -> Vec<String> {
    let events = &one.told.events;
    let kinds: Vec<&str> = events.iter().map(kind).collect();
    let count = |wanted| kinds.iter().filter(|kind| **kind == wanted).count();
    let gapless = (1..).zip(events).all(|(seq, event)| number(event, "/seq") == Some(seq));
    let errors = usize::from(one.told.outcome_word() == "failed");
    let before_last = kinds.iter().rev().nth(1).copied();
    [
        unless(kinds.first() == Some(&"agent_start") && count("agent_start") == 1, || {
            "agent_start is not the first event, once".to_owned()
        }),
        unless(kinds.last() == Some(&"agent_end") && count("agent_end") == 1, || {
            format!("{} agent_end, or it is not the last event", count("agent_end"))
        }),
        unless(gapless, || "seq has a gap".to_owned()),
        unless(count("error") == errors, || format!("{} error events", count("error"))),
        unless(errors == 0 || before_last == Some("error"), || {
            "the error is not just before the end".to_owned()
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Each step that is due begins and ends, one after another, and is numbered.
fn steps(one: &One<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    let due = one.attempts.last().map_or(0, |last| last.step + 1);
    let (mut begun, mut open) = (0, false);
    for event in &one.told.events {
        match kind(event) {
            "turn_start" => {
                complaints.extend(unless(!open, || "a step begins inside of one".to_owned()));
                (begun, open) = (begun + 1, true);
                let turn = number(event, "/turn");
                complaints.extend(unless(turn == Some(begun), || {
                    format!("step {begun} is numbered {turn:?}")
                }));
            }
            "turn_end" => {
                complaints.extend(unless(open, || "a step ends that is not open".to_owned()));
                open = false;
            }
            "agent_start" | "error" | "agent_end" | "user_message" => {
                complaints.extend(unless(!open, || format!("{} inside a step", kind(event))));
            }
            inside => {
                complaints.extend(unless(open, || format!("{inside} outside a step")));
            }
        }
    }
    let begun = usize::try_from(begun).unwrap_or(usize::MAX);
    complaints.extend(unless(begun == due, || format!("{begun} steps, due are {due}")));
    complaints
}

fn attempts(one: &One<'_>) -> Vec<String> {
    let (due, client) = (one.attempts.len(), one.told.attempts());
    let complaint =
        unless(client == due, || format!("the client tells {client} attempts, due are {due}"));
    complaint.into_iter().collect()
}

/// Each retry is announced with its reason, its budget and the documented wait,
/// then begins, and is told again in the outcome.
fn retries(one: &One<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    let announced: Vec<&Value> = one.of_kind("retry_scheduled").collect();
    let due: Vec<_> =
        one.attempts.iter().filter_map(|attempt| Some((attempt.fails?, attempt.retry?))).collect();
    let listed = one.told.outcome.get("retries").and_then(Value::as_array);
    let listed = listed.map(Vec::as_slice).unwrap_or_default();
    complaints.extend(unless(announced.len() == due.len() && listed.len() == due.len(), || {
        format!(
            "{} retries are due, {} announced, {} in the outcome",
            due.len(),
            announced.len(),
            listed.len()
        )
    }));
    for (place, (retry, (failing, due))) in announced.iter().zip(&due).enumerate() {
        let failure = retry.get("failure").unwrap_or(&Value::Null);
        complaints.extend(same("code", word(failure, "/code"), failing.code));
        complaints.extend(same("phase", word(retry, "/phase"), failing.phase));
        complaints.extend(same("phase", word(failure, "/details/phase"), failing.phase));
        complaints.extend(same("budget", word(retry, "/budget"), due.budget));
        let delay = number(retry, "/delayMs");
        let (least, most) = due.wait_ms;
        complaints.extend(unless(delay.is_some_and(|d| (least..=most).contains(&d)), || {
            format!("retry {} waits {delay:?} ms, documented are {least} to {most}", place + 1)
        }));
        let again = listed.get(place);
        let fields = ["retryId", "attempt", "budget", "phase", "delayMs"];
        let told_again =
            |field: &str| again.is_none_or(|again| again.get(field) == retry.get(field));
        complaints.extend(unless(fields.into_iter().all(told_again), || {
            format!("retry {} is another one in the outcome", place + 1)
        }));
    }
    complaints.extend(unless(paired(&one.told.events), || {
        "a retry was announced and did not begin".to_owned()
    }));
    complaints
}

/// Whether each retry that was announced began next.
fn paired(events: &[Value]) -> bool {
    let retries: Vec<&Value> =
        events.iter().filter(|event| kind(event).starts_with("retry_")).collect();
    retries.chunks(2).all(|pair| match pair {
        [scheduled, started] => {
            (kind(scheduled), kind(started)) == ("retry_scheduled", "retry_started")
                && word(scheduled, "/retryId") == word(started, "/retryId")
        }
        _ => false,
    })
}

fn same(what: &str, seen: &str, due: &str) -> Option<String> {
    unless(seen == due, || format!("the {what} is {seen}, documented is {due}"))
}

/// Each message has one id from its start to its one end; what a failed attempt
/// had told is void before anything else is told; the whole ones say exactly what
/// was sent.
fn messages(one: &One<'_>) -> Vec<String> {
    let mut reader = Reader::default();
    for event in &one.told.events {
        reader.read(event);
    }
    let Reader { mut complaints, open, failed, whole, .. } = reader;
    complaints.extend(unless(open.is_none(), || "a message has no end".to_owned()));
    let due: Vec<Message> =
        one.whole().map(|attempt| (attempt.text.clone(), attempt.calls.clone())).collect();
    let most = usize::from(matches!(one.ending, Some(Ending::Failed(_))));
    complaints.extend(unless(failed <= most, || {
        format!("{failed} messages ended with a failure, at most {most} may")
    }));
    let alike = whole.len() == due.len() && whole.iter().zip(&due).all(alike);
    complaints.extend(unless(alike, || format!("whole messages: {whole:?}, due: {due:?}")));
    complaints
}

/// The text and the calls of a message.
type Message = (String, Vec<Call>);

/// Whether a message says what is due. What a call that cannot be run asks for is the
/// fault, and told as far as it can be read.
fn alike((told, due): (&Message, &Message)) -> bool {
    let same = |(told, due): (&Call, &Call)| {
        due.refused.is_some() || (told.name == due.name && told.arguments == due.arguments)
    };
    told.0 == due.0 && told.1.len() == due.1.len() && told.1.iter().zip(&due.1).all(same)
}

/// Reads messages as a host does that shows them.
#[derive(Default)]
struct Reader<'a> {
    complaints: Vec<String>,
    open: Option<&'a str>,
    /// Whether what was told is void, and has to be told anew.
    void: bool,
    told: String,
    failed: usize,
    whole: Vec<Message>,
}

impl<'a> Reader<'a> {
    fn complain(&mut self, holds: bool, complaint: impl FnOnce() -> String) {
        self.complaints.extend(unless(holds, complaint));
    }

    fn read(&mut self, event: &'a Value) {
        let id = word(event, "/messageId");
        let is_open = self.open == Some(id);
        match kind(event) {
            "message_start" => {
                self.complain(self.open.is_none(), || "two messages at once".to_owned());
                (self.open, self.void) = (Some(id), false);
                self.told.clear();
            }
            "retry_scheduled" => self.void = self.open.is_some(),
            "message_restart" => {
                self.complain(is_open && self.void, || format!("{id} restarts for nothing"));
                self.void = false;
                self.told.clear();
            }
            "message_update" => {
                self.complain(is_open && !self.void, || {
                    format!("{id} is told further although what was told is void")
                });
                if word(event, "/kind") == "text" {
                    self.told.push_str(word(event, "/delta"));
                }
            }
            "message_end" => {
                self.complain(is_open, || format!("{id} ends and has not begun"));
                self.end(event);
                self.open = None;
            }
            _ => {}
        }
    }

    fn end(&mut self, event: &Value) {
        let calls = event.pointer("/message/toolCalls").and_then(Value::as_array);
        let calls = calls.map(Vec::as_slice).unwrap_or_default();
        if event.get("failure").is_some() {
            self.failed += 1;
            // What a filter stopped had come whole, and may be looked at.
            let filtered = word(event, "/failure/code") == "CONTENT_FILTERED";
            let half =
                filtered || calls.iter().all(|call| call.get("arguments") == Some(&Value::Null));
            self.complain(half, || "a failed message shows a whole call".to_owned());
            return;
        }
        let text = word(event, "/message/text");
        let told = std::mem::take(&mut self.told);
        self.complain(told == text, || format!("was told {told:?}, the message says {text:?}"));
        let call = |call: &Value| Call {
            name: word(call, "/name").to_owned(),
            arguments: call.get("arguments").cloned().unwrap_or_default(),
            refused: None,
        };
        self.whole.push((text.to_owned(), calls.iter().map(call).collect()));
    }
}

/// Completed with the exact text, or failed with the documented code and phase.
fn ending(one: &One<'_>) -> Vec<String> {
    let Some(ending) = one.ending else { return Vec::new() };
    let due = match ending {
        Ending::Completed(_) => "completed",
        Ending::Failed(_) => "failed",
    };
    let end = one.of_kind("agent_end").next().unwrap_or(&Value::Null);
    let mut complaints: Vec<String> = [one.told.outcome_word(), word(end, "/outcome")]
        .into_iter()
        .filter_map(|word| unless(word == due, || format!("the prompt {word}, due is {due}")))
        .collect();
    match ending {
        Ending::Completed(text) => {
            let told = word(&one.told.outcome, "/text");
            complaints.extend(unless(told == text, || format!("the outcome says {told:?}")));
        }
        Ending::Failed(Failing { code, phase }) => {
            let error = one.of_kind("error").next().unwrap_or(&Value::Null);
            for told in [&one.told.outcome, end, error] {
                complaints.extend(same("final code", word(told, "/failure/code"), code));
                let seen = word(told, "/failure/details/phase");
                complaints.extend(same("final phase", seen, phase));
            }
        }
    }
    complaints
}

/// Exactly the calls of whole messages ran, in their order, once each; those that
/// cannot be run were answered with why.
fn tools(one: &One<'_>) -> Vec<String> {
    let due: Vec<&Call> = one.whole().flat_map(|attempt| &attempt.calls).collect();
    let started: Vec<&Value> = one.of_kind("tool_execution_start").collect();
    let ended: Vec<&Value> = one.of_kind("tool_execution_end").collect();
    let is = |(started, call): (&&Value, &&Call)| {
        call.refused.is_some()
            || word(started, "/name") == call.name
                && started.get("arguments") == Some(&call.arguments)
    };
    let well = |call: &Call, ended: &Value| match call.refused {
        None => ended.get("ok") == Some(&true.into()),
        Some(code) => word(ended, "/failure/code") == code,
    };
    let good = due.iter().zip(&ended).filter(|(call, ended)| well(call, ended)).count();
    let in_order = started.iter().zip(&due).all(is);
    let count = due.len();
    let holds = started.len() == count && ended.len() == count && good == count && in_order;
    let complaint = unless(holds, || {
        format!("{} tools began and {good} did what was asked, due is {count}", started.len())
    });
    complaint.into_iter().collect()
}
