//! What the tools cost, against the plainest way to the same result.
//!
//! All of it runs in one process that is built for release, except what has a peak
//! of memory of its own; each part lists what is asked of it.

mod files;
mod flood;

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use super::{processes::Program, report};
use crate::{counts::Tally, terminal::say};

/// The options of the process that measures.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// How often everything is measured.
    #[arg(long)]
    runs: u32,
    /// A tenth of everything.
    #[arg(long)]
    quick: bool,
    /// Runs one command that prints so many bytes, and nothing else.
    #[arg(long)]
    flood: Option<usize>,
}

/// What a part found out.
#[derive(Default)]
struct Found {
    checks: Vec<report::Check>,
    /// What could not be measured here, and why.
    skipped: Vec<String>,
}

impl Found {
    fn add(&mut self, other: Self) {
        self.checks.extend(other.checks);
        self.skipped.extend(other.skipped);
    }
}

/// Lets the release build measure.
pub(super) fn start(program: &Program, runs: u32, quick: bool) -> Result<ExitCode> {
    let mut measure = Command::new(program.path());
    measure.args(["bench-tools", "--runs", &runs.to_string()]);
    if quick {
        measure.arg("--quick");
    }
    let status = measure.status().context("cannot start the measurement")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Is the process that measures.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(bytes) = args.flood {
        return flood::run(bytes).map(|()| ExitCode::SUCCESS);
    }
    say(format_args!("{} runs; times are those of a clock on the wall\n", args.runs));
    let executor = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the executor")?;
    let mut found = Found::default();
    found.add(executor.block_on(files::measure(args))?);
    found.add(flood::measure(args)?);
    say("");
    say(report::table(&found.checks));
    for skipped in &found.skipped {
        say(format_args!("skipped: {skipped}"));
    }
    let skipped = u64::try_from(found.skipped.len()).unwrap_or(u64::MAX);
    let sum = Tally { skipped, ..report::tally(&found.checks) };
    say(sum.line());
    Ok(ExitCode::from(u8::from(sum.failed > 0)))
}
