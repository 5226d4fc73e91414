//! A stage for one prompt: scripted provider, fixed world, and a transcript of
//! everything the host sees.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use serde_json::Value;
use tokio::time::Instant;
use turnbuckle_errors::{ErrorCode, Failure, Redact};
use turnbuckle_providers::{
    Message,
    testing::{ScriptedAttempt, ScriptedProvider},
};
use turnbuckle_runtime::{
    Builder, Event, EventKind, MemoryStore, PromptOutcome, Record, Runtime, World,
};

/// A world that stands still: fixed date, counted ids, no jitter.
#[derive(Default)]
pub(crate) struct Still(AtomicU32);

impl World for Still {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn new_id(&self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn jitter(&self) -> f64 {
        0.0
    }
}

/// Shows everything: the scenes hold no secret.
pub(crate) struct Plain;

impl Redact for Plain {
    fn redact<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        std::borrow::Cow::Borrowed(text)
    }
}

pub(crate) struct Played {
    pub(crate) events: Vec<Event>,
    pub(crate) outcome: PromptOutcome,
    pub(crate) provider: ScriptedProvider,
    pub(crate) records: Vec<Record>,
    /// Virtual time from the first event to the last, in milliseconds.
    pub(crate) took_ms: u128,
    /// What the next request would hold.
    pub(crate) history: Vec<Message>,
}

/// Plays a script to its end with the default policy.
pub(crate) async fn play(script: impl IntoIterator<Item = ScriptedAttempt>) -> Played {
    play_with(script, |builder| builder).await
}

pub(crate) async fn play_with(
    script: impl IntoIterator<Item = ScriptedAttempt>,
    configure: impl FnOnce(Builder) -> Builder,
) -> Played {
    let provider = ScriptedProvider::new(script);
    let store = MemoryStore::new();
    let builder = Runtime::builder(Arc::new(provider.clone()), "model-x")
        .world(Arc::new(Still::default()))
        .redactor(Arc::new(Plain));
    let mut session = configure(builder).build().session(store.clone());
    let began = Instant::now();
    let mut prompt = session.prompt("go");
    let mut events = Vec::new();
    while let Some(event) = prompt.next().await {
        events.push(event);
    }
    let outcome = prompt.ended().expect("the prompt has ended").clone();
    drop(prompt);
    let took_ms = began.elapsed().as_millis();
    let history = session.transcript().messages().to_vec();
    check_promises(&events, &outcome);
    Played { events, outcome, provider, records: store.records(), took_ms, history }
}

/// What holds for every run, whatever happened.
pub(crate) fn check_promises(events: &[Event], outcome: &PromptOutcome) {
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=u64::try_from(events.len()).unwrap()).collect::<Vec<_>>());
    let count = |wanted: &str| events.iter().filter(|event| kind(event) == wanted).count();
    assert_eq!(count("agent_end"), 1);
    assert_eq!(events.last().map(kind), Some("agent_end"));
    assert_eq!(count("turn_start"), count("turn_end"));
    assert_eq!(count("message_start"), count("message_end"));
    assert_eq!(count("tool_execution_start"), count("tool_execution_end"));
    assert_eq!(count("compaction_start"), count("compaction_end"));
    assert!(count("error") <= 1);
    if outcome.failure.is_none() {
        assert!(outcome.ok);
        assert_eq!(count("error"), 0);
    }
}

pub(crate) fn kind(event: &Event) -> &'static str {
    match &event.kind {
        EventKind::AgentStart => "agent_start",
        EventKind::TurnStart => "turn_start",
        EventKind::MessageStart { .. } => "message_start",
        EventKind::MessageUpdate { .. } => "message_update",
        EventKind::MessageRestart { .. } => "message_restart",
        EventKind::RetryScheduled { .. } => "retry_scheduled",
        EventKind::RetryStarted { .. } => "retry_started",
        EventKind::MessageEnd { .. } => "message_end",
        EventKind::CompactionStart { .. } => "compaction_start",
        EventKind::CompactionEnd { .. } => "compaction_end",
        EventKind::ToolExecutionStart { .. } => "tool_execution_start",
        EventKind::ToolExecutionUpdate { .. } => "tool_execution_update",
        EventKind::ToolExecutionEnd { .. } => "tool_execution_end",
        EventKind::UserMessage { .. } => "user_message",
        EventKind::TurnEnd => "turn_end",
        EventKind::Error { .. } => "error",
        EventKind::AgentEnd { .. } => "agent_end",
        _ => "other",
    }
}

/// The whole run on a page: events without what is the same on each line, then
/// the result and the history.
pub(crate) fn page(played: &Played) -> String {
    let mut page = String::new();
    for event in &played.events {
        let mut line = serde_json::to_value(event).unwrap();
        let fields = line.as_object_mut().unwrap();
        for same in ["sessionId", "ts", "seq"] {
            fields.remove(same).unwrap();
        }
        shorten(&mut line);
        writeln!(page, "{line}").unwrap();
    }
    let outcome = &played.outcome;
    writeln!(
        page,
        "---\noutcome {:?}, attempts {}, requests {}, took {} ms",
        outcome.outcome,
        outcome.attempts,
        played.provider.requests().len(),
        played.took_ms
    )
    .unwrap();
    for message in &played.history {
        writeln!(page, "{message:?}").unwrap();
    }
    page
}

/// Keeps of a failure what a reader of the page needs.
fn shorten(value: &mut Value) {
    if let Some(failure) = value.get_mut("failure") {
        let code = failure["code"].as_str().unwrap_or_default().to_owned();
        *failure = Value::String(code);
    }
}

pub(crate) fn cut() -> Failure {
    Failure::new(ErrorCode::StreamFailed, "connection reset by peer")
}

pub(crate) fn refused(code: ErrorCode) -> ScriptedAttempt {
    ScriptedAttempt::refused(Failure::new(code, "refused"))
}
