//! Before a request that would be too large.

use turnbuckle_errors::{ErrorCode, Usage};
use turnbuckle_providers::{FinishReason, testing::ScriptedAttempt};

use super::{Talk, answer, event, json, kinds, long, shape, talk_with, too_large};

fn counted(text: &str, input: u64) -> ScriptedAttempt {
    let usage = Usage { input_tokens: Some(input), ..Usage::default() };
    ScriptedAttempt::default().usage(usage).text(text).finish(FinishReason::Stop)
}

/// Three prompts whose requests the provider counts at 400 tokens each thousand bytes.
fn counted_opening() -> Vec<ScriptedAttempt> {
    ["first", "second", "third"]
        .iter()
        .zip([10, 1000, 2200])
        .map(|(word, input)| counted(&long(word), input))
        .collect()
}

async fn near_the_boundary(more: impl IntoIterator<Item = ScriptedAttempt>) -> Talk {
    let script = counted_opening().into_iter().chain(more);
    let mut talk = talk_with(script, |builder| builder.context_window(3_000));
    for n in 1..=3 {
        let (events, outcome) = talk.say(&format!("question {n}")).await;
        assert!(outcome.ok && !kinds(&events).contains(&"compaction_start"), "{n}");
    }
    talk
}

#[tokio::test(start_paused = true)]
async fn a_history_near_the_boundary_is_made_smaller_before_it_is_refused() {
    let mut talk = near_the_boundary([answer("SO FAR"), answer("done")]).await;
    let (events, outcome) = talk.say("question 4").await;
    assert!(outcome.ok);
    assert_eq!(
        kinds(&events)[..5],
        ["agent_start", "turn_start", "compaction_start", "compaction_end", "message_start"]
    );
    let start = json(event(&events, "compaction_start"));
    assert_eq!(start["reason"], "boundary");
    assert!(start["tokens"].as_u64().unwrap() >= 2_700, "{start}");
    assert!(outcome.retries.is_empty());
    assert_eq!(outcome.attempts, 1);
    assert_eq!(shape(&talk.provider.requests()[4])[0], "digest: SO FAR");
}

#[tokio::test(start_paused = true)]
async fn a_step_makes_one_compaction_whatever_began_it() {
    let mut talk = near_the_boundary([answer("SO FAR"), too_large(), answer("never")]).await;
    let (events, outcome) = talk.say("question 4").await;
    assert_eq!(outcome.failure.unwrap().code(), ErrorCode::ContextTooLarge);
    assert_eq!(kinds(&events).iter().filter(|kind| **kind == "compaction_start").count(), 1);
    assert_eq!(talk.provider.requests().len(), 3 + 2);
}

#[tokio::test(start_paused = true)]
async fn at_the_boundary_a_failed_summary_does_not_stop_the_request() {
    let script = [answer(" "), answer("all the same"), answer("again")];
    let mut talk = near_the_boundary(script).await;
    let (events, outcome) = talk.say("question 4").await;
    assert_eq!(outcome.text, "all the same");
    assert_eq!(
        json(event(&events, "compaction_end"))["failure"]["code"],
        "CONTEXT_COMPACTION_FAILED"
    );
    assert_eq!(talk.provider.requests()[4].messages.len(), 7);
    // It is not tried again at once.
    let (events, outcome) = talk.say("question 5").await;
    assert!(outcome.ok && !kinds(&events).contains(&"compaction_start"));
}

#[tokio::test(start_paused = true)]
async fn what_failed_at_the_boundary_explains_the_refusal() {
    let mut talk = near_the_boundary([answer(" "), too_large(), answer("never")]).await;
    let failure = talk.say("question 4").await.1.failure.unwrap();
    assert_eq!(failure.code(), ErrorCode::ContextTooLarge);
    assert_eq!(failure.cause_code(), Some(ErrorCode::ContextCompactionFailed));
    assert_eq!(talk.provider.requests().len(), 3 + 2);
}
