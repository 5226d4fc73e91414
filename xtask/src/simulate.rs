//! Plays the runtime against everything that can happen: docs/SIMULATOR.md.
//!
//! The simulator is an example of the runtime, so that the paused clock it needs
//! is built into nothing else; here it is built for release and run.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::{course::Outcome, workspace::Workspace};

/// The options of `simulate`. Without any: depth 5 and 100,000 scripts by chance.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Walks every sequence of at most so many attempts.
    #[arg(long)]
    depth: Option<u32>,
    /// Plays so many longer scripts by chance.
    #[arg(long)]
    random: Option<u64>,
    /// What the scripts are made from; by itself, plays the one run again that a
    /// failure has printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Plays this script alone, and shows its events.
    #[arg(long, conflicts_with_all = ["depth", "random", "seed"])]
    script: Option<String>,
    /// Plants a fault, to see that it is found.
    #[arg(long)]
    plant: Option<String>,
}

impl Args {
    fn words(&self) -> Vec<String> {
        let numbers = [
            ("--depth", self.depth.map(u64::from)),
            ("--random", self.random),
            ("--seed", self.seed),
        ];
        let numbers = numbers.map(|(name, number)| (name, number.map(|number| number.to_string())));
        let texts = [("--script", self.script.clone()), ("--plant", self.plant.clone())];
        let given = numbers.into_iter().chain(texts);
        given.filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten().collect()
    }
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let mut program = program(workspace)?;
    let status = program.args(args.words()).status().context("cannot run the simulator")?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

/// A share of it for the CI machine: every sequence to `depth`, and `random` scripts.
pub(crate) fn part(workspace: &Workspace, depth: u32, random: u64) -> Result<Outcome> {
    let mut program = program(workspace)?;
    program.args(["--depth", &depth.to_string(), "--random", &random.to_string()]);
    let ran = workspace.run("simulate", program)?;
    let told = ran.output.lines().filter(|line| line.contains(" checks of "));
    Ok(told.fold(Outcome::check(&ran), Outcome::note))
}

/// The simulator, built for release.
fn program(workspace: &Workspace) -> Result<Command> {
    let build =
        ["build", "--release", "--locked", "-p", "turnbuckle-runtime", "--example", "simulate"];
    let ran = workspace.run("simulate-build", workspace.cargo(&build))?;
    if !ran.ok {
        bail!("the release build failed\n{}", ran.tail());
    }
    let name = format!("simulate{}", std::env::consts::EXE_SUFFIX);
    let mut program = Command::new(workspace.target().join("release").join("examples").join(name));
    program.stdin(Stdio::null());
    Ok(program)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn what_is_given_is_handed_on() {
        let words = |line: &str| {
            let given = Alone::try_parse_from(std::iter::once("x").chain(line.split(' ')));
            given.map(|given| given.args.words().join(" "))
        };
        for line in ["--depth 5 --random 100000 --seed 1", "--seed 7", "--depth 2 --plant deaf"] {
            assert_eq!(words(line).unwrap(), line);
        }
        assert!(words("--depth 5 --script answer").is_err());
        assert!(words("--depth five").is_err());
    }
}
