//! Instructions for each piece of text, through a session and without one.
//!
//! Both read the same recorded body under callgrind, once short and once long;
//! what both have in common is taken off.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use turnbuckle_runtime::{EventKind, MemoryStore, Runtime};

use super::{
    super::{
        body,
        case::{Case, Dialect, Shape},
        instructions::Counted,
        ours::Ours,
        server::CHUNK,
    },
    Check, Program, check, counted, process, told,
};
use crate::terminal::say;

/// The pieces of text of the short and of the long answer.
const SHORT: usize = 4_000;
const LONG: usize = 20_000;

/// The most that a session may cost, of the bare stream.
const MOST: f64 = 1.3;

/// What a process is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[arg(long)]
    reader: Reader,
    #[arg(long)]
    dialect: String,
    /// The recorded body.
    #[arg(long)]
    recorded: PathBuf,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Reader {
    /// The provider's stream alone.
    Bare,
    /// A prompt of a session, whose host drops each event.
    Session,
}

impl Reader {
    const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Session => "session",
        }
    }
}

/// What a process read.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Read {
    text_bytes: usize,
}

pub(super) fn measure(program: &Program) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for dialect in Dialect::ALL {
        let bare = each(program, dialect, Reader::Bare)?;
        let session = each(program, dialect, Reader::Session)?;
        let name = dialect.name();
        say(format_args!(
            "{name:<10} {bare:>7.0} instructions for each piece of text, {session:>7.0} through a session"
        ));
        checks.push(check(&format!("{name}: session / bare stream"), session / bare, 2, MOST));
    }
    Ok(checks)
}

/// The instructions for one piece of text.
#[expect(clippy::cast_precision_loss, reason = "the counts are far below 2^52")]
fn each(program: &Program, dialect: Dialect, reader: Reader) -> Result<f64> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let count = |size: usize| {
        let case = Case { dialect, shape: Shape::Long, size };
        let (body, profile) = (folder.path().join("body"), folder.path().join("profile"));
        fs::write(&body, body::answer(case).bytes).context("cannot write the answer")?;
        let recorded = body.to_string_lossy();
        let arguments = ["overhead", "--reader", reader.name(), "--dialect", dialect.name()];
        let client = process(program, &[&arguments[..], &["--recorded", &recorded]].concat());
        let read: Read = told(counted(&client, &profile))?;
        ensure!(
            read.text_bytes == body::expected(case).len(),
            "{case}: the text is not the one that was recorded"
        );
        let profile = fs::read_to_string(&profile).context("callgrind wrote no profile")?;
        Ok(Counted::read(&profile).context("the profile of callgrind has no total")?.instructions)
    };
    let (short, long) = (count(SHORT)?, count(LONG)?);
    Ok(long.saturating_sub(short) as f64 / (LONG - SHORT) as f64)
}

pub(super) async fn run(args: &Args) -> Result<String> {
    let dialect = Dialect::ALL.into_iter().find(|dialect| dialect.name() == args.dialect);
    let dialect = dialect.with_context(|| format!("`{}` names no dialect", args.dialect))?;
    let file = &args.recorded;
    let body: Bytes =
        fs::read(file).with_context(|| format!("cannot read {}", file.display()))?.into();
    let chunks = (0..body.len()).step_by(CHUNK);
    let chunks = chunks.map(|start| body.slice(start..body.len().min(start + CHUNK)));
    let ours = Ours::recorded(dialect, chunks)?;
    let text_bytes = match args.reader {
        Reader::Bare => ours.ask(&Ours::question(), || {}).await?.text.len(),
        Reader::Session => through_a_session(ours).await?,
    };
    Ok(serde_json::to_string(&Read { text_bytes })?)
}

async fn through_a_session(ours: Ours) -> Result<usize> {
    let runtime = Runtime::builder(ours.into_provider(), "a-model").build();
    let mut session = runtime.session(MemoryStore::new());
    let mut prompt = session.prompt("What do the notes say?");
    let mut seen = 0;
    while let Some(event) = prompt.next().await {
        if let EventKind::MessageUpdate { delta, .. } = &event.kind {
            seen += delta.len();
        }
    }
    let outcome = prompt.outcome().await;
    ensure!(outcome.ok && outcome.text.len() == seen, "the prompt did not end well");
    Ok(seen)
}
