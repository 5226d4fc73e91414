use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use turnbuckle_errors::ErrorCode;
use turnbuckle_providers::{FinishReason, Message, testing::ScriptedAttempt};
use turnbuckle_runtime::{Outcome, Record};
use turnbuckle_tools::{
    Effect, PermissionMode, Tool, ToolContext, ToolError, ToolOutput, ToolSet, ToolSpec, Touched,
};

use crate::scene::{Plain, Played, cut, kind, page, play_with};

/// A tool that notes its calls, and fails or breaks down when told to.
struct Probe {
    spec: ToolSpec,
    effect: Effect,
    calls: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Tool for Probe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        self.effect
    }

    async fn run(&self, input: Value, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let what = input["what"].as_str().unwrap_or("nothing").to_owned();
        self.calls.lock().unwrap().push(format!("{} {what}", self.spec.name));
        // Later calls end first, so that the order of results is no accident.
        let wait = if what.starts_with("slow") { 100 } else { 10 };
        tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
        match what.as_str() {
            "fail" => Err(ToolError::new(ErrorCode::EditNoMatch, "`old` is not there")
                .with_touched(Touched::Edit("notes.txt".into()))),
            "panic" => panic!("a fault in the tool"),
            _ => Ok(ToolOutput::text(format!("did {what}"))),
        }
    }
}

pub(crate) type Calls = Arc<Mutex<Vec<String>>>;

pub(crate) fn tools() -> (ToolSet, Calls) {
    let calls = Calls::default();
    let probe = |name: &str, effect| {
        Arc::new(Probe {
            spec: ToolSpec {
                name: name.into(),
                description: "d".into(),
                input_schema: json!({"type": "object"}),
            },
            effect,
            calls: Arc::clone(&calls),
        })
    };
    let set = ToolSet::new()
        .with(probe("Look", Effect::Read))
        .with(probe("Change", Effect::Mutate))
        .with_redactor(Arc::new(Plain))
        .with_permissions(PermissionMode::Auto, Arc::new(turnbuckle_tools::DenyAll));
    (set, calls)
}

async fn play(script: impl IntoIterator<Item = ScriptedAttempt>) -> (Played, Vec<String>) {
    let (set, calls) = tools();
    let played = play_with(script, |builder| builder.tools(set)).await;
    let calls = calls.lock().unwrap().clone();
    (played, calls)
}

pub(crate) fn asks(calls: &[(&str, &str, &str)]) -> ScriptedAttempt {
    let script = ScriptedAttempt::default();
    let all = calls
        .iter()
        .fold(script, |script, (id, name, arguments)| script.tool_call(id, name, arguments));
    all.finish(FinishReason::ToolCalls)
}

fn results(played: &Played) -> Vec<(String, bool, String)> {
    let result = |message: &Message| match message {
        Message::Tool(result) => Some((result.call_id.clone(), result.ok, result.text.clone())),
        _ => None,
    };
    played.history.iter().filter_map(result).collect()
}

#[tokio::test(start_paused = true)]
async fn a_tool_runs_and_the_model_is_asked_again() {
    let (played, calls) =
        play([asks(&[("a", "Look", r#"{"what":"it"}"#)]), ScriptedAttempt::answer(["done"])]).await;
    assert_eq!(calls, ["Look it"]);
    insta::assert_snapshot!(page(&played));
}

#[tokio::test(start_paused = true)]
async fn reads_run_beside_each_other_and_results_go_back_in_call_order() {
    let batch = [
        ("a", "Look", r#"{"what":"slow one"}"#),
        ("b", "Change", r#"{"what":"slow first"}"#),
        ("c", "Look", r#"{"what":"two"}"#),
        ("d", "Change", r#"{"what":"second"}"#),
    ];
    let (played, calls) = play([asks(&batch), ScriptedAttempt::answer(["done"])]).await;
    assert_eq!(calls, ["Look slow one", "Look two", "Change slow first", "Change second"]);
    let ids: Vec<_> = results(&played).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    assert_eq!(played.outcome.timing.tools.as_millis(), 110);
}

#[tokio::test(start_paused = true)]
async fn every_call_has_one_result_whatever_it_was() {
    let batch = [
        ("a", "Nothing", "{}"),
        ("b", "Look", r#"{"what":"#),
        ("c", "Look", r#"{"what":"panic"}"#),
        ("d", "Look", ""),
    ];
    let (played, _) = play([asks(&batch), ScriptedAttempt::answer(["done"])]).await;
    assert!(played.outcome.ok);
    let told = results(&played);
    assert_eq!(told.iter().map(|(_, ok, _)| *ok).collect::<Vec<_>>(), [false, false, false, true]);
    assert!(told[0].2.contains("no tool named `Nothing`"), "{told:?}");
    assert!(told[1].2.contains("not whole JSON"), "{told:?}");
    assert!(told[2].2.contains("broke down"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn tools_run_only_from_a_completed_message_and_once() {
    let cut_call =
        ScriptedAttempt::default().tool_call("a", "Change", r#"{"what":"half"}"#).fail(cut());
    let whole = asks(&[("b", "Change", r#"{"what":"whole"}"#)]);
    let cut_after = ScriptedAttempt::cut(["wri"], cut());
    let (played, calls) =
        play([cut_call, whole, cut_after, ScriptedAttempt::answer(["written"])]).await;
    assert!(played.outcome.ok);
    assert_eq!(calls, ["Change whole"]);
    assert_eq!(played.outcome.attempts, 4);
}

#[tokio::test(start_paused = true)]
async fn a_step_after_tools_has_a_budget_of_its_own() {
    let cut_once = || ScriptedAttempt::cut(["x"], cut());
    let look = || asks(&[("a", "Look", "{}")]);
    let (played, _) =
        play([cut_once(), look(), cut_once(), ScriptedAttempt::answer(["done"])]).await;
    assert!(played.outcome.ok);
    assert_eq!(played.outcome.retries.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_second_failed_change_ends_the_prompt_with_a_valid_history() {
    let fail = |id| asks(&[(id, "Change", r#"{"what":"fail"}"#)]);
    let (played, calls) = play([fail("a"), asks(&[("r", "Look", "{}")]), fail("b")]).await;
    assert_eq!(calls.len(), 3);
    assert_eq!(played.outcome.outcome, Outcome::Failed);
    let failure = played.outcome.failure.as_ref().unwrap();
    assert_eq!(failure.code(), ErrorCode::MutationRetryBudgetExhausted);
    assert_eq!(results(&played).len(), 3);
    insta::assert_json_snapshot!(failure);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_has_a_step_limit() {
    let (set, _) = tools();
    let look = |n: u32| asks(&[(&format!("c{n}"), "Look", "{}")]);
    let played = play_with((0..9).map(look), |builder| builder.tools(set).max_steps(3)).await;
    assert_eq!(played.outcome.attempts, 3);
    assert_eq!(
        played.outcome.failure.map(|failure| failure.code()),
        Some(ErrorCode::TurnLimitReached)
    );
}

#[tokio::test(start_paused = true)]
async fn what_may_change_something_is_noted_before_it_runs() {
    let batch = [("a", "Look", "{}"), ("b", "Change", "{}")];
    let (played, _) = play([asks(&batch), ScriptedAttempt::answer(["done"])]).await;
    let names: Vec<_> = played
        .records
        .iter()
        .map(|record| match record {
            Record::Session { .. } => "session",
            Record::User { .. } => "user",
            Record::Assistant { .. } => "assistant",
            Record::ToolStart { call_id, .. } if call_id == "b" => "start b",
            Record::ToolResult { call_id, .. } => {
                if call_id == "a" {
                    "result a"
                } else {
                    "result b"
                }
            }
            Record::StepEnd => "step end",
            Record::PromptEnd { .. } => "prompt end",
            _ => "other",
        })
        .collect();
    assert_eq!(
        names,
        [
            "session",
            "user",
            "assistant",
            "start b",
            "result a",
            "result b",
            "step end",
            "assistant",
            "step end",
            "prompt end",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_permitted_is_told_to_the_model() {
    let (set, calls) = tools();
    let set = set.with_permissions(PermissionMode::ReadOnly, Arc::new(turnbuckle_tools::DenyAll));
    let script = [asks(&[("a", "Change", "{}")]), ScriptedAttempt::answer(["pity"])];
    let played = play_with(script, |builder| builder.tools(set)).await;
    assert!(calls.lock().unwrap().is_empty());
    assert!(results(&played)[0].2.contains("read-only"));
    assert!(played.events.iter().any(|event| kind(event) == "tool_execution_end"));
    // It never began, and the journal does not say that it did.
    assert!(!played.records.iter().any(|record| matches!(record, Record::ToolStart { .. })));
}

/// Notes when it was asked, and allows.
struct Witness(Calls);

#[async_trait]
impl turnbuckle_tools::Approver for Witness {
    async fn answer(
        &self,
        request: &turnbuckle_tools::ApprovalRequest,
    ) -> turnbuckle_tools::Answer {
        self.0.lock().unwrap().push(format!("asked {}", request.call_id));
        turnbuckle_tools::Answer::Allow
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_begins_after_it_was_allowed_and_noted() {
    let (set, calls) = tools();
    let set = set.with_permissions(PermissionMode::Ask, Arc::new(Witness(Arc::clone(&calls))));
    let batch = [("a", "Change", r#"{"what":"one"}"#), ("b", "Change", r#"{"what":"two"}"#)];
    let script = [asks(&batch), ScriptedAttempt::answer(["done"])];
    let played = play_with(script, |builder| builder.tools(set)).await;
    assert_eq!(*calls.lock().unwrap(), ["asked a", "asked b", "Change one", "Change two"]);
    let starts = played.records.iter().filter(|record| matches!(record, Record::ToolStart { .. }));
    assert_eq!(starts.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn every_call_of_a_session_has_an_id_of_its_own() {
    let look = || asks(&[("call_1", "Look", "{}")]);
    let (played, _) = play([look(), look(), look(), ScriptedAttempt::answer(["done"])]).await;
    let ids: Vec<_> = results(&played).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, ["call_1", "call_1_2", "call_1_3"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_pauses_is_asked_to_go_on() {
    let pause = || ScriptedAttempt::default().text("searching").finish(FinishReason::Pause);
    let (played, _) = play([pause(), ScriptedAttempt::answer(["found"])]).await;
    assert!(played.outcome.ok);
    assert_eq!(played.outcome.text, "found");
    // What it said so far is in the second request, as the last thing said.
    let requests = played.provider.requests();
    assert!(
        matches!(requests[1].messages.last(), Some(Message::Assistant(said)) if said.text == "searching")
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_that_repeats_itself_is_stopped_with_a_valid_history() {
    let look = |n: u32| asks(&[(&format!("c{n}"), "Look", r#"{"what":"it"}"#)]);
    let (played, calls) = play((0..9).map(look)).await;
    assert_eq!(calls.len(), 5);
    let failure = played.outcome.failure.as_ref().unwrap();
    assert_eq!(failure.code(), ErrorCode::TurnLimitReached);
    assert_eq!(results(&played).len(), 5, "the fifth has its result");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_breaks_its_schema_is_told_to_the_model() {
    struct Strict(ToolSpec);
    #[async_trait]
    impl Tool for Strict {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn effect(&self, _input: &Value) -> Effect {
            Effect::Read
        }

        async fn run(&self, _: Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::text("ran"))
        }
    }
    let spec = ToolSpec {
        name: "Strict".into(),
        description: "d".into(),
        input_schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
    };
    let set = ToolSet::new().with(Arc::new(Strict(spec)));
    let script = [asks(&[("a", "Strict", r#"{"n":"x"}"#)]), ScriptedAttempt::answer(["sorry"])];
    let played = play_with(script, |builder| builder.tools(set)).await;
    let told = results(&played);
    assert!(!told[0].1 && told[0].2.contains("at `/n`: it is not of type"), "{told:?}");
    assert!(played.outcome.ok);
}
