//! A thousand commands with timeouts, background children and cancellations
//! leave no process and no open descriptor. In a program of its own, so that
//! nobody else opens any.

#![cfg(all(target_os = "linux", feature = "builtin"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::ErrorCode;
use turnbuckle_tools::{
    Tool, ToolContext,
    builtin::{self, Workspace},
};

const CALLS: usize = 1000;
/// How many run at once.
const AT_ONCE: usize = 64;
/// What the children sleep for: nothing else on the machine has it as an argument.
const FOREVER: &str = "99991777";

/// What a call does, and the code it must end with.
fn script(number: usize) -> (Value, Option<ErrorCode>) {
    let limited = |command: String| json!({"command": command, "timeout_ms": 40});
    let sleep = format!("sleep {FOREVER}");
    match number {
        number if number % 50 == 7 => {
            // Only KILL ends it, two seconds later.
            let stubborn = format!("(trap '' TERM; {sleep}) & {sleep}");
            (limited(stubborn), Some(ErrorCode::ToolTimeout))
        }
        number => match number % 6 {
            0 => (json!({"command": format!("{sleep} & echo hi")}), None),
            1 => {
                let command = format!("setsid {sleep} > /dev/null 2>&1 & exit 3");
                (json!({"command": command}), Some(ErrorCode::ToolFailed))
            }
            2 => (limited(sleep), Some(ErrorCode::ToolTimeout)),
            3 => (limited(format!("setsid {sleep} & {sleep}")), Some(ErrorCode::ToolTimeout)),
            4 => (limited(format!("{sleep} | cat")), Some(ErrorCode::ToolTimeout)),
            _ => (json!({"command": sleep}), Some(ErrorCode::TurnAborted)),
        },
    }
}

async fn call(bash: &Arc<dyn Tool>, number: usize) {
    let (input, expected) = script(number);
    let cancel = CancellationToken::new();
    let context = ToolContext::new(cancel.clone());
    let run = bash.run(input, &context);
    let result = if expected == Some(ErrorCode::TurnAborted) {
        let later = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            cancel.cancel();
        };
        tokio::join!(run, later).0
    } else {
        run.await
    };
    let code = result.as_ref().err().map(|error| error.code);
    assert_eq!(code, expected, "call {number}: {result:?}");
}

/// The processes that still sleep, and the children of this process, the ended
/// ones that nobody waited for among them.
fn left() -> Vec<String> {
    let own = format!(" {} ", std::process::id());
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        let command = fs::read_to_string(path.join("cmdline")).ok()?.replace('\0', " ");
        // The name may hold anything; the parent is the second word behind it.
        let is_child = stat.rsplit_once(") ")?.1.get(1..)?.starts_with(&own);
        (is_child || command.contains(FOREVER)).then(|| format!("{stat} {command}"))
    });
    processes.collect()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_commands_leave_no_process_and_no_descriptor() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(folder.path()).unwrap();
    let tools = builtin::tools(&workspace);
    let bash = tools.iter().find(|tool| tool.spec().name == "Bash").unwrap();
    // What the first child of a process opens stays open for all of them.
    call(bash, 0).await;
    let before = descriptors();
    stream::iter(0..CALLS).for_each_concurrent(AT_ONCE, |number| call(bash, number)).await;
    assert_eq!(left(), [""; 0]);
    assert_eq!(descriptors(), before);
    println!("counted: {CALLS} commands that left nothing behind");
}
