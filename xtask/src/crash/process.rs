//! The real binary, brought to an end by the system.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use super::end::End;

/// Where a session is played.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) binary: PathBuf,
    pub(super) base_url: String,
    pub(super) workspace: PathBuf,
    pub(super) state: PathBuf,
}

/// What a host saw of a run.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) events: Vec<Value>,
    /// Whether the end came; a run may be over before its end was due.
    pub(super) ended_early: bool,
    pub(super) code: Option<i32>,
    pub(super) stderr: String,
}

/// Runs the binary until its end, or the end of the prompt. Without a session to
/// go on with it begins one.
pub(super) async fn run(place: &Place, go_on: bool, end: Option<End>) -> Result<Run> {
    let mut child = start(place, go_on, end).context("cannot start the program")?;
    if let Some(End::Torn { bytes } | End::Full { bytes }) = end {
        limit(&child, bytes)?;
    }
    let mut lines =
        BufReader::new(child.stdout.take().context("the program has no output")?).lines();
    let mut run = Run::default();
    if let Some((due, then_us)) = moment(end) {
        read(&mut lines, &mut run, due).await?;
        tokio::time::sleep(Duration::from_micros(then_us)).await;
        // One that has ended already is as good as one that was never killed.
        let _ = child.start_kill();
    }
    read(&mut lines, &mut run, Due::Never).await?;
    if let Some(mut told) = child.stderr.take() {
        told.read_to_string(&mut run.stderr).await.context("cannot read what the program said")?;
    }
    let status = child.wait().await.context("cannot wait for the program")?;
    run.code = status.code();
    let over = run.events.last().is_some_and(|event| {
        event.get("type").is_some_and(|kind| kind == "agent_end")
            && event.get("outcome").is_some_and(|outcome| outcome == "completed")
    });
    run.ended_early = !over || run.code.is_none();
    Ok(run)
}

fn start(place: &Place, go_on: bool, end: Option<End>) -> std::io::Result<Child> {
    let mut command = match end {
        // A process that is told that its file is full, instead of being ended.
        Some(End::Full { .. }) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(&place.binary);
            shell
        }
        _ => Command::new(&place.binary),
    };
    command.args(["run", if go_on { "go on" } else { "begin" }]);
    command.args(["--output", "ndjson", "--permission", "auto", "--base-url", &place.base_url]);
    command.arg("--workspace").arg(&place.workspace);
    command.args(go_on.then_some("--continue"));
    command.env("TURNBUCKLE_STATE_DIR", &place.state).env_remove("OPENAI_API_KEY");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true).spawn()
}

/// When a process is to be killed, by what it has told.
#[derive(Debug, Clone, Copy)]
enum Due {
    Events(usize),
    ToolStarts(usize),
    Never,
}

impl Due {
    fn has_come(self, events: &[Value]) -> bool {
        match self {
            Self::Events(count) => events.len() >= count,
            Self::ToolStarts(count) => {
                let kinds = events.iter().filter_map(|event| event.get("type")?.as_str());
                kinds.filter(|kind| *kind == "tool_execution_start").count() >= count
            }
            Self::Never => false,
        }
    }
}

/// When a process is to be killed, and how many microseconds later it really is.
const fn moment(end: Option<End>) -> Option<(Due, u64)> {
    match end {
        Some(End::Killed { events, then_us }) => Some((Due::Events(events), then_us)),
        Some(End::KilledInTool { calls, then_us }) => Some((Due::ToolStarts(calls), then_us)),
        _ => None,
    }
}

/// Reads events until that moment, or to the last of them.
async fn read(lines: &mut Lines<BufReader<ChildStdout>>, run: &mut Run, due: Due) -> Result<()> {
    while !due.has_come(&run.events) {
        let Some(line) = lines.next_line().await.context("cannot read the events")? else { break };
        // A killed process may leave half a line behind.
        match serde_json::from_str(&line) {
            Ok(event) => run.events.push(event),
            Err(_) => break,
        }
    }
    Ok(())
}

/// No file of the process may grow beyond so many bytes: what a write has beyond
/// them is not written. It takes longer to start than this takes.
#[cfg(target_os = "linux")]
fn limit(child: &Child, bytes: u64) -> Result<()> {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    prlimit(Some(id.context("the program has ended at once")?), Resource::Fsize, limit)
        .context("cannot limit the size of files")?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn limit(_child: &Child, _bytes: u64) -> Result<()> {
    anyhow::bail!("this system cannot limit the files of another process")
}

/// The session's file, if there is one.
pub(super) fn session_file(state: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(state.join("sessions")).ok()?;
    files
        .filter_map(|file| Some(file.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
}
