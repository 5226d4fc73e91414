//! What came of one cell.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::{
    cell::Cell,
    judge,
    log::{self, Line},
    paths,
    stage::{self, Seen, Told},
};
use crate::counts::Tally;

/// A cell that takes longer hangs. Generous, so that a busy machine is no fault.
const HUNG: Duration = Duration::from_secs(180);

/// One cell, played and judged.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) cell: Cell,
    pub(crate) complaints: Vec<String>,
    /// The way it took, of which chance has no part; none if it took none.
    pub(crate) path: Option<String>,
    /// Of the first prompt; what follows it only shows what is remembered.
    pub(crate) outcome: String,
    /// Attempts of the first prompt.
    pub(crate) attempts: usize,
    /// The first failure that was told.
    pub(crate) code: String,
    pub(crate) phase: String,
    pub(crate) ms: u64,
    /// What the host was told, and what the server saw.
    pub(crate) logs: Logs,
}

/// What was seen, in lines.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    pub(crate) events: Vec<Line>,
    pub(crate) requests: Vec<Line>,
}

impl Row {
    pub(crate) const HEAD: &str = "dialect    fault                                    when               phase    attempts  outcome    code                          ms  verdict";

    /// What was seen is left behind: of all cells together it would be too much.
    fn new(cell: Cell, complaints: Vec<String>, seen: Option<&Seen>) -> Self {
        let failure = seen.and_then(Seen::first_failure);
        let word = |pointer: &str| {
            let word = failure.and_then(|failure| failure.pointer(pointer)?.as_str());
            word.unwrap_or("-").to_owned()
        };
        let told = seen.and_then(|seen| seen.prompts.first());
        let ms = seen.map_or(0, |seen| seen.took.as_millis());
        let logs = |seen| Logs { events: log::events(seen), requests: log::requests(seen) };
        Self {
            complaints,
            path: seen.map(paths::path),
            outcome: told.map_or("-", Told::outcome_word).to_owned(),
            attempts: told.map_or(0, Told::attempts),
            code: word("/code"),
            phase: word("/details/phase"),
            ms: u64::try_from(ms).unwrap_or(u64::MAX),
            logs: seen.map(logs).unwrap_or_default(),
            cell,
        }
    }

    pub(crate) fn line(&self) -> String {
        let dialect = self.cell.dialect().name();
        let (fault, when) = (self.cell.entry.name, self.cell.when.to_string());
        let Self { phase, code, attempts, outcome, ms, .. } = self;
        let verdict = if self.holds() { "holds" } else { "BROKEN" };
        format!(
            "{dialect:<10} {fault:<40} {when:<18} {phase:<8} {attempts:>8}  {outcome:<10} {code:<27} {ms:>4}  {verdict}"
        )
    }

    pub(crate) fn holds(&self) -> bool {
        self.complaints.is_empty()
    }

    /// Dialect, fault and situation, in words that find it again.
    pub(crate) fn name(&self) -> String {
        format!("{}, {}, {}", self.cell.dialect().name(), self.cell.entry.name, self.cell.when)
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        let each = self.complaints.iter().map(|complaint| format!("  - {complaint}\n"));
        let each: String = each.collect();
        (!self.holds()).then(|| format!("{}:\n{each}", self.name()))
    }
}

pub(crate) fn tally(rows: &[Row]) -> Tally {
    let mut sum = Tally::default();
    for row in rows {
        sum += Tally::one(row.holds());
    }
    sum
}

/// Plays the cells, so many at once, and reports each when it is done. Those that wait
/// for a clock wait together, beside nothing that takes the machine's time; the heavy
/// ones come last, one by one.
pub(crate) async fn play(
    cells: Vec<Cell>,
    at_once: usize,
    mut report: impl FnMut(&Row),
) -> Vec<Row> {
    let (heavy, light): (Vec<Cell>, Vec<Cell>) = cells.into_iter().partition(Cell::is_heavy);
    let (clocked, quick): (Vec<Cell>, Vec<Cell>) =
        light.into_iter().partition(|cell| stage::waits_for_a_clock(&cell.part.script));
    let mut rows = Vec::new();
    for (cells, at_once) in [(quick, at_once), (clocked, 2 * at_once), (heavy, 1)] {
        let mut playing = stream::iter(cells).map(play_one).buffered(at_once);
        while let Some(row) = playing.next().await {
            report(&row);
            rows.push(row);
        }
    }
    rows
}

async fn play_one(cell: Cell) -> Row {
    let (seen, mut complaints) = watched(&cell.part, None).await;
    if let Some(seen) = &seen {
        complaints.extend(judge::complaints(&cell.part, seen));
        complaints.extend(documented(&cell, seen));
    }
    Row::new(cell, complaints, seen.as_ref())
}

/// The numbers of the catalogue say what the budgets say.
fn documented(cell: &Cell, seen: &Seen) -> Option<String> {
    let due = cell.documented_attempts() as usize;
    let told = seen.prompts.first().map_or(0, |told| told.attempts());
    let complaint = || format!("the catalogue documents {due} attempts, it took {told}");
    (told != due).then(complaint)
}

/// Plays a part as a task of its own; one that hangs or breaks down is a complaint.
pub(crate) async fn watched(
    part: &stage::Part,
    plant: Option<super::plant::Plant>,
) -> (Option<Seen>, Vec<String>) {
    let part = part.clone();
    let playing = async move {
        let played = AssertUnwindSafe(stage::play(&part, plant)).catch_unwind();
        tokio::time::timeout(HUNG, played).await
    };
    let complaint = match tokio::spawn(playing).await {
        Ok(Ok(Ok(Ok(seen)))) => return (Some(seen), Vec::new()),
        Ok(Ok(Ok(Err(error)))) => format!("could not be played: {error:#}"),
        Ok(Ok(Err(_))) | Err(_) => "the client or the server broke down".to_owned(),
        Ok(Err(_)) => format!("hung: no end within {} s", HUNG.as_secs()),
    };
    (None, vec![complaint])
}
