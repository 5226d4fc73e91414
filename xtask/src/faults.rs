//! The fault matrix: every named fault, played through the real client, the real
//! runtime and real sockets, and judged by what the server saw and the host was
//! told.
//!
//! [`cell`] says what is played, [`stage`] plays it, [`due`] says what has to come of
//! it, [`judge`] says what is wrong with what did. [`chaos`] plays scripts made by chance
//! in the same way.

mod cell;
mod chaos;
mod client;
mod dialect;
mod due;
mod judge;
mod log;
mod page;
mod paths;
mod plant;
mod row;
mod stage;
mod words;

use std::{collections::BTreeMap, fs, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use tokio::time::Instant;
use turnbuckle_faults::catalogue::{self, Recovery};

use self::{
    cell::{Cells, Choice},
    page::Sums,
    row::Row,
};
pub(crate) use self::{
    client::{Client, provider},
    dialect::Dialect,
};
use crate::{
    course::Outcome,
    terminal::{complain, say, table},
};

/// How many cells are played at once; most of their time is waiting.
const AT_ONCE: usize = 12;

/// The options of `test-faults`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Lists the faults instead of playing them.
    #[arg(long)]
    list: bool,
    /// Plays this fault alone, with its rows.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Plays this dialect alone.
    #[arg(long, value_enum)]
    dialect: Option<Dialect>,
    /// Chooses the texts, and the event at which each fault strikes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Plays the matrix so often, to find a verdict that is not always the same.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Prints one JSON object a cell, and one with the sums at the end.
    #[arg(long)]
    json: bool,
    /// Writes the matrix, and the log of every cell, into this one page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Writes down the way that each cell took, so that another one is seen the next time.
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    chaos: chaos::ChaosArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let known = |name: &&str| catalogue::find(name).is_some();
    if let Some(name) = args.only.as_deref().filter(|name| !known(name)) {
        complain(unknown(name));
        return Ok(ExitCode::from(2));
    }
    if args.list {
        say(list());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(done) = chaos::run(&args.chaos, args.dialect, args.seed)? {
        return Ok(done);
    }
    matrix(args)
}

fn matrix(args: &Args) -> Result<ExitCode> {
    let choice =
        Choice { only: args.only.as_deref(), dialect: args.dialect, thin: false, seed: args.seed };
    let tell = |line: &dyn std::fmt::Display| {
        if !args.json {
            say(line);
        }
    };
    let runtime = runtime()?;
    let mut failed = 0;
    let mut flaky: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for round in 1..=args.repeat {
        let began = Instant::now();
        let Cells { cells, without_script } = cell::cells(choice);
        if round == 1 {
            tell(&format_args!("seed {}\n\n{}", args.seed, Row::HEAD));
        }
        let mut page = Vec::new();
        let rows = runtime.block_on(row::play(cells, AT_ONCE, |row| {
            if args.json {
                say(page::cell(row, false));
            } else if args.repeat == 1 || !row.holds() {
                say(row.line());
            }
            if args.html.is_some() {
                page.push(page::cell(row, true));
            }
        }));
        let sum = row::tally(&rows);
        failed += sum.failed;
        for row in &rows {
            flaky.entry(row.name()).or_default().push(row.holds());
        }
        tell(&"");
        rows.iter().filter_map(Row::trouble).for_each(|trouble| tell(&trouble));
        without_script.iter().for_each(|why| tell(&format_args!("no script: {why}")));
        let sums = Sums::of(&rows, began.elapsed().as_secs_f64(), args.seed);
        tell(&format_args!("{}\n{}", sums.line(), sum.line()));
        if args.json {
            say(sums.json());
        }
        let all = args.only.is_none() && args.dialect.is_none();
        let differences = paths::compare(&rows, args.accept, all)?;
        differences
            .changed
            .iter()
            .for_each(|changed| tell(&format_args!("another way: {changed}")));
        if differences.new > 0 && !args.accept {
            tell(&format_args!("{} cells had no way so far: --accept notes it", differences.new));
        }
        if !args.accept {
            failed += u64::try_from(differences.changed.len()).unwrap_or(u64::MAX);
        }
        if let Some(path) = &args.html {
            fs::write(path, page::html(sums, &page, &sentences()))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    if args.repeat > 1 {
        let not_always = |seen: &&Vec<bool>| seen.iter().any(|held| Some(held) != seen.first());
        let count = flaky.values().filter(not_always).count();
        tell(&format_args!("{} runs, {count} verdicts that are not always the same", args.repeat));
    }
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// What each fault is, in a sentence.
fn sentences() -> serde_json::Value {
    let sentence =
        |entry: &catalogue::Entry| (entry.name.to_owned(), serde_json::Value::from(entry.sentence));
    catalogue::all().iter().map(sentence).collect()
}

/// The matrix as a part of `test`: each fault once in each dialect.
pub(crate) fn part(seed: u64) -> Result<Outcome> {
    let Cells { cells, without_script } =
        cell::cells(Choice { only: None, dialect: None, thin: true, seed });
    let rows = runtime()?.block_on(row::play(cells, AT_ONCE, |_| {}));
    let mut troubles: Vec<String> = rows.iter().filter_map(Row::trouble).collect();
    troubles.extend(without_script);
    let trouble = (!troubles.is_empty()).then(|| troubles.join("\n"));
    let note = format!(
        "{} faults in {} cells over {} dialects, seed {seed}",
        catalogue::all().len(),
        rows.len(),
        Dialect::ALL.len()
    );
    Ok(Outcome { tally: row::tally(&rows), notes: vec![note], trouble })
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")
}

fn list() -> String {
    let head = ["fault", "phase", "once", "always", "code", "what the server does"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for entry in catalogue::all().iter().chain(catalogue::variants()) {
        let expected = entry.expected;
        let once = match expected.recovery {
            Recovery::Final => "-".to_owned(),
            _ => expected.attempts_if_once.to_string(),
        };
        rows.push(vec![
            entry.name.to_owned(),
            expected.phase.unwrap_or("-").to_owned(),
            once,
            expected.attempts_if_always.to_string(),
            expected.code.unwrap_or("-").to_owned(),
            entry.sentence.to_owned(),
        ]);
    }
    let numbers = "once, always: attempts when the fault strikes once, or every time; \
                   what has a / in its name is a row of the fault before it";
    let (faults, variants) = (catalogue::all().len(), catalogue::variants().len());
    format!("{}\n\n{numbers}\n{faults} faults, {variants} rows of them", table(&rows))
}

fn unknown(name: &str) -> String {
    let distance = |known: &&str| strsim::damerau_levenshtein(name, known);
    let names = catalogue::all().iter().map(|entry| entry.name);
    match names.min_by_key(distance) {
        Some(nearest) => format!(
            "error: there is no fault named `{name}`; did you mean `{nearest}`? \
             `cargo xtask test-faults --list` names them all"
        ),
        None => format!("error: there is no fault named `{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_fault_names_the_nearest() {
        assert!(unknown("cut_inside_evnt").contains("did you mean `cut_inside_event`?"));
        assert!(unknown("ratelimit").contains("did you mean `rate_limit`?"));
    }

    #[test]
    fn every_fault_has_a_code_of_the_taxonomy() {
        use turnbuckle_errors::ErrorCode;
        for code in catalogue::all().iter().filter_map(|entry| entry.expected.code) {
            assert!(ErrorCode::ALL.iter().any(|known| known.as_str() == code), "{code}");
        }
    }

    #[test]
    fn the_list_names_every_fault() {
        let list = list();
        for entry in catalogue::all() {
            assert!(list.contains(entry.name) && list.contains(entry.sentence), "{list}");
        }
    }
}
