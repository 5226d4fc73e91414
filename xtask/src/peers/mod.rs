//! Real peers: servers that others wrote, spoken to by the real adapters through
//! the real runtime and tools, over loopback.
//!
//! [`peer`] says who they are and what each one shows, [`turn`] plays a turn,
//! [`judge`] says what is wrong with what came of it. A peer that is not installed
//! is named and skipped; `docs/PEERS.md` says how to install them.

mod child;
mod cut;
mod dialect;
mod http;
mod judge;
mod peer;
mod servers;
mod turn;

use std::{future::Future, process::ExitCode};

use anyhow::{Context as _, Result};
use tokio::signal::unix::{SignalKind, signal};

use self::peer::{Peer, Places};
use crate::{
    counts::Tally,
    terminal::{complain, say, table},
    workspace::Workspace,
};

/// The options of `test-peers`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Speaks to this peer alone.
    #[arg(long, value_enum, value_name = "PEER")]
    only: Option<Peer>,
    /// Fails when a peer is not installed, instead of skipping it.
    #[arg(long)]
    require: bool,
}

/// Runs them, and ends every server whatever happens.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let places = Places::of(workspace)?;
    let finished = runtime.block_on(until_stopped(all(&places, args)))?;
    let Some(rows) = finished else {
        complain("stopped; the servers are ended");
        return Ok(ExitCode::from(130));
    };
    say(format_args!("\n{}\n", table(&lines(&rows))));
    let tally = sum(&rows);
    rows.iter().filter_map(Row::trouble).for_each(say);
    if rows.iter().any(Row::is_absent) {
        say("How to install what is skipped: docs/PEERS.md");
    }
    let Tally { passed, failed, skipped } = tally;
    say(format_args!("{passed} passed, {failed} failed, {skipped} skipped"));
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// `None` if a person or the system ended us: the work is dropped, and with it
/// every child.
async fn until_stopped<T>(work: impl Future<Output = T>) -> Result<Option<T>> {
    let mut terminated = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    tokio::select! {
        done = work => Ok(Some(done)),
        _ = terminated.recv() => Ok(None),
        _ = tokio::signal::ctrl_c() => Ok(None),
    }
}

async fn all(places: &Places, args: &Args) -> Vec<Row> {
    let mut rows = Vec::new();
    for peer in Peer::ALL.into_iter().filter(|peer| args.only.is_none_or(|only| only == *peer)) {
        say(format_args!("{} …", peer.title()));
        rows.extend(peer.play(places, args.require).await);
    }
    rows
}

/// Stands for the dialect and the turn in a row about a whole peer.
const NONE: &str = "-";

/// What came of one turn, or why there was none.
#[derive(Debug)]
pub(crate) struct Row {
    peer: &'static str,
    dialect: &'static str,
    turn: &'static str,
    verdict: Verdict,
    /// What was seen, or why it was skipped.
    seen: String,
}

#[derive(Debug)]
pub(crate) enum Verdict {
    Passed,
    /// With what is wrong.
    Failed(Vec<String>),
    Skipped,
}

impl Row {
    fn line(&self) -> Vec<String> {
        let verdict = match self.verdict {
            Verdict::Passed => "passed",
            Verdict::Failed(_) => "FAILED",
            Verdict::Skipped => "skipped",
        };
        [self.peer, self.dialect, self.turn, verdict, &self.seen].map(str::to_owned).to_vec()
    }

    /// Whether a whole peer was skipped.
    fn is_absent(&self) -> bool {
        self.dialect == NONE && matches!(self.verdict, Verdict::Skipped)
    }

    fn trouble(&self) -> Option<String> {
        let Verdict::Failed(complaints) = &self.verdict else { return None };
        let each: String = complaints.iter().map(|one| format!("  - {one}\n")).collect();
        Some(format!("{}, {}, {}:\n{each}", self.peer, self.dialect, self.turn))
    }
}

fn lines(rows: &[Row]) -> Vec<Vec<String>> {
    let head = ["peer", "dialect", "turn", "outcome", "seen"].map(str::to_owned).to_vec();
    std::iter::once(head).chain(rows.iter().map(Row::line)).collect()
}

fn sum(rows: &[Row]) -> Tally {
    let mut sum = Tally::default();
    for row in rows {
        sum += match row.verdict {
            Verdict::Skipped => Tally { skipped: 1, ..Tally::default() },
            ref verdict => Tally::one(matches!(verdict, Verdict::Passed)),
        };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: Verdict) -> Row {
        Row { peer: "p", dialect: "d", turn: "t", verdict, seen: "s".to_owned() }
    }

    #[test]
    fn what_is_skipped_is_counted_and_never_a_failure() {
        let wrong = Verdict::Failed(vec!["it said nothing".to_owned()]);
        let rows = [row(Verdict::Passed), row(Verdict::Skipped), row(wrong)];
        assert_eq!(sum(&rows), Tally { passed: 1, failed: 1, skipped: 1 });
        assert_eq!(lines(&rows)[2], ["p", "d", "t", "skipped", "s"]);
        let told: Vec<String> = rows.iter().filter_map(Row::trouble).collect();
        assert_eq!(told, ["p, d, t:\n  - it said nothing\n"]);
    }
}
