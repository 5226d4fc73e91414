use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{Answer, ApprovalRequest, PERMISSION_TIMEOUT, ToolOutput, Touched};

/// A tool that does what a test needs and counts its runs.
struct Probe {
    spec: ToolSpec,
    effect: Effect,
    runs: AtomicUsize,
    result: fn() -> Result<ToolOutput, ToolError>,
}

impl Probe {
    fn new(effect: Effect, result: fn() -> Result<ToolOutput, ToolError>) -> Arc<Self> {
        let spec = ToolSpec {
            name: "Probe".to_owned(),
            description: "probes".to_owned(),
            input_schema: json!({"type": "object"}),
        };
        Arc::new(Self { spec, effect, runs: AtomicUsize::new(0), result })
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Tool for Probe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        self.effect
    }

    async fn run(&self, _input: Value, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        (self.result)()
    }
}

fn fine() -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::text("fine"))
}

/// An approver that answers at once, or never.
struct Says(Option<Answer>);

#[async_trait]
impl Approver for Says {
    async fn answer(&self, _request: &ApprovalRequest) -> Answer {
        match self.0 {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

fn set(probe: &Arc<Probe>, mode: PermissionMode, says: Option<Answer>) -> PromptTools {
    let tool: Arc<dyn Tool> = Arc::<Probe>::clone(probe);
    ToolSet::new().with(tool).with_permissions(mode, Arc::new(Says(says))).begin_prompt()
}

fn call(name: &str) -> Call {
    Call { id: "1".to_owned(), name: name.to_owned(), input: Some(json!({})) }
}

/// Runs one call; what came of it.
async fn outcome(tools: &PromptTools, call: &Call) -> (Option<ErrorCode>, bool) {
    let outcome = tools.call(call, &ToolContext::default()).await;
    (outcome.result.err().map(|error| error.code), outcome.started)
}

#[tokio::test]
async fn an_unknown_tool_is_an_outcome_that_names_the_known_ones() {
    let probe = Probe::new(Effect::Read, fine);
    let tools = set(&probe, PermissionMode::Auto, None);
    let outcome = tools.call(&call("read_file"), &ToolContext::default()).await;
    assert!(!outcome.started);
    assert!(!outcome.ok());
    assert_eq!(outcome.text(), "there is no tool named `read_file`; the tools are: Probe");
    assert_eq!(outcome.result.unwrap_err().code, ErrorCode::ToolNotFound);
    assert_eq!(tools.effect(&call("read_file")), Effect::Read);
}

#[tokio::test]
async fn broken_arguments_never_reach_the_tool() {
    let probe = Probe::new(Effect::Read, fine);
    let tools = set(&probe, PermissionMode::Auto, None);
    let broken = Call { input: None, ..call("Probe") };
    assert_eq!(outcome(&tools, &broken).await, (Some(ErrorCode::InvalidArgument), false));
    assert_eq!(probe.runs(), 0);
}

#[tokio::test]
async fn a_panic_of_a_tool_is_contained() {
    let probe = Probe::new(Effect::Read, || panic!("a fault in the tool"));
    let tools = set(&probe, PermissionMode::Auto, None);
    assert_eq!(outcome(&tools, &call("Probe")).await, (Some(ErrorCode::ToolFailed), true));
    assert_eq!(outcome(&tools, &call("Probe")).await, (Some(ErrorCode::ToolFailed), true));
    assert_eq!(probe.runs(), 2, "the set goes on after it");
}

#[tokio::test]
async fn each_mode_runs_asks_or_denies_by_the_effect() {
    use Effect::{Execute, Mutate, Read};
    use PermissionMode::{AcceptEdits, Ask, Auto, ReadOnly};
    let denied = (Some(ErrorCode::ToolDenied), false);
    let ran = (None, true);
    for (mode, effect, if_allowed, if_denied) in [
        (Ask, Read, ran, ran),
        (Ask, Mutate, ran, denied),
        (Ask, Execute, ran, denied),
        (AcceptEdits, Read, ran, ran),
        (AcceptEdits, Mutate, ran, ran),
        (AcceptEdits, Execute, ran, denied),
        (Auto, Read, ran, ran),
        (Auto, Mutate, ran, ran),
        (Auto, Execute, ran, ran),
        (ReadOnly, Read, ran, ran),
        (ReadOnly, Mutate, denied, denied),
        (ReadOnly, Execute, denied, denied),
    ] {
        for (answer, expected) in [(Answer::Allow, if_allowed), (Answer::Deny, if_denied)] {
            let probe = Probe::new(effect, fine);
            let tools = set(&probe, mode, Some(answer));
            let got = outcome(&tools, &call("Probe")).await;
            assert_eq!(got, expected, "{mode:?} {effect:?} {answer:?}");
            assert_eq!(probe.runs(), usize::from(expected.1), "{mode:?} {effect:?} {answer:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_answer_in_time_is_a_denial() {
    let probe = Probe::new(Effect::Execute, fine);
    let tools = set(&probe, PermissionMode::Ask, None);
    let asked = Instant::now();
    assert_eq!(outcome(&tools, &call("Probe")).await, (Some(ErrorCode::PermissionTimeout), false));
    assert_eq!(asked.elapsed().as_secs(), PERMISSION_TIMEOUT.as_secs());
    assert_eq!(probe.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn cancelling_wins_over_a_question_and_over_its_answer() {
    for says in [None, Some(Answer::Allow)] {
        let probe = Probe::new(Effect::Execute, fine);
        let tools = set(&probe, PermissionMode::Ask, says);
        let cancel = CancellationToken::new();
        let context = ToolContext::new(cancel.clone());
        if says.is_some() {
            cancel.cancel();
        }
        let later = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        };
        let call = call("Probe");
        let (outcome, ()) = tokio::join!(tools.call(&call, &context), later);
        assert_eq!(outcome.text(), "not run: the prompt was cancelled");
        assert_eq!(probe.runs(), 0);
    }
}

#[tokio::test]
async fn the_second_failure_of_one_file_ends_the_prompt_and_the_next_prompt_counts_anew() {
    let probe = Probe::new(Effect::Mutate, || {
        let touched = Touched::Edit("a.rs".to_owned());
        Err(ToolError::new(ErrorCode::EditNoMatch, "not there").with_touched(touched))
    });
    let tool: Arc<dyn Tool> = Arc::<Probe>::clone(&probe);
    let set = ToolSet::new().with(tool).with_permissions(PermissionMode::Auto, Arc::new(DenyAll));
    for _ in 0..2 {
        let tools = set.begin_prompt();
        outcome(&tools, &call("Probe")).await;
        assert_eq!(tools.ended(), None);
        outcome(&tools, &call("Probe")).await;
        let failure = tools.ended().unwrap();
        assert_eq!(failure.code(), ErrorCode::MutationRetryBudgetExhausted);
        outcome(&tools, &call("Probe")).await;
        assert_eq!(tools.ended(), Some(failure), "the first ending stays");
    }
}

#[tokio::test]
async fn a_guard_may_deny_a_call_before_it_is_asked_about() {
    struct Nothing;
    impl Guard for Nothing {
        fn before(&mut self, call: &Call, effect: Effect) -> Admission {
            let text = format!("no {} here ({effect:?})", call.name);
            Admission::Deny(ToolError::new(ErrorCode::ToolDenied, text))
        }
    }
    let probe = Probe::new(Effect::Execute, fine);
    let tools = set(&probe, PermissionMode::Ask, None).with_guard(Box::new(Nothing));
    let outcome = tools.call(&call("Probe"), &ToolContext::default()).await;
    assert_eq!((outcome.text(), outcome.started), ("no Probe here (Execute)", false));
    assert_eq!(probe.runs(), 0);
}

#[test]
fn specs_keep_their_order_and_a_name_is_held_once() {
    let named = |name: &str, description: &str| -> Arc<dyn Tool> {
        let probe = Probe::new(Effect::Read, fine);
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            ..probe.spec.clone()
        };
        Arc::new(Probe { spec, effect: Effect::Read, runs: AtomicUsize::new(0), result: fine })
    };
    let set = ToolSet::new().with(named("b", "old")).with(named("a", "a")).with(named("b", "new"));
    let specs: Vec<(String, String)> =
        set.specs().into_iter().map(|spec| (spec.name, spec.description)).collect();
    let expected = [("b", "new"), ("a", "a")].map(|(name, text)| (name.into(), text.into()));
    assert_eq!(specs, expected);
    assert_eq!(format!("{set:?}"), "ToolSet { tools: [\"b\", \"a\"], mode: ReadOnly, .. }");
}
