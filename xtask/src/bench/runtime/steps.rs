//! A long loop of tool calls: time for each step, and memory.
//!
//! A step is timed from the first event of its answer to its end: decoding is
//! next to nothing here, and the building and the freeing of the request, whose
//! size is that of the history, is not in it. It holds the journal's records, the
//! tool, the events and the commit.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Result, ensure};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle_errors::Failure;
use turnbuckle_providers::{
    AttemptContext, ChatRequest, EventStream, FinishReason, Provider,
    testing::{ScriptedAttempt, ScriptedProvider},
};
use turnbuckle_runtime::{
    Event, EventKind, Record, Runtime, SessionStore, StoreError, TurnObserver,
};
use turnbuckle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput, ToolSet, ToolSpec};

use super::{Check, Program, check, process, told};
use crate::{
    bench::client::{memory, thread_time},
    terminal::say,
};

/// How many steps the loop has, and how many are compared at either end.
const STEPS: u32 = 1_000;
const ENDS: usize = 100;

/// What a tool gives back: as much as a page of a file.
const RESULT: usize = 4 * 1024;

/// The most that a late step may cost, of an early one.
const MOST: f64 = 1.3;

/// The most that memory may grow, of what the transcript grows: itself, and once
/// more as the request that is under way.
const GROWTH: f64 = 2.5;

/// What a process is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[arg(long)]
    steps: u32,
}

/// What a process saw of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Took {
    /// CPU time of the first steps, and of the last, in nanoseconds.
    first_ns: u64,
    last_ns: u64,
    /// How far memory grew from the end of the first ones to the end, in KiB;
    /// `None` where the system does not say.
    grown_kib: Option<u64>,
    /// How far the text in the transcript grew meanwhile, in KiB.
    text_kib: u64,
}

pub(super) fn measure(program: &Program, runs: u32, quick: bool) -> Result<Vec<Check>> {
    let steps = if quick { STEPS / 4 } else { STEPS };
    let (mut ratios, mut growths) = (Vec::new(), Vec::new());
    let mut firsts = u64::MAX;
    for _ in 0..runs {
        let took: Took = told(process(program, &["steps", "--steps", &steps.to_string()]))?;
        ratios.push(share(took.last_ns, took.first_ns));
        growths.extend(took.grown_kib.map(|grown| share(grown, took.text_kib)));
        firsts = firsts.min(took.first_ns);
    }
    // Noise can only add, and adds to either end alike: the middle run is the fair one.
    let (ratio, growth) = (middle(&mut ratios), middle(&mut growths));
    say(format_args!(
        "{steps} steps  {:>7} ns CPU for each of the first {ENDS}; the last cost {ratio:.2} times as much",
        firsts / ENDS as u64
    ));
    let mut checks =
        vec![check(&format!("{steps} steps: last {ENDS} / first {ENDS}"), ratio, 2, MOST)];
    if !growths.is_empty() {
        let what = format!("{steps} steps: memory / transcript");
        checks.push(check(&what, growth, 2, GROWTH));
    }
    Ok(checks)
}

#[expect(clippy::cast_precision_loss, reason = "the counts are far below 2^52")]
fn share(of: u64, whole: u64) -> f64 {
    of as f64 / whole.max(1) as f64
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

pub(super) async fn run(args: &Args) -> Result<String> {
    let watch = Arc::new(Watch::default());
    let provider = Looping { steps: args.steps as usize, asked: AtomicUsize::new(0) };
    let runtime = Runtime::builder(Arc::new(provider), "a-model")
        .tools(ToolSet::new().with(Arc::new(Page::new())))
        .observer(Arc::<Watch>::clone(&watch))
        .max_steps(args.steps + 1)
        .build();
    let mut session = runtime.session(Nowhere);
    let outcome = session.prompt("Read everything").outcome().await;
    ensure!(outcome.ok, "the loop ended with {:?}", outcome.failure);
    ensure!(outcome.tool_calls.len() == args.steps as usize, "steps are missing");
    let seen = watch.seen();
    ensure!(seen.steps.len() > 2 * ENDS, "too few steps to compare");
    // The last step asks for no tool.
    let of = |steps: &[u64]| steps.iter().sum::<u64>();
    let whole = seen.steps.get(..args.steps as usize).unwrap_or_default();
    let (first, last) = (whole.get(..ENDS), whole.get(whole.len() - ENDS..));
    let grown_kib =
        seen.early_kib.zip(memory("VmRSS:")).map(|(then, now)| now.saturating_sub(then));
    Ok(serde_json::to_string(&Took {
        first_ns: of(first.unwrap_or_default()),
        last_ns: of(last.unwrap_or_default()),
        grown_kib,
        text_kib: ((whole.len() - ENDS) * RESULT / 1024) as u64,
    })?)
}

/// Times the steps, from inside the turn.
#[derive(Default)]
struct Watch(Mutex<Seen>);

#[derive(Default, Clone)]
struct Seen {
    began: u64,
    steps: Vec<u64>,
    early_kib: Option<u64>,
}

impl Watch {
    fn seen(&self) -> Seen {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl TurnObserver for Watch {
    fn on_event(&self, event: &Event) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event.kind {
            EventKind::MessageStart { .. } => seen.began = thread_time(),
            EventKind::TurnEnd => {
                let took = thread_time().saturating_sub(seen.began);
                seen.steps.push(took);
                if seen.steps.len() == ENDS {
                    seen.early_kib = memory("VmRSS:");
                }
            }
            _ => {}
        }
    }
}

/// Calls the tool so often, each time with other arguments, then answers.
struct Looping {
    steps: usize,
    asked: AtomicUsize,
}

#[async_trait]
impl Provider for Looping {
    fn id(&self) -> &str {
        "looping"
    }

    async fn open(
        &self,
        _request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        let at = self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = if at < self.steps {
            let (id, page) = (format!("call-{at}"), format!(r#"{{"page":{at}}}"#));
            ScriptedAttempt::default().tool_call(&id, "Page", &page).finish(FinishReason::ToolCalls)
        } else {
            ScriptedAttempt::answer(["done"])
        };
        // A script of one answer, so that nothing is kept of the requests.
        ScriptedProvider::new([answer]).open(&ChatRequest::new("a-model"), attempt).await
    }
}

/// A tool that gives a page of text.
struct Page(ToolSpec);

impl Page {
    fn new() -> Self {
        Self(ToolSpec {
            name: "Page".to_owned(),
            description: "Reads a page".to_owned(),
            input_schema: json!({
                "type": "object", "required": ["page"], "additionalProperties": false,
                "properties": {"page": {"type": "integer", "minimum": 0}},
            }),
        })
    }
}

#[async_trait]
impl Tool for Page {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Read
    }

    async fn run(&self, input: Value, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let number = input.get("page").and_then(Value::as_u64).unwrap_or_default();
        Ok(ToolOutput::text(format!("page {number}\n{}", "x".repeat(RESULT))))
    }
}

/// A journal that keeps nothing: memory is the runtime's alone.
struct Nowhere;

#[async_trait]
impl SessionStore for Nowhere {
    async fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        // Written, as a real one would, and dropped.
        let _ = serde_json::to_vec(record);
        Ok(())
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
