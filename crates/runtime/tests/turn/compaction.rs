//! Conversations that outgrow their model.

use std::{sync::Arc, time::Duration};

use crate::scene::{Plain, Still, check_promises, kind, refused};
use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_providers::{
    ChatRequest, FinishReason, Message, Usage,
    testing::{ScriptedAttempt, ScriptedProvider},
};
use turnbuckle_runtime::{
    Builder, Event, MemoryStore, Outcome, PlannedRetry, PromptOutcome, Record, RetryVerdict,
    Runtime, Session, TurnObserver,
    compaction::{CompactionTask, Compactor, TailCompactor},
};

mod boundary;
mod tools;

/// A session with a scripted model.
pub(crate) struct Talk {
    session: Session,
    pub(crate) provider: ScriptedProvider,
    store: MemoryStore,
}

fn talk(script: impl IntoIterator<Item = ScriptedAttempt>) -> Talk {
    talk_with(script, |builder| builder)
}

fn talk_with(
    script: impl IntoIterator<Item = ScriptedAttempt>,
    configure: impl FnOnce(Builder) -> Builder,
) -> Talk {
    let provider = ScriptedProvider::new(script);
    let store = MemoryStore::new();
    let session = configure(builder(&provider)).build().session(store.clone());
    Talk { session, provider, store }
}

fn builder(provider: &ScriptedProvider) -> Builder {
    Runtime::builder(Arc::new(provider.clone()), "model-x")
        .world(Arc::new(Still::default()))
        .redactor(Arc::new(Plain))
}

impl Talk {
    pub(crate) async fn say(&mut self, text: &str) -> (Vec<Event>, PromptOutcome) {
        let mut prompt = self.session.prompt(text);
        let mut events = Vec::new();
        while let Some(event) = prompt.next().await {
            events.push(event);
        }
        let outcome = prompt.ended().unwrap().clone();
        check_promises(&events, &outcome);
        (events, outcome)
    }

    /// Says something, and expects it to be answered.
    async fn chat(&mut self, text: &str) {
        assert!(self.say(text).await.1.ok);
    }

    fn history(&self) -> Vec<Message> {
        self.session.transcript().messages().to_vec()
    }
}

fn answer(text: &str) -> ScriptedAttempt {
    ScriptedAttempt::answer([text])
}

fn long(word: &str) -> String {
    format!("{word} ").repeat(400)
}

fn too_large() -> ScriptedAttempt {
    refused(ErrorCode::ContextTooLarge)
}

/// Three prompts with long answers, so that there is something to leave out.
pub(crate) fn opening() -> [ScriptedAttempt; 3] {
    [long("first").repeat(2), long("second"), long("third")].map(|text| answer(&text))
}

async fn opened(more: impl IntoIterator<Item = ScriptedAttempt>) -> Talk {
    opened_with(more, |builder| builder).await
}

pub(crate) async fn opened_with(
    more: impl IntoIterator<Item = ScriptedAttempt>,
    configure: impl FnOnce(Builder) -> Builder,
) -> Talk {
    let mut talk = talk_with(opening().into_iter().chain(more), configure);
    for n in 1..=3 {
        talk.chat(&format!("question {n}")).await;
    }
    talk
}

fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(kind).filter(|kind| *kind != "message_update").collect()
}

/// What each message of a request begins with.
fn shape(request: &ChatRequest) -> Vec<String> {
    let begins = |text: &str| text.chars().take(12).collect::<String>();
    let told = |message: &Message| match message {
        Message::User(said) if said.text.starts_with("[What was said before") => {
            format!("digest: {}", said.text.split("\n\n").nth(1).unwrap_or_default())
        }
        Message::User(said) => format!("user: {}", begins(&said.text)),
        Message::Assistant(said) => format!("model: {}", begins(&said.text)),
        Message::Tool(result) => format!("tool: {}", begins(&result.text)),
        _ => "other".to_owned(),
    };
    request.messages.iter().map(told).collect()
}

fn event<'a>(events: &'a [Event], wanted: &str) -> &'a Event {
    events.iter().find(|event| kind(event) == wanted).unwrap()
}

fn json(event: &Event) -> Value {
    serde_json::to_value(event).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_refused_context_is_summarised_once_and_asked_again() {
    let mut talk = opened([too_large(), answer("THE SUMMARY"), answer("done")]).await;
    let (events, outcome) = talk.say("question 4").await;
    assert_eq!(outcome.text, "done");
    assert_eq!(
        kinds(&events),
        [
            "agent_start",
            "turn_start",
            "compaction_start",
            "compaction_end",
            "retry_scheduled",
            "retry_started",
            "message_start",
            "message_end",
            "turn_end",
            "agent_end",
        ]
    );
    let requests = talk.provider.requests();
    let [.., refused, summary, again] = &requests[..] else { panic!("three requests") };
    assert_eq!(refused.messages.len(), 7);
    assert_eq!(
        shape(again),
        [
            "digest: THE SUMMARY",
            "user: question 1",
            "user: question 2",
            "user: question 3",
            "model: third third ",
            "user: question 4"
        ]
    );
    // The summary is asked for in one text, without tools and system prompt.
    assert_eq!((summary.messages.len(), summary.tools.len()), (1, 0));
    let Message::User(quoted) = &summary.messages[0] else { panic!("a user message") };
    assert!(quoted.text.contains("question 2") && quoted.text.contains("second second"));
    // As much of it as fits; the oldest goes first.
    assert!(quoted.text.contains("first first") && quoted.text.contains("1 earlier messages"));
    assert!(!quoted.text.contains("third third") && !quoted.text.contains("question 4"));

    let (start, end) =
        (json(event(&events, "compaction_start")), json(event(&events, "compaction_end")));
    assert_eq!((&start["reason"], &start["messages"]), (&"overflow".into(), &7.into()));
    assert_eq!((&end["ok"], &end["messages"]), (&true.into(), &6.into()));
    assert!(end["tokens"].as_u64() < start["tokens"].as_u64());
    assert_eq!(start["compactionId"], end["compactionId"]);
    let scheduled = json(event(&events, "retry_scheduled"));
    assert_eq!((&scheduled["budget"], &scheduled["delayMs"]), (&"overflow".into(), &0.into()));
    // The journal keeps what was left out.
    let journal = serde_json::to_string(&talk.store.records()).unwrap();
    assert!(journal.contains("first first") && journal.contains("THE SUMMARY"));
}

#[tokio::test(start_paused = true)]
async fn a_second_refusal_is_final() {
    let mut talk = opened([too_large(), answer("short"), too_large(), answer("never")]).await;
    let (_, outcome) = talk.say("question 4").await;
    let failure = outcome.failure.unwrap();
    assert_eq!((failure.code(), failure.cause_code()), (ErrorCode::ContextTooLarge, None));
    assert_eq!(outcome.attempts, 3 - 1);
    assert_eq!(talk.provider.requests().len(), 3 + 3);
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_leaves_the_history_as_it_was() {
    let failed =
        |attempt: ScriptedAttempt| attempt.fail(Failure::new(ErrorCode::StreamFailed, "cut"));
    for (summary, cause) in [
        (answer(" \n"), "came back blank"),
        (ScriptedAttempt::default().reasoning("hm").finish(FinishReason::Stop), "came back blank"),
        (ScriptedAttempt::default().text("So").finish(FinishReason::Length), "output limit"),
        (ScriptedAttempt::default().text("So").finish(FinishReason::ContentFilter), "filter"),
        (refused(ErrorCode::ProviderRateLimited), "request for a summary failed"),
        (failed(ScriptedAttempt::default().text("So far")), "request for a summary failed"),
        (too_large(), "request for a summary failed"),
        (answer(&long("no shorter").repeat(9)), "no shorter"),
    ] {
        let mut talk = opened([too_large(), summary, answer("never")]).await;
        let before = talk.history();
        let (events, outcome) = talk.say("question 4").await;
        let failure = outcome.failure.unwrap();
        assert_eq!(failure.code(), ErrorCode::ContextTooLarge);
        assert_eq!(failure.cause_code(), Some(ErrorCode::ContextCompactionFailed));
        let told = serde_json::to_string(&failure).unwrap();
        assert!(told.contains(cause), "{told} lacks {cause}");
        // One attempt for the summary, and none after it.
        assert_eq!(talk.provider.requests().len(), 3 + 2, "{cause}");
        assert!(events.iter().all(|event| !kind(event).starts_with("retry")));
        assert_eq!(json(event(&events, "compaction_end"))["ok"], false);
        assert_eq!(talk.history()[..6], before);
        assert!(!talk.store.records().iter().any(|it| matches!(it, Record::Compaction { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_can_be_left_out_nothing_is_tried() {
    let mut talk = talk([too_large(), answer("never")]);
    let (events, outcome) = talk.say("a single question").await;
    assert_eq!(kinds(&events), ["agent_start", "turn_start", "turn_end", "error", "agent_end"]);
    assert_eq!(outcome.failure.unwrap().cause_code(), Some(ErrorCode::ContextCompactionFailed));
    let mut talk = opened_with([too_large()], Builder::without_compaction).await;
    let (events, _) = talk.say("question 4").await;
    assert_eq!(kinds(&events), ["agent_start", "turn_start", "turn_end", "error", "agent_end"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_ends_the_request_for_a_summary_at_once() {
    let usage = Usage { input_tokens: Some(70), ..Usage::default() };
    let hanging = ScriptedAttempt::default().usage(usage).text("So far").hang();
    let mut talk = opened([too_large(), hanging, answer("never")]).await;
    let before = talk.history();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(70)).await;
        stop.cancel();
    });
    let began = tokio::time::Instant::now();
    let mut prompt = talk.session.prompt_until("question 4", cancel);
    let mut events = Vec::new();
    while let Some(event) = prompt.next().await {
        events.push(event);
    }
    let outcome = prompt.ended().unwrap().clone();
    drop(prompt);
    check_promises(&events, &outcome);
    assert_eq!(outcome.outcome, Outcome::Aborted);
    assert_eq!(began.elapsed(), Duration::from_millis(70));
    // What it had cost by then is accounted for.
    assert_eq!(outcome.usage.input_tokens, Some(70));
    assert_eq!(json(event(&events, "compaction_end"))["failure"]["code"], "TURN_ABORTED");
    assert_eq!(talk.provider.requests().len(), 3 + 2);
    assert_eq!(talk.history()[..6], before);
}

/// Fails or misbehaves in one way.
enum Odd {
    Panic,
    Other,
    Blank,
}

#[async_trait]
impl Compactor for Odd {
    async fn digest(&self, _task: CompactionTask<'_>) -> Result<String, Failure> {
        match self {
            Self::Panic => panic!("a fault in the host"),
            Self::Other => Err(Failure::new(ErrorCode::InvalidConfig, "no prompt file")),
            Self::Blank => Ok("\t\n".to_owned()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_compactor_of_the_host_may_fail_in_any_way() {
    for (odd, told) in
        [(Odd::Panic, "panicked"), (Odd::Other, "no prompt file"), (Odd::Blank, "blank")]
    {
        let script = [too_large(), answer("never")];
        let mut talk = opened_with(script, |builder| builder.compactor(Arc::new(odd))).await;
        let failure = talk.say("question 4").await.1.failure.unwrap();
        assert_eq!(failure.code(), ErrorCode::ContextTooLarge);
        assert!(serde_json::to_string(&failure).unwrap().contains(told), "{failure:?}");
        assert_eq!(talk.provider.requests().len(), 3 + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_model_the_older_part_is_left_out_with_a_mark() {
    let script = [too_large(), answer("done")];
    let mut talk = opened_with(script, |builder| builder.compactor(Arc::new(TailCompactor))).await;
    assert_eq!(talk.say("question 4").await.1.text, "done");
    let request = talk.provider.requests().pop().unwrap();
    assert!(shape(&request)[0].starts_with("digest: (4 older messages are left out"));
    assert_eq!(talk.provider.requests().len(), 3 + 2);
}

/// Vetoes every retry.
struct Veto;

impl TurnObserver for Veto {
    fn on_retry(&self, _retry: &PlannedRetry) -> RetryVerdict {
        RetryVerdict::Veto
    }
}

#[tokio::test(start_paused = true)]
async fn a_veto_comes_before_the_summary_is_paid_for() {
    let script = [too_large(), answer("never")];
    let mut talk = opened_with(script, |builder| builder.observer(Arc::new(Veto))).await;
    assert_eq!(talk.say("question 4").await.1.failure.unwrap().code(), ErrorCode::ContextTooLarge);
    assert_eq!(talk.provider.requests().len(), 3 + 1);
}
