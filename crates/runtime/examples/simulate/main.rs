//! Plays the runtime against everything that can happen, under virtual time, and
//! checks its promises after each run. `cargo xtask simulate` runs it; see
//! docs/SIMULATOR.md.

mod arguments;
mod check;
mod decisions;
mod hands;
mod journal;
mod kind;
mod mail;
mod model;
mod oracle;
mod play;
mod random;
mod report;
mod sabotage;
mod script;
mod shrink;
mod stage;
mod tally;
#[cfg(test)]
mod tests;
mod walk;

use std::process::ExitCode;

use anyhow::Result;

fn main() -> Result<ExitCode> {
    let arguments = arguments::Arguments::parse(std::env::args().skip(1))?;
    report::run(&arguments)
}
