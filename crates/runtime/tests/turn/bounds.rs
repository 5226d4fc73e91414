//! Whole turns of any attempts keep the bounds that the policy prints.

use std::time::Duration;

use turnbuckle_errors::{ErrorCode, Failure, Phase};
use turnbuckle_providers::{FinishReason, testing::ScriptedAttempt};
use turnbuckle_runtime::{EventKind, RecoveryPolicy, World};

use crate::{
    compaction::{opened_with, opening},
    scene::{cut, refused},
};

/// The most jitter, always.
struct Late;

impl World for Late {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn new_id(&self) -> String {
        "id".to_owned()
    }

    fn jitter(&self) -> f64 {
        1.0
    }
}

fn wishing(code: ErrorCode, phase: Phase, wish_ms: u64) -> ScriptedAttempt {
    let failure =
        Failure::new(code, "later").with_details(|details| details.retry_after_ms = Some(wish_ms));
    match phase {
        Phase::Stream => ScriptedAttempt::cut(["part"], failure),
        _ => ScriptedAttempt::refused(failure),
    }
}

/// One attempt of each kind, failures that are retried first.
fn attempt(kind: usize) -> ScriptedAttempt {
    let part = |text| ScriptedAttempt::default().text(text);
    match kind {
        0 => refused(ErrorCode::NetworkError),
        1 => refused(ErrorCode::Timeout),
        2 => wishing(ErrorCode::ProviderError, Phase::Request, 8_000),
        3 => ScriptedAttempt::cut(["part"], cut()),
        4 => part("x").reasoning("y").tool_call("a", "b", "{").fail(cut()),
        5 => refused(ErrorCode::ProviderOverloaded),
        6 => wishing(ErrorCode::ProviderRateLimited, Phase::Request, 65_000),
        7 => wishing(ErrorCode::ProviderOverloaded, Phase::Stream, 65_000),
        8 => ScriptedAttempt::default().reasoning("hm").finish(FinishReason::Stop),
        9 => part(" ").finish(FinishReason::Stop),
        10 => refused(ErrorCode::ContextTooLarge),
        11 => ScriptedAttempt::cut(["part"], Failure::new(ErrorCode::ContextTooLarge, "x")),
        12 => wishing(ErrorCode::ProviderRateLimited, Phase::Request, 65_001),
        13 => refused(ErrorCode::ProviderUnauthorized),
        14 => part("x").finish(FinishReason::ContentFilter),
        15 => part("x").finish(FinishReason::Length),
        _ => ScriptedAttempt::answer(["short"]),
    }
}

/// Mostly what is retried, so that runs get long.
fn sequence(random: &mut fastrand::Rng) -> Vec<usize> {
    (0..16)
        .map(|_| if random.u8(..8) > 0 { random.usize(..12) } else { random.usize(..17) })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn any_sequence_of_attempts_keeps_the_bounds() {
    let policy = RecoveryPolicy::default();
    let mut random = fastrand::Rng::with_seed(1);
    let (mut most, mut longest) = (0, Duration::ZERO);
    for run in 0..1000 {
        let kinds = sequence(&mut random);
        let script = kinds.iter().map(|kind| attempt(*kind));
        let mut talk =
            opened_with(script, |builder| builder.world(std::sync::Arc::new(Late))).await;
        let before = opening().len();
        let began = tokio::time::Instant::now();
        let (events, outcome) = talk.say("go").await;
        let requests = talk.provider.requests().len() - before;
        let told = format!("run {run}: {kinds:?}");

        assert!(outcome.attempts <= policy.max_attempts(), "{told}");
        assert!(began.elapsed() <= policy.max_wait(), "{told}");
        assert!(outcome.timing.backoff <= policy.max_wait(), "{told}");
        let summaries = requests - usize::try_from(outcome.attempts).unwrap();
        assert!(summaries <= 1, "{told}");
        assert_eq!(usize::try_from(outcome.attempts).unwrap(), outcome.retries.len() + 1, "{told}");
        let count = |wanted: fn(&EventKind) -> bool| {
            events.iter().filter(|event| wanted(&event.kind)).count()
        };
        let scheduled = count(|kind| matches!(kind, EventKind::RetryScheduled { .. }));
        let started = count(|kind| matches!(kind, EventKind::RetryStarted { .. }));
        assert_eq!((scheduled, started), (outcome.retries.len(), outcome.retries.len()), "{told}");
        (most, longest) = (most.max(outcome.attempts), longest.max(outcome.timing.backoff));
    }
    // The walk reaches far enough to mean something.
    assert!(most >= 7 && longest >= Duration::from_secs(200), "{most} {longest:?}");
}

/// The worst case is not a guess: a turn can really take it.
#[tokio::test(start_paused = true)]
async fn the_worst_case_takes_exactly_what_is_printed() {
    let policy = RecoveryPolicy::default();
    let kinds = [2, 3, 6, 7, 6, 7, 6, 8, 10];
    let summary = std::iter::once(ScriptedAttempt::answer(["short"]));
    let script = kinds.into_iter().map(attempt).chain(summary).chain([attempt(0)]);
    let mut talk = opened_with(script, |builder| builder.world(std::sync::Arc::new(Late))).await;
    let outcome = talk.say("go").await.1;
    assert_eq!(outcome.attempts, policy.max_attempts());
    assert_eq!(outcome.timing.backoff, policy.max_wait());
    assert_eq!(outcome.failure.unwrap().code(), ErrorCode::NetworkError);
}
