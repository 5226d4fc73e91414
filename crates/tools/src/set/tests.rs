use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    Admission, Answer, ApprovalRequest, Call, Effect, PERMISSION_TIMEOUT, ToolContext, ToolOutcome,
    ToolOutput, Touched,
};

/// A tool that does what a test needs and counts its runs.
struct Probe {
    spec: ToolSpec,
    effect: Effect,
    runs: AtomicUsize,
    result: fn() -> Result<ToolOutput, ToolError>,
}

impl Probe {
    fn new(effect: Effect, result: fn() -> Result<ToolOutput, ToolError>) -> Arc<Self> {
        let input_schema = json!({"type": "object"});
        let (name, description) = ("Probe".to_owned(), "probes".to_owned());
        let spec = ToolSpec { name, description, input_schema };
        Arc::new(Self { spec, effect, runs: AtomicUsize::new(0), result })
    }

    fn shaped(effect: Effect, input_schema: Value) -> Arc<Self> {
        let spec = ToolSpec { input_schema, ..Self::new(effect, fine).spec.clone() };
        Arc::new(Self { spec, effect, runs: AtomicUsize::new(0), result: fine })
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
    Call { id: "1".to_owned(), name: name.to_owned(), input: Ok(json!({})) }
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
    let broken = Call { input: Err("{\"a".to_owned()), ..call("Probe") };
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

#[tokio::test]
async fn input_is_held_to_the_schema_before_the_tool_or_anybody_else_sees_it() {
    let probe = Probe::shaped(
        Effect::Execute,
        json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
    );
    let tools = set(&probe, PermissionMode::Auto, None);
    let with = |input: Value| Call { input: Ok(input), ..call("Probe") };
    let outcome = tools.call(&with(json!({"n": "x"})), &ToolContext::default()).await;
    assert_eq!(
        outcome.text(),
        r#"Probe: at `/n`: it is not of type "integer"; the arguments are `n` (integer, optional)"#
    );
    assert!(!outcome.started);
    assert_eq!(probe.runs(), 0);
    assert!(tools.call(&with(json!({"n": 1})), &ToolContext::default()).await.ok());
}

#[tokio::test]
async fn arguments_above_the_limit_are_refused_with_the_numbers() {
    let probe = Probe::new(Effect::Read, fine);
    let tool: Arc<dyn Tool> = Arc::<Probe>::clone(&probe);
    let limits = CallLimits { argument_bytes: 20, ..CallLimits::default() };
    let tools = ToolSet::new().with(tool).with_limits(limits).begin_prompt();
    let with = |text: &str| Call { input: Ok(json!({"text": text})), ..call("Probe") };
    let most = with("123456789");
    assert!(tools.call(&most, &ToolContext::default()).await.ok(), "20 bytes are taken");
    let outcome = tools.call(&with("1234567890"), &ToolContext::default()).await;
    assert_eq!(
        outcome.text(),
        "Probe: the arguments have 21 bytes, and at most 20 are taken; do it in smaller steps"
    );
    assert_eq!((outcome.started, probe.runs()), (false, 1));
}

/// A tool that panics wherever it is told to.
struct Bomb {
    spec: ToolSpec,
    at: &'static str,
}

impl Bomb {
    fn tools(at: &'static str, mode: PermissionMode, says: Answer) -> PromptTools {
        let spec = ToolSpec {
            name: "Bomb".to_owned(),
            description: "d".to_owned(),
            input_schema: json!({"type": "object"}),
        };
        let approver = Arc::new(Says(Some(says)));
        ToolSet::new()
            .with(Arc::new(Self { spec, at }))
            .with_permissions(mode, approver)
            .begin_prompt()
    }

    fn blow(&self, at: &str) {
        assert_ne!(self.at, at, "a fault in the tool");
    }
}

#[async_trait]
impl Tool for Bomb {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        self.blow("effect");
        Effect::Execute
    }

    fn describe(&self, _input: &Value) -> String {
        self.blow("describe");
        "goes off".to_owned()
    }

    async fn run(&self, _input: Value, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.blow("run");
        fine()
    }
}

#[tokio::test]
async fn a_tool_that_panics_anywhere_is_a_failed_tool() {
    for (at, started) in [("effect", false), ("describe", false), ("run", true)] {
        let tools = Bomb::tools(at, PermissionMode::Ask, Answer::Allow);
        assert_eq!(tools.effect(&call("Bomb")), Effect::Execute, "{at}");
        let outcome = tools.call(&call("Bomb"), &ToolContext::default()).await;
        assert_eq!(outcome.text(), "the tool `Bomb` broke down (a fault in it)", "{at}");
        assert_eq!(outcome.result.unwrap_err().code, ErrorCode::ToolFailed, "{at}");
        assert_eq!(outcome.started, started, "{at}");
    }
    let tools = Bomb::tools("never", PermissionMode::Ask, Answer::Allow);
    assert!(tools.call(&call("Bomb"), &ToolContext::default()).await.ok());
}

#[tokio::test]
async fn an_approver_or_a_guard_that_panics_lets_nothing_run() {
    struct Faulty;
    #[async_trait]
    impl Approver for Faulty {
        async fn answer(&self, _request: &ApprovalRequest) -> Answer {
            panic!("a fault in the host")
        }
    }
    impl Guard for Faulty {
        fn before(&mut self, _call: &Call, _effect: Effect) -> Admission {
            panic!("a fault in the guard")
        }
        fn after(&mut self, _call: &Call, _outcome: &ToolOutcome) -> crate::Aftermath {
            panic!("a fault in the guard")
        }
    }
    let probe = Probe::new(Effect::Execute, fine);
    let tool: Arc<dyn Tool> = Arc::<Probe>::clone(&probe);
    let asking = ToolSet::new().with(tool).with_permissions(PermissionMode::Ask, Arc::new(Faulty));
    let denied = (Some(ErrorCode::ToolDenied), false);
    assert_eq!(outcome(&asking.begin_prompt(), &call("Probe")).await, denied);
    let guarded = set(&probe, PermissionMode::Auto, None).with_guard(Box::new(Faulty));
    assert_eq!(outcome(&guarded, &call("Probe")).await, denied);
    assert_eq!(probe.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_a_cancellation_is_dropped() {
    struct Deaf(ToolSpec);
    #[async_trait]
    impl Tool for Deaf {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }
        fn effect(&self, _input: &Value) -> Effect {
            Effect::Read
        }
        async fn run(
            &self,
            _input: Value,
            _context: &ToolContext,
        ) -> Result<ToolOutput, ToolError> {
            std::future::pending().await
        }
    }
    let spec = Probe::new(Effect::Read, fine).spec.clone();
    let tools = ToolSet::new().with(Arc::new(Deaf(spec))).begin_prompt();
    let cancel = CancellationToken::new();
    let context = ToolContext::new(cancel.clone());
    let later = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    };
    let (began, call) = (Instant::now(), call("Probe"));
    let (outcome, ()) = tokio::join!(tools.call(&call, &context), later);
    assert_eq!(began.elapsed(), Duration::from_secs(1) + STOP_GRACE);
    assert_eq!(outcome.result.unwrap_err().code, ErrorCode::TurnAborted);
    assert!(outcome.started);
}

#[tokio::test]
async fn the_fifth_identical_call_ends_the_prompt_unless_the_host_says_otherwise() {
    for (limit, ends) in [(5, Some(5)), (2, Some(2)), (0, None)] {
        let probe = Probe::new(Effect::Read, fine);
        let tool: Arc<dyn Tool> = Arc::<Probe>::clone(&probe);
        let limits = CallLimits { identical_calls: limit, ..CallLimits::default() };
        let tools = ToolSet::new().with(tool).with_limits(limits).begin_prompt();
        let mut ended = None;
        for at in 1..=9 {
            outcome(&tools, &call("Probe")).await;
            ended = ended.or(tools.ended().map(|failure| (at, failure.code())));
        }
        assert_eq!(ended, ends.map(|at| (at, ErrorCode::TurnLimitReached)), "limit {limit}");
    }
}
