//! What all connections of one server share: what is left of the script, and
//! the record.

use std::{
    net::SocketAddr,
    sync::{
        LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use super::request::Request;
use crate::{
    behaviour::{Behaviour, Protocol, Tls},
    dialect::Turn,
    record::{Ended, Kept, RecordedRequest},
    script::{Dealer, Dealt, LeftInRow, Script, Step},
};

/// What a request gets that no step is for.
static WHOLE: LazyLock<Step> = LazyLock::new(|| Step::with(Behaviour::whole()));

#[derive(Debug)]
pub(crate) struct Shared {
    script: Script,
    seed: u64,
    addr: SocketAddr,
    start: Instant,
    state: Mutex<State>,
    pub(crate) accepted: AtomicUsize,
    pub(crate) open: AtomicUsize,
}

#[derive(Debug)]
struct State {
    /// Counts the resets, so that an exchange begun before one cannot write
    /// into the record after it.
    era: usize,
    dealer: Dealer,
    attempts: usize,
    tool_calls: usize,
    records: Kept,
}

impl Shared {
    pub(crate) fn new(script: Script, addr: SocketAddr) -> Self {
        // A short one, for it is to be typed again.
        let seed = script.dealing().seed.unwrap_or_else(|| fastrand::u32(..).into());
        Self {
            script,
            seed,
            addr,
            start: Instant::now(),
            state: Mutex::new(State::new(0, seed)),
            accepted: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        }
    }

    pub(crate) fn script(&self) -> &Script {
        &self.script
    }

    /// The seed of the dice, where dice are thrown.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.script.throws_dice().then_some(self.seed)
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
        let dealt = state.dealer.deal_handshake(&self.script);
        let Some(step) = dealt.and_then(|index| self.script.steps().get(index)) else {
            return Some((usual, Duration::ZERO));
        };
        state.attempts += 1;
        let failing = step.behaviour();
        Some((failing.failed_handshake().unwrap_or(usual), failing.headers_delay))
    }

    /// Records a chat request and deals it the next step that is for it;
    /// `None`, and no record, when that step is for the next connection.
    pub(crate) fn attempt(&self, request: &Request, connection: usize) -> Option<Attempt<'_>> {
        let body = request.recorded_body();
        let mut state = self.lock();
        let (step, number) =
            match state.dealer.deal_request(&self.script, &request.asked(&body), connection) {
                Dealt::Reconnect => return None,
                Dealt::Whole => (&*WHOLE, None),
                Dealt::Step(index) => (self.script.steps().get(index)?, Some(index + 1)),
            };
        state.attempts += 1;
        let turn = Turn { attempt: state.attempts, earlier_calls: state.tool_calls };
        state.tool_calls += step.content().tool_calls.len();
        let name = match (step.name(), number) {
            (Some(name), _) => name.to_owned(),
            (None, Some(_)) => step.behaviour().to_string(),
            (None, None) => "whole".to_owned(),
        };
        let ticket = self.push(&mut state, request, body, connection, (number, Some(name)));
        Some(Attempt { step, turn, ticket })
    }

    /// Records a request that is no valid chat request.
    pub(crate) fn note(&self, request: &Request, connection: usize) -> Ticket<'_> {
        let body = request.recorded_body();
        let mut state = self.lock();
        self.push(&mut state, request, body, connection, (None, None))
    }

    fn push(
        &self,
        state: &mut State,
        request: &Request,
        body: Value,
        connection: usize,
        (step, behaviour): (Option<usize>, Option<String>),
    ) -> Ticket<'_> {
        let own_header = self.script.dealing().session_header.as_deref();
        let session = request.asked(&body).session(own_header).map(str::to_owned);
        state.records.push(RecordedRequest {
            seq: state.records.len() + 1,
            connection,
            session,
            step,
            behaviour,
            at_ms: self.now_ms(),
            ended_ms: None,
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.clone(),
            body,
            body_bytes: request.body.len(),
            ended: Ended::Open,
        });
        Ticket { shared: self, era: state.era, index: state.records.len() - 1 }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// What is left of the script.
    pub(crate) fn left(&self) -> Left {
        let state = self.lock();
        Left { attempts: state.attempts, rows: state.dealer.left() }
    }

    pub(crate) fn records(&self) -> Vec<RecordedRequest> {
        self.lock().records.all().to_vec()
    }

    /// The requests that are wanted; the others are not copied.
    pub(crate) fn records_where(
        &self,
        wanted: impl Fn(&RecordedRequest) -> bool,
    ) -> Vec<RecordedRequest> {
        self.lock().records.all().iter().filter(|record| wanted(record)).cloned().collect()
    }

    pub(crate) fn attempts(&self) -> usize {
        self.lock().attempts
    }

    pub(crate) fn reset(&self) {
        let mut state = self.lock();
        let era = state.era + 1;
        *state = State::new(era, self.seed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state whole, so a poisoned lock is harmless.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(era: usize, seed: u64) -> Self {
        let dealer = Dealer::new(seed);
        Self { era, dealer, attempts: 0, tool_calls: 0, records: Kept::new() }
    }
}

/// What is left of the script.
pub(crate) struct Left {
    pub(crate) attempts: usize,
    pub(crate) rows: Vec<LeftInRow>,
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
        let now = self.shared.now_ms();
        let mut state = self.shared.lock();
        if state.era != self.era {
            return;
        }
        state.records.end(self.index, ended, now);
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
