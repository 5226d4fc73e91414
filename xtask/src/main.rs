//! The project's tasks. `cargo xtask` lists them.
//!
//! Each task has a file. What they share: [`workspace`] runs cargo, [`course`]
//! runs parts one after another and sums them up, [`terminal`] prints.

mod agent_cases;
mod alone;
mod arrows;
mod bench;
mod ci;
mod conformance;
mod counts;
mod course;
mod crash;
mod faults;
mod peers;
mod simulate;
mod snapshots;
mod soak;
mod terminal;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::{terminal::say, workspace::Workspace};

/// The tasks of the project.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", version, about)]
struct Cli {
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Runs everything that a contribution must pass, and sums it up.
    Test(test::Args),
    /// Runs the snapshot tests alone, and lists what differs or accepts it.
    TestSnapshots(snapshots::Args),
    /// Plays every fault through the real client, runtime and sockets.
    TestFaults(faults::Args),
    /// Plays many sessions for a long time, and looks at what grows.
    Soak(soak::Args),
    /// Kills the program in the middle of turns, opens its sessions again, goes on.
    TestCrash(crash::Args),
    /// Speaks to real servers, where they are installed: docs/PEERS.md.
    TestPeers(peers::Args),
    /// Plays the runtime against everything that can happen, under virtual time.
    Simulate(simulate::Args),
    /// Feeds recorded provider streams to the adapters, whole and cut anywhere.
    Conformance(conformance::Args),
    /// Measures the provider streams against a plain reader of the same bytes.
    Bench(bench::Args),
    /// A process of `bench`: serves the answers.
    #[command(hide = true)]
    BenchServer,
    /// A process of `bench`: reads one answer and measures itself.
    #[command(hide = true)]
    BenchClient(bench::ClientArgs),
    /// A process of `bench`: measures session files.
    #[command(hide = true)]
    BenchSessions(bench::SessionsArgs),
    /// A process of `bench`: measures the tools.
    #[command(hide = true)]
    BenchTools(bench::ToolsArgs),
    /// A process of `bench`: runs turns and measures itself.
    #[command(hide = true)]
    BenchRuntime(bench::RuntimeArgs),
    /// Runs what the CI machine runs: `test` with the corpus, a release build, the demo,
    /// the gates of `bench`.
    Ci,
}

/// Exit codes: 0 all well, 1 something failed, 2 wrong usage.
fn main() -> ExitCode {
    let Some(task) = Cli::parse().task else {
        say(Cli::command().render_help());
        return ExitCode::SUCCESS;
    };
    let done = run(task);
    done.unwrap_or_else(|error| {
        terminal::complain(format_args!("error: {error:#}"));
        ExitCode::FAILURE
    })
}

fn run(task: Task) -> Result<ExitCode> {
    // Each asks for itself: a process that measures itself must ask cargo for nothing.
    let workspace = Workspace::find;
    match task {
        Task::Test(args) => test::run(&workspace()?, &args),
        Task::TestSnapshots(args) => snapshots::run(&workspace()?, &args),
        Task::TestFaults(args) => faults::run(&args),
        Task::Soak(args) => soak::run(&args),
        Task::TestCrash(args) => crash::run(&workspace()?, &args),
        Task::TestPeers(args) => peers::run(&workspace()?, &args),
        Task::Simulate(args) => simulate::run(&workspace()?, &args),
        Task::Conformance(args) => conformance::run(&workspace()?, &args),
        Task::Bench(args) => bench::run(&workspace()?, &args),
        Task::BenchServer => bench::serve(),
        Task::BenchClient(args) => bench::read(&args),
        Task::BenchSessions(args) => bench::sessions(&args),
        Task::BenchTools(args) => bench::tools(&args),
        Task::BenchRuntime(args) => bench::turn(&args),
        Task::Ci => ci::run(&workspace()?),
    }
}
