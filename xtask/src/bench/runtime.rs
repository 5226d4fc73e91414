//! What the runtime costs: beside the bare stream, over a thousand steps, and a
//! thousand times in one process.
//!
//! As with the streams, everything is measured in a process of its own, which is
//! told what to do as [`Args`] and prints one line of JSON.

mod overhead;
mod sessions;
mod steps;

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;

use super::{processes::Program, report, report::Check};
use crate::terminal::{begin, say};

/// What a process is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Reads a recorded answer, bare or through a session.
    Overhead(overhead::Args),
    /// Runs a loop of tool calls.
    Steps(steps::Args),
    /// Holds many sessions.
    Sessions(sessions::Args),
}

/// Measures, prints, and holds the runtime to its targets.
pub(super) fn start(program: &Program, runs: u32, quick: bool) -> Result<ExitCode> {
    say("the runtime: beside the bare stream, in a long loop of tools, and with many sessions\n");
    let mut checks = overhead::measure(program)?;
    checks.extend(steps::measure(program, runs, quick)?);
    checks.extend(sessions::measure(program, quick)?);
    say("");
    say(report::table(&checks));
    let sum = report::tally(&checks);
    say(sum.line());
    Ok(ExitCode::from(u8::from(sum.failed > 0)))
}

/// Is the process of a measurement.
pub(super) async fn run(args: &Args) -> Result<()> {
    let line = match &args.what {
        What::Overhead(args) => overhead::run(args).await?,
        What::Steps(args) => steps::run(args).await?,
        What::Sessions(args) => sessions::run(args).await?,
    };
    begin(format_args!("{line}\n"));
    Ok(())
}

/// What runs a process with these arguments.
fn process(program: &Program, arguments: &[&str]) -> Command {
    let mut command = Command::new(program.path());
    command.arg("bench-runtime").args(arguments);
    command
}

/// The same under callgrind, which writes its profile into `profile`.
fn counted(process: &Command, profile: &Path) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(process.get_program())
        .args(process.get_args());
    valgrind
}

/// Runs a process to its end; what it says of itself.
fn told<T: DeserializeOwned>(mut process: Command) -> Result<T> {
    let name = process.get_program().to_string_lossy().into_owned();
    let out = process.output().with_context(|| format!("cannot run {name}; is it installed?"))?;
    if !out.status.success() {
        bail!("{process:?} failed: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    serde_json::from_slice(&out.stdout).context("a process did not say what it took")
}

fn check(what: &str, measured: f64, digits: usize, most: f64) -> Check {
    Check {
        what: what.to_owned(),
        measured: format!("{measured:.digits$}"),
        target: format!("<= {most}"),
        holds: measured <= most,
        gate: true,
    }
}
