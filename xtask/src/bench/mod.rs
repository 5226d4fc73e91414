//! What the provider streams cost, against [`yardstick`] reading the same bytes.
//!
//! Every client is a process of its own, which measures its own user and system
//! time; the answers come from a third process. [`case`] says what is measured,
//! [`plan`] how much of it and what it may cost, [`instructions`] counts what no
//! busy machine can move.

mod body;
mod case;
mod client;
mod instructions;
mod ours;
mod plan;
mod processes;
mod report;
mod rounds;
mod runtime;
mod server;
mod sessions;
mod tools;
mod yardstick;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Runtime};

pub(crate) use self::{
    client::Args as ClientArgs,
    runtime::Args as RuntimeArgs,
    sessions::{Args as SessionsArgs, run as sessions},
    tools::{Args as ToolsArgs, run as tools},
};
use self::{plan::Amount, processes::Program, report::Check};
use crate::{counts::Tally, course::Outcome, terminal::say, workspace::Workspace};

/// The options of `bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Measures this part; without it the streams of the provider adapters.
    #[arg(long)]
    only: Option<Part>,
    /// How often each client reads each answer; the clients take turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// A tenth of everything.
    #[arg(long)]
    quick: bool,
    /// Counts instructions and heap allocations instead (needs valgrind).
    #[arg(long)]
    instructions: bool,
    /// Decides which client goes first in each round.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The streams of the provider adapters.
    Providers,
    /// The built-in tools.
    Tools,
    /// Session files: opening a long one, appending to it.
    Sessions,
    /// The turn around them.
    Runtime,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let program = Program::build(workspace)?;
    match args.only {
        Some(Part::Tools) => return tools::start(&program, args.runs, args.quick),
        Some(Part::Sessions) => return sessions::start(&program, args.runs, args.quick),
        Some(Part::Runtime) => return runtime::start(&program, args.runs, args.quick),
        Some(Part::Providers) | None => {}
    }
    let checks = match args.instructions {
        true => instructions::count(&program)?,
        false => measure(&program, args)?,
    };
    say("");
    say(report::table(&checks));
    let sum = report::tally(&checks);
    say(sum.line());
    Ok(ExitCode::from(u8::from(sum.failed > 0)))
}

/// Holds the adapters to what a piece of text may cost in instructions and heap
/// allocations; skipped where valgrind is missing.
pub(crate) fn gates(workspace: &Workspace) -> Result<Outcome> {
    if !instructions::can_count() {
        let skipped = Tally { skipped: 1, ..Tally::default() };
        return Ok(Outcome { tally: skipped, ..Outcome::default() }
            .note("bench: skipped, since valgrind is not installed"));
    }
    let checks = instructions::gates(&Program::build(workspace)?)?;
    let tally = report::tally(&checks);
    let trouble = (tally.failed > 0).then(|| report::table(&checks));
    Ok(Outcome { tally, trouble, ..Outcome::default() })
}

fn measure(program: &Program, args: &Args) -> Result<Vec<Check>> {
    let amount = if args.quick { Amount::Quick } else { Amount::Full };
    let mut turns = fastrand::Rng::with_seed(args.seed);
    let server = program.serve()?;
    say(format_args!(
        "{} runs, seed {}; CPU is user + system time of the client\n",
        args.runs, args.seed
    ));
    let mut rows = Vec::new();
    for planned in plan::planned(amount) {
        let row = report::Row::measure(
            planned,
            args.runs,
            |case, reader| program.read(&server, case, reader),
            &mut turns,
        )?;
        say(row.line());
        rows.push(row);
    }
    Ok(report::checks(&rows))
}

/// Is the server of a measurement, until the process is ended.
pub(crate) fn serve() -> Result<ExitCode> {
    executor()?.block_on(server::serve())?;
    Ok(ExitCode::SUCCESS)
}

/// Is a client of a measurement.
pub(crate) fn read(args: &ClientArgs) -> Result<ExitCode> {
    executor()?.block_on(client::run(args))?;
    Ok(ExitCode::SUCCESS)
}

/// Is the process of a measurement of the runtime.
pub(crate) fn turn(args: &RuntimeArgs) -> Result<ExitCode> {
    executor()?.block_on(runtime::run(args))?;
    Ok(ExitCode::SUCCESS)
}

fn executor() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot start the runtime")
}
