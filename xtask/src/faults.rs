//! The fault matrix: every named fault, played through the real client, the real
//! runtime and real sockets, and judged by what the server saw and the host was
//! told.
//!
//! [`cell`] says what is played, [`stage`] plays it, [`due`] says what has to come of
//! it, [`judge`] says what is wrong with what did.

mod cell;
mod client;
mod dialect;
mod due;
mod judge;
mod paths;
mod plant;
mod row;
mod stage;
mod words;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tokio::time::Instant;
use turnbuckle_faults::catalogue::{self, Recovery};

use self::{
    cell::{Cells, Choice},
    dialect::Dialect,
    row::Row,
};
use crate::{
    course::Outcome,
    terminal::{complain, say, table},
};

/// How many cells are played at once; most of their time is waiting.
const AT_ONCE: usize = 32;

/// The options of `test-faults`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Lists the faults instead of playing them.
    #[arg(long)]
    list: bool,
    /// Plays this fault alone.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Plays this dialect alone.
    #[arg(long, value_enum)]
    dialect: Option<Dialect>,
    /// Chooses the texts, and the event at which each fault strikes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(name) = args.only.as_deref().filter(|name| catalogue::find(name).is_none()) {
        complain(unknown(name));
        return Ok(ExitCode::from(2));
    }
    if args.list {
        say(list());
        return Ok(ExitCode::SUCCESS);
    }
    let choice =
        Choice { only: args.only.as_deref(), dialect: args.dialect, thin: false, seed: args.seed };
    let began = Instant::now();
    let Cells { cells, without_script } = cell::cells(choice);
    say(format_args!("seed {}\n\n{}", args.seed, Row::HEAD));
    let rows = runtime()?.block_on(row::play(cells, AT_ONCE, |row| say(row.line())));
    let sum = row::tally(&rows);
    say("");
    rows.iter().filter_map(Row::trouble).for_each(say);
    without_script.iter().for_each(|why| say(format_args!("no script: {why}")));
    say(format_args!(
        "{} faults, {} cells, {:.1} s\n{}",
        catalogue::all().len(),
        rows.len(),
        began.elapsed().as_secs_f64(),
        sum.line()
    ));
    Ok(ExitCode::from(u8::from(sum.failed > 0)))
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
    for entry in catalogue::all() {
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
    let numbers = "once, always: attempts when the fault strikes once, or every time";
    format!("{}\n\n{numbers}", table(&rows))
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
