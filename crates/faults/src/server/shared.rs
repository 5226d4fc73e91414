//! What all connections of one server share: the script's position and the
//! record.

use std::{
    net::SocketAddr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::request::Request;
use crate::{
    behaviour::{Protocol, Tls},
    dialect::Turn,
    record::{Ended, RecordedRequest},
    script::{Script, Step},
};

#[derive(Debug)]
pub(crate) struct Shared {
    script: Script,
    addr: SocketAddr,
    start: Instant,
    state: Mutex<State>,
    pub(crate) accepted: AtomicUsize,
    pub(crate) open: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// Counts the resets, so that an exchange begun before one cannot write
    /// into the record after it.
    era: usize,
    attempts: usize,
    tool_calls: usize,
    records: Vec<RecordedRequest>,
}

impl Shared {
    pub(crate) fn new(script: Script, addr: SocketAddr) -> Self {
        Self {
            script,
            addr,
            start: Instant::now(),
            state: Mutex::default(),
            accepted: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        self.script.serving().protocol
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.script.serving().tls.is_some() { "https" } else { "http" }
    }

    /// This request to this host, under another name of the same server.
    pub(crate) fn elsewhere(&self, request: &Request) -> String {
        let ip = self.addr.to_string();
        let asked = request.headers.get("host").unwrap_or_default();
        let host = match asked.split_once(':') {
            Some(("localhost", _)) => ip,
            _ => format!("localhost:{}", self.addr.port()),
        };
        format!("{}://{host}/elsewhere{}", self.scheme(), request.path.as_str())
    }

    /// What a new connection meets in its handshake, and the wait before it;
    /// `None` without TLS. A step whose fault is the handshake is dealt here.
    pub(crate) fn handshake(&self) -> Option<(Tls, Duration)> {
        let usual = self.script.serving().tls?;
        let mut state = self.lock();
        let next = self.script.step(state.attempts + 1).map(|(_, step)| step.behaviour());
        let Some(failing) = next.filter(|next| next.failed_handshake().is_some()) else {
            return Some((usual, Duration::ZERO));
        };
        state.attempts += 1;
        Some((failing.failed_handshake().unwrap_or(usual), failing.headers_delay))
    }

    /// Records a chat request and deals it the next step; `None`, and no
    /// record, when that step is for the next connection.
    pub(crate) fn attempt(&self, request: &Request, connection: usize) -> Option<Attempt<'_>> {
        let mut state = self.lock();
        let (number, step) = self.script.step(state.attempts + 1)?;
        if step.behaviour().failed_handshake().is_some() {
            return None;
        }
        state.attempts += 1;
        let turn = Turn { attempt: state.attempts, earlier_calls: state.tool_calls };
        state.tool_calls += step.content().tool_calls.len();
        let name = match step.name() {
            Some(name) => name.to_owned(),
            None => step.behaviour().to_string(),
        };
        let ticket = self.push(&mut state, request, connection, Some((number, name)));
        Some(Attempt { step, turn, ticket })
    }

    /// Records a request that is no valid chat request.
    pub(crate) fn note(&self, request: &Request, connection: usize) -> Ticket<'_> {
        let mut state = self.lock();
        self.push(&mut state, request, connection, None)
    }

    fn push(
        &self,
        state: &mut State,
        request: &Request,
        connection: usize,
        dealt: Option<(usize, String)>,
    ) -> Ticket<'_> {
        let (step, behaviour) = dealt.unzip();
        let at_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        state.records.push(RecordedRequest {
            seq: state.records.len() + 1,
            connection,
            step,
            behaviour,
            at_ms,
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.clone(),
            body: request.recorded_body(),
            ended: Ended::Open,
        });
        Ticket { shared: self, era: state.era, index: state.records.len() - 1 }
    }

    pub(crate) fn records(&self) -> Vec<RecordedRequest> {
        self.lock().records.clone()
    }

    pub(crate) fn attempts(&self) -> usize {
        self.lock().attempts
    }

    pub(crate) fn reset(&self) {
        let mut state = self.lock();
        let era = state.era + 1;
        *state = State { era, ..State::default() };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state whole, so a poisoned lock is harmless.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One attempt, dealt its step.
pub(crate) struct Attempt<'a> {
    pub(crate) step: &'a Step,
    pub(crate) turn: Turn,
    pub(crate) ticket: Ticket<'a>,
}

/// Where the end of an exchange is noted.
pub(crate) struct Ticket<'a> {
    shared: &'a Shared,
    era: usize,
    index: usize,
}

impl Ticket<'_> {
    pub(crate) fn ended(&self, ended: Ended) {
        let mut state = self.shared.lock();
        if state.era != self.era {
            return;
        }
        if let Some(record) = state.records.get_mut(self.index) {
            record.ended = ended;
        }
    }
}

/// Counts a connection as open while it lives.
#[derive(Debug)]
pub(crate) struct OpenGuard<'a>(&'a AtomicUsize);

impl<'a> OpenGuard<'a> {
    pub(crate) fn new(open: &'a AtomicUsize) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(open)
    }
}

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
