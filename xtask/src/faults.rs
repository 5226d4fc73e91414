//! The fault matrix: every named fault, played through the real client, the real
//! runtime and real sockets, and judged by what the server saw and the host was
//! told.
//!
//! [`cell`] says what is played, [`stage`] plays it, [`judge`] says what is wrong
//! with what came of it.

mod cell;
mod judge;
mod stage;

use std::{process::ExitCode, time::Duration};

use anyhow::{Context as _, Result};
use futures_util::{StreamExt as _, stream};
use turnbuckle_faults::catalogue::{self, Recovery};

use self::cell::{Cell, Dialect};
use crate::{
    counts::Tally,
    course::Outcome,
    terminal::{complain, say, table},
};

/// How many cells are played at once; most of their time is waiting.
const AT_ONCE: usize = 4;

/// A cell that takes longer hangs. Generous, so that a busy machine is no fault.
const HUNG: Duration = Duration::from_secs(60);

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
    say(format_args!("seed {}\n\n{}", args.seed, Row::HEAD));
    let rows =
        play(cell::cells(args.only.as_deref(), args.dialect, args.seed)?, |row| say(row.line()))?;
    let sum = tally(&rows);
    say("");
    rows.iter().filter_map(Row::trouble).for_each(say);
    say(sum.line());
    Ok(ExitCode::from(u8::from(sum.failed > 0)))
}

/// The matrix as a part of `test`.
pub(crate) fn part(seed: u64) -> Result<Outcome> {
    let rows = play(cell::cells(None, None, seed)?, |_| {})?;
    let troubles: Vec<String> = rows.iter().filter_map(Row::trouble).collect();
    let trouble = (!troubles.is_empty()).then(|| troubles.join("\n"));
    let note = format!(
        "{} faults in {} cells over {} dialects, seed {seed}",
        catalogue::all().len(),
        rows.len(),
        Dialect::ALL.len()
    );
    Ok(Outcome { tally: tally(&rows), notes: vec![note], trouble })
}

/// What came of one cell.
#[derive(Debug)]
struct Row {
    dialect: &'static str,
    fault: &'static str,
    variant: &'static str,
    phase: String,
    /// By the server's count.
    attempts: String,
    outcome: String,
    code: String,
    complaints: Vec<String>,
}

impl Row {
    const HEAD: &str = "dialect    fault                      when        phase    attempts  outcome    code                        verdict";

    fn line(&self) -> String {
        let Self { dialect, fault, variant, phase, attempts, outcome, code, complaints } = self;
        let verdict = if complaints.is_empty() { "holds" } else { "BROKEN" };
        format!(
            "{dialect:<10} {fault:<26} {variant:<11} {phase:<8} {attempts:>8}  {outcome:<10} {code:<27} {verdict}"
        )
    }

    fn trouble(&self) -> Option<String> {
        let each = self.complaints.iter().map(|complaint| format!("  - {complaint}\n"));
        let each: String = each.collect();
        let heading = format!("{}, {}, {}:\n", self.dialect, self.fault, self.variant);
        (!self.complaints.is_empty()).then(|| heading + &each)
    }
}

fn tally(rows: &[Row]) -> Tally {
    let mut sum = Tally::default();
    for row in rows {
        sum += Tally::one(row.complaints.is_empty());
    }
    sum
}

/// Plays the cells, several at once, and reports each in its order.
fn play(cells: Vec<Cell>, mut report: impl FnMut(&Row)) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(async {
        let mut playing = stream::iter(cells).map(play_one).buffered(AT_ONCE);
        let mut rows = Vec::new();
        while let Some(row) = playing.next().await {
            report(&row);
            rows.push(row);
        }
        Ok(rows)
    })
}

async fn play_one(cell: Cell) -> Row {
    let (dialect, fault, variant) = (cell.dialect.name(), cell.entry.name, cell.variant.name());
    let blank = |complaint| Row {
        dialect,
        fault,
        variant,
        phase: "-".to_owned(),
        attempts: "?".to_owned(),
        outcome: "-".to_owned(),
        code: "-".to_owned(),
        complaints: vec![complaint],
    };
    let playing = tokio::spawn(async move {
        let seen = tokio::time::timeout(HUNG, stage::play(&cell)).await;
        (seen, cell)
    });
    let (seen, cell) = match playing.await {
        Ok((Ok(Ok(seen)), cell)) => (seen, cell),
        Ok((Ok(Err(error)), _)) => return blank(format!("could not be played: {error:#}")),
        Ok((Err(_), _)) => return blank(format!("hung: no end within {} s", HUNG.as_secs())),
        Err(_) => return blank("the client or the server broke down".to_owned()),
    };
    let failure = seen.first_failure();
    let of = |field: &str| {
        let word = failure.and_then(|failure| failure.pointer(field)?.as_str());
        word.unwrap_or("-").to_owned()
    };
    Row {
        dialect,
        fault,
        variant,
        phase: of("/details/phase"),
        attempts: seen.attempts.to_string(),
        outcome: seen.outcome_word().to_owned(),
        code: of("/code"),
        complaints: judge::complaints(&cell, &seen),
    }
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
