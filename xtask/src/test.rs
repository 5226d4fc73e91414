//! Everything that a contribution must pass.

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::{
    agent_cases, alone, arrows, conformance,
    counts::{self, Tally},
    course::{Course, Outcome},
    faults,
    terminal::say,
    tidy,
    workspace::Workspace,
};

/// The options of `test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fails when the corpus of recorded streams is not at ../shared/wire.
    #[arg(long)]
    require_corpus: bool,
    /// Chooses where faults strike and where streams are cut.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Args {
    pub(crate) const fn with_corpus() -> Self {
        Self { require_corpus: true, seed: 1 }
    }
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let mut course = Course::default();
    all_parts(workspace, args, &mut course);
    Ok(course.finish())
}

/// The quick parts first, so that a slip is seen at once.
pub(crate) fn all_parts(workspace: &Workspace, args: &Args, course: &mut Course) {
    say("What a contribution must pass; the first run builds for some minutes.\n");
    course.part("format", || cargo(workspace, "format", &["fmt", "--all", "--check"]));
    course.part("tidy", || tidy::run(workspace));
    course.part("lock file", || tidy::lock(workspace));
    course.part("arrows", || Ok(Outcome::complaints(&arrows::complaints(workspace)?)));
    course.part("lints", || lints(workspace));
    course.part("build", || build(workspace));
    course.part("tests", || tests(workspace));
    course.part("doc tests", || doc_tests(workspace));
    course.part("docs", || docs(workspace));
    course.part("alone", || alone::run(workspace));
    course.part("faults", || faults::part(args.seed));
    course.part("errors", || Ok(conformance::errors_part(workspace, args.require_corpus)));
    course.part("agent cases", || agent_cases::part(workspace, args.require_corpus));
    course.part("conformance", || Ok(conformance::part(workspace, args.require_corpus, args.seed)));
}

fn cargo(workspace: &Workspace, log: &str, args: &[&str]) -> Result<Outcome> {
    Ok(Outcome::check(&workspace.run(log, workspace.cargo(args))?))
}

fn lints(workspace: &Workspace) -> Result<Outcome> {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    cargo(workspace, "lints", &args)
}

/// Builds every test, and counts the crates that it took.
fn build(workspace: &Workspace) -> Result<Outcome> {
    let format = "--message-format=json-render-diagnostics";
    let args = ["test", "--workspace", "--all-targets", "--locked", "--no-run", format];
    let ran = workspace.run("build", workspace.cargo(&args))?;
    if !ran.ok {
        let (_, told): (Vec<&str>, Vec<&str>) =
            ran.output.lines().partition(|line| line.starts_with("{\"reason\""));
        let trouble = Some(told.join("\n"));
        return Ok(Outcome { tally: Tally::one(false), trouble, ..Outcome::default() });
    }
    let crates = built(&ran.output);
    let ours = crates.iter().filter(|id| id.starts_with("path+")).count();
    let note =
        format!("{} crates built: {ours} ours, {} others", crates.len(), crates.len() - ours);
    Ok(Outcome::check(&ran).note(note))
}

/// The packages in cargo's messages that were built, now or before.
fn built(messages: &str) -> BTreeSet<String> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message.get("reason").is_some_and(|r| r == "compiler-artifact"))
        .filter_map(|message| Some(message.get("package_id")?.as_str()?.to_owned()))
        .collect()
}

fn tests(workspace: &Workspace) -> Result<Outcome> {
    // With their output, in which tests over tables say how much they counted.
    let args = [
        "test",
        "--workspace",
        "--all-targets",
        "--locked",
        "--no-fail-fast",
        "--",
        "--show-output",
    ];
    counted(workspace, "tests", &args)
}

fn doc_tests(workspace: &Workspace) -> Result<Outcome> {
    let args = ["test", "--workspace", "--doc", "--locked", "--no-fail-fast"];
    counted(workspace, "doc-tests", &args)
}

fn counted(workspace: &Workspace, log: &str, args: &[&str]) -> Result<Outcome> {
    let ran = workspace.run(log, workspace.cargo(args))?;
    let mut outcome = Outcome { tally: Tally::read(&ran.output), ..Outcome::check(&ran) };
    if !ran.ok && outcome.tally.failed == 0 {
        // It did not even build.
        outcome.tally.failed = 1;
    }
    let told = counts::told(&ran.output);
    let ran = outcome.tally.passed + outcome.tally.failed;
    let outcome = outcome.note(format!("{ran} {} ran", log.replace('-', " ")));
    Ok(told.into_iter().fold(outcome, Outcome::note))
}

fn docs(workspace: &Workspace) -> Result<Outcome> {
    let mut cargo = workspace.cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    cargo.env("RUSTDOCFLAGS", "-D warnings");
    let ran = workspace.run("docs", cargo).context("cannot build the documentation")?;
    Ok(Outcome::check(&ran))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_counted_once_however_many_targets_it_has() {
        let messages = r#"
{"reason":"compiler-artifact","package_id":"path+file:///x#a@0.1.0","fresh":true}
{"reason":"compiler-artifact","package_id":"path+file:///x#a@0.1.0","fresh":false}
{"reason":"compiler-artifact","package_id":"registry+https://example.com#b@1.0.0"}
{"reason":"build-script-executed","package_id":"registry+https://example.com#c@1.0.0"}
running 3 tests"#;
        assert_eq!(
            built(messages).into_iter().collect::<Vec<_>>(),
            ["path+file:///x#a@0.1.0", "registry+https://example.com#b@1.0.0"]
        );
    }
}
