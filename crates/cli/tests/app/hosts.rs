//! What a host's cancellation does to real sockets and real processes.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    sync::{Arc, mpsc},
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};
use turnbuckle_faults::Ended;
use turnbuckle_providers::openai_chat::OpenAiChat;
use turnbuckle_runtime::{Agent, EventKind, MemoryStore, Outcome, Prompt, Runtime};
use turnbuckle_tools::{
    DenyAll, PermissionMode, ToolSet,
    builtin::{self, Workspace},
};

use crate::stage::Stage;

/// How long real sockets and processes may take on a busy machine.
const ALLOWED: Duration = Duration::from_secs(5);

fn runtime(base_url: &str, workspace: &Path) -> Runtime {
    let provider = OpenAiChat::builder(base_url).build().unwrap();
    let workspace = Workspace::open(workspace).unwrap();
    let tools = builtin::tools(&workspace)
        .into_iter()
        .fold(ToolSet::new(), ToolSet::with)
        .with_permissions(PermissionMode::Auto, Arc::new(DenyAll));
    Runtime::builder(Arc::new(provider), "a-model").tools(tools).build()
}

fn agent(base_url: &str, workspace: &Path) -> Agent {
    Agent::new(runtime(base_url, workspace).session(MemoryStore::new()))
}

/// Runs a host on an executor of its own; that of the stage is another one.
fn host(work: impl Future<Output = ()>) {
    let executor =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    executor.block_on(work);
}

async fn read_until(prompt: &mut Prompt<'_>, wanted: impl Fn(&EventKind) -> bool) {
    while !wanted(&prompt.next().await.expect("the prompt ended early").kind) {}
}

/// Waits until something is so, for at most as long as is allowed.
async fn soon(what: &str, so: impl Fn() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < ALLOWED, "{what}: not within {ALLOWED:?}");
        sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn the_server_sees_an_aborted_and_a_dropped_prompt_leave() {
    for dropped in [false, true] {
        let stage = Stage::of(&["stall"]);
        host(left_by(&stage, dropped));
    }
}

async fn left_by(stage: &Stage, dropped: bool) {
    let agent = agent(&stage.base_url(), &stage.workspace());
    let mut prompt = agent.prompt("go").unwrap();
    read_until(&mut prompt, |kind| matches!(kind, EventKind::MessageUpdate { .. })).await;
    if dropped {
        drop(prompt);
        timeout(ALLOWED, agent.idle()).await.unwrap();
    } else {
        agent.abort();
        let outcome = timeout(ALLOWED, prompt.outcome()).await.unwrap();
        assert_eq!(outcome.outcome, Outcome::Aborted);
    }
    // In its silence, or while the server still wrote what comes before that.
    let left = |ended| matches!(ended, Ended::LeftInSilence | Ended::ClientLeft);
    let left = || stage.asked().iter().all(|asked| left(asked.ended));
    soon("the server sees the close", left).await;
    assert_eq!(stage.asked().len(), 1, "nothing is asked again");
}

/// A shell and a child of it, neither of which ends on TERM.
const STUBBORN: &str = r#"
[[step]]
behaviour = "whole"
[[step.tool_call]]
name = "Bash"
arguments = { command = "trap '' TERM; sleep 300 & echo $! > child; echo $$ > shell; while :; do sleep 1; done", timeout_ms = 200000 }

[[step]]
behaviour = "whole"
"#;

/// Whether a process lives; one that is dead and not yet collected does not.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with('Z') && !state.starts_with('X'))
}

/// The processes of [`STUBBORN`], once they run.
async fn pids(workspace: &Path) -> Vec<String> {
    let read = |name: &str| std::fs::read_to_string(workspace.join(name)).unwrap_or_default();
    soon("the shell runs", || read("shell").ends_with('\n')).await;
    ["child", "shell"].map(|name| read(name).trim().to_owned()).to_vec()
}

#[test]
fn agent_end_waits_for_the_dead() {
    if Path::new("/proc/self/stat").exists() {
        let stage = Stage::new(STUBBORN);
        host(waits_for_the_dead(&stage));
    }
}

async fn waits_for_the_dead(stage: &Stage) {
    let agent = agent(&stage.base_url(), &stage.workspace());
    let prompt = agent.prompt("go").unwrap();
    let pids = pids(&stage.workspace()).await;
    assert!(pids.iter().all(|pid| lives(pid)), "{pids:?}");
    let aborted = Instant::now();
    agent.abort();
    let outcome = timeout(ALLOWED, prompt.outcome()).await.unwrap();
    // TERM first, and KILL only 2 s later.
    assert!(aborted.elapsed() >= Duration::from_secs(2), "{:?}", aborted.elapsed());
    assert!(!pids.iter().any(|pid| lives(pid)), "dead before agent_end");
    assert_eq!(outcome.outcome, Outcome::Aborted);
    assert_eq!(outcome.tool_calls.len(), 1, "the call has its result");
    assert_eq!(stage.asked().len(), 1);
}

#[test]
fn dropping_a_prompt_ends_its_processes() {
    if Path::new("/proc/self/stat").exists() {
        let (on_a_task, by_a_reader) = (Stage::new(STUBBORN), Stage::new(STUBBORN));
        host(dropped_on_a_task(&on_a_task));
        host(dropped_by_its_reader(&by_a_reader));
    }
}

async fn dropped_on_a_task(stage: &Stage) {
    let agent = agent(&stage.base_url(), &stage.workspace());
    let prompt = agent.prompt("go").unwrap();
    let running = pids(&stage.workspace()).await;
    drop(prompt);
    soon("they are dead", || !running.iter().any(|pid| lives(pid))).await;
}

async fn dropped_by_its_reader(stage: &Stage) {
    let workspace = stage.workspace();
    let mut session = runtime(&stage.base_url(), &workspace).session(MemoryStore::new());
    let running = tokio::select! {
        _ = session.prompt("go").outcome() => unreachable!("the command never ends"),
        running = pids(&workspace) => running,
    };
    soon("they are dead", || !running.iter().any(|pid| lives(pid))).await;
}

#[tokio::test]
async fn a_server_that_never_ends_its_answer_is_left_after_the_grace() {
    const ANSWER: &str = concat!(
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"done\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (told, left) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = [0; 16 * 1024];
        let _ = socket.read(&mut request).unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        write!(socket, "{head}{:x}\r\n{ANSWER}\r\n", ANSWER.len()).unwrap();
        // Comments for ever, which extend nothing; writing fails once it has left.
        while socket.write_all(b"3\r\n:\n\n\r\n").is_ok() {
            std::thread::park_timeout(Duration::from_millis(50));
        }
        told.send(()).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let agent = agent(&format!("http://{address}/v1"), folder.path());
    let began = Instant::now();
    let outcome = timeout(2 * ALLOWED, agent.prompt("go").unwrap().outcome()).await.unwrap();
    assert_eq!((outcome.text.as_str(), outcome.attempts), ("done", 1));
    assert!(outcome.ok && began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    let seen = tokio::task::spawn_blocking(move || left.recv_timeout(ALLOWED)).await.unwrap();
    assert_eq!(seen, Ok(()), "the server sees the close");
}

#[test]
fn the_outcome_is_there_when_the_events_end_and_the_next_prompt_may_begin() {
    let stage = Stage::of(&["whole"]);
    host(one_after_the_other(&stage));
}

async fn one_after_the_other(stage: &Stage) {
    let agent = agent(&stage.base_url(), &stage.workspace());
    for number in 1..=50 {
        let mut prompt = agent.prompt("go").unwrap();
        read_until(&mut prompt, |kind| matches!(kind, EventKind::AgentEnd { .. })).await;
        assert!(!agent.is_busy(), "prompt {number}");
        assert!(prompt.next().await.is_none(), "prompt {number}");
        assert!(prompt.ended().is_some_and(|outcome| outcome.ok), "prompt {number}");
    }
    assert_eq!(stage.asked().len(), 50);
}
