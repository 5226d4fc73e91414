//! Nothing of a failed attempt is left, wherever one looks.

use turnbuckle_errors::{ErrorCode, Failure, SafeText};
use turnbuckle_providers::{FinishReason, Native, testing::ScriptedAttempt};
use turnbuckle_runtime::{EventKind, Record};

use crate::scene::{Plain, Played, play};

const CANARY: &str = "CANARY-of-the-failed-part";

/// All that an attempt can leave: text, reasoning, a signature.
fn part() -> ScriptedAttempt {
    let signed = Native {
        dialect: "scripted".into(),
        model: "model-x".into(),
        parts: vec![format!("{{\"signature\":\"{CANARY}\"}}")],
    };
    ScriptedAttempt::default().text(CANARY).reasoning(CANARY).native(signed)
}

/// And the words of its error.
fn failure(code: ErrorCode) -> Failure {
    let words = SafeText::redacted(CANARY, &Plain);
    Failure::new(code, words.clone()).with_causes(vec![words])
}

/// Fails in every way that is retried, then answers.
async fn played() -> Played {
    let silent = ScriptedAttempt::default().reasoning(CANARY).finish(FinishReason::Stop);
    play([
        part()
            .tool_call("CANARY-call", CANARY, "{\"x\":\"CANARY")
            .fail(failure(ErrorCode::StreamFailed)),
        silent,
        part().fail(failure(ErrorCode::ProviderOverloaded)),
        ScriptedAttempt::refused(failure(ErrorCode::ProviderRateLimited)),
        ScriptedAttempt::answer(["whole"]),
    ])
    .await
}

#[tokio::test(start_paused = true)]
async fn no_later_request_and_no_history_holds_anything_of_it() {
    let played = played().await;
    assert_eq!(played.outcome.text, "whole");
    let requests = played.provider.requests();
    assert_eq!(requests.len(), 5);
    for request in &requests {
        assert!(!format!("{request:?}").contains("CANARY"), "{request:?}");
    }
    assert!(!format!("{:?}", played.history).contains("CANARY"));
}

#[tokio::test(start_paused = true)]
async fn the_journal_holds_its_failure_and_nothing_of_its_content() {
    let played = played().await;
    let mut failures = 0;
    for record in &played.records {
        match record {
            Record::RetryScheduled { failure, .. } if failure["code"] != "EMPTY_MODEL_RESPONSE" => {
                failures += 1;
                assert_eq!(failure["message"], CANARY);
            }
            other => assert!(!serde_json::to_string(other).unwrap().contains("CANARY")),
        }
    }
    assert_eq!(failures, 3);
}

#[tokio::test(start_paused = true)]
async fn whoever_folds_the_events_sees_the_last_attempt_alone() {
    let played = played().await;
    let mut folded = String::new();
    let mut restarts = 0;
    for event in &played.events {
        match &event.kind {
            EventKind::MessageRestart { .. } => {
                restarts += 1;
                folded.clear();
            }
            EventKind::MessageUpdate { delta, .. } => folded.push_str(delta),
            EventKind::MessageEnd { message, .. } => {
                assert_eq!((message.text.as_str(), message.reasoning.as_str()), ("whole", ""));
                assert!(message.tool_calls.is_empty());
            }
            _ => {}
        }
    }
    assert_eq!((folded.as_str(), restarts), ("whole", 3));
}
