//! What came of one cell.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::{
    cell::Cell,
    judge, paths,
    stage::{self, Seen},
};
use crate::counts::Tally;

/// A cell that takes longer hangs. Generous, so that a busy machine is no fault.
const HUNG: Duration = Duration::from_secs(60);

/// One cell, played and judged.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) cell: Cell,
    pub(crate) complaints: Vec<String>,
    /// The way it took, of which chance has no part; none if it took none.
    pub(crate) path: Option<String>,
    /// What was seen; none if it could not be played.
    pub(crate) seen: Option<Seen>,
}

impl Row {
    pub(crate) const HEAD: &str = "dialect    fault                      when               phase    attempts  outcome    code                          ms  verdict";

    pub(crate) fn line(&self) -> String {
        let dialect = self.cell.dialect().name();
        let (fault, when) = (self.cell.entry.name, self.cell.when.to_string());
        let (phase, code) = (self.of_failure("/details/phase"), self.of_failure("/code"));
        let (attempts, outcome) = (self.attempts(), self.outcome());
        let (ms, verdict) = (self.took_ms(), self.verdict());
        format!(
            "{dialect:<10} {fault:<26} {when:<18} {phase:<8} {attempts:>8}  {outcome:<10} {code:<27} {ms:>4}  {verdict}"
        )
    }

    pub(crate) fn holds(&self) -> bool {
        self.complaints.is_empty()
    }

    pub(crate) fn verdict(&self) -> &'static str {
        if self.holds() { "holds" } else { "BROKEN" }
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

    /// Of the first prompt; what follows it only shows what is remembered.
    pub(crate) fn outcome(&self) -> &str {
        let told = self.seen.as_ref().and_then(|seen| seen.prompts.first());
        told.map_or("-", |told| told.outcome_word())
    }

    /// Attempts of the first prompt.
    pub(crate) fn attempts(&self) -> usize {
        let told = self.seen.as_ref().and_then(|seen| seen.prompts.first());
        told.map_or(0, |told| told.attempts())
    }

    /// A word of the first failure that was told.
    pub(crate) fn of_failure(&self, pointer: &str) -> &str {
        let failure = self.seen.as_ref().and_then(Seen::first_failure);
        let word = failure.and_then(|failure| failure.pointer(pointer)?.as_str());
        word.unwrap_or("-")
    }

    pub(crate) fn took_ms(&self) -> u128 {
        self.seen.as_ref().map_or(0, |seen| seen.took.as_millis())
    }
}

pub(crate) fn tally(rows: &[Row]) -> Tally {
    let mut sum = Tally::default();
    for row in rows {
        sum += Tally::one(row.holds());
    }
    sum
}

/// Plays the cells, so many at once, and reports each in its order. The heavy ones come
/// last, so that no clock of another runs out beside them.
pub(crate) async fn play(
    cells: Vec<Cell>,
    at_once: usize,
    mut report: impl FnMut(&Row),
) -> Vec<Row> {
    let (heavy, light): (Vec<Cell>, Vec<Cell>) = cells.into_iter().partition(Cell::is_heavy);
    let mut rows = Vec::new();
    for (cells, at_once) in [(light, at_once), (heavy, 1)] {
        let mut playing = stream::iter(cells).map(play_one).buffered(at_once);
        while let Some(row) = playing.next().await {
            report(&row);
            rows.push(row);
        }
    }
    rows
}

async fn play_one(cell: Cell) -> Row {
    let part = cell.part.clone();
    let (seen, mut complaints) = watched(&part, None).await;
    let path = seen.as_ref().map(|seen| {
        complaints.extend(judge::complaints(&part, seen));
        complaints.extend(documented(&cell, seen));
        paths::path(seen)
    });
    Row { cell, complaints, path, seen }
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
