//! Events on their way to the host: numbered, stamped, with back-pressure.

use std::{collections::VecDeque, sync::Arc};

use jiff::Timestamp;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_util::sync::CancellationToken;

use crate::{Event, EventKind, World, observer::Watcher};

/// Numbers events and hands them to the host.
///
/// A host that reads slowly slows the turn down; it cannot hold up a
/// cancellation, after which events queue here until the end.
pub(crate) struct Emitter {
    host: mpsc::Sender<Event>,
    waiting: VecDeque<Event>,
    observer: Arc<Watcher>,
    world: Arc<dyn World>,
    session_id: Arc<str>,
    turn: u32,
    seq: u64,
}

impl Emitter {
    pub(crate) fn new(
        host: mpsc::Sender<Event>,
        observer: Arc<Watcher>,
        world: Arc<dyn World>,
        session_id: &str,
    ) -> Self {
        let session_id = session_id.into();
        Self { host, waiting: VecDeque::new(), observer, world, session_id, turn: 0, seq: 0 }
    }

    /// Events from here on belong to this step.
    pub(crate) const fn begin_turn(&mut self, turn: u32) {
        self.turn = turn;
    }

    /// Hands over one event; returns early, with the event queued, on `cancel`.
    pub(crate) async fn emit(&mut self, kind: EventKind, cancel: &CancellationToken) {
        let now = self.now();
        if !self.offer(kind, now) {
            self.settle(cancel).await;
        }
    }

    /// The date, for stamps.
    pub(crate) fn now(&self) -> Timestamp {
        self.world.now()
    }

    /// Hands over one event, stamped `now`, if there is room for it; else it queues,
    /// and [`settle`](Self::settle) has to be called soon.
    ///
    /// Most events of a stream take this way, which waits for nothing.
    #[must_use]
    pub(crate) fn offer(&mut self, kind: EventKind, now: Timestamp) -> bool {
        let event = self.stamp(kind, now);
        if self.waiting.is_empty() {
            match self.host.try_send(event) {
                // A host that no longer listens misses nothing.
                Ok(()) | Err(TrySendError::Closed(_)) => return true,
                Err(TrySendError::Full(event)) => self.waiting.push_back(event),
            }
        } else {
            self.waiting.push_back(event);
        }
        false
    }

    /// Waits until the host has room for what queues, or for `cancel`.
    pub(crate) async fn settle(&mut self, cancel: &CancellationToken) {
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = self.flush() => {}
        }
    }

    /// Hands over the last event, and everything that still queues.
    pub(crate) async fn finish(&mut self, kind: EventKind) {
        let now = self.now();
        if !self.offer(kind, now) {
            self.flush().await;
        }
    }

    fn stamp(&mut self, kind: EventKind, now: Timestamp) -> Event {
        self.seq += 1;
        let event = Event {
            kind,
            session_id: Arc::clone(&self.session_id),
            turn: self.turn,
            seq: self.seq,
            ts: now,
        };
        self.observer.tell(&event);
        event
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
