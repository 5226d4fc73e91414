#![doc = include_str!("../README.md")]
// What it prints, in which order, and with which exit code is a contract: other
// programs drive it by script.

mod approval;
mod args;
mod chat;
mod classify;
mod config;
mod demo;
mod faults;
mod nearest;
mod output;
mod providers;
mod refusal;
mod run;
mod said;
mod sessions;
mod settings;
mod signals;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Keys are in the environment; a child could otherwise read ours from /proc.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            anstream::eprintln!("error: the system gives no threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(async {
        match cli.command {
            Command::Demo(args) => demo::demo(&args).await,
            Command::Run(args) => run::run(*args).await,
            Command::Chat(args) => chat::chat(*args).await,
            Command::Sessions { command } => sessions::sessions(command),
            Command::Providers(args) => providers::providers(&args),
            Command::Classify(args) => classify::classify(&args),
            Command::Faults { command } => faults::faults(command).await,
        }
    });
    // A thread may still wait for a line from the keyboard; it is not waited for.
    runtime.shutdown_background();
    code
}
