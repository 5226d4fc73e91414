use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use turnbuckle_errors::{ErrorCode, Failure, Usage};
use turnbuckle_providers::{FinishReason, Message, testing::ScriptedAttempt};
use turnbuckle_runtime::{Event, EventKind, MessageFinish, Outcome, Record, World};

use crate::scene::{Played, cut, kind, page, play, play_with, refused};

fn rate_limited(retry_after: Option<u64>) -> ScriptedAttempt {
    let failure = Failure::new(ErrorCode::ProviderRateLimited, "slow down")
        .with_details(|details| details.retry_after_ms = retry_after);
    ScriptedAttempt::refused(failure)
}

/// `(budget, delay)` of every scheduled retry, in order.
fn waits(played: &Played) -> Vec<(String, u64)> {
    played
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::RetryScheduled { budget, delay_ms, .. } => {
                Some((budget.to_string(), *delay_ms))
            }
            _ => None,
        })
        .collect()
}

/// Text and finish of the last message that ended.
fn end_of(played: &Played) -> (String, MessageFinish) {
    let end = played.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::MessageEnd { message, finish, .. } => Some((message.text.clone(), *finish)),
        _ => None,
    });
    end.expect("a message has ended")
}

fn message_ids(events: &[Event]) -> std::collections::BTreeSet<String> {
    events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::MessageStart { message_id, .. }
            | EventKind::MessageUpdate { message_id, .. }
            | EventKind::MessageRestart { message_id, .. }
            | EventKind::MessageEnd { message_id, .. } => Some(message_id.to_string()),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_trouble() {
    let played = play([ScriptedAttempt::answer(["Hello, ", "world"])]).await;
    insta::assert_snapshot!(page(&played));
}

#[tokio::test(start_paused = true)]
async fn a_cut_after_text_replaces_the_message() {
    let played = play([
        ScriptedAttempt::cut(["Half an ", "ans"], cut()),
        ScriptedAttempt::answer(["A whole ", "answer"]),
    ])
    .await;
    assert_eq!(message_ids(&played.events).len(), 1);
    assert_eq!(played.provider.requests()[0], played.provider.requests()[1]);
    assert_eq!(played.provider.fresh_connections(), [false, true]);
    insta::assert_snapshot!(page(&played));
}

#[tokio::test(start_paused = true)]
async fn a_second_cut_ends_the_turn_visibly() {
    let played =
        play([ScriptedAttempt::cut(["first"], cut()), ScriptedAttempt::cut(["second"], cut())])
            .await;
    insta::assert_snapshot!(page(&played));
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_request_sends_only_the_retry_events() {
    let played = play([refused(ErrorCode::NetworkError), ScriptedAttempt::answer(["ok"])]).await;
    let kinds: Vec<_> = played.events.iter().map(kind).collect();
    assert_eq!(
        kinds,
        [
            "agent_start",
            "turn_start",
            "retry_scheduled",
            "retry_started",
            "message_start",
            "message_update",
            "message_end",
            "turn_end",
            "agent_end",
        ]
    );
    assert_eq!(waits(&played), [("setup".to_owned(), 500)]);
    assert_eq!(played.took_ms, 500);
}

#[tokio::test(start_paused = true)]
async fn setup_is_tried_twice_and_no_more() {
    let played = play([refused(ErrorCode::NetworkError), refused(ErrorCode::NetworkError)]).await;
    assert_eq!(played.outcome.attempts, 2);
    assert_eq!(played.outcome.failure.unwrap().details().retry_attempt, Some(2));
}

#[tokio::test(start_paused = true)]
async fn capacity_has_one_purse_over_both_phases() {
    let overloaded = Failure::new(ErrorCode::ProviderOverloaded, "busy");
    let played = play([
        rate_limited(None),
        ScriptedAttempt::cut(["part"], overloaded.clone()),
        rate_limited(Some(1234)),
        ScriptedAttempt::cut(["part"], overloaded.clone()),
        rate_limited(None),
        ScriptedAttempt::cut(["last"], overloaded),
    ])
    .await;
    let delays: Vec<u64> = waits(&played).into_iter().map(|(_, delay)| delay).collect();
    assert_eq!(delays, [2000, 4000, 1234, 16_000, 30_000]);
    assert_eq!(played.outcome.attempts, 6);
    assert_eq!(played.outcome.outcome, Outcome::Failed);
    assert_eq!(played.took_ms, 2000 + 4000 + 1234 + 16_000 + 30_000);
}

#[tokio::test(start_paused = true)]
async fn switching_phase_refills_nothing() {
    let played = play([
        refused(ErrorCode::NetworkError),
        ScriptedAttempt::cut(["part"], cut()),
        refused(ErrorCode::NetworkError),
    ])
    .await;
    assert_eq!(waits(&played), [("setup".to_owned(), 500), ("stream".to_owned(), 750)]);
    assert_eq!(played.outcome.attempts, 3);
    assert_eq!(played.outcome.failure.as_ref().map(Failure::code), Some(ErrorCode::NetworkError));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_after_a_cut_restarts_the_message_only_when_it_streams_again() {
    let played = play([
        ScriptedAttempt::cut(["part"], cut()),
        rate_limited(None),
        ScriptedAttempt::answer(["whole"]),
    ])
    .await;
    insta::assert_snapshot!(page(&played));
}

#[tokio::test(start_paused = true)]
async fn a_server_delay_above_the_cap_ends_the_step_at_once() {
    let played = play([rate_limited(Some(65_001))]).await;
    assert_eq!(played.outcome.attempts, 1);
    assert_eq!(played.took_ms, 0);
    let failure = played.outcome.failure.unwrap();
    assert_eq!(
        (failure.code(), failure.details().retry_after_ms),
        (ErrorCode::ProviderRateLimited, Some(65_001))
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_succeed_is_asked_once() {
    for code in [
        ErrorCode::ProviderUnauthorized,
        ErrorCode::ProviderQuotaExceeded,
        ErrorCode::ModelNotConfigured,
        ErrorCode::InvalidRequest,
        ErrorCode::ContentFiltered,
        ErrorCode::ContextTooLarge,
        ErrorCode::ProviderProtocolMismatch,
    ] {
        let played = play([refused(code)]).await;
        assert_eq!(played.outcome.attempts, 1, "{code}");
        assert_eq!(played.outcome.failure.map(|failure| failure.code()), Some(code));
        let kinds: Vec<_> = played.events.iter().map(kind).collect();
        assert_eq!(kinds, ["agent_start", "turn_start", "turn_end", "error", "agent_end"]);
    }
}

/// A clock that jumps an hour at every look, back and forth.
struct Jumping(AtomicI64);

impl World for Jumping {
    fn now(&self) -> jiff::Timestamp {
        let looks = self.0.fetch_add(1, Ordering::Relaxed);
        let hour = if looks % 2 == 0 { 3600 } else { -3600 };
        jiff::Timestamp::from_second(1_700_000_000 + hour).unwrap()
    }

    fn new_id(&self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn jitter(&self) -> f64 {
        1.0
    }
}

#[tokio::test(start_paused = true)]
async fn a_date_that_jumps_changes_no_wait_and_no_measure() {
    let script = [
        rate_limited(Some(1234)),
        refused(ErrorCode::NetworkError),
        ScriptedAttempt::cut(["part"], cut()),
        ScriptedAttempt::default()
            .wait(Duration::from_millis(30))
            .text("whole")
            .finish(FinishReason::Stop),
    ];
    let world = Arc::new(Jumping(AtomicI64::new(0)));
    let played = play_with(script, |builder| builder.world(world)).await;
    assert!(played.outcome.ok);
    let delays: Vec<u64> = waits(&played).into_iter().map(|(_, delay)| delay).collect();
    assert_eq!(delays, [1234, 625, 750]);
    assert_eq!(played.took_ms, 1234 + 625 + 750 + 30);
    assert_eq!(played.outcome.timing.total.as_millis(), played.took_ms);
}

#[tokio::test(start_paused = true)]
async fn silence_is_asked_again_once_with_a_nudge_that_is_never_stored() {
    let silent = || ScriptedAttempt::default().reasoning("hm").finish(FinishReason::Stop);
    let played = play([silent(), ScriptedAttempt::answer(["sorry"])]).await;
    let requests = played.provider.requests();
    assert_eq!(requests[0].messages.len(), 1);
    assert!(
        matches!(&requests[1].messages[1], Message::User(nudge) if nudge.text.contains("empty"))
    );
    assert_eq!(played.history.len(), 2);
    assert_eq!(waits(&played), [("silent".to_owned(), 0)]);

    let played = play([silent(), silent()]).await;
    assert_eq!(
        played.outcome.failure.map(|failure| failure.code()),
        Some(ErrorCode::EmptyModelResponse)
    );
    assert_eq!(played.outcome.attempts, 2);
    assert!(played.records.iter().all(|record| !matches!(record, Record::Assistant { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_by_the_limit_is_no_silence() {
    let played =
        play([ScriptedAttempt::default().reasoning("long").finish(FinishReason::Length)]).await;
    assert!(played.outcome.ok);
    assert_eq!(played.outcome.finish, Some(MessageFinish::Length));
    assert_eq!(played.history.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_filtered_answer_is_a_failure_and_not_kept() {
    let played =
        play([ScriptedAttempt::default().text("part").finish(FinishReason::ContentFilter)]).await;
    assert_eq!(
        played.outcome.failure.as_ref().map(Failure::code),
        Some(ErrorCode::ContentFiltered)
    );
    assert_eq!(played.history.len(), 1);
    // The message ends with what was shown, and as the provider said.
    let (text, finish) = end_of(&played);
    assert_eq!((text.as_str(), finish), ("part", MessageFinish::ContentFilter));
    assert_eq!(played.outcome.text, "part");
}

#[tokio::test(start_paused = true)]
async fn usage_and_time_of_failed_attempts_are_accounted() {
    let usage = |input| Usage { input_tokens: Some(input), ..Usage::default() };
    let played = play([
        ScriptedAttempt::default()
            .usage(usage(10))
            .text("part")
            .wait(Duration::from_millis(300))
            .fail(cut()),
        ScriptedAttempt::default()
            .usage(usage(7))
            .text("whole")
            .wait(Duration::from_millis(200))
            .finish(FinishReason::Stop),
    ])
    .await;
    let outcome = &played.outcome;
    assert_eq!(outcome.usage.input_tokens, Some(17));
    assert_eq!(outcome.usage.output_tokens, None);
    assert_eq!(outcome.timing.stream, Duration::from_millis(500));
    assert_eq!(outcome.timing.backoff, Duration::from_millis(750));
    assert_eq!(outcome.timing.total, Duration::from_millis(1250));
}

#[tokio::test(start_paused = true)]
async fn the_summary_has_the_documented_shape() {
    let played =
        play([ScriptedAttempt::cut(["part"], cut()), ScriptedAttempt::answer(["whole"])]).await;
    insta::assert_json_snapshot!(played.outcome);
}

#[tokio::test(start_paused = true)]
async fn a_silent_message_ends_with_what_was_shown_of_it() {
    let blank = || ScriptedAttempt::default().text(" \n").finish(FinishReason::Stop);
    let played = play([blank(), blank()]).await;
    let (text, finish) = end_of(&played);
    assert_eq!((text.as_str(), finish), (" \n", MessageFinish::Error));
}
