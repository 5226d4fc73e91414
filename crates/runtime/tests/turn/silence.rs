//! What counts as silence, and what a nudge is.

use turnbuckle_errors::ErrorCode;
use turnbuckle_providers::{FinishReason, Message, testing::ScriptedAttempt};
use turnbuckle_runtime::{MessageFinish, Record};

use crate::{
    scene::{Played, play, play_with},
    tools::{asks, tools},
};

fn silent() -> ScriptedAttempt {
    ScriptedAttempt::default().finish(FinishReason::Stop)
}

/// A tool call, then what the model says to its result, with `Change` delivering.
async fn after(tool: &str, what: &str, said: impl IntoIterator<Item = ScriptedAttempt>) -> Played {
    let (set, _) = tools();
    let call = asks(&[("a", tool, &format!("{{\"what\":\"{what}\"}}"))]);
    let script = [call].into_iter().chain(said);
    play_with(script, |builder| builder.tools(set).delivering_tools(["Change"])).await
}

#[tokio::test(start_paused = true)]
async fn silence_right_after_a_delivering_tool_completes_the_prompt() {
    let played = after("Change", "sent", [silent(), ScriptedAttempt::answer(["never"])]).await;
    assert!(played.outcome.ok);
    assert_eq!((played.outcome.text.as_str(), played.outcome.attempts), ("", 2));
    assert_eq!(played.outcome.finish, Some(MessageFinish::Stop));
    assert!(played.outcome.retries.is_empty());
    // The blank message is in no later request.
    assert!(matches!(played.history.last(), Some(Message::Tool(_))));
}

#[tokio::test(start_paused = true)]
async fn silence_after_another_tool_or_a_failed_delivery_is_silence() {
    for (tool, what) in [("Look", "around"), ("Change", "fail")] {
        let played = after(tool, what, [silent(), ScriptedAttempt::answer(["sorry"])]).await;
        assert_eq!((played.outcome.text.as_str(), played.outcome.attempts), ("sorry", 3), "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_that_comes_later_than_the_delivery_is_silence() {
    let (set, _) = tools();
    let script = [
        asks(&[("a", "Change", r#"{"what":"sent"}"#)]),
        asks(&[("b", "Look", "{}")]),
        silent(),
        ScriptedAttempt::answer(["sorry"]),
    ];
    let played = play_with(script, |builder| builder.tools(set).delivering_tools(["Change"])).await;
    assert_eq!((played.outcome.text.as_str(), played.outcome.attempts), ("sorry", 4));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_in_words_is_an_answer() {
    let refusal = ScriptedAttempt::default().refusal("I would rather not.");
    let played = play([refusal.finish(FinishReason::Stop)]).await;
    assert!(played.outcome.ok);
    assert_eq!((played.outcome.text.as_str(), played.outcome.attempts), ("I would rather not.", 1));
}

#[tokio::test(start_paused = true)]
async fn a_nudge_stays_for_the_attempts_after_it_and_is_stored_nowhere() {
    let cut = turnbuckle_errors::Failure::new(ErrorCode::StreamFailed, "cut");
    let script =
        [silent(), ScriptedAttempt::cut(["So"], cut), ScriptedAttempt::answer(["So it is"])];
    let played = play(script).await;
    let nudged: Vec<_> =
        played.provider.requests().iter().map(|request| request.messages.len()).collect();
    assert_eq!(nudged, [1, 2, 2]);
    assert_eq!(played.history.len(), 2);
    let journal = serde_json::to_string(&played.records).unwrap();
    assert!(!journal.contains("was empty"), "{journal}");
    let users = played.records.iter().filter(|it| matches!(it, Record::User { .. })).count();
    assert_eq!(users, 1);
}
