//! Many sessions in one process, each in a turn, against the server of the
//! answers, which sends a piece of text every 100 ms.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use turnbuckle_runtime::{Runtime, Session};

use super::{
    super::{
        body,
        case::{Case, Dialect, Shape},
        client::memory,
        ours::Ours,
    },
    Check, Program, check, process, told,
};
use crate::terminal::say;

/// How many sessions there are.
const SESSIONS: usize = 1_000;

/// The most memory of a session at rest, in KiB.
const MOST: f64 = 300.0;

/// What a process is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[arg(long)]
    sessions: usize,
    /// Where the server listens.
    #[arg(long)]
    server: String,
    /// Where the journals are kept.
    #[arg(long)]
    folder: PathBuf,
}

/// What a process saw of itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Took {
    finished: usize,
    /// Memory for each session in KiB: when all were in their turn, at its most,
    /// and when all turns were over; `None` where the system does not say.
    peak_kib: Option<f64>,
    rest_kib: Option<f64>,
}

pub(super) fn measure(program: &Program, quick: bool) -> Result<Vec<Check>> {
    let count = if quick { SESSIONS / 10 } else { SESSIONS };
    let server = program.serve()?;
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let (sessions, folder) = (count.to_string(), folder.path().to_string_lossy().into_owned());
    let arguments = ["--sessions", &sessions, "--server", server.address(), "--folder", &folder];
    let took: Took = told(process(program, &[&["sessions"][..], &arguments].concat()))?;
    let mut checks = vec![Check {
        what: format!("{count} sessions: finished"),
        measured: took.finished.to_string(),
        target: count.to_string(),
        holds: took.finished == count,
        gate: true,
    }];
    if let (Some(peak), Some(rest)) = (took.peak_kib, took.rest_kib) {
        say(format_args!(
            "{count} sessions  {peak:.0} KiB each at most, in their turns; {rest:.0} KiB at rest"
        ));
        checks.push(check(&format!("{count} sessions: KiB each at rest"), rest, 0, MOST));
    }
    Ok(checks)
}

pub(super) async fn run(args: &Args) -> Result<String> {
    let case = Case { dialect: Dialect::Chat, shape: Shape::Paced, size: 1 };
    let expected = Arc::new(body::expected(case));
    let provider = Ours::at(case.dialect, &format!("http://{}/{case}", args.server))?;
    let runtime = Runtime::builder(provider.into_provider(), "a-model").build();
    // One turn first, so that what is set up once is not counted.
    let mut warm = runtime.session_in(&args.folder)?;
    ensure!(warm.prompt("Warm up").outcome().await.ok, "the first turn failed");

    let before = memory("VmRSS:");
    let mut turns = JoinSet::new();
    for _ in 0..args.sessions {
        let session = runtime.session_in(&args.folder)?;
        turns.spawn(turn(session, Arc::clone(&expected)));
    }
    let mut sessions = Vec::with_capacity(args.sessions);
    while let Some(ended) = turns.join_next().await {
        sessions.extend(ended?);
    }
    let each = |line| each(before, memory(line), args.sessions);
    let took =
        Took { finished: sessions.len(), peak_kib: each("VmHWM:"), rest_kib: each("VmRSS:") };
    Ok(serde_json::to_string(&took)?)
}

/// Runs one prompt; the session, if it ended as it should.
async fn turn(mut session: Session, expected: Arc<String>) -> Option<Session> {
    let outcome = session.prompt("What do the notes say?").outcome().await;
    (outcome.ok && outcome.text == *expected).then_some(session)
}

#[expect(clippy::cast_precision_loss, reason = "the counts are far below 2^52")]
fn each(before: Option<u64>, after: Option<u64>, sessions: usize) -> Option<f64> {
    let grown = after?.saturating_sub(before?);
    Some(grown as f64 / sessions as f64)
}
