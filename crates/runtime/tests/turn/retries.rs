//! What goes beyond the budgets of one step: `always` mode, the quota of a fleet,
//! policies by provider, and what is told of the attempts before the last one.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::{Delivered, ErrorCode, Failure, Phase, Usage};
use turnbuckle_providers::testing::{ScriptedAttempt, ScriptedProvider};
use turnbuckle_runtime::{
    EventKind, MemoryStore, Outcome, RecoveryPolicy, Runtime,
    recovery::{AlwaysMode, Budget, RecoveryPolicies, RetryQuota},
};

use crate::scene::{Played, Still, cut, play, play_with, refused};

fn always() -> RecoveryPolicy {
    let mut policy = RecoveryPolicy::default();
    policy.always = Some(AlwaysMode::default());
    policy
}

fn budgets(played: &Played) -> Vec<(Budget, u64)> {
    played.outcome.retries.iter().map(|retry| (retry.budget, retry.delay_ms)).collect()
}

#[tokio::test(start_paused = true)]
async fn always_mode_goes_on_where_the_budgets_end_and_after_what_is_final() {
    let script = [
        refused(ErrorCode::NetworkError),
        refused(ErrorCode::NetworkError),
        refused(ErrorCode::ProviderUnauthorized),
        ScriptedAttempt::cut(["part"], cut()),
        ScriptedAttempt::cut(["part"], cut()),
        ScriptedAttempt::answer(["at last"]),
    ];
    let played = play_with(script, |builder| builder.policy(always())).await;
    assert_eq!(played.outcome.text, "at last");
    assert_eq!(
        budgets(&played),
        [
            (Budget::Setup, 500),
            (Budget::Always, 2000),
            (Budget::Always, 4000),
            (Budget::Stream, 750),
            (Budget::Always, 8000),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn always_mode_ends_when_it_is_cancelled() {
    let provider = ScriptedProvider::new((0..1000).map(|_| refused(ErrorCode::NetworkError)));
    let runtime = Runtime::builder(Arc::new(provider.clone()), "m")
        .world(Arc::new(Still::default()))
        .policy(always())
        .build();
    let mut session = runtime.session(MemoryStore::new());
    let cancel = CancellationToken::new();
    let mut prompt = session.prompt_until("go", cancel.clone());
    let hour = tokio::time::sleep(Duration::from_secs(3600));
    tokio::pin!(hour);
    loop {
        tokio::select! {
            biased;
            () = &mut hour, if !cancel.is_cancelled() => cancel.cancel(),
            event = prompt.next() => if event.is_none() { break },
        }
    }
    assert_eq!(prompt.ended().unwrap().outcome, Outcome::Aborted);
    // 0.5 + 2 + 4 + 8 + 16 + 32 s, then one a minute.
    assert_eq!(provider.requests().len(), 7 + (3600 - 62) / 60);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_spent_ends_a_step_that_has_budget_left() {
    let quota = Arc::new(RetryQuota::new(9));
    let script = [refused(ErrorCode::NetworkError), ScriptedAttempt::cut(["part"], cut())];
    let shared = Arc::clone(&quota);
    let played = play_with(script, |builder| builder.retry_quota(shared)).await;
    assert_eq!(budgets(&played), [(Budget::Setup, 500)]);
    assert_eq!(played.outcome.failure.unwrap().code(), ErrorCode::StreamFailed);
    assert_eq!(quota.available(), 4);
}

#[tokio::test(start_paused = true)]
async fn successes_of_one_session_pay_for_retries_of_another() {
    let quota = Arc::new(RetryQuota::new(5));
    let with = |shared: &Arc<RetryQuota>| {
        let shared = Arc::clone(shared);
        |builder: turnbuckle_runtime::Builder| builder.retry_quota(shared)
    };
    // A retry that succeeds gets back what it cost.
    let healed = [refused(ErrorCode::NetworkError), ScriptedAttempt::answer(["ok"])];
    assert!(play_with(healed, with(&quota)).await.outcome.ok);
    assert_eq!(quota.available(), 5);
    // An outage drains the bucket once, and no session retries any more.
    let down = || [refused(ErrorCode::NetworkError), refused(ErrorCode::NetworkError)];
    assert_eq!(play_with(down(), with(&quota)).await.outcome.attempts, 2);
    assert_eq!(play_with(down(), with(&quota)).await.outcome.attempts, 1);
    // Five answers pay for one more.
    for _ in 0..5 {
        assert_eq!(play_with(down(), with(&quota)).await.outcome.attempts, 1);
        play_with([ScriptedAttempt::answer(["ok"])], with(&quota)).await;
    }
    assert_eq!(play_with(down(), with(&quota)).await.outcome.attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn always_mode_slows_down_where_the_quota_is_spent() {
    let script = [
        refused(ErrorCode::ProviderError),
        refused(ErrorCode::ProviderUnauthorized),
        ScriptedAttempt::answer(["ok"]),
    ];
    let quota = Arc::new(RetryQuota::new(5));
    let played =
        play_with(script, |builder| builder.policy(always()).retry_quota(Arc::clone(&quota))).await;
    assert_eq!(budgets(&played), [(Budget::Setup, 500), (Budget::Always, 60_000)]);
    assert!(played.outcome.ok);
}

#[tokio::test(start_paused = true)]
async fn a_provider_can_have_a_policy_of_its_own() {
    let mut patient = RecoveryPolicy::default();
    patient.setup.retries = 3;
    let script = || (0..9).map(|_| refused(ErrorCode::NetworkError));
    for (provider, attempts) in [("scripted", 4), ("another", 2)] {
        let policies = RecoveryPolicies::default().with(provider, patient.clone());
        let played = play_with(script(), |builder| builder.policies(&policies)).await;
        assert_eq!(played.outcome.attempts, attempts, "{provider}");
    }
}

/// The events that tell of a failed step, as JSON.
fn endings(played: &Played) -> Vec<Value> {
    let ends = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::MessageEnd { .. } | EventKind::Error { .. } | EventKind::AgentEnd { .. }
        )
    };
    let ended = played.events.iter().filter(|event| ends(&event.kind));
    ended.map(|event| serde_json::to_value(event).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_retries_tells_of_every_attempt() {
    let usage = Usage { input_tokens: Some(12), ..Usage::default() };
    let timed_out = Failure::new(ErrorCode::Timeout, "no head").with_details(|details| {
        details.provider_wait_ms = Some(300_000);
        details.delivered = Some(Delivered::Unknown);
    });
    let first = ScriptedAttempt::refused(timed_out);
    let second = ScriptedAttempt::default()
        .text("half")
        .usage(usage)
        .wait(Duration::from_millis(40))
        .fail(cut());
    let third = ScriptedAttempt::cut(["again"], cut());
    let played = play([first, second, third]).await;

    let [one, two] = &played.outcome.retries[..] else { panic!("two retries") };
    assert_eq!((one.code, one.phase, one.attempt), (ErrorCode::Timeout, Phase::Request, 1));
    assert_eq!((one.delay_ms, one.waited_ms), (500, 500));
    assert_eq!((one.provider_wait_ms, one.stream_ms), (Some(300_000), None));
    assert_eq!(one.delivered, Some(Delivered::Unknown));
    assert_eq!((two.code, two.phase, two.attempt), (ErrorCode::StreamFailed, Phase::Stream, 2));
    assert_eq!((two.events_received, two.stream_ms), (1, Some(40)));
    assert_eq!(two.usage, Some(usage));
    assert_eq!(one.retry_id, two.retry_id);
    // The last attempt is the failure itself.
    let last = played.outcome.failure.as_ref().unwrap().details();
    assert_eq!((last.retry_attempt, last.events_received), (Some(3), Some(1)));

    let told = serde_json::to_value(&played.outcome.retries).unwrap();
    let endings = endings(&played);
    let names: Vec<_> = endings.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(names, ["message_end", "error", "agent_end"]);
    for ending in &endings {
        assert_eq!(ending["retries"], told);
        assert_eq!(ending["failure"]["code"], "STREAM_FAILED");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_retries_hides_them_from_its_end_and_not_from_the_outcome() {
    let played = play([ScriptedAttempt::cut(["a"], cut()), ScriptedAttempt::answer(["b"])]).await;
    assert_eq!(played.outcome.retries.len(), 1);
    assert!(endings(&played).iter().all(|event| event.get("retries").is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_was_cut_short_says_how_long_it_was() {
    let provider = ScriptedProvider::new([refused(ErrorCode::NetworkError)]);
    let runtime =
        Runtime::builder(Arc::new(provider), "m").world(Arc::new(Still::default())).build();
    let mut session = runtime.session(MemoryStore::new());
    let cancel = CancellationToken::new();
    let prompt = session.prompt_until("go", cancel.clone()).outcome();
    let (outcome, ()) = tokio::join!(prompt, async {
        tokio::time::sleep(Duration::from_millis(120)).await;
        cancel.cancel();
    });
    let retry = &outcome.retries[0];
    assert_eq!((retry.delay_ms, retry.waited_ms), (500, 120));
}
