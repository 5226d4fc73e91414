//! What a host holds: a session, and a running prompt of it.

use std::{
    collections::HashSet,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_util::Stream;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use turnbuckle_providers::UserMessage;

use crate::{
    Event, Journal, PromptOutcome, Record, Remote, Repairs, Runtime, SessionStore, Transcript,
    compaction::Meter,
    session,
    turn::{Opening, Run, Turn},
};

/// Events that may wait for the host before the turn does.
const EVENT_ROOM: usize = 64;

pub(crate) fn event_room() -> (mpsc::Sender<Event>, mpsc::Receiver<Event>) {
    mpsc::channel(EVENT_ROOM)
}

/// One conversation: its history and its journal.
pub struct Session {
    pub(crate) runtime: Runtime,
    pub(crate) id: String,
    pub(crate) transcript: Transcript,
    pub(crate) store: Box<dyn SessionStore>,
    /// The ids of all tool calls so far; each is used once.
    pub(crate) call_ids: HashSet<String>,
    /// How large the next request will be.
    pub(crate) meter: Meter,
    /// What the journal holds of a message whose results are not all there yet.
    pub(crate) open: Vec<Record>,
    /// Whether the journal has its first record.
    pub(crate) begun: bool,
    /// The folder that the tools work in, for the first record.
    pub(crate) workspace: Option<String>,
    /// What was mended when the journal was opened.
    repairs: Repairs,
    /// Whether the journal failed, so that nothing may follow.
    pub(crate) closed: bool,
}

impl Session {
    pub(crate) fn begin(runtime: Runtime, id: String, store: Box<dyn SessionStore>) -> Self {
        Self {
            runtime,
            id,
            transcript: Transcript::new(),
            store,
            call_ids: HashSet::new(),
            meter: Meter::default(),
            open: Vec::new(),
            begun: false,
            workspace: None,
            repairs: Repairs::default(),
            closed: false,
        }
    }

    /// Takes in what a prompt has left open that was dropped between its calls and
    /// their results, just as a resumed session does.
    pub(crate) fn close_open(&mut self) {
        if !self.open.is_empty() {
            let transcript = std::mem::take(&mut self.transcript);
            self.transcript = session::extend(transcript, std::mem::take(&mut self.open));
        }
    }

    pub(crate) fn resumed(
        runtime: Runtime,
        id: String,
        store: Box<dyn SessionStore>,
        journal: Journal,
    ) -> Self {
        let Journal { records, repairs } = journal;
        let begun = !records.is_empty();
        let call_ids = session::call_ids(&records);
        let last = session::last_answer(&records);
        let transcript = session::rebuild(records);
        let mut meter = Meter::default();
        if let Some((answer, usage)) = last
            && let Some(before) = session::before(&answer, &transcript)
        {
            let asked = transcript.messages().iter().take(before);
            meter.counted(Meter::default().weigh(runtime.parts.fixed_bytes, asked), &usage);
        }
        Self { transcript, call_ids, meter, begun, repairs, ..Self::begin(runtime, id, store) }
    }

    /// Notes in the journal of a new session which folder its tools work in, so
    /// that [`SessionFolder::newest`](crate::SessionFolder::newest) finds it.
    #[must_use]
    pub fn in_workspace(mut self, folder: &std::path::Path) -> Self {
        self.workspace = Some(folder.to_string_lossy().into_owned());
        self
    }

    /// What was mended when its journal was opened.
    #[must_use]
    pub const fn repairs(&self) -> &Repairs {
        &self.repairs
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The history that the next request is made of. After a compaction this is less
    /// than was said; the journal has all of it.
    #[must_use]
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Runs one prompt: a text, or a [`UserMessage`] with images. Nothing happens
    /// before the [`Prompt`] is read.
    ///
    /// A session runs one prompt at a time, which the borrow enforces; an
    /// [`Agent`](crate::Agent) shares one between tasks.
    pub fn prompt(&mut self, said: impl Into<UserMessage>) -> Prompt<'_> {
        self.prompt_until(said, CancellationToken::new())
    }

    /// Runs one prompt that ends when `cancel` is cancelled.
    #[expect(clippy::needless_pass_by_value, reason = "a token is a handle, given away")]
    pub fn prompt_until(
        &mut self,
        said: impl Into<UserMessage>,
        cancel: CancellationToken,
    ) -> Prompt<'_> {
        self.begin_prompt(Opening::Say(said.into()), &cancel)
    }

    /// Asks the model again from the history, without a new message of the user:
    /// after a failed or aborted prompt, or in a session that was killed.
    ///
    /// Where there is nothing to answer (an empty history, or one that ends with
    /// the model's answer) the prompt fails with `INVALID_REQUEST` and nothing is
    /// sent.
    pub fn continue_(&mut self) -> Prompt<'_> {
        self.continue_until(CancellationToken::new())
    }

    /// [`continue_`](Self::continue_) that ends when `cancel` is cancelled.
    #[expect(clippy::needless_pass_by_value, reason = "a token is a handle, given away")]
    pub fn continue_until(&mut self, cancel: CancellationToken) -> Prompt<'_> {
        self.begin_prompt(Opening::GoOn, &cancel)
    }

    fn begin_prompt(&mut self, opening: Opening, cancel: &CancellationToken) -> Prompt<'_> {
        let (host, events) = event_room();
        // A child, so that a dropped prompt cancels nothing else of the host's.
        let remote = Remote::new(cancel.child_token());
        let turn = Turn::new(self, host, remote.clone());
        Prompt::new(turn.run(opening), events, remote)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A running prompt: a stream of events, and then an outcome. Dropping it stops
/// it: the connection closes, children are ended, no request follows.
///
/// That of a [`Session`] is driven by reading its events. That of an
/// [`Agent`](crate::Agent) runs on a task of its own.
#[must_use = "a prompt runs only while its events or its outcome are awaited"]
pub struct Prompt<'s> {
    run: Option<Run<'s>>,
    events: mpsc::Receiver<Event>,
    /// Fetched together, the next one last: a lock for each would cost more than
    /// a short delta itself.
    fetched: Vec<Event>,
    outcome: Option<PromptOutcome>,
    remote: Remote,
    _stop: DropGuard,
}

impl<'s> Prompt<'s> {
    pub(crate) fn new(run: Run<'s>, events: mpsc::Receiver<Event>, remote: Remote) -> Self {
        let stop = remote.cancel.clone().drop_guard();
        Self { run: Some(run), events, fetched: Vec::new(), outcome: None, remote, _stop: stop }
    }

    /// Reaches this prompt from other tasks.
    #[must_use]
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// The next event; `None` after the last, which is always `agent_end`.
    ///
    /// Cancel safety: no event is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Runs the prompt to its end and says how it ended; events are dropped.
    pub async fn outcome(mut self) -> PromptOutcome {
        loop {
            if self.next().await.is_none()
                && let Some(outcome) = self.outcome.take()
            {
                return outcome;
            }
        }
    }

    /// How the prompt ended, once its events are at their end.
    #[must_use]
    pub const fn ended(&self) -> Option<&PromptOutcome> {
        self.outcome.as_ref()
    }

    /// Cancels the prompt. Read on: `agent_end` follows when everything stopped.
    pub fn abort(&self) {
        self.remote.abort();
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if let Poll::Ready(Some(event)) = self.poll_fetch(cx) {
            return Poll::Ready(Some(event));
        }
        if let Some(run) = &mut self.run
            && let Poll::Ready(outcome) = Pin::new(run).poll(cx)
        {
            self.run = None;
            self.outcome = Some(outcome);
        }
        match self.poll_fetch(cx) {
            // The events end before the run does; whoever sees their end asks for
            // the outcome.
            Poll::Ready(None) if self.run.is_some() => Poll::Pending,
            // After the run its end of the channel is gone, so that `None` means
            // drained; the executor may still say `Pending`, to let others run.
            polled => polled,
        }
    }
}

impl Prompt<'_> {
    fn poll_fetch(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.fetched.is_empty() {
            ready!(self.events.poll_recv_many(cx, &mut self.fetched, EVENT_ROOM));
            self.fetched.reverse();
        }
        Poll::Ready(self.fetched.pop())
    }
}

impl Stream for Prompt<'_> {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_event(cx)
    }
}

impl fmt::Debug for Prompt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("ended", &self.outcome.is_some()).finish_non_exhaustive()
    }
}
