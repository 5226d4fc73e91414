//! Conversations that outgrow their model.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::{ErrorCode, Failure, Usage};
use turnbuckle_providers::{
    ChatRequest, FinishReason, Message,
    testing::{ScriptedAttempt, ScriptedProvider},
};
use turnbuckle_runtime::{
    Builder, Event, MemoryStore, Outcome, PlannedRetry, PromptOutcome, Record, RetryVerdict,
    Runtime, Session, TurnObserver,
    compaction::{CompactionTask, Compactor, TailCompactor},
};
use turnbuckle_tools::{PermissionMode, ToolSet};

use crate::{
    scene::{Plain, Still, check_promises, kind, refused},
    tools::tools,
};

/// A session with a scripted model.
struct Talk {
    session: Session,
    provider: ScriptedProvider,
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
    async fn say(&mut self, text: &str) -> (Vec<Event>, PromptOutcome) {
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
fn opening() -> [ScriptedAttempt; 3] {
    [long("first").repeat(2), long("second"), long("third")].map(|text| answer(&text))
}

async fn opened(more: impl IntoIterator<Item = ScriptedAttempt>) -> Talk {
    opened_with(more, |builder| builder).await
}

async fn opened_with(
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

#[tokio::test(start_paused = true)]
async fn a_cancellation_ends_the_request_for_a_summary_at_once() {
    let hanging = ScriptedAttempt::default().text("So far").hang();
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

/// Each call with its result next to it.
fn assert_paired(request: &ChatRequest) {
    let mut due: Vec<String> = Vec::new();
    for message in &request.messages {
        match message {
            Message::Tool(result) => assert_eq!(due.remove(0), result.call_id),
            other => {
                assert!(due.is_empty(), "{due:?}");
                if let Message::Assistant(said) = other {
                    due.extend(said.tool_calls.iter().map(|call| call.id.clone()));
                }
            }
        }
    }
    assert!(due.is_empty(), "{due:?}");
}

fn looks(words: usize) -> ScriptedAttempt {
    let what = "deep ".repeat(words);
    let arguments = format!("{{\"what\":\"{what}\"}}");
    let asked = ScriptedAttempt::default();
    asked
        .tool_call("call_1", "Look", &arguments)
        .tool_call("call_2", "Look", "{}")
        .finish(FinishReason::ToolCalls)
}

fn tool_set() -> ToolSet {
    tools().0.with_permissions(PermissionMode::Auto, Arc::new(turnbuckle_tools::DenyAll))
}

#[tokio::test(start_paused = true)]
async fn in_the_middle_of_its_tools_a_prompt_goes_on_from_a_summary() {
    let script =
        [looks(200), looks(200), looks(200), too_large(), answer("LOOKED"), answer("done")];
    let mut talk = talk_with(script, |builder| builder.tools(tool_set()));
    let (_, outcome) = talk.say("look three times").await;
    assert_eq!(outcome.text, "done");
    let requests = talk.provider.requests();
    let last = requests.last().unwrap();
    assert_paired(last);
    assert_eq!(shape(last)[..2], ["digest: LOOKED", "user: look three t"]);
    assert!(last.messages.len() < requests[3].messages.len());
    assert_eq!(last.tools.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_makes_the_same_request() {
    let folder = tempfile::tempdir().unwrap();
    let script = [
        looks(200),
        looks(200),
        looks(200),
        too_large(),
        answer("LOOKED"),
        looks(1),
        answer("done"),
        answer("in the same process"),
    ];
    let provider = ScriptedProvider::new(script);
    let runtime = builder(&provider).tools(tool_set()).build();
    let mut session = runtime.session_in(folder.path()).unwrap();
    let id = session.id().to_owned();
    assert!(session.prompt("look").outcome().await.ok);
    let live = session.transcript().clone();
    drop(session);

    let again = ScriptedProvider::new([looks(1), answer("after a restart")]);
    let runtime = builder(&again).tools(tool_set()).build();
    let mut session = runtime.resume(folder.path(), &id).unwrap();
    assert_eq!(*session.transcript(), live);
    assert!(session.prompt("and now?").outcome().await.ok);
    let request = again.requests().remove(0);
    assert_eq!(shape(&request)[0], "digest: LOOKED");
    assert_eq!(
        request.messages.iter().take(live.messages().len()).cloned().collect::<Vec<_>>(),
        live.messages().to_vec()
    );
    // Calls that the summary has replaced keep their ids to themselves.
    let last = again.requests().pop().unwrap();
    assert_paired(&last);
    let ids: Vec<_> = last
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool(result) => Some(result.call_id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ids[ids.len() - 2..], ["call_1_5", "call_2_5"]);
}
