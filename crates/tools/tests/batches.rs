//! Batches of calls that run at the same time on shared files: the result is that
//! of some order of the calls, one after the other, and no change is lost.
#![cfg(feature = "builtin")]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};
use turnbuckle_errors::ErrorCode;
use turnbuckle_tools::{
    Tool, ToolContext, ToolError, ToolOutput,
    builtin::{self, Workspace},
};

const BATCHES: u32 = 200;
const FILES: [&str; 2] = ["one", "two"];

#[derive(Debug, Clone)]
enum Step {
    Read(&'static str),
    Edit(&'static str, &'static str, &'static str),
    Write(&'static str, String),
}

fn steps() -> impl Strategy<Value = Step> {
    let file = prop::sample::select(FILES.to_vec());
    let word = || prop::sample::select(vec!["red", "green", "blue"]);
    let put = prop::sample::select(vec!["red", "green", "blue", "", "red\nred", "green\nblue"]);
    let content = prop::collection::vec(word(), 1..4);
    prop_oneof![
        1 => file.clone().prop_map(Step::Read),
        4 => (file.clone(), word(), put)
            .prop_filter("a change", |(_, old, new)| old != new)
            .prop_map(|(file, old, new)| Step::Edit(file, old, new)),
        1 => (file, content).prop_map(|(file, words)| Step::Write(file, words.join("\n") + "\n")),
    ]
}

impl Step {
    fn call(&self) -> (&'static str, Value) {
        match self {
            Self::Read(path) => ("Read", json!({ "path": path })),
            Self::Edit(path, old, new) => {
                ("Edit", json!({"path": path, "old_string": old, "new_string": new}))
            }
            Self::Write(path, content) => ("Write", json!({"path": path, "content": content})),
        }
    }

    /// Does the step on a state, if what came out of it is what comes out there.
    fn fits(&self, state: &mut State, result: &Result<ToolOutput, ToolError>) -> bool {
        match self {
            Self::Read(path) => {
                result.as_ref().is_ok_and(|output| output.text == shown(path, &state[path]))
            }
            Self::Write(path, content) => {
                state.insert(path, content.clone());
                result.is_ok()
            }
            Self::Edit(path, old, new) => {
                let text = state[path].clone();
                let code = match text.matches(old).count() {
                    0 => ErrorCode::EditNoMatch,
                    1 => {
                        state.insert(path, text.replacen(old, new, 1));
                        return result.is_ok();
                    }
                    _ => ErrorCode::EditAmbiguous,
                };
                result.as_ref().is_err_and(|error| error.code == code)
            }
        }
    }
}

type State = BTreeMap<&'static str, String>;

/// What Read gives for a content.
fn shown(path: &str, content: &str) -> String {
    if content.is_empty() {
        return format!("(`{path}` is empty)\n");
    }
    let lines = content.lines().zip(1..);
    let mut text: String = lines.map(|(line, number)| format!("{number:>6}\t{line}\n")).collect();
    if !content.ends_with('\n') {
        text.push_str("(no line break at the end of the file)\n");
    }
    text
}

/// Whether the steps, in some order, give these results and end in this state.
fn some_order(
    steps: &[(Step, Result<ToolOutput, ToolError>)],
    done: u32,
    state: &State,
    end: &State,
) -> bool {
    if done.count_ones() as usize == steps.len() {
        return state == end;
    }
    steps.iter().enumerate().filter(|(at, _)| done & (1 << at) == 0).any(|(at, (step, result))| {
        let mut state = state.clone();
        step.fits(&mut state, result) && some_order(steps, done | (1 << at), &state, end)
    })
}

async fn run(tools: &[Arc<dyn Tool>], step: &Step) -> Result<ToolOutput, ToolError> {
    let (name, input) = step.call();
    let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
    tool.run(input, &ToolContext::default()).await
}

fn on_disk(root: &Path) -> State {
    FILES.map(|file| (file, fs::read_to_string(root.join(file)).unwrap())).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_batches_equal_some_serial_order_and_lose_nothing() {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let batches = prop::collection::vec(steps(), 2..8);
    let (mut changed, mut refused) = (0, 0);
    for _ in 0..BATCHES {
        let folder = tempfile::tempdir().unwrap();
        for file in FILES {
            fs::write(folder.path().join(file), "red\ngreen\nblue\n").unwrap();
        }
        // In one of them a change is not a rename.
        fs::hard_link(folder.path().join("two"), folder.path().join("also two")).unwrap();
        let tools = Arc::new(builtin::tools(&Workspace::open(folder.path()).unwrap()));
        for file in FILES {
            run(&tools, &Step::Read(file)).await.unwrap();
        }
        let start = on_disk(folder.path());
        let batch = batches.new_tree(&mut runner).unwrap().current();
        let calls: Vec<_> = batch
            .iter()
            .cloned()
            .map(|step| {
                let tools = Arc::clone(&tools);
                tokio::spawn(async move { run(&tools, &step).await })
            })
            .collect();
        let mut steps = Vec::new();
        for (step, call) in batch.into_iter().zip(calls) {
            steps.push((step, call.await.unwrap()));
        }
        let mutations = steps.iter().filter(|(step, _)| !matches!(step, Step::Read(_)));
        let (ok, failed): (Vec<_>, Vec<_>) = mutations.partition(|(_, result)| result.is_ok());
        changed += ok.len();
        refused += failed.len();
        let end = on_disk(folder.path());
        assert!(some_order(&steps, 0, &start, &end), "{start:#?}\n{steps:#?}\n{end:#?}");
        assert_eq!(fs::read_to_string(folder.path().join("also two")).unwrap(), end["two"]);
    }
    assert!(changed > 200 && refused > 50, "{changed} changed, {refused} refused");
    println!("counted: {BATCHES} concurrent batches");
}
