//! The clocks of one attempt: how long silence may last, and of which kind.
//!
//! Only time spent waiting on the socket counts. While the consumer of a stream
//! is busy elsewhere no clock runs, and a deadline that passed meanwhile is looked
//! at once more before it is believed. One timer serves a whole attempt: it is
//! armed again when it fires, not with every event.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep};
use turnbuckle_errors::Clock;

use crate::Clocks;

/// A deadline noticed later than this was missed because nobody polled.
const LATE: Duration = Duration::from_millis(250);

/// What a server still gets after a deadline that was noticed late.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// What the server gets to end the body after the dialect's end marker, so that the
/// connection can be used again.
const CLOSING: Duration = Duration::from_millis(50);

/// Which limit ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    Clock(Clock),
    /// The grace after the finish reason: the message is complete.
    Grace,
}

/// Where the answer stands, which says what may expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    BeforeFirstEvent {
        any_byte: bool,
    },
    Streaming,
    Finished,
    /// The end marker came; only the end of the body is missing.
    Closing,
}

/// Measures the waiting of one attempt after its response head.
#[derive(Debug)]
pub(crate) struct Watchdog {
    clocks: Clocks,
    stage: Stage,
    /// Waited so far since the event that restarts each clock.
    since_sent: Duration,
    since_byte: Duration,
    since_progress: Duration,
    since_finish: Duration,
    waiting_since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    /// Set once a missed deadline has had its last look.
    looked_again: bool,
}

impl Watchdog {
    /// Begins after the head, for which `waited` was spent of `first_event`.
    pub(crate) fn new(clocks: Clocks, waited: Duration) -> Self {
        Self {
            clocks,
            stage: Stage::BeforeFirstEvent { any_byte: false },
            since_sent: waited,
            since_byte: Duration::ZERO,
            since_progress: Duration::ZERO,
            since_finish: Duration::ZERO,
            waiting_since: None,
            timer: Box::pin(tokio::time::sleep(clocks.first_event.saturating_sub(waited))),
            looked_again: false,
        }
    }

    /// Bytes came, at `now`.
    pub(crate) fn bytes(&mut self, now: Instant) {
        self.account(now);
        self.since_byte = Duration::ZERO;
        self.looked_again = false;
        if let Stage::BeforeFirstEvent { any_byte } = &mut self.stage {
            *any_byte = true;
        }
    }

    /// The answer has begun.
    pub(crate) fn first_event(&mut self) {
        if matches!(self.stage, Stage::BeforeFirstEvent { .. }) {
            self.stage = Stage::Streaming;
        }
    }

    /// A delta came. One that comes after a finish reason shows that it was not the
    /// last, so the grace after it begins anew.
    pub(crate) fn progress(&mut self) {
        self.since_progress = Duration::ZERO;
        self.since_finish = Duration::ZERO;
    }

    /// The finish reason came.
    pub(crate) fn finished(&mut self) {
        self.enter(Stage::Finished);
    }

    /// The dialect's end marker came.
    pub(crate) fn closing(&mut self) {
        self.enter(Stage::Closing);
    }

    fn enter(&mut self, stage: Stage) {
        if self.stage != stage && self.stage != Stage::Closing {
            self.stage = stage;
            self.since_finish = Duration::ZERO;
        }
    }

    /// The socket has nothing: waits for the first limit to run out.
    pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Expired> {
        let late = self.account(now);
        loop {
            let (expired, left) = self.next_limit();
            if left.is_zero() {
                if late <= LATE || std::mem::replace(&mut self.looked_again, true) {
                    return Poll::Ready(expired);
                }
                self.give_back(LAST_LOOK);
                continue;
            }
            self.waiting_since = Some(now);
            let deadline = now + left;
            // A timer that fires too early is armed again then; one that would fire
            // too late has to move now.
            if self.timer.deadline() > deadline || self.timer.is_elapsed() {
                self.timer.as_mut().reset(deadline);
            }
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if self.timer.deadline() < deadline {
                self.timer.as_mut().reset(deadline);
                if self.timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
            return Poll::Ready(expired);
        }
    }

    /// Adds the wait that ends at `now` to every clock, up to the first limit, and
    /// returns how long ago that ran out: this much was not spent on the socket.
    fn account(&mut self, now: Instant) -> Duration {
        let Some(since) = self.waiting_since.take() else { return Duration::ZERO };
        let waited = now.saturating_duration_since(since);
        let (_, left) = self.next_limit();
        let counted = waited.min(left);
        for clock in [
            &mut self.since_sent,
            &mut self.since_byte,
            &mut self.since_progress,
            &mut self.since_finish,
        ] {
            *clock = clock.saturating_add(counted);
        }
        waited.saturating_sub(left)
    }

    /// The limit that runs out first, and what is left of it.
    fn next_limit(&self) -> (Expired, Duration) {
        let left =
            |clock, limit: Duration, waited| (Expired::Clock(clock), limit.saturating_sub(waited));
        let byte = left(Clock::ByteIdle, self.clocks.byte_idle, self.since_byte);
        let first = left(Clock::FirstEvent, self.clocks.first_event, self.since_sent);
        let progress = left(Clock::ProgressIdle, self.clocks.progress_idle, self.since_progress);
        let sooner = |a: (Expired, Duration), b: (Expired, Duration)| if b.1 < a.1 { b } else { a };
        match self.stage {
            Stage::BeforeFirstEvent { any_byte: false } => first,
            Stage::BeforeFirstEvent { any_byte: true } => sooner(first, byte),
            Stage::Streaming => sooner(byte, progress),
            Stage::Finished => {
                (Expired::Grace, self.clocks.finish_grace.saturating_sub(self.since_finish))
            }
            Stage::Closing => (Expired::Grace, CLOSING.saturating_sub(self.since_finish)),
        }
    }

    /// Leaves `time` on every clock that has less.
    fn give_back(&mut self, time: Duration) {
        let clocks = self.clocks;
        for (waited, limit) in [
            (&mut self.since_sent, clocks.first_event),
            (&mut self.since_byte, clocks.byte_idle),
            (&mut self.since_progress, clocks.progress_idle),
            (&mut self.since_finish, clocks.finish_grace),
        ] {
            *waited = (*waited).min(limit.saturating_sub(time));
        }
    }
}
