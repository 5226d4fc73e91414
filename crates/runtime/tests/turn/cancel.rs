use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::ErrorCode;
use turnbuckle_providers::{
    Message,
    testing::{ScriptedAttempt, ScriptedProvider},
};
use turnbuckle_runtime::{Agent, Event, MemoryStore, Outcome, PromptOutcome, Runtime};
use turnbuckle_tools::{
    Answer, ApprovalRequest, Approver, Effect, PermissionMode, Tool, ToolContext, ToolError,
    ToolOutput, ToolSet, ToolSpec,
};

use crate::{
    scene::{Still, check_promises, cut, kind, refused},
    tools::{asks, tools},
    watched::Watched,
};

/// Plays a script and cancels after `wait` of virtual time.
async fn cancelled_after(
    wait: Duration,
    script: impl IntoIterator<Item = ScriptedAttempt>,
) -> (Vec<Event>, PromptOutcome, usize) {
    let provider = ScriptedProvider::new(script);
    let runtime =
        Runtime::builder(Arc::new(provider.clone()), "m").world(Arc::new(Still::default())).build();
    let mut session = runtime.session(MemoryStore::new());
    let cancel = CancellationToken::new();
    let mut prompt = session.prompt_until("go", cancel.clone());
    let mut events = Vec::new();
    let timer = tokio::time::sleep(wait);
    tokio::pin!(timer);
    loop {
        tokio::select! {
            biased;
            () = &mut timer, if !cancel.is_cancelled() => cancel.cancel(),
            event = prompt.next() => match event {
                Some(event) => events.push(event),
                None => break,
            },
        }
    }
    let outcome = prompt.ended().unwrap().clone();
    check_promises(&events, &outcome);
    (events, outcome, provider.requests().len())
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_sends_neither_a_start_nor_a_request() {
    let script = [refused(ErrorCode::NetworkError), ScriptedAttempt::answer(["never"])];
    let (events, outcome, requests) = cancelled_after(Duration::from_millis(499), script).await;
    assert_eq!(outcome.outcome, Outcome::Aborted);
    assert_eq!(requests, 1);
    let kinds: Vec<_> = events.iter().map(kind).collect();
    assert_eq!(kinds, ["agent_start", "turn_start", "retry_scheduled", "turn_end", "agent_end"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_in_the_instant_of_the_timer_wins() {
    let script = [refused(ErrorCode::NetworkError), ScriptedAttempt::answer(["never"])];
    let (events, outcome, requests) = cancelled_after(Duration::from_millis(500), script).await;
    assert_eq!(outcome.outcome, Outcome::Aborted);
    assert_eq!(requests, 1);
    assert!(events.iter().all(|event| kind(event) != "retry_started"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_stream_ends_its_message_as_aborted() {
    let script = [ScriptedAttempt::default().text("part").hang()];
    let (events, outcome, requests) = cancelled_after(Duration::from_millis(5), script).await;
    assert_eq!(requests, 1);
    assert_eq!(
        outcome.failure.as_ref().map(|failure| failure.code()),
        Some(ErrorCode::TurnAborted)
    );
    let kinds: Vec<_> = events.iter().map(kind).collect();
    assert_eq!(
        kinds,
        [
            "agent_start",
            "turn_start",
            "message_start",
            "message_update",
            "message_end",
            "turn_end",
            "agent_end"
        ]
    );
    let end = serde_json::to_value(&events[4]).unwrap();
    assert_eq!(end["finish"], "aborted");
    assert_eq!(end["message"]["text"], "part");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_cancelled_before_it_begins_asks_nobody() {
    let provider = ScriptedProvider::new([ScriptedAttempt::answer(["never"])]);
    let runtime = Runtime::builder(Arc::new(provider.clone()), "m").build();
    let mut session = runtime.session(MemoryStore::new());
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = session.prompt_until("go", cancel).outcome().await;
    assert_eq!(outcome.outcome, Outcome::Aborted);
    assert!(provider.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_prompt_leaves_the_session_usable() {
    let provider = ScriptedProvider::new([
        ScriptedAttempt::default().text("part").hang(),
        ScriptedAttempt::answer(["whole"]),
    ]);
    let runtime = Runtime::builder(Arc::new(provider.clone()), "m").build();
    let mut session = runtime.session(MemoryStore::new());
    let mut prompt = session.prompt("one");
    while kind(&prompt.next().await.unwrap()) != "message_update" {}
    drop(prompt);
    let outcome = session.prompt("two").outcome().await;
    assert_eq!(outcome.text, "whole");
    assert!(!format!("{:?}", provider.requests()[1]).contains("part"));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_reads_cannot_hold_up_a_cancellation() {
    let many: Vec<String> = (0..500).map(|n| format!("delta {n} ")).collect();
    let script = [ScriptedAttempt::cut(many.iter().map(String::as_str), cut())];
    let provider = ScriptedProvider::new(script);
    let runtime = Runtime::builder(Arc::new(provider), "m").build();
    let mut session = runtime.session(MemoryStore::new());
    let cancel = CancellationToken::new();
    let mut prompt = session.prompt_until("go", cancel.clone());
    // One read lets the turn run ahead until its events find no more room.
    prompt.next().await.unwrap();
    cancel.cancel();
    let mut events = Vec::new();
    while let Some(event) = prompt.next().await {
        events.push(serde_json::to_value(&event).unwrap());
    }
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["outcome"]), (&"agent_end".into(), &"aborted".into()));
    assert_eq!(prompt.ended().map(|outcome| outcome.outcome), Some(Outcome::Aborted));
    // The message ends with what was shown, whatever had been received.
    let shown: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    let end = events.iter().find(|event| event["type"] == "message_end").unwrap();
    assert_eq!(end["message"]["text"], shown);
}

/// Its calls may have had an effect, so the model has to learn of them, and the
/// session goes on as it would after a restart.
#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_dropped_while_its_tools_run_leaves_what_its_journal_says() {
    let folder = tempfile::tempdir().unwrap();
    let calls =
        [("a", "Look", "{}"), ("b", "Change", r#"{"what":"slow one"}"#), ("c", "Change", "{}")];
    let provider = ScriptedProvider::new([asks(&calls), ScriptedAttempt::answer(["I see"])]);
    let runtime = Runtime::builder(Arc::new(provider.clone()), "m").tools(tools().0).build();
    let mut session = runtime.session_in(folder.path()).unwrap();
    let id = session.id().to_owned();
    let mut prompt = session.prompt("one");
    while kind(&prompt.next().await.unwrap()) != "tool_execution_end" {}
    drop(prompt);
    assert_eq!(session.prompt("two").outcome().await.text, "I see");
    let live = session.transcript().clone();
    drop(session);

    let told: Vec<String> = provider.requests()[1]
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool(result) => Some(format!("{} {}", result.call_id, result.text)),
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[1].contains("outcome is unknown"), "{told:?}");
    let again = runtime.resume(folder.path(), &id).unwrap();
    assert_eq!(*again.transcript(), live);
}

/// The executor makes a task that never waits pause; no event may be lost to that.
#[tokio::test(start_paused = true)]
async fn a_task_that_reads_many_prompts_without_a_pause_loses_no_event() {
    for _ in 0..50 {
        let provider = ScriptedProvider::new([ScriptedAttempt::answer(["a", "b", "c"])]);
        let runtime = Runtime::builder(Arc::new(provider), "m").build();
        let mut session = runtime.session(MemoryStore::new());
        let mut prompt = session.prompt("go");
        let mut kinds = Vec::new();
        while let Some(event) = prompt.next().await {
            kinds.push(kind(&event));
        }
        assert_eq!(kinds.last(), Some(&"agent_end"));
    }
}

/// Where a prompt stands when it is cancelled: what leads there, and how the
/// model's call is answered.
enum Stand {
    Connecting,
    Streaming,
    Waiting,
    InATool,
    Asking,
}

#[tokio::test(start_paused = true)]
async fn wherever_it_stands_nothing_is_left_of_a_cancelled_prompt() {
    for stand in
        [Stand::Connecting, Stand::Streaming, Stand::Waiting, Stand::InATool, Stand::Asking]
    {
        let script = match stand {
            Stand::Connecting => vec![],
            Stand::Streaming => vec![ScriptedAttempt::default().text("part").hang()],
            Stand::Waiting => vec![refused(ErrorCode::ProviderOverloaded)],
            Stand::InATool | Stand::Asking => vec![asks(&[("a", "Wait", "{}")])],
        };
        let mode = match stand {
            Stand::Asking => PermissionMode::Ask,
            _ => PermissionMode::Auto,
        };
        let provider = Watched::new(script);
        let (wait, running) = Wait::new();
        let set = ToolSet::new().with(Arc::new(wait)).with_permissions(mode, Arc::new(Silent));
        let runtime = Runtime::builder(Arc::new(provider.clone()), "m").tools(set).build();
        let agent = Agent::new(runtime.session(MemoryStore::new()));
        let mut prompt = agent.prompt("go").unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let in_a_tool = matches!(stand, Stand::InATool);
        assert_eq!(running.load(Ordering::Relaxed), usize::from(in_a_tool));
        let (asked, cancelled) = (provider.asked(), Instant::now());
        assert_eq!(asked, 1);
        agent.abort();
        let mut events = Vec::new();
        while let Some(event) = prompt.next().await {
            events.push(event);
        }
        assert!(cancelled.elapsed() <= Duration::from_millis(100), "{:?}", cancelled.elapsed());
        assert_eq!(provider.open(), 0, "no connection is left");
        assert_eq!(running.load(Ordering::Relaxed), 0, "no tool is left");
        let outcome = prompt.outcome().await;
        assert_eq!(outcome.outcome, Outcome::Aborted);
        check_promises(&events, &outcome);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(provider.asked(), asked, "no timer was left that asks again");
        let history = agent.look(|session| session.transcript().clone()).unwrap();
        let calls = history.messages().iter().filter(|message| matches!(message, Message::Tool(_)));
        assert_eq!(calls.count(), outcome.tool_calls.len(), "each call has its result");
    }
}

/// A tool that runs until it is cancelled.
struct Wait(ToolSpec, Arc<AtomicUsize>);

impl Wait {
    fn new() -> (Self, Arc<AtomicUsize>) {
        let running = Arc::default();
        let spec = ToolSpec {
            name: "Wait".into(),
            description: "waits".into(),
            input_schema: serde_json::json!({"type": "object"}),
        };
        (Self(spec, Arc::clone(&running)), running)
    }
}

#[async_trait]
impl Tool for Wait {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Execute
    }

    async fn run(&self, _input: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        context.cancel.cancelled().await;
        // What it takes to end its children.
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.1.fetch_sub(1, Ordering::Relaxed);
        Err(ToolError::new(ErrorCode::ToolFailed, "cancelled"))
    }
}

/// Nobody who answers.
struct Silent;

#[async_trait]
impl Approver for Silent {
    async fn answer(&self, _request: &ApprovalRequest) -> Answer {
        std::future::pending().await
    }
}
