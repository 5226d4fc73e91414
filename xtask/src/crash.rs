//! Sessions that are killed for real: the real binary on a long scripted turn,
//! ended at seeded moments, opened again, and gone on with.
//!
//! [`chain`] plays one session through several ends, [`end`] brings them about,
//! [`store`] has the stores that fail, [`judge`] says what is wrong.

mod chain;
mod end;
mod judge;
mod process;
mod script;
mod store;

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context as _, Result, bail};
use futures_util::{StreamExt as _, stream};

use self::{chain::Ended, end::Kind};
use crate::{
    counts::Tally,
    course::Outcome,
    terminal::{say, table},
    workspace::Workspace,
};

/// How many sessions are played at once; most of their time is waiting.
const AT_ONCE: usize = 6;

/// A session that takes longer hangs. Generous, so that a busy machine is no fault.
const HUNG: Duration = Duration::from_secs(300);

/// The options of `test-crash`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often a process, or its store, is brought to an end.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    kills: u32,
    /// Chooses how and when each of them ends.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    say(format_args!("{} ends, seed {}\n", args.kills, args.seed));
    let sums = play(workspace, args)?;
    say(shown(&sums));
    let tally = tally(&sums);
    troubles(&sums).for_each(|trouble| say(format_args!("\n{trouble}")));
    say(format_args!("\n{}", tally.line()));
    Ok(ExitCode::from(u8::from(tally.failed > 0)))
}

/// The same as a part of `ci`.
pub(crate) fn part(workspace: &Workspace, kills: u32) -> Result<Outcome> {
    let sums = play(workspace, &Args { kills, seed: 1 })?;
    let all: Vec<&str> = troubles(&sums).collect();
    let trouble = (!all.is_empty()).then(|| all.join("\n"));
    let note = format!("{} ends of a process or its store, none lost, none doubled", kills);
    let notes = if trouble.is_none() { vec![note] } else { Vec::new() };
    Ok(Outcome { tally: tally(&sums), notes, trouble })
}

/// What came of the ends of one kind.
#[derive(Debug, Default)]
struct Sum {
    ends: u32,
    seen: Ended,
}

fn play(workspace: &Workspace, args: &Args) -> Result<BTreeMap<Kind, Sum>> {
    let binary = build(workspace)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(async {
        let chains = stream::iter(0_u64..).map(|number| {
            let binary = binary.clone();
            async move {
                let playing = tokio::time::timeout(HUNG, chain::play(&binary, args.seed, number));
                playing.await.unwrap_or_else(|_| bail!("hung: no end in {} s", HUNG.as_secs()))
            }
        });
        let mut playing = Box::pin(chains.buffered(AT_ONCE));
        let mut sums: BTreeMap<Kind, Sum> = BTreeMap::new();
        let mut ends = 0;
        while ends < args.kills {
            let Some(played) = playing.next().await else { break };
            for ended in played.context("a session could not be played")? {
                ends += 1;
                let sum = sums.entry(ended.kind).or_default();
                sum.ends += 1;
                sum.seen += ended;
            }
        }
        Ok(sums)
    })
}

fn build(workspace: &Workspace) -> Result<PathBuf> {
    let built = workspace
        .run("crash-build", workspace.cargo(&["build", "--locked", "--package", "turnbuckle"]))?;
    if !built.ok {
        bail!("the program does not build\n{}", built.tail());
    }
    let name = format!("turnbuckle{}", std::env::consts::EXE_SUFFIX);
    Ok(workspace.target().join("debug").join(name))
}

fn tally(sums: &BTreeMap<Kind, Sum>) -> Tally {
    let mut tally = Tally::default();
    for sum in sums.values() {
        let broken = u32::try_from(sum.seen.complaints.len()).unwrap_or(u32::MAX).min(sum.ends);
        for at in 0..sum.ends {
            tally += Tally::one(at >= broken);
        }
    }
    tally
}

fn troubles(sums: &BTreeMap<Kind, Sum>) -> impl Iterator<Item = &str> {
    sums.values().flat_map(|sum| sum.seen.complaints.iter().map(String::as_str))
}

fn shown(sums: &BTreeMap<Kind, Sum>) -> String {
    let head = [
        "how it ended",
        "ends",
        "in text",
        "in a tool",
        "between",
        "torn",
        "committed",
        "lost",
        "effects",
        "doubled",
        "requests",
        "invalid",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut all = Sum::default();
    for (kind, sum) in sums {
        rows.push(row(kind.name(), sum));
        all.ends += sum.ends;
        all.seen += sum.seen.clone();
    }
    rows.push(row("all", &all));
    table(&rows)
}

fn row(name: &str, sum: &Sum) -> Vec<String> {
    let seen = &sum.seen;
    let mut row = vec![name.to_owned(), sum.ends.to_string()];
    let numbers = [
        seen.in_text,
        seen.in_tools,
        seen.between,
        seen.torn,
        seen.committed,
        seen.lost,
        seen.effects,
        seen.doubled,
        seen.requests,
        seen.invalid,
    ];
    row.extend(numbers.map(|number| number.to_string()));
    row
}
