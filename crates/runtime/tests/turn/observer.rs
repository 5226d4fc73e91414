//! The host's word in retries, and callbacks that misbehave.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use turnbuckle_errors::ErrorCode;
use turnbuckle_providers::testing::{ScriptedAttempt, ScriptedProvider};
use turnbuckle_runtime::{
    Event, MemoryStore, ON_RETRY_LIMIT, Outcome, PlannedRetry, RetryVerdict, Runtime, TurnObserver,
    recovery::{Budget, RetryQuota},
};

use crate::scene::{cut, kind, play_with, refused};

/// Gives one verdict, and notes what it was asked.
#[derive(Default)]
struct Judge {
    verdict: RetryVerdict,
    asked: Mutex<Vec<(Budget, u64, ErrorCode)>>,
}

impl TurnObserver for Judge {
    fn on_retry(&self, retry: &PlannedRetry) -> RetryVerdict {
        let asked =
            (retry.budget, u64::try_from(retry.delay.as_millis()).unwrap(), retry.failure.code());
        self.asked.lock().unwrap().push(asked);
        self.verdict
    }
}

#[tokio::test(start_paused = true)]
async fn a_veto_ends_the_step_with_the_failure_and_costs_nothing() {
    let judge = Arc::new(Judge { verdict: RetryVerdict::Veto, ..Judge::default() });
    let quota = Arc::new(RetryQuota::new(100));
    let script = [ScriptedAttempt::cut(["part"], cut()), ScriptedAttempt::answer(["never"])];
    let played = play_with(script, |builder| {
        builder.observer(judge.clone()).retry_quota(Arc::clone(&quota))
    })
    .await;
    assert_eq!(played.outcome.failure.unwrap().code(), ErrorCode::StreamFailed);
    assert_eq!(played.outcome.attempts, 1);
    assert!(played.events.iter().all(|event| !kind(event).starts_with("retry")));
    assert_eq!(*judge.asked.lock().unwrap(), [(Budget::Stream, 750, ErrorCode::StreamFailed)]);
    assert_eq!(quota.available(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_delay_comes_on_top_of_the_planned_wait() {
    let verdict = RetryVerdict::Delay(Duration::from_secs(10));
    let judge = Arc::new(Judge { verdict, ..Judge::default() });
    let script = [refused(ErrorCode::NetworkError), ScriptedAttempt::answer(["ok"])];
    let played = play_with(script, |builder| builder.observer(judge)).await;
    assert!(played.outcome.ok);
    assert_eq!(played.outcome.retries[0].delay_ms, 10_500);
    assert_eq!(played.took_ms, 10_500);
}

#[tokio::test(start_paused = true)]
async fn a_host_is_not_asked_where_there_is_no_retry_and_cannot_add_one() {
    let judge = Arc::new(Judge::default());
    let script = [refused(ErrorCode::ProviderUnauthorized), ScriptedAttempt::answer(["never"])];
    let played = play_with(script, |builder| builder.observer(judge.clone())).await;
    assert_eq!(played.outcome.attempts, 1);
    assert!(judge.asked.lock().unwrap().is_empty());
}

/// Panics wherever it is called.
struct Broken;

impl TurnObserver for Broken {
    fn on_event(&self, _event: &Event) {
        panic!("a fault in the host");
    }

    fn on_retry(&self, _retry: &PlannedRetry) -> RetryVerdict {
        panic!("a fault in the host");
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_changes_nothing() {
    let script = || [ScriptedAttempt::cut(["part"], cut()), ScriptedAttempt::answer(["whole"])];
    let watched = play_with(script(), |builder| builder.observer(Arc::new(Broken))).await;
    let alone = play_with(script(), |builder| builder).await;
    assert_eq!(watched.outcome.text, "whole");
    let kinds = |events: &[Event]| events.iter().map(kind).collect::<Vec<_>>();
    assert_eq!(kinds(&watched.events), kinds(&alone.events));
}

/// Never answers, until it is let go.
struct Blocked(Arc<AtomicBool>);

impl TurnObserver for Blocked {
    fn on_retry(&self, _retry: &PlannedRetry) -> RetryVerdict {
        while !self.0.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        RetryVerdict::Veto
    }
}

/// Real time: paused time would wait for the blocked thread.
#[tokio::test]
async fn an_observer_that_blocks_holds_up_neither_the_retry_nor_a_cancellation() {
    let free = Arc::new(AtomicBool::new(false));
    let runtime = |script: Vec<ScriptedAttempt>| {
        Runtime::builder(Arc::new(ScriptedProvider::new(script)), "m")
            .observer(Arc::new(Blocked(Arc::clone(&free))))
            .build()
    };
    let script = vec![refused(ErrorCode::NetworkError), ScriptedAttempt::answer(["ok"])];
    let mut session = runtime(script.clone()).session(MemoryStore::new());
    let began = tokio::time::Instant::now();
    let outcome = session.prompt("go").outcome().await;
    assert_eq!(outcome.text, "ok");
    assert!(began.elapsed() >= ON_RETRY_LIMIT);

    let mut session = runtime(script).session(MemoryStore::new());
    let cancel = tokio_util::sync::CancellationToken::new();
    let stop = cancel.clone();
    let prompt = session.prompt_until("go", cancel).outcome();
    let (outcome, ()) = tokio::join!(prompt, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        stop.cancel();
    });
    free.store(true, Ordering::Relaxed);
    assert_eq!(outcome.outcome, Outcome::Aborted);
    assert_eq!(outcome.attempts, 1);
}
