//! Events on their way to the host: numbered, stamped, with back-pressure.

use std::{collections::VecDeque, sync::Arc};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{Event, EventKind, TurnObserver, World};

/// Numbers events and hands them to the host.
///
/// A host that reads slowly slows the turn down; it cannot hold up a
/// cancellation, after which events queue here until the end.
pub(crate) struct Emitter {
    host: mpsc::Sender<Event>,
    waiting: VecDeque<Event>,
    observer: Arc<dyn TurnObserver>,
    world: Arc<dyn World>,
    session_id: String,
    turn: u32,
    seq: u64,
}

impl Emitter {
    pub(crate) fn new(
        host: mpsc::Sender<Event>,
        observer: Arc<dyn TurnObserver>,
        world: Arc<dyn World>,
        session_id: String,
    ) -> Self {
        Self { host, waiting: VecDeque::new(), observer, world, session_id, turn: 0, seq: 0 }
    }

    /// Events from here on belong to this step.
    pub(crate) const fn begin_turn(&mut self, turn: u32) {
        self.turn = turn;
    }

    /// Hands over one event; returns early, with the event queued, on `cancel`.
    pub(crate) async fn emit(&mut self, kind: EventKind, cancel: &CancellationToken) {
        self.push(kind);
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = self.flush() => {}
        }
    }

    /// Hands over the last event, and everything that still queues.
    pub(crate) async fn finish(&mut self, kind: EventKind) {
        self.push(kind);
        self.flush().await;
    }

    fn push(&mut self, kind: EventKind) {
        self.seq += 1;
        let event = Event {
            kind,
            session_id: self.session_id.clone(),
            turn: self.turn,
            seq: self.seq,
            ts: self.world.now().to_string(),
        };
        self.observer.on_event(&event);
        self.waiting.push_back(event);
    }

    /// Cancel safe: an event leaves the queue only when there is room for it.
    async fn flush(&mut self) {
        while !self.waiting.is_empty() {
            let Ok(room) = self.host.reserve().await else {
                // The host no longer listens; nobody misses them.
                self.waiting.clear();
                return;
            };
            if let Some(event) = self.waiting.pop_front() {
                room.send(event);
            }
        }
    }
}
