//! What a session file costs: opening a long one, against a plain reader of its
//! lines, and appending to it.
//!
//! All of it runs in one process that is built for release, and is measured in its
//! own CPU time. Only the syncs are times of a clock on the wall: they are the
//! disk's.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, ExitCode},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle_providers::{
    Arguments, AssistantMessage, FinishReason, ToolCall, Usage, testing::ScriptedProvider,
};
use turnbuckle_runtime::{JsonlStore, Record, Runtime, SessionStore as _};

use super::{
    processes::Program,
    report::{self, Check},
};
use crate::terminal::say;

/// The records of the session; they take about 1 KB each.
const RECORDS: usize = 100_000;

/// The most that opening may take of the time of the plain reader.
const OPENING: f64 = 1.5;

/// The most that the last appends may take of the time of the first ones. They
/// take the same; what is above is noise.
const APPENDING: f64 = 1.3;

/// The session's id, and so the name of its file.
const ID: &str = "long";

/// The options of the process that measures.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// How often the file is opened.
    #[arg(long)]
    runs: u32,
    /// A tenth of everything.
    #[arg(long)]
    quick: bool,
}

/// Lets the release build measure.
pub(super) fn start(program: &Program, runs: u32, quick: bool) -> Result<ExitCode> {
    let mut measure = Command::new(program.path());
    measure.args(["bench-sessions", "--runs", &runs.to_string()]);
    measure.args(quick.then_some("--quick"));
    let status = measure.status().context("cannot start the measurement")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Is the process that measures.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let records = if args.quick { RECORDS / 10 } else { RECORDS };
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the executor")?;
    let mut checks = vec![executor.block_on(append(folder.path(), records))?];
    executor.block_on(sync(folder.path()))?;
    checks.push(open(folder.path(), records, args.runs)?);
    say("");
    say(report::table(&checks));
    let sum = report::tally(&checks);
    say(sum.line());
    Ok(ExitCode::from(u8::from(sum.failed > 0)))
}

/// Writes the session, and compares its last tenth with its first.
async fn append(folder: &Path, count: usize) -> Result<Check> {
    let mut store = JsonlStore::create(folder, ID)?;
    let mut tenths = Vec::new();
    let mut records = records();
    for _ in 0..10 {
        let tenth: Vec<Record> = records.by_ref().take(count / 10).collect();
        let began = cpu();
        for record in &tenth {
            store.append(record).await?;
        }
        tenths.push((cpu() - began).as_secs_f64() * 1e6 / tenth.len() as f64);
    }
    let bytes = std::fs::metadata(store.path())?.len();
    let (first, last) = (tenths.first().copied(), tenths.last().copied());
    let (first, last) = (first.unwrap_or(f64::NAN), last.unwrap_or(f64::NAN));
    say(format_args!(
        "{count} records, {} MB: an append takes {first:.1} us of CPU in the first tenth, {last:.1} us in the last",
        bytes / 1_000_000
    ));
    Ok(Check {
        what: "appending: last tenth / first tenth".to_owned(),
        measured: format!("{:.2}", last / first),
        target: format!("<= {APPENDING}"),
        holds: last / first <= APPENDING,
        gate: true,
    })
}

/// What the disk takes to make one record durable.
async fn sync(folder: &Path) -> Result<()> {
    const SYNCS: u32 = 50;
    let (mut store, _) = JsonlStore::open(folder, ID)?;
    let mut took = Vec::new();
    for _ in 0..SYNCS {
        store.append(&Record::StepEnd).await?;
        let began = Instant::now();
        store.sync().await?;
        took.push(began.elapsed());
    }
    took.sort();
    let median = took.get(took.len() / 2).copied().unwrap_or_default();
    let most = took.last().copied().unwrap_or_default();
    say(format_args!(
        "a sync of one record takes {:.2} ms (at most {:.2} ms) on this disk",
        median.as_secs_f64() * 1e3,
        most.as_secs_f64() * 1e3
    ));
    Ok(())
}

/// Opens the session as often as a plain reader reads it, in turn.
fn open(folder: &Path, records: usize, runs: u32) -> Result<Check> {
    let runtime = Runtime::builder(Arc::new(ScriptedProvider::new([])), "a-model").build();
    let path = folder.join(format!("{ID}.jsonl"));
    let mut rounds = Vec::new();
    for _ in 0..runs {
        let began = cpu();
        let lines = plain(&path)?;
        let plainly = cpu() - began;
        ensure!(lines >= records, "the plain reader lost lines: {lines}");
        let began = cpu();
        let session = runtime.resume(folder, ID)?;
        let opening = cpu() - began;
        ensure!(session.transcript().messages().len() > records / 3, "the session lost messages");
        rounds.push((opening, plainly));
    }
    let least = |of: fn(&(Duration, Duration)) -> Duration| {
        rounds.iter().map(of).min().unwrap_or_default().as_secs_f64()
    };
    let (opening, plainly) = (least(|round| round.0), least(|round| round.1));
    say(format_args!(
        "opening takes {:.0} ms of CPU, reading and parsing its lines {:.0} ms (least of {runs})",
        opening * 1e3,
        plainly * 1e3
    ));
    Ok(Check {
        what: "opening / reading and parsing its lines".to_owned(),
        measured: format!("{:.2}", opening / plainly),
        target: format!("<= {OPENING}"),
        holds: opening / plainly <= OPENING,
        gate: true,
    })
}

/// Reads a file line by line and parses each, as anybody would.
fn plain(path: &Path) -> Result<usize> {
    let mut reader = BufReader::with_capacity(256 * 1024, File::open(path)?);
    let mut line = Vec::new();
    let mut lines = 0;
    while reader.read_until(b'\n', &mut line)? > 0 {
        let value: Value = serde_json::from_slice(&line)?;
        lines += usize::from(value.is_object());
        line.clear();
    }
    Ok(lines)
}

/// User and system time of this process.
fn cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

/// Prompts of nine steps, with a tool call in all but the last of them.
fn records() -> impl Iterator<Item = Record> {
    let first = Record::Session {
        version: 1,
        session_id: ID.to_owned(),
        created: "2026-01-01T00:00:00Z".to_owned(),
        workspace: None,
        forked_from: None,
    };
    std::iter::once(first).chain((0_u32..).flat_map(prompt))
}

fn prompt(number: u32) -> Vec<Record> {
    let mut records =
        vec![Record::User { text: format!("Task {number}.\n{}", prose(2)), images: Vec::new() }];
    for step in 0..8 {
        let (id, name) = (format!("call_{number}_{step}"), "Read".to_owned());
        let arguments =
            json!({"path": format!("src/{number}/{step}.rs"), "limit": 200}).to_string();
        let call =
            ToolCall { id: id.clone(), name: name.clone(), arguments: Arguments::Whole(arguments) };
        records.push(message(number, step, prose(3), vec![call]));
        records.push(Record::ToolStart { call_id: id.clone(), name: name.clone() });
        records.push(Record::ToolResult {
            call_id: id,
            name,
            ok: true,
            text: code(50),
            images: Vec::new(),
        });
        records.push(Record::StepEnd);
    }
    records.push(message(number, 8, prose(8), Vec::new()));
    records.push(Record::StepEnd);
    records.push(Record::PromptEnd { outcome: "completed".to_owned(), failure: None });
    records
}

fn message(number: u32, step: u32, text: String, tool_calls: Vec<ToolCall>) -> Record {
    Record::Assistant {
        message_id: format!("message-{number}-{step}"),
        message: AssistantMessage { text, tool_calls, ..AssistantMessage::default() },
        finish: FinishReason::Stop,
        usage: Usage::default(),
    }
}

fn prose(sentences: usize) -> String {
    "The kettle sang before noon, and \"nobody\" knew why; le café était prêt. ".repeat(sentences)
}

fn code(lines: usize) -> String {
    "    let kettle = parse(\"noon\\n\").unwrap_or_default(); // why not\n".repeat(lines)
}
