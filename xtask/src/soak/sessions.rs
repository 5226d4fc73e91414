//! The sessions: each asks, waits like a person who reads, and asks again; after some
//! prompts a fresh one takes its place.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;
use tokio::time::{self, Instant};
use turnbuckle_runtime::{EventKind, MemoryStore, Outcome, Runtime, Session};

use super::latency::Latency;

/// Prompts of one session.
const PROMPTS: usize = 6;

/// A prompt that takes longer is lost. Every wait and every clock of it is far shorter.
const LOST: Duration = Duration::from_secs(180);

/// A person reads for so many milliseconds before the next prompt.
const READING_MS: std::ops::Range<u64> = 300..1500;

/// What all sessions came to.
#[derive(Debug, Default)]
pub(super) struct Sum {
    pub(super) begun: u64,
    pub(super) done: u64,
    pub(super) completed: u64,
    /// Ended with a failure, after the budgets were spent.
    pub(super) failed: u64,
    pub(super) retries: u64,
    pub(super) calls: u64,
    /// Why sessions are lost.
    pub(super) lost: Vec<String>,
    pub(super) smooth: Latency,
    pub(super) all: Latency,
    pub(super) retried: Latency,
}

/// What the sessions of one phase share.
pub(super) struct Shared {
    pub(super) runtime: Runtime,
    pub(super) stop: AtomicBool,
    pub(super) sum: Mutex<Sum>,
    /// Plants a leak: each prompt leaves a task behind that ends never, and its memory.
    pub(super) leaks: bool,
}

impl Shared {
    fn add(&self, change: impl FnOnce(&mut Sum)) {
        change(&mut self.sum.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Plays one session after another until the phase is over.
pub(super) async fn play(shared: Arc<Shared>, seed: u64) {
    let mut chance = Rng::with_seed(seed);
    // So that they do not ask all at once.
    time::sleep(Duration::from_millis(chance.u64(0..READING_MS.end))).await;
    while shared.goes_on() {
        shared.add(|sum| sum.begun += 1);
        let mut session = shared.runtime.session(MemoryStore::new());
        let mut answered = 0;
        let mut asked = 0;
        while asked < PROMPTS && shared.goes_on() {
            asked += 1;
            match ask(&shared, &mut session, asked).await {
                Ok(completed) => answered += usize::from(completed),
                Err(why) => {
                    shared.add(|sum| sum.lost.push(why));
                    return;
                }
            }
            time::sleep(Duration::from_millis(chance.u64(READING_MS))).await;
        }
        let remembered = remembered(&session);
        let whole = remembered >= answered;
        shared.add(|sum| match whole {
            true => sum.done += 1,
            false => sum.lost.push(format!("{answered} answers, {remembered} remembered")),
        });
    }
}

/// Whether the prompt completed; or why the session is lost.
async fn ask(shared: &Shared, session: &mut Session, number: usize) -> Result<bool, String> {
    if shared.leaks {
        tokio::spawn(async {
            let held = vec![1_u8; 64 * 1024];
            std::future::pending::<()>().await;
            drop(held);
        });
    }
    let began = Instant::now();
    let mut prompt = session.prompt(format!("Question {number}: what do the notes say?"));
    let (mut retries, mut calls) = (0, 0);
    let reading = async {
        while let Some(event) = prompt.next().await {
            match event.kind {
                EventKind::RetryStarted { .. } => retries += 1,
                EventKind::ToolExecutionEnd { .. } => calls += 1,
                _ => {}
            }
        }
    };
    if time::timeout(LOST, reading).await.is_err() {
        return Err(format!("no end of a prompt within {} s", LOST.as_secs()));
    }
    let took = began.elapsed();
    let Some(outcome) = prompt.ended() else {
        return Err("the events of a prompt ended without its outcome".to_owned());
    };
    let completed = outcome.outcome == Outcome::Completed;
    if completed && outcome.text.trim().is_empty() {
        return Err("a prompt completed without an answer".to_owned());
    }
    if !completed && outcome.failure.is_none() {
        return Err("a prompt failed and does not say why".to_owned());
    }
    shared.add(|sum| {
        match completed {
            true => sum.completed += 1,
            false => sum.failed += 1,
        }
        sum.retries += retries;
        sum.calls += calls;
        sum.all.add(took);
        if retries == 0 { sum.smooth.add(took) } else { sum.retried.add(took) }
    });
    Ok(completed)
}

/// How many answers without a call the session remembers.
fn remembered(session: &Session) -> usize {
    let answers = session.transcript().messages().iter().filter(|message| match message {
        turnbuckle_providers::Message::Assistant(said) => said.tool_calls.is_empty(),
        _ => false,
    });
    answers.count()
}
