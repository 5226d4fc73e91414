//! What every request holds: exactly what was said and done, and nothing of what
//! failed.

use std::collections::HashSet;

use turnbuckle_errors::ErrorCode;
use turnbuckle_providers::{AssistantMessage, Message};
use turnbuckle_runtime::{EventKind, Record};

use super::Findings;
use crate::{
    hands::done,
    kind::{Kind, Means, WORDING},
    mail::Mail,
    model::{digest, said},
    play::{Played, PlayedPrompt, Role},
    stage::{call_mark, mark},
};

const EXACT: &str = "a request holds what was said and done, in order, and nothing else";
const NO_PARTIAL: &str = "nothing of a failed attempt is in a later request";
const NO_WORDING: &str = "no wording of an error is in a request";
const PAIRED: &str = "every call has its one result, adjacent and in call order";
const UNIQUE: &str = "no two calls of a session share an id";
const NOT_BLANK: &str = "no message of a request is blank";
const SMALLER: &str = "a smaller history keeps its newest part, and the words of the user";
const SAID: &str = "what the user says into a prompt is taken in, told, and sent";
const GONE_ON: &str = "a prompt goes on if there is something to answer, and else is refused";
const REBUILT: &str = "the journal rebuilds the same request";
const COMMITTED: &str = "no step that had ended is lost";

pub(super) fn check(played: &Played, findings: &mut Findings) {
    let mut history =
        History { played, entries: Vec::new(), said: Vec::new(), before: Vec::new(), digest: None };
    let mut next = None;
    for prompt in &played.prompts {
        let asked = played.asked.get(prompt.asked.clone()).unwrap_or_default();
        // One request repeats the one before: what is looked for is looked for in
        // what it adds, and in all of the last one.
        let mut known = 0;
        for (at, each) in asked.iter().enumerate() {
            let from = if at + 1 == asked.len() { 0 } else { known };
            let added = each.messages.get(from..).unwrap_or_default();
            if from == 0 {
                valid(added, findings);
            }
            partials(played, added, findings);
            known = each.messages.len().saturating_sub(1);
        }
        digests(played, prompt, findings);
        let first = asked.first().map(|asked| asked.messages.as_slice());
        match (prompt.role, next) {
            // It goes on where the other one began.
            (Role::Twin, Some(next)) => findings.equal(REBUILT, first, next),
            (Role::Twin, None) => {
                history.replay(prompt, findings);
            }
            (Role::Next, _) => {
                next = Some(first);
                history.replay(prompt, findings);
            }
            _ => history.replay(prompt, findings),
        }
        if prompt.outcome.is_none() || prompt.full {
            history.reopen(prompt, findings);
        }
    }
    if let Some([own, rebuilt]) = &played.histories {
        findings.equal(REBUILT, rebuilt.as_slice(), own.as_slice());
        let wrong = history.differs(own, false);
        findings.holds(EXACT, wrong.is_none(), || wrong.unwrap_or_default());
    }
}

fn digests(played: &Played, prompt: &PlayedPrompt, findings: &mut Findings) {
    for digest in played.digests.get(prompt.digests.clone()).unwrap_or_default() {
        let quoted = [Message::User(digest.text.clone().into())];
        partials(played, &quoted, findings);
    }
}

/// What holds for a request by itself.
fn valid(messages: &[Message], findings: &mut Findings) {
    let mut ids: HashSet<&str> = HashSet::new();
    let mut due: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::Tool(result) => {
                let paired = due.first() == Some(&&*result.call_id);
                findings.holds(PAIRED, paired, || format!("{} instead of {due:?}", result.call_id));
                if paired {
                    due.remove(0);
                }
            }
            Message::Assistant(message) => {
                findings.holds(PAIRED, due.is_empty(), || format!("no result for {due:?}"));
                due = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
                for id in &due {
                    findings.holds(UNIQUE, ids.insert(id), || (*id).to_owned());
                }
                let blank = message.text.trim().is_empty()
                    && message.tool_calls.is_empty()
                    && message.native.is_none();
                findings.holds(NOT_BLANK, !blank, || format!("{message:?}"));
            }
            Message::User(message) => {
                findings.holds(PAIRED, due.is_empty(), || format!("no result for {due:?}"));
                findings.holds(NOT_BLANK, !message.text.trim().is_empty(), String::new);
            }
            _ => {}
        }
    }
    findings.holds(PAIRED, due.is_empty(), || format!("no result for {due:?}"));
}

/// Looks for the marks of attempts that failed, and for error texts.
fn partials(played: &Played, messages: &[Message], findings: &mut Findings) {
    let mut look = |text: &str| {
        for mark in text.split('<').skip(1).filter_map(|rest| rest.split_once('>')) {
            let attempt = mark.0.parse().ok().and_then(|at: usize| played.asked.get(at));
            let kept = attempt.is_some_and(|attempt| attempt.attempt.kind.is_kept());
            findings.holds(NO_PARTIAL, kept, || text.to_owned());
        }
        findings.holds(NO_WORDING, !text.contains(WORDING), || text.to_owned());
    };
    for message in messages {
        match message {
            Message::User(message) => look(&message.text),
            Message::Tool(result) => look(&result.text),
            Message::Assistant(message) => {
                look(&message.text);
                look(&message.reasoning);
                for part in message.native.iter().flat_map(|native| &native.parts) {
                    look(part);
                }
                for call in &message.tool_calls {
                    look(&call.id);
                    look(call.arguments.as_json());
                }
            }
            _ => {}
        }
    }
}

/// What a request has to hold, told from the provider's and the tools' side.
struct History<'a> {
    played: &'a Played,
    entries: Vec<Entry>,
    /// What each of the entries that are [`Entry::Said`] said, by attempt.
    said: Vec<(usize, AssistantMessage)>,
    /// The histories that gave way to smaller ones, oldest first.
    before: Vec<Vec<Entry>>,
    /// A digest that was made, and that the next request may begin with.
    digest: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
enum Entry {
    User(String),
    /// What this attempt said.
    Said(usize),
    /// What was said before, in short.
    Digest(usize),
    /// The result of a call: its text, or that it did not work.
    Result(Option<String>),
}

impl History<'_> {
    /// Holds the requests of a prompt against what came before them.
    fn replay(&mut self, prompt: &PlayedPrompt, findings: &mut Findings) {
        if prompt.role == Role::GoneOn {
            let open = !matches!(self.entries.last(), None | Some(Entry::Said(_)));
            findings.equal(GONE_ON, !prompt.asked.is_empty(), open);
            let code = prompt.outcome.as_ref().and_then(|outcome| outcome.failure.as_ref());
            let refused = code.is_some_and(|code| code.code() == ErrorCode::InvalidRequest);
            findings.holds(GONE_ON, open || refused, || format!("{code:?}"));
        } else {
            self.entries.push(Entry::User(prompt.text.clone()));
        }
        let mut nudged = false;
        let mut mail = Mail::of(prompt);
        let mut taken = Vec::new();
        let asked = self.played.asked.get(prompt.asked.clone()).unwrap_or_default();
        for (number, asked) in prompt.asked.clone().zip(asked) {
            let steered = mail.before_request(number);
            if let Some(digest) = self.digest.take() {
                let added = steered.len() + usize::from(nudged);
                let before = asked.messages.len().saturating_sub(added);
                self.adopt(digest, asked.messages.get(..before).unwrap_or_default(), findings);
            }
            self.take_in(steered, &mut taken);
            let wrong = self.differs(&asked.messages, nudged);
            findings.holds(EXACT, wrong.is_none(), || {
                let due = self.entries.iter().map(|entry| format!("{entry:?}"));
                let due: Vec<_> = due.collect();
                format!("request {number}: {} of {}", wrong.unwrap_or_default(), due.join(", "))
            });
            let kind = asked.attempt.kind;
            nudged |= matches!(kind, Kind::Empty | Kind::ReasoningOnly);
            let made = |at: &usize| self.played.digests.get(*at).is_some_and(|made| made.finished);
            self.digest = asked.digest.filter(made).filter(|_| kind.digest_works());
            if asked.finished && matches!(kind.means(), Means::Done | Means::GoesOn) {
                nudged = false;
                if kind.is_kept() {
                    self.entries.push(Entry::Said(number));
                    self.said.push((number, said(number, &asked.attempt)));
                    let calls = asked.attempt.calls.iter().enumerate();
                    let results = calls.map(|(at, act)| {
                        let what = call_mark(number, at);
                        let runs = &self.played.tool_runs;
                        let ended = runs.iter().any(|run| run.what == what && run.ended);
                        Entry::Result((ended && act.works()).then(|| done(&what)))
                    });
                    self.entries.extend(results);
                }
                if kind.means() == Means::Done
                    && number + 1 < prompt.asked.end
                    && let Some(Some(followed)) = mail.after_answer(number)
                {
                    self.take_in(vec![followed], &mut taken);
                }
            }
        }
        if prompt.outcome.is_none() || prompt.full {
            let answered = asked
                .last()
                .is_some_and(|last| last.finished && last.attempt.kind.means() == Means::Done);
            self.take_in(mail.rest(answered), &mut taken);
        }
        let told = prompt.events.iter().filter_map(|(_, event)| match &event.kind {
            EventKind::UserMessage { text, .. } => Some(text),
            _ => None,
        });
        let told: Vec<_> = told.collect();
        let stopped = prompt.outcome.is_none() || prompt.full;
        let same = taken.iter().zip(&told).all(|(taken, told)| taken == *told);
        let all = taken.len() == told.len() || (stopped && taken.len() > told.len());
        findings.holds(SAID, same && all, || format!("{told:?} instead of {taken:?}"));
    }

    /// The user has said more.
    fn take_in(&mut self, texts: Vec<String>, taken: &mut Vec<String>) {
        for text in texts {
            self.entries.push(Entry::User(text.clone()));
            taken.push(text);
        }
    }

    /// Takes a smaller history for granted, if it is one: a digest, words of the
    /// user, and then everything from some message on.
    fn adopt(&mut self, digest: usize, messages: &[Message], findings: &mut Findings) {
        let begins = matches!(messages.first(), Some(Message::User(first)) if is_digest(digest, &first.text));
        if !begins {
            return;
        }
        let messages = messages.get(1..).unwrap_or_default();
        let pairs = messages.iter().rev().zip(self.entries.iter().rev());
        let tail = pairs.take_while(|(message, entry)| self.is_like(message, entry)).count();
        let (older, recent) = self.entries.split_at(self.entries.len() - tail);
        let (users, _) = messages.split_at(messages.len() - tail);
        let mut said = older.iter();
        let kept: Vec<Entry> = users
            .iter()
            .filter_map(|user| {
                let mut same = said.by_ref().filter(|entry| matches!(entry, Entry::User(_)));
                same.find(|entry| self.is_like(user, entry)).cloned()
            })
            .collect();
        let task = self.entries.iter().rfind(|entry| matches!(entry, Entry::User(_)));
        let task_stays = task.is_some_and(|task| kept.contains(task) || recent.contains(task));
        findings.holds(SMALLER, kept.len() == users.len() && tail > 0 && task_stays, || {
            format!("{messages:?} of {:?}", self.entries)
        });
        let smaller = [Entry::Digest(digest)].into_iter().chain(kept).chain(recent.to_vec());
        let smaller = smaller.collect();
        self.before.push(std::mem::replace(&mut self.entries, smaller));
    }

    /// How the messages differ from what they have to be.
    fn differs(&self, messages: &[Message], nudged: bool) -> Option<String> {
        let (messages, nudge) = match messages {
            [messages @ .., nudge] if nudged => (messages, Some(nudge)),
            messages => (messages, None),
        };
        let is_nudge = |message: &Message| matches!(message, Message::User(nudge) if !nudge.text.starts_with("user:"));
        if !nudge.is_none_or(is_nudge) {
            return Some("no nudge".to_owned());
        }
        if messages.len() != self.entries.len() {
            return Some(format!("{} messages instead of {}", messages.len(), self.entries.len()));
        }
        let unlike = messages
            .iter()
            .zip(&self.entries)
            .find(|(message, entry)| !self.is_like(message, entry));
        unlike.map(|(message, entry)| format!("{message:?} instead of {entry:?}"))
    }

    fn is_like(&self, message: &Message, entry: &Entry) -> bool {
        match (message, entry) {
            (Message::User(message), Entry::User(text)) => message.text == *text,
            (Message::Assistant(message), Entry::Said(number)) => {
                let due = self.said.binary_search_by_key(number, |(number, _)| *number);
                let due = due.ok().and_then(|at| self.said.get(at));
                due.is_some_and(|(_, due)| is_same(message, due))
            }
            (Message::User(message), Entry::Digest(number)) => is_digest(*number, &message.text),
            (Message::Tool(result), Entry::Result(Some(text))) => result.ok && result.text == *text,
            (Message::Tool(result), Entry::Result(None)) => !result.ok && !result.text.is_empty(),
            _ => false,
        }
    }

    /// Forgets what the surviving journal does not hold.
    fn reopen(&mut self, prompt: &PlayedPrompt, findings: &mut Findings) {
        let has_user = |due: &str| {
            let is_it =
                |record: &Record| matches!(record, Record::User { text, .. } if text == due);
            prompt.records.iter().any(is_it)
        };
        let is_compaction = |record: &&Record| matches!(record, Record::Compaction { .. });
        let compactions = prompt.records.iter().filter(is_compaction).count();
        if let Some(before) = self.before.get_mut(compactions) {
            self.entries = std::mem::take(before);
            self.before.truncate(compactions);
        }
        let mut kept = Vec::with_capacity(self.entries.len());
        let mut results = Vec::new();
        for entry in std::mem::take(&mut self.entries) {
            match entry {
                Entry::Digest(number) => kept.push(Entry::Digest(number)),
                Entry::User(text) if !has_user(&text) => break,
                Entry::User(text) => kept.push(Entry::User(text)),
                Entry::Said(number) => match written(&prompt.records, number) {
                    Some(told) => {
                        results = told;
                        kept.push(Entry::Said(number));
                    }
                    None => break,
                },
                Entry::Result(text) => {
                    let was_told = results.pop().unwrap_or(false);
                    kept.push(Entry::Result(text.filter(|_| was_told)));
                }
            }
        }
        self.entries = kept;
        let ends = prompt.events.iter();
        let mut ended = ends.filter(|(_, event)| matches!(event.kind, EventKind::TurnEnd)).count();
        let asked = self.played.asked.get(prompt.asked.clone()).unwrap_or_default();
        for (number, asked) in prompt.asked.clone().zip(asked) {
            if ended == 0 || prompt.full {
                break;
            }
            let whole = matches!(asked.attempt.kind.means(), Means::Done | Means::GoesOn);
            if asked.finished && whole {
                ended -= 1;
                let is_there = written(&prompt.records, number).is_some();
                let due = asked.attempt.kind.is_kept();
                findings.holds(COMMITTED, is_there || !due, || format!("attempt {number}"));
            }
        }
    }
}

fn is_digest(number: usize, text: &str) -> bool {
    text.ends_with(&digest(number))
}

/// Whether the journal holds this attempt: for each of its calls, last first,
/// whether it holds the result.
fn written(records: &[Record], number: usize) -> Option<Vec<bool>> {
    let begins = format!("text{}a ", mark(number));
    let message = records.iter().find_map(|record| match record {
        Record::Assistant { message, .. } if message.text.starts_with(&begins) => Some(message),
        _ => None,
    })?;
    let is_told = |id: &str| {
        records
            .iter()
            .any(|record| matches!(record, Record::ToolResult { call_id, .. } if call_id == id))
    };
    Some(message.tool_calls.iter().rev().map(|call| is_told(&call.id)).collect())
}

/// Whether two messages say the same; ids may have been changed on the way.
fn is_same(seen: &AssistantMessage, due: &AssistantMessage) -> bool {
    let calls = seen.tool_calls.iter().zip(&due.tool_calls);
    seen.text == due.text
        && seen.reasoning == due.reasoning
        && seen.tool_calls.len() == due.tool_calls.len()
        && calls.into_iter().all(|(a, b)| a.name == b.name && a.arguments == b.arguments)
        && (seen.native == due.native || seen.native.is_none())
}
