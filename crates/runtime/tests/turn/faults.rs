//! Code of the host that panics: every seam, one clean story each time.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use serde_json::Value;
use turnbuckle_errors::{ErrorCode, Failure, Redact};
use turnbuckle_providers::{
    AttemptContext, ChatRequest, EventStream, PartialMessage, PollEvents, Provider, StreamEvent,
    testing::{ScriptedAttempt, ScriptedProvider},
};
use turnbuckle_runtime::{
    Event, MemoryStore, Outcome, Record, Runtime, SessionStore, StoreError, TurnObserver, World,
};

use crate::{
    scene::{check_promises, kind, play_with},
    tools::{asks, tools},
};

struct Faulty;

impl TurnObserver for Faulty {
    fn on_event(&self, _event: &Event) {
        panic!("a fault in the observer")
    }
}

impl World for Faulty {
    fn now(&self) -> jiff::Timestamp {
        panic!("a fault in the clock")
    }

    fn new_id(&self) -> String {
        panic!("a fault in the ids")
    }

    fn jitter(&self) -> f64 {
        panic!("a fault in the dice")
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_and_a_world_that_panic_change_nothing() {
    let busy = Failure::new(ErrorCode::ProviderOverloaded, "busy");
    let script = [ScriptedAttempt::refused(busy), ScriptedAttempt::answer(["fine"])];
    let faulty =
        play_with(script, |builder| builder.observer(Arc::new(Faulty)).world(Arc::new(Faulty)));
    let played = faulty.await;
    assert_eq!((played.outcome.text.as_str(), played.outcome.attempts), ("fine", 2));
    assert!(!played.outcome.retries[0].retry_id.is_empty());
}

/// Panics when it is asked, or when its stream is read for the third time.
struct FaultyProvider {
    when_asked: bool,
}

struct FaultyStream(EventStream, u32);

#[async_trait]
impl Provider for FaultyProvider {
    fn id(&self) -> &str {
        "faulty"
    }

    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        assert!(!self.when_asked, "a fault in the provider");
        let script = ScriptedProvider::new([ScriptedAttempt::answer(["half", "whole"])]);
        Ok(EventStream::new(FaultyStream(script.open(request, attempt).await?, 0)))
    }
}

impl PollEvents for FaultyStream {
    fn poll_event(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<StreamEvent, Failure>>> {
        self.1 += 1;
        assert!(self.1 < 3, "a fault in the stream");
        Future::poll(std::pin::pin!(self.0.next()), cx)
    }

    fn partial(&self) -> PartialMessage {
        self.0.partial()
    }

    fn timing(&self) -> turnbuckle_diagnostics::AttemptTiming {
        self.0.timing()
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_is_one_failure_and_every_start_has_its_end() {
    for when_asked in [true, false] {
        let runtime = Runtime::builder(Arc::new(FaultyProvider { when_asked }), "m").build();
        let mut session = runtime.session(MemoryStore::new());
        let mut prompt = session.prompt("go");
        let mut events = Vec::new();
        while let Some(event) = prompt.next().await {
            events.push(event);
        }
        let outcome = prompt.outcome().await;
        check_promises(&events, &outcome);
        assert_eq!((outcome.outcome, outcome.attempts), (Outcome::Failed, 1));
        assert_eq!(outcome.failure.unwrap().code(), ErrorCode::Internal);
        let started = events.iter().any(|event| kind(event) == "message_start");
        assert_eq!(started, !when_asked);
    }
}

/// Answers three times, refuses the fourth request as too large, and then has streams
/// of which nothing works.
struct BrokenLater(AtomicUsize);

struct BrokenStream;

#[async_trait]
impl Provider for BrokenLater {
    fn id(&self) -> &str {
        "broken-later"
    }

    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        let script = match self.0.fetch_add(1, Ordering::Relaxed) {
            0..=2 => ScriptedAttempt::answer(["word "; 400]),
            3 => ScriptedAttempt::refused(Failure::new(ErrorCode::ContextTooLarge, "too large")),
            _ => return Ok(EventStream::new(BrokenStream)),
        };
        ScriptedProvider::new([script]).open(request, attempt).await
    }
}

impl PollEvents for BrokenStream {
    fn poll_event(
        &mut self,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<StreamEvent, Failure>>> {
        panic!("a fault in the stream")
    }

    fn partial(&self) -> PartialMessage {
        panic!("another fault in the stream")
    }

    fn timing(&self) -> turnbuckle_diagnostics::AttemptTiming {
        panic!("one more fault in the stream")
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_panics_in_everything_takes_neither_a_summary_nor_the_process() {
    let provider = Arc::new(BrokenLater(AtomicUsize::new(0)));
    let runtime = Runtime::builder(provider, "m").build();
    let mut session = runtime.session(MemoryStore::new());
    for _ in 0..3 {
        assert!(session.prompt("go").outcome().await.ok);
    }
    let failure = session.prompt("go").outcome().await.failure.unwrap();
    assert_eq!(failure.code(), ErrorCode::ContextTooLarge);
    assert_eq!(failure.cause_code(), Some(ErrorCode::ContextCompactionFailed));
    let failure = session.prompt("go").outcome().await.failure.unwrap();
    assert_eq!(failure.code(), ErrorCode::Internal);
}

impl Redact for Faulty {
    fn redact<'a>(&self, _text: &'a str) -> Cow<'a, str> {
        panic!("a fault in the redactor")
    }
}

#[tokio::test(start_paused = true)]
async fn a_redactor_that_panics_shows_nothing_and_ends_nothing() {
    let script = [asks(&[("a", "Nowhere", "{}")]), ScriptedAttempt::answer(["done"])];
    let (set, _) = tools();
    let played = play_with(script, |builder| builder.tools(set).redactor(Arc::new(Faulty))).await;
    assert!(played.outcome.ok);
    let end = played.events.iter().find(|event| kind(event) == "tool_execution_end").unwrap();
    let end = serde_json::to_value(end).unwrap();
    assert_eq!(end["failure"]["message"], "[withheld]");
}

/// Gives no answer from so many records on, or when it is synced.
struct SilentStore(usize);

#[async_trait]
impl SessionStore for SilentStore {
    async fn append(&mut self, _record: &Record) -> Result<(), StoreError> {
        match self.0.checked_sub(1) {
            Some(room) => self.0 = room,
            None => std::future::pending().await,
        }
        Ok(())
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_gives_no_answer_cannot_hold_up_a_cancelled_prompt() {
    for room in [0, 1, 2, 3, 9] {
        let provider = ScriptedProvider::new([ScriptedAttempt::answer(["done"])]);
        let runtime = Runtime::builder(Arc::new(provider), "m").build();
        let mut session = runtime.session(SilentStore(room));
        let mut prompt = session.prompt("go");
        let remote = prompt.remote();
        let mut events = Vec::new();
        let read = async {
            while let Some(event) = prompt.next().await {
                events.push(event);
            }
            prompt.outcome().await
        };
        let abort = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            remote.abort();
        };
        let began = tokio::time::Instant::now();
        let (outcome, ()) = tokio::join!(read, abort);
        check_promises(&events, &outcome);
        assert_eq!(outcome.failure.unwrap().code(), ErrorCode::Internal, "{room}");
        assert_eq!(began.elapsed(), Duration::from_secs(1) + turnbuckle_tools::STOP_GRACE);
        assert_eq!(session.prompt("more").outcome().await.attempts, 0, "it is closed");
    }
}

/// Panics or fails from so many records on, or when it is synced.
struct FaultyStore {
    room: usize,
    panics: bool,
}

impl FaultyStore {
    fn fault<T>(&self) -> Result<T, StoreError> {
        assert!(!self.panics, "a fault in the store");
        Err(StoreError::Io {
            action: "write",
            path: "journal".into(),
            source: std::io::ErrorKind::StorageFull.into(),
        })
    }
}

#[async_trait]
impl SessionStore for FaultyStore {
    async fn append(&mut self, _record: &Record) -> Result<(), StoreError> {
        match self.room.checked_sub(1) {
            Some(room) => {
                self.room = room;
                Ok(())
            }
            None => self.fault(),
        }
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        if self.room == 0 { self.fault() } else { Ok(()) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_fails_at_any_record_runs_no_change_and_leaves_no_start_without_end() {
    let mut changed_at = None;
    for (room, panics) in (0..12).flat_map(|room| [(room, false), (room, true)]) {
        let batch = [("a", "Look", r#"{"what":"slow"}"#), ("b", "Change", r#"{"what":"it"}"#)];
        let script = [asks(&batch), ScriptedAttempt::answer(["done"])];
        let (set, calls) = tools();
        let runtime =
            Runtime::builder(Arc::new(ScriptedProvider::new(script)), "m").tools(set).build();
        let mut session = runtime.session(FaultyStore { room, panics });
        let mut prompt = session.prompt("go");
        let mut events = Vec::new();
        while let Some(event) = prompt.next().await {
            events.push(event);
        }
        let outcome = prompt.outcome().await;
        check_promises(&events, &outcome);
        let changed = calls.lock().unwrap().iter().any(|call| call.starts_with("Change"));
        if changed {
            changed_at.get_or_insert(room);
        }
        // Session, user, assistant and the start of the change, which is synced.
        assert_eq!(changed, room > 4, "{room} {panics}");
        if room < 9 {
            assert_eq!(outcome.failure.unwrap().code(), ErrorCode::Internal, "{room}");
            assert_eq!(session.prompt("more").outcome().await.attempts, 0, "it is closed");
        }
    }
    assert_eq!(changed_at, Some(5));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_over_a_question_has_one_result_too() {
    struct Bomb(turnbuckle_tools::ToolSpec);
    #[async_trait]
    impl turnbuckle_tools::Tool for Bomb {
        fn spec(&self) -> &turnbuckle_tools::ToolSpec {
            &self.0
        }

        fn effect(&self, _input: &Value) -> turnbuckle_tools::Effect {
            panic!("a fault in the tool")
        }

        async fn run(
            &self,
            _input: Value,
            _context: &turnbuckle_tools::ToolContext,
        ) -> Result<turnbuckle_tools::ToolOutput, turnbuckle_tools::ToolError> {
            panic!("a fault in the tool")
        }
    }
    let (set, _) = tools();
    let spec = turnbuckle_tools::ToolSpec {
        name: "Bomb".into(),
        description: "d".into(),
        input_schema: serde_json::json!({"type": "object"}),
    };
    let set = set.with(Arc::new(Bomb(spec)));
    let batch = [("a", "Bomb", "{}"), ("b", "Look", "{}"), ("c", "Bomb", "{}")];
    let script = [asks(&batch), ScriptedAttempt::answer(["done"])];
    let played = play_with(script, |builder| builder.tools(set)).await;
    assert!(played.outcome.ok);
    let oks: Vec<_> = played.outcome.tool_calls.iter().map(|call| call.ok).collect();
    assert_eq!(oks, [false, true, false]);
}
