//! Recorded streams of real servers, fed to the adapters whole and cut anywhere.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use turnbuckle_providers::conformance::{self, Report};

use crate::{
    counts::Tally,
    course::Outcome,
    terminal::{complain, say},
    workspace::Workspace,
};

/// Where the corpus lies beside the project.
const CORPUS: &str = "../shared/wire";

/// The project's own small streams.
const OWN: &str = "crates/providers/tests/streams";

/// The share of rows that must be read as expected, in percent; rows that are
/// lenient in some part are not counted.
const ENOUGH: f64 = 95.0;

/// The protocols of the corpus.
const BUILT: &[&str] = &["chat", "responses", "anthropic", "gemini"];

/// The options of `conformance`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder with index.jsonl; ../shared/wire beside the project if left out.
    dir: Option<PathBuf>,
    /// Checks this protocol alone, for example chat.
    #[arg(long)]
    protocol: Option<String>,
    /// Classifies every recorded error instead, and names its code and rule.
    #[arg(long, conflicts_with = "protocol")]
    errors: bool,
    /// Fails when the corpus is not there.
    #[arg(long)]
    require_corpus: bool,
    /// Chooses where the streams are cut.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    if let Some(name) = args.protocol.as_deref().filter(|name| !BUILT.contains(name)) {
        complain(unknown(name));
        return Ok(ExitCode::from(2));
    }
    let dir = args.dir.clone().unwrap_or_else(|| workspace.root().join(CORPUS));
    let outcome = match args.errors {
        true => errors(&dir, args.require_corpus, true),
        false => {
            say(format_args!("seed {}", args.seed));
            check(workspace, &dir, args.protocol.as_deref(), args.require_corpus, args.seed)
        }
    };
    outcome.notes.iter().for_each(say);
    outcome.trouble.iter().for_each(say);
    say(outcome.tally.line());
    Ok(ExitCode::from(u8::from(outcome.tally.failed > 0)))
}

/// The recorded errors as a part of `test`.
pub(crate) fn errors_part(workspace: &Workspace, require_corpus: bool) -> Outcome {
    errors(&workspace.root().join(CORPUS), require_corpus, false)
}

/// Classifies every recorded error of the corpus. Each must reach the code that
/// is written down for it, and none the catch-all without a written reason.
fn errors(dir: &Path, require_corpus: bool, every: bool) -> Outcome {
    let mut outcome = Outcome::default();
    let rows = match turnbuckle_errors::conformance::errors(dir) {
        Ok(rows) => rows,
        Err(_) if !dir.join("index.jsonl").is_file() => {
            return no_corpus(outcome, dir, require_corpus);
        }
        Err(error) => {
            outcome.tally.failed += 1;
            outcome.trouble = Some(format!("cannot read {}: {error}", dir.display()));
            return outcome;
        }
    };
    for row in &rows {
        let fault = row.fault();
        outcome.tally += Tally::one(fault.is_none());
        if every {
            let reason = row.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            let status = row.status;
            outcome
                .notes
                .push(format!("{status}  {:<27} {:<36} {}{reason}", row.code, row.rule, row.file));
        }
        if let Some(fault) = fault {
            let trouble = outcome.trouble.get_or_insert_default();
            trouble.push_str(&format!("{}: {fault}\n", row.file));
        }
    }
    let note = format!("counted: {} error bodies", rows.len());
    outcome.note(note)
}

/// Says aloud that there is no corpus; a failure where it is required.
fn no_corpus(mut outcome: Outcome, dir: &Path, required: bool) -> Outcome {
    let absent = format!("NO CORPUS: there is no {}", dir.join("index.jsonl").display());
    if required {
        outcome.tally.failed += 1;
        let trouble = outcome.trouble.get_or_insert_default();
        trouble.push_str(&format!("{absent}, and the corpus is required\n"));
        return outcome;
    }
    outcome.tally.skipped += 1;
    outcome.note(absent)
}

/// Conformance as a part of `test`.
pub(crate) fn part(workspace: &Workspace, require_corpus: bool, seed: u64) -> Outcome {
    check(workspace, &workspace.root().join(CORPUS), None, require_corpus, seed)
}

fn check(
    workspace: &Workspace,
    dir: &Path,
    only: Option<&str>,
    require_corpus: bool,
    seed: u64,
) -> Outcome {
    let mut outcome = Outcome::default();
    // The project's own streams are ours to get right: every one must match.
    let own = workspace.root().join(OWN);
    let wanted = |protocol: &&&str| only.is_none_or(|only| only == **protocol);
    for protocol in BUILT.iter().filter(wanted) {
        add(&mut outcome, &format!("own {protocol}"), &own, protocol, seed, 100.0);
    }
    if !dir.join("index.jsonl").is_file() {
        return no_corpus(outcome, dir, require_corpus);
    }
    for protocol in BUILT.iter().filter(wanted) {
        add(&mut outcome, protocol, dir, protocol, seed, ENOUGH);
    }
    outcome
}

/// Checks one protocol of one folder. Rows that are missed count as failed when
/// there are too many of them, else as skipped; they are named either way. A
/// folder that cannot be read is one failure, and hides no other.
fn add(outcome: &mut Outcome, name: &str, dir: &Path, protocol: &str, seed: u64, enough: f64) {
    let report = match report(dir, protocol, seed) {
        Ok(report) => report,
        Err(error) => {
            outcome.tally.failed += 1;
            let trouble = outcome.trouble.get_or_insert_default();
            trouble.push_str(&format!("{name}: {error:#}\n"));
            return;
        }
    };
    outcome.notes.push(sum_up(name, &report));
    let misses = misses(&report);
    outcome.tally.passed += count(report.matched);
    if report.binding_percent() < enough {
        outcome.tally.failed += count(misses.len());
        let due = format!("{name}: at least {enough} % must match\n{}\n", misses.join("\n"));
        outcome.trouble.get_or_insert_default().push_str(&due);
    } else {
        outcome.tally.skipped += count(misses.len());
        outcome.notes.extend(misses);
    }
}

fn report(dir: &Path, protocol: &str, seed: u64) -> Result<Report> {
    let report = conformance::run(dir, protocol, seed)
        .with_context(|| format!("cannot check {}", dir.display()))?;
    if report.rows == 0 {
        bail!("{} has no row of the protocol {protocol}", dir.display());
    }
    Ok(report)
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

fn sum_up(name: &str, report: &Report) -> String {
    format!(
        "{name}: {} of {} rows match; of the {} binding ones {} ({:.1} %); {} truncations",
        report.matched,
        report.rows,
        report.binding_rows,
        report.binding_matched,
        report.binding_percent(),
        report.truncations
    )
}

fn misses(report: &Report) -> Vec<String> {
    let line = |miss: &conformance::Miss| {
        let lenient = match miss.lenient.is_empty() {
            true => String::new(),
            false => format!(" (lenient: {})", miss.lenient.join(", ")),
        };
        format!("  missed {}{lenient}: {}", miss.file, miss.differences.join("; "))
    };
    report.misses.iter().map(line).collect()
}

fn unknown(name: &str) -> String {
    let distance = |known: &&&str| strsim::damerau_levenshtein(name, known);
    let nearest = BUILT.iter().min_by_key(distance).unwrap_or(&"chat");
    format!("error: there is no protocol `{name}`; did you mean `{nearest}`?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_that_is_not_there_is_answered_with_the_nearest() {
        assert!(unknown("chta").contains("did you mean `chat`?"));
        assert!(unknown("gemni").contains("did you mean `gemini`?"));
    }

    #[test]
    fn without_the_corpus_the_own_streams_run_and_it_is_said_aloud() {
        let workspace = Workspace::find().unwrap();
        let nowhere = tempfile::tempdir().unwrap();
        let outcome = check(&workspace, nowhere.path(), None, false, 1);
        assert!(outcome.tally.passed > 0 && outcome.tally.failed == 0, "{outcome:?}");
        assert!(outcome.notes.iter().any(|note| note.starts_with("NO CORPUS")), "{outcome:?}");
        let required = check(&workspace, nowhere.path(), None, true, 1);
        assert_eq!((required.tally.failed, required.tally.passed), (1, outcome.tally.passed));
    }
}
