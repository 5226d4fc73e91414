//! Scripts by chance: each is played like a cell of the matrix and held against the same
//! promises. One that breaks a promise is made as short as it can be, and written down.

mod draw;
mod replay;
mod shrink;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use super::{
    dialect::Dialect,
    judge,
    plant::Plant,
    row,
    stage::{self, Part, Seen},
};
use crate::terminal::say;

/// How many sessions are played at once.
const AT_ONCE: usize = 8;

/// So often a script is played again in which a clock ran out that should not have.
const MOST_BUSY: u32 = 3;

/// After so many scripts, a line says how far it is.
const TOLD: u64 = 500;

/// So many broken scripts are made short and written; the others are only counted.
const WRITTEN: usize = 5;

/// The options of `test-faults` for scripts by chance.
#[derive(Debug, clap::Args)]
pub(super) struct ChaosArgs {
    /// Plays so many scripts made by chance, instead of the matrix.
    #[arg(long, value_name = "N", conflicts_with = "only")]
    chaos: Option<u64>,
    /// The number of the first of these scripts, to play again what a failure names.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "chaos")]
    from: u64,
    /// Plays this script, as a failure of `--chaos` has written it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "chaos"])]
    replay: Option<PathBuf>,
    /// Where scripts are written that break a promise.
    #[arg(long, value_name = "FOLDER", default_value = "target/faults")]
    broken: PathBuf,
    /// Plants a fault in what is seen of the runtime, to see it found.
    #[arg(long, value_enum)]
    plant: Option<Plant>,
}

/// Plays what is asked for; nothing if it is the matrix.
pub(super) fn run(
    args: &ChaosArgs,
    dialect: Option<Dialect>,
    seed: u64,
) -> Result<Option<ExitCode>> {
    let runtime = super::runtime()?;
    if let Some(path) = &args.replay {
        return runtime.block_on(replay::play(path, dialect, args.plant)).map(Some);
    }
    let Some(count) = args.chaos else { return Ok(None) };
    runtime.block_on(play(args, dialect, count, seed)).map(Some)
}

/// What all scripts came to.
#[derive(Debug, Default)]
struct Sum {
    played: u64,
    steps: usize,
    attempts: usize,
    retries: usize,
    calls: usize,
    prompts: (usize, usize),
    broken: usize,
}

async fn play(
    args: &ChaosArgs,
    dialect: Option<Dialect>,
    count: u64,
    seed: u64,
) -> Result<ExitCode> {
    let began = Instant::now();
    say(format_args!("{count} scripts, seed {seed}, {AT_ONCE} sessions at a time"));
    let mut playing = stream::iter(args.from..args.from.saturating_add(count))
        .map(|number| play_one(dialect, seed, number, args.plant))
        .buffer_unordered(AT_ONCE);
    let mut sum = Sum::default();
    let mut broken = Vec::new();
    while let Some(played) = playing.next().await {
        let Played { number, part, seen, complaints } = played?;
        sum.add(&part, seen.as_ref());
        if count == 1 {
            say(format_args!("{}:\n{}", part.dialect.name(), part.script));
        }
        if !complaints.is_empty() {
            sum.broken += 1;
            say(format_args!("BROKEN  script {number}: {}", complaints.join("; ")));
            broken.push((number, part, complaints));
        }
        if sum.played % TOLD == 0 && sum.played < count {
            let seconds = began.elapsed().as_secs();
            say(format_args!("{} played, {} broken, {seconds} s", sum.played, sum.broken));
        }
    }
    broken.sort_by_key(|(number, ..)| *number);
    for (number, part, complaints) in broken.into_iter().take(WRITTEN) {
        let (part, complaints, how) = smallest(part, args.plant, complaints).await;
        let name = format!("chaos-{seed}-{number}.toml");
        let path = replay::write(&args.broken, &name, &part, &complaints)?;
        say(format_args!("\nscript {number}, {how}:\n{}", part.script));
        complaints.iter().for_each(|complaint| say(format_args!("  - {complaint}")));
        say(format_args!("  again: cargo xtask test-faults --replay {}", path.display()));
    }
    say(format_args!("\n{}", sum.line(began.elapsed().as_secs_f64())));
    Ok(ExitCode::from(u8::from(sum.broken > 0)))
}

/// The shortest script that breaks something; as it is, if it does so no more.
async fn smallest(
    part: Part,
    plant: Option<Plant>,
    complaints: Vec<String>,
) -> (Part, Vec<String>, &'static str) {
    let again = broken_by(&part, plant).await;
    if again.is_empty() {
        return (part, complaints, "not broken when it was played again");
    }
    let (part, complaints) = shrink::shrink(&part, plant, again).await;
    (part, complaints, "made as short as it can be")
}

struct Played {
    number: u64,
    part: Part,
    seen: Option<Seen>,
    complaints: Vec<String>,
}

async fn play_one(
    dialect: Option<Dialect>,
    seed: u64,
    number: u64,
    plant: Option<Plant>,
) -> Result<Played> {
    let part = draw::part(dialect, seed, number)?;
    let (seen, complaints) = judged(&part, plant).await;
    Ok(Played { number, part, seen, complaints })
}

/// What a script breaks.
async fn broken_by(part: &Part, plant: Option<Plant>) -> Vec<String> {
    judged(part, plant).await.1
}

/// Plays a script and judges it. Where silent servers are to be found out soon, the clock
/// is short for all of them, and on a busy machine may run out for one that is not silent;
/// what was then seen says nothing, and is played again.
async fn judged(part: &Part, plant: Option<Plant>) -> (Option<Seen>, Vec<String>) {
    let mut busy = 0;
    loop {
        let (seen, mut complaints) = row::watched(part, plant).await;
        let Some(seen) = seen else { return (None, complaints) };
        let (due, found) = judge::against(part, &seen);
        complaints.extend(found);
        let clock = !complaints.is_empty()
            && stage::waits_for_a_clock(&part.script)
            && ["request", "stream"].into_iter().any(|it| seen.expired(it) > due.expired(it));
        if !clock || busy == MOST_BUSY {
            return (Some(seen), complaints);
        }
        busy += 1;
    }
}

impl Sum {
    fn add(&mut self, part: &Part, seen: Option<&Seen>) {
        self.played += 1;
        self.steps += part.script.steps().len();
        let Some(seen) = seen else { return };
        for told in &seen.prompts {
            self.attempts += told.attempts();
            self.retries += told.count("retry_started");
            self.calls += told.count("tool_execution_start");
            match told.outcome_word() {
                "completed" => self.prompts.0 += 1,
                _ => self.prompts.1 += 1,
            }
        }
    }

    fn line(&self, seconds: f64) -> String {
        let Self { played, steps, attempts, retries, calls, prompts, broken } = self;
        let (completed, failed) = prompts;
        format!(
            "{played} scripts of {steps} steps: {attempts} attempts, {retries} retries, {calls} \
             calls, {completed} prompts completed, {failed} failed as they must\n\
             {broken} broken, {seconds:.1} s"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the scripts that a plant is looked for in.
    const TRIED: u64 = 60;

    /// Each planted fault is found, and what is left of its script is short, breaks
    /// nothing without the fault, and can be read back from its file.
    async fn found(plant: Plant, expected: &str) {
        for number in 0..TRIED {
            let part = draw::part(Some(Dialect::Chat), 7, number).unwrap();
            let broken = broken_by(&part, Some(plant)).await;
            if broken.is_empty() {
                continue;
            }
            let (small, complaints) = shrink::shrink(&part, Some(plant), broken).await;
            assert!(complaints.iter().any(|c| c.contains(expected)), "{complaints:?}");
            assert!(small.script.steps().len() <= 3, "{}", small.script);
            assert_eq!(broken_by(&small, None).await, [""; 0], "{}", small.script);
            let folder = tempfile::tempdir().unwrap();
            let path = replay::write(folder.path(), "it.toml", &small, &complaints).unwrap();
            let again = replay::read(&path, None).unwrap();
            assert_eq!((again.dialect, &again.script), (small.dialect, &small.script));
            assert!(!broken_by(&again, Some(plant)).await.is_empty());
            return;
        }
        panic!("{plant:?} was not found in {TRIED} scripts");
    }

    #[tokio::test]
    async fn a_policy_that_pays_more_is_found_and_made_short() {
        found(Plant::Generous, "retries are due").await;
    }

    #[tokio::test]
    async fn a_wait_that_is_too_short_is_found_and_made_short() {
        found(Plant::Hasty, "waits").await;
    }

    #[tokio::test]
    async fn text_told_twice_is_found_and_made_short() {
        found(Plant::RepeatText, "was told").await;
    }

    #[tokio::test]
    async fn a_restart_that_is_not_told_is_found_and_made_short() {
        found(Plant::LoseRestart, "void").await;
    }

    #[tokio::test]
    async fn a_lost_answer_in_a_request_is_found_and_made_short() {
        found(Plant::LeakPartial, "of a failed answer").await;
    }

    #[tokio::test]
    async fn a_tool_that_runs_twice_is_found_and_made_short() {
        found(Plant::RunTwice, "the files are").await;
    }
}
