//! What one run plays on, and everything that is seen of it from outside the
//! runtime: requests, tools, records.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;
use turnbuckle_providers::{ChatRequest, Message};
use turnbuckle_runtime::Record;

use crate::{
    kind::Kind,
    sabotage::Sabotage,
    script::{Act, Attempt, Crash},
};

/// Shared by the provider, the tools, the store and the driver of one run.
pub(crate) struct Stage(Mutex<State>);

/// See [`Stage`].
pub(crate) struct State {
    pub(crate) began: Instant,
    /// What is left of the running prompt's script.
    script: VecDeque<Attempt>,
    /// Attempts that were asked for when the script had none left.
    pub(crate) beyond: u32,
    pub(crate) asked: Vec<Asked>,
    pub(crate) digests: Vec<Digest>,
    pub(crate) open_streams: u32,
    pub(crate) tool_runs: Vec<ToolRun>,
    pub(crate) running_changes: u32,
    /// Whether the running prompt was cancelled.
    pub(crate) aborted: bool,
    pub(crate) records: Vec<Record>,
    /// How many of them were synced.
    pub(crate) synced: usize,
    /// How many writes and syncs the journal did.
    pub(crate) writes: usize,
    pub(crate) crash: Option<Crash>,
    /// Whether it had to refuse one.
    pub(crate) refused: bool,
    /// Whether the process died.
    pub(crate) dead: bool,
    pub(crate) ids: u64,
    pub(crate) samples: u64,
    /// What no runtime would do, to prove that it would be seen.
    pub(crate) sabotage: Option<Sabotage>,
}

/// One request, and what came of it.
pub(crate) struct Asked {
    pub(crate) at_ms: u64,
    pub(crate) attempt: Attempt,
    pub(crate) messages: Vec<Message>,
    pub(crate) session_id: Option<String>,
    pub(crate) fresh_connection: bool,
    pub(crate) after_abort: bool,
    /// Streams that were still open.
    pub(crate) beside: u32,
    /// Whether the runtime took its last event.
    pub(crate) finished: bool,
    /// Whether the runtime took its report of token usage.
    pub(crate) used: bool,
    /// The request for a digest that followed.
    pub(crate) digest: Option<usize>,
}

/// One request for a digest of the conversation.
pub(crate) struct Digest {
    /// What it quotes.
    pub(crate) text: String,
    pub(crate) after_abort: bool,
    /// Streams that were still open.
    pub(crate) beside: u32,
    /// Whether the runtime took its last event.
    pub(crate) finished: bool,
    /// Whether the runtime took its report of token usage.
    pub(crate) used: bool,
}

/// One run of a tool.
pub(crate) struct ToolRun {
    /// Which call of which attempt.
    pub(crate) what: String,
    pub(crate) act: Act,
    pub(crate) after_abort: bool,
    /// Whether a synced record said that it begins.
    pub(crate) noted: bool,
    /// Changes that were running already.
    pub(crate) beside: u32,
    /// Whether it came to its own end.
    pub(crate) ended: bool,
}

/// Which text belongs to which attempt of a run: no two are alike.
pub(crate) fn mark(attempt: usize) -> String {
    format!("<{attempt}>")
}

/// The input of a call, which names it.
pub(crate) fn call_mark(attempt: usize, call: usize) -> String {
    format!("<{attempt}>.{call}")
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State::new(None, None)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clears it for the next run, and hands back what was seen of the last.
    pub(crate) fn clear(&self, crash: Option<Crash>, sabotage: Option<Sabotage>) -> State {
        std::mem::replace(&mut *self.lock(), State::new(crash, sabotage))
    }
}

impl State {
    fn new(crash: Option<Crash>, sabotage: Option<Sabotage>) -> Self {
        Self {
            began: Instant::now(),
            script: VecDeque::new(),
            beyond: 0,
            asked: Vec::new(),
            digests: Vec::new(),
            open_streams: 0,
            tool_runs: Vec::new(),
            running_changes: 0,
            aborted: false,
            records: Vec::new(),
            synced: 0,
            writes: 0,
            crash,
            refused: false,
            dead: false,
            ids: 0,
            samples: 0,
            sabotage,
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn begin_prompt(&mut self, attempts: &[Attempt]) {
        self.script = attempts.iter().cloned().collect();
        self.aborted = false;
    }

    /// What of the script nobody asked for.
    pub(crate) fn left(&mut self) -> Vec<Attempt> {
        self.script.drain(..).collect()
    }

    /// Notes a request, and says how it goes and which one it is.
    pub(crate) fn ask(
        &mut self,
        request: &ChatRequest,
        fresh_connection: bool,
    ) -> (usize, Attempt) {
        let attempt = self.script.pop_front().unwrap_or_else(|| {
            self.beyond += 1;
            Kind::Answer.into()
        });
        let number = self.asked.len();
        let mut messages = messages(request);
        if let Some(sabotage) = self.sabotage {
            sabotage.spoil(&mut messages, &self.asked);
        }
        self.asked.push(Asked {
            at_ms: self.now_ms(),
            attempt: attempt.clone(),
            messages,
            session_id: request.session_id.clone(),
            fresh_connection,
            after_abort: self.aborted,
            beside: self.open_streams,
            finished: false,
            used: false,
            digest: None,
        });
        (number, attempt)
    }

    /// Notes a request for a digest, and says after which attempt it comes and which
    /// one it is.
    pub(crate) fn ask_digest(&mut self, request: &ChatRequest) -> (Kind, usize) {
        let quoted = messages(request).into_iter().filter_map(|message| match message {
            Message::User(message) => Some(message.text),
            _ => None,
        });
        let number = self.digests.len();
        self.digests.push(Digest {
            text: quoted.collect(),
            after_abort: self.aborted,
            beside: self.open_streams,
            finished: false,
            used: false,
        });
        let after = self.asked.last_mut();
        let kind = after.map_or(Kind::Answer, |asked| {
            asked.digest = Some(number);
            asked.attempt.kind
        });
        (kind, number)
    }

    pub(crate) fn begin_tool(&mut self, act: Act, what: &str) {
        let noted = self.is_noted(what);
        self.tool_runs.push(ToolRun {
            what: what.to_owned(),
            act,
            after_abort: self.aborted,
            noted,
            beside: self.running_changes,
            ended: false,
        });
        if act.changes() {
            self.running_changes += 1;
        }
    }

    pub(crate) const fn end_tool(&mut self, act: Act) {
        if act.changes() {
            self.running_changes -= 1;
        }
    }

    /// Whether a synced record says that the call with this input begins.
    fn is_noted(&self, what: &str) -> bool {
        let synced = self.records.get(..self.synced).unwrap_or_default();
        let id = synced.iter().rev().find_map(|record| match record {
            Record::Assistant { message, .. } => {
                let quoted = format!("\"{what}\"");
                let calls = &message.tool_calls;
                let call = calls.iter().find(|call| call.arguments.as_json().contains(&quoted));
                call.map(|call| call.id.clone())
            }
            _ => None,
        });
        synced
            .iter()
            .any(|record| matches!(record, Record::ToolStart { call_id, .. } if Some(call_id) == id.as_ref()))
    }
}

/// The messages of a request.
fn messages(request: &ChatRequest) -> Vec<Message> {
    request.messages.to_vec()
}
