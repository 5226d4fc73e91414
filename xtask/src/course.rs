//! Parts run one after another. One that fails hides none of the others, and
//! what it printed is shown only then.

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use tokio::time::Instant;

use crate::{
    counts::Tally,
    terminal::{begin, say, table},
    workspace::Ran,
};

/// What came of one part.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    /// Said in any case, after the table.
    pub(crate) notes: Vec<String>,
    /// Shown because the part failed.
    pub(crate) trouble: Option<String>,
}

impl Outcome {
    /// A command that is one check by itself.
    pub(crate) fn check(ran: &Ran) -> Self {
        Self {
            tally: Tally::one(ran.ok),
            notes: Vec::new(),
            trouble: (!ran.ok).then(|| ran.tail()),
        }
    }

    /// One check that holds when it has nothing to complain about.
    pub(crate) fn complaints(complaints: &[String]) -> Self {
        let ok = complaints.is_empty();
        Self {
            tally: Tally::one(ok),
            notes: Vec::new(),
            trouble: (!ok).then(|| complaints.join("\n")),
        }
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    fn failed(&self) -> bool {
        self.tally.failed > 0
    }
}

/// The parts so far.
#[derive(Debug, Default)]
pub(crate) struct Course {
    rows: Vec<(&'static str, Outcome, Duration)>,
}

impl Course {
    /// Runs a part and says how it went. An error of its own counts as one
    /// failure.
    pub(crate) fn part(&mut self, name: &'static str, run: impl FnOnce() -> Result<Outcome>) {
        begin(format_args!("{name:<12} "));
        let began = Instant::now();
        let outcome = run().unwrap_or_else(|error| Outcome {
            tally: Tally::one(false),
            notes: Vec::new(),
            trouble: Some(format!("{error:#}")),
        });
        let took = began.elapsed();
        let verdict = if outcome.failed() { "FAILED" } else { "ok" };
        say(format_args!("{verdict:<7} {:>6.1} s", took.as_secs_f64()));
        if let Some(trouble) = &outcome.trouble {
            say(format_args!("\n{trouble}\n"));
        }
        self.rows.push((name, outcome, took));
    }

    /// Prints the table and the sum, and gives the exit code.
    pub(crate) fn finish(&self) -> ExitCode {
        let (summary, sum) = self.sum_up();
        say(summary);
        ExitCode::from(u8::from(sum.failed > 0))
    }

    /// The table, what else is to be said, and the sum as the last line.
    fn sum_up(&self) -> (String, Tally) {
        let head = ["part", "verdict", "passed", "failed", "skipped", "seconds"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let (mut sum, mut whole) = (Tally::default(), Duration::ZERO);
        let mut said = Vec::new();
        let mut failed = Vec::new();
        for (name, outcome, took) in &self.rows {
            sum += outcome.tally;
            whole += *took;
            rows.push(row(name, outcome.tally, *took));
            said.extend(outcome.notes.iter().map(String::as_str));
            failed.extend(outcome.failed().then_some(*name));
        }
        rows.push(row("all", sum, whole));
        let mut summary = format!("\n{}\n\n", table(&rows));
        for line in said {
            summary.push_str(&format!("{line}\n"));
        }
        if !failed.is_empty() {
            summary.push_str(&format!("failed: {}\n", failed.join(", ")));
        }
        (summary + &sum.line(), sum)
    }
}

fn row(name: &str, tally: Tally, took: Duration) -> Vec<String> {
    let Tally { passed, failed, skipped } = tally;
    let verdict = if failed > 0 { "FAILED" } else { "ok" };
    let mut row = vec![name.to_owned(), verdict.to_owned()];
    row.extend([passed, failed, skipped].map(|count| count.to_string()));
    row.push(format!("{:.1}", took.as_secs_f64()));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_breaks_is_a_failure_and_the_next_one_still_runs() {
        let mut course = Course::default();
        let mut ran = false;
        course.part("broken", || anyhow::bail!("no cargo here"));
        course.part("next", || {
            ran = true;
            Ok(Outcome::complaints(&[]))
        });
        assert!(ran);
        let (summary, sum) = course.sum_up();
        assert_eq!(sum, Tally { passed: 1, failed: 1, skipped: 0 });
        assert!(summary.ends_with("\nfailed: broken\n1 passed, 1 failed"), "{summary}");
    }
}
