//! What a host can do while a prompt runs, and between prompts.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::Instant;
use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_providers::{FinishReason, History, Message, testing::ScriptedAttempt};
use turnbuckle_runtime::{
    Agent, Event, EventKind, MemoryStore, Outcome, Prompt, PromptOutcome, Record, Runtime,
};

use crate::{
    scene::{Still, check_promises, cut, kind},
    tools::{asks, tools},
    watched::Watched,
};

fn runtime(provider: &Watched) -> Runtime {
    let (set, _) = tools();
    Runtime::builder(Arc::new(provider.clone()), "m")
        .world(Arc::new(Still::default()))
        .tools(set)
        .build()
}

fn agent(script: impl IntoIterator<Item = ScriptedAttempt>) -> (Agent, Watched, MemoryStore) {
    let (provider, store) = (Watched::new(script), MemoryStore::new());
    (Agent::new(runtime(&provider).session(store.clone())), provider, store)
}

/// Reads a prompt to its end.
async fn read(mut prompt: Prompt<'_>) -> (Vec<Event>, PromptOutcome) {
    let mut events = Vec::new();
    while let Some(event) = prompt.next().await {
        events.push(event);
    }
    let outcome = prompt.outcome().await;
    check_promises(&events, &outcome);
    (events, outcome)
}

/// Reads up to the first event of this kind.
async fn read_until(prompt: &mut Prompt<'_>, wanted: &str) {
    while kind(&prompt.next().await.unwrap()) != wanted {}
}

/// What each message of a request is, in a word, and what the user said.
fn gist(messages: &History) -> Vec<String> {
    let word = |message: &Message| match message {
        Message::User(said) => format!("{said:?}").split('"').nth(1).unwrap_or("?").to_owned(),
        Message::Assistant(said) if said.tool_calls.is_empty() => "<answer>".to_owned(),
        Message::Assistant(_) => "<call>".to_owned(),
        Message::Tool(_) => "<result>".to_owned(),
        _ => "<other>".to_owned(),
    };
    messages.iter().map(word).collect()
}

fn look() -> ScriptedAttempt {
    asks(&[("a", "Look", r#"{"what":"slow"}"#)])
}

#[tokio::test(start_paused = true)]
async fn steering_comes_before_the_next_request_and_into_the_journal() {
    let (agent, provider, store) = agent([look(), ScriptedAttempt::answer(["left"])]);
    let mut prompt = agent.prompt("go").unwrap();
    read_until(&mut prompt, "tool_execution_start").await;
    agent.steer("left").unwrap();
    agent.steer("and fast").unwrap();
    let mut events = Vec::new();
    while let Some(event) = prompt.next().await {
        events.push(event);
    }
    assert!(prompt.outcome().await.ok);
    let requests = provider.requests();
    assert_eq!(gist(&requests[1].messages), ["go", "<call>", "<result>", "left", "and fast"]);
    let taken = events.iter().find(|event| kind(event) == "user_message").unwrap();
    let taken = serde_json::to_value(taken).unwrap();
    assert_eq!((&taken["text"], &taken["said"]), (&json!("left"), &json!("steer")));
    let said = store.records().into_iter().filter_map(|record| match record {
        Record::User { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["go", "left", "and fast"]);
}

#[tokio::test(start_paused = true)]
async fn steering_comes_before_a_retry_too() {
    let script = [ScriptedAttempt::cut(["par"], cut()), ScriptedAttempt::answer(["whole"])];
    let (agent, provider, _) = agent(script);
    let mut prompt = agent.prompt("go").unwrap();
    read_until(&mut prompt, "retry_scheduled").await;
    agent.steer("shorter").unwrap();
    assert!(prompt.outcome().await.ok);
    assert_eq!(gist(&provider.requests()[1].messages), ["go", "shorter"]);
}

#[tokio::test(start_paused = true)]
async fn steering_that_comes_too_late_and_follow_ups_go_on_with_the_same_run() {
    let answers = ["one", "two", "three", "four"];
    let script = answers.map(|answer| {
        let said = ScriptedAttempt::default().text(answer).wait(Duration::from_millis(10));
        said.finish(FinishReason::Stop)
    });
    let (agent, provider, _) = agent(script);
    let mut prompt = agent.prompt("1").unwrap();
    read_until(&mut prompt, "message_start").await;
    agent.follow_up("3").unwrap();
    agent.follow_up("4").unwrap();
    agent.steer("2").unwrap();
    let mut kinds = Vec::new();
    while let Some(event) = prompt.next().await {
        kinds.push((kind(&event), event.turn));
    }
    let outcome = prompt.outcome().await;
    assert_eq!((outcome.text.as_str(), outcome.outcome), ("four", Outcome::Completed));
    let requests = provider.requests();
    assert_eq!(
        gist(&requests[3].messages),
        ["1", "<answer>", "2", "<answer>", "3", "<answer>", "4"]
    );
    assert_eq!(requests[2].messages.len(), 5, "one follow-up after the other");
    assert_eq!(kinds.iter().filter(|(kind, _)| *kind == "agent_end").count(), 1);
    assert_eq!(kinds.last(), Some(&("agent_end", 4)));
}

#[tokio::test(start_paused = true)]
async fn a_follow_up_has_a_step_limit_of_its_own() {
    let provider = Watched::new([
        look(),
        ScriptedAttempt::answer(["one"]),
        look(),
        ScriptedAttempt::answer(["two"]),
    ]);
    let (set, _) = tools();
    let runtime = Runtime::builder(Arc::new(provider), "m").tools(set).max_steps(2).build();
    let agent = Agent::new(runtime.session(MemoryStore::new()));
    let prompt = agent.prompt("go").unwrap();
    agent.follow_up("again").unwrap();
    assert_eq!(prompt.outcome().await.text, "two");
}

#[tokio::test(start_paused = true)]
async fn no_message_is_taken_and_forgotten() {
    let (agent, _, _) = agent([look(), ScriptedAttempt::answer(["never"])]);
    assert_eq!(agent.steer("too early").unwrap_err().text, "too early");
    let mut prompt = agent.prompt("go").unwrap();
    let remote = prompt.remote();
    read_until(&mut prompt, "tool_execution_start").await;
    agent.follow_up("later").unwrap();
    agent.steer("now").unwrap();
    agent.abort();
    assert_eq!(prompt.outcome().await.outcome, Outcome::Aborted);
    assert_eq!(remote.take_back(), ["now", "later"]);
    assert_eq!(remote.steer("too late").unwrap_err().text, "too late");
    assert_eq!(agent.follow_up("too late").unwrap_err().text, "too late");
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_holds_what_was_said_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let provider =
        Watched::new([look(), ScriptedAttempt::answer(["a"]), ScriptedAttempt::answer(["b"])]);
    let runtime = runtime(&provider);
    let agent = Agent::new(runtime.session_in(folder.path()).unwrap());
    let mut prompt = agent.prompt("go").unwrap();
    read_until(&mut prompt, "tool_execution_start").await;
    agent.steer("left").unwrap();
    agent.follow_up("back").unwrap();
    assert!(prompt.outcome().await.ok);
    let before = agent.look(|session| session.transcript().clone()).unwrap();
    assert_eq!(gist(before.messages())[3..], ["left", "<answer>", "back", "<answer>"]);
    let id = agent.id().to_owned();
    drop(agent);
    let resumed = runtime.resume(folder.path(), &id).unwrap();
    assert_eq!(*resumed.transcript(), before);
}

#[tokio::test(start_paused = true)]
async fn a_failed_prompt_is_gone_on_with_without_a_new_message() {
    let provider = Watched::new([
        ScriptedAttempt::cut(["a"], cut()),
        ScriptedAttempt::cut(["b"], cut()),
        ScriptedAttempt::answer(["whole"]),
    ]);
    let mut session = runtime(&provider).session(MemoryStore::new());
    assert_eq!(session.prompt("go").outcome().await.outcome, Outcome::Failed);
    let (events, outcome) = read(session.continue_()).await;
    assert_eq!((outcome.text.as_str(), outcome.attempts), ("whole", 1));
    assert_eq!(kind(&events[0]), "agent_start");
    assert_eq!(gist(&provider.requests()[2].messages), ["go"]);
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_to_be_answered_there_is_nothing_to_go_on_with() {
    let (agent, provider, store) = agent([ScriptedAttempt::answer(["done"])]);
    for requests in [0, 1] {
        let (events, outcome) = read(agent.continue_().unwrap()).await;
        assert_eq!(outcome.failure.unwrap().code(), ErrorCode::InvalidRequest);
        assert_eq!(
            events.iter().map(kind).collect::<Vec<_>>(),
            ["agent_start", "error", "agent_end"]
        );
        assert_eq!(provider.asked(), requests);
        if requests == 0 {
            // A journal begins with what was said, or nothing could open it.
            assert_eq!(store.records(), []);
            assert!(agent.prompt("go").unwrap().outcome().await.ok);
        }
    }
    assert!(runtime(&provider).resume_from(MemoryStore::new(), store.records()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_second_prompt_is_refused_until_the_first_has_said_that_it_is_over() {
    let (agent, _, _) = agent([ScriptedAttempt::answer(["one"]), ScriptedAttempt::answer(["two"])]);
    let mut first = agent.prompt("go").unwrap();
    let busy = |failure: Failure| failure.code() == ErrorCode::AgentBusy;
    assert!(busy(agent.prompt("me too").unwrap_err()) && agent.is_busy());
    assert!(busy(agent.clone().continue_().unwrap_err()));
    assert!(busy(agent.look(|_| ()).unwrap_err()));
    // Its last event is enough; the end of the stream need not be read.
    read_until(&mut first, "agent_end").await;
    assert_eq!(agent.prompt("now").unwrap().outcome().await.text, "two");
    assert_eq!(first.outcome().await.text, "one");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_reads_slows_the_turn_and_not_its_cancellation() {
    let many: Vec<String> = (0..500).map(|n| format!("delta {n} ")).collect();
    let endless =
        many.iter().map(String::as_str).fold(ScriptedAttempt::default(), ScriptedAttempt::text);
    let (agent, provider, _) = agent([endless.hang()]);
    let mut prompt = agent.prompt("go").unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(provider.open(), 1);
    agent.abort();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(provider.open(), 0, "the connection is closed, though nobody reads");
    let mut shown = 0;
    let mut last = None;
    while let Some(event) = prompt.next().await {
        shown += usize::from(kind(&event) == "message_update");
        last = Some(kind(&event));
    }
    assert!(shown < 100, "{shown} deltas were read ahead");
    assert_eq!(last, Some("agent_end"));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_prompt_stops_everything_and_frees_the_session() {
    let (agent, provider, _) =
        agent([ScriptedAttempt::default().text("part").hang(), ScriptedAttempt::answer(["whole"])]);
    let mut prompt = agent.prompt("one").unwrap();
    read_until(&mut prompt, "message_update").await;
    drop(prompt);
    let dropped = Instant::now();
    agent.idle().await;
    assert!(dropped.elapsed() <= Duration::from_millis(100));
    assert_eq!(provider.open(), 0);
    assert_eq!(agent.prompt("two").unwrap().outcome().await.text, "whole");
    assert!(!format!("{:?}", provider.requests()[1]).contains("part"));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_prompt_cancels_nothing_else_of_the_host() {
    let provider = Watched::new([ScriptedAttempt::default().text("part").hang()]);
    let mut session = runtime(&provider).session(MemoryStore::new());
    let cancel = tokio_util::sync::CancellationToken::new();
    let mut prompt = session.prompt_until("one", cancel.clone());
    read_until(&mut prompt, "message_update").await;
    drop(prompt);
    assert_eq!((provider.open(), cancel.is_cancelled()), (0, false));
}

#[test]
fn outside_of_an_executor_a_prompt_is_refused() {
    let (agent, _, _) = agent([]);
    assert_eq!(agent.prompt("go").unwrap_err().code(), ErrorCode::Internal);
    assert!(!agent.is_busy());
}

#[tokio::test(start_paused = true)]
async fn a_prompt_is_a_stream() {
    use futures_util::StreamExt;
    let (agent, _, _) = agent([ScriptedAttempt::answer(["one"])]);
    let prompt = agent.prompt("go").unwrap();
    let ends = StreamExt::collect::<Vec<_>>(prompt).await;
    assert!(matches!(ends.last().unwrap().kind, EventKind::AgentEnd { .. }));
}
