//! Plays what was asked for, and says what came of it.

use std::{
    fmt::Display,
    io::{self, Write as _},
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::Result;
use tokio::time::Instant;
use turnbuckle_runtime::RecoveryPolicy;

use crate::{
    arguments::Arguments,
    check::Broken,
    decisions,
    oracle::{MAX_ATTEMPTS, MAX_WAIT_MS},
    play::Theatre,
    random,
    sabotage::Sabotage,
    script::{Act, Script},
    shrink::{broken_by, shrink},
    tally::{Failed, Tally},
    walk,
};

/// Exit codes: 0 no promise was broken, 1 one was.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let plant = arguments.plant;
    let mut whole = true;
    match (&arguments.script, arguments.depth, arguments.random, arguments.seed) {
        (Some(script), ..) => whole &= replay(script, plant)?,
        (None, None, None, Some(seed)) => whole &= replay_seed(seed, plant)?,
        (None, depth, random, seed) => {
            let (depth, random) = match (depth, random) {
                (None, None) => (Some(5), Some(100_000)),
                some => some,
            };
            whole &= decide();
            if let Some(depth) = depth {
                let began = Instant::now();
                let tally = walk::walk(depth, threads, plant)?;
                whole &= tell(
                    &format!("every sequence to depth {depth}"),
                    &tally,
                    began.elapsed(),
                    plant,
                )?;
            }
            if let Some(runs) = random {
                let began = Instant::now();
                let seed = seed.unwrap_or(1);
                let tally = random::play(runs, seed, threads, plant)?;
                let what = format!("{runs} scripts by chance, seed {seed}");
                whole &= tell(&what, &tally, began.elapsed(), plant)?;
            }
        }
    }
    Ok(ExitCode::from(u8::from(!whole)))
}

/// Walks the decision by itself.
fn decide() -> bool {
    let began = Instant::now();
    let walked = decisions::walk(&RecoveryPolicy::default());
    say(format_args!(
        "decisions: {} in {} states, reached by {} orders of attempts, until every budget was \
         spent; {} attempts at most, and {} ms of waiting; {} wrong; {:.1} s",
        walked.decisions,
        walked.states,
        walked.orders,
        walked.most_attempts,
        walked.longest_wait_ms,
        walked.wrong.len(),
        began.elapsed().as_secs_f64(),
    ));
    for wrong in walked.wrong.iter().take(5) {
        say(format_args!("  {wrong}"));
    }
    walked.wrong.is_empty()
        && walked.most_attempts == MAX_ATTEMPTS
        && walked.longest_wait_ms == MAX_WAIT_MS
}

fn tell(what: &str, tally: &Tally, took: Duration, plant: Option<Sabotage>) -> Result<bool> {
    say(format_args!(
        "{what}: {} runs, {} checks of {} promises, {} broken; {:.1} s",
        tally.runs,
        tally.findings.checks,
        tally.findings.promises.len(),
        tally.failures,
        took.as_secs_f64(),
    ));
    for (what, times) in &tally.counted {
        say(format_args!("  {times} runs {what}"));
    }
    for failed in &tally.failed {
        tell_failed(failed, plant)?;
    }
    Ok(tally.failures == 0)
}

fn tell_failed(failed: &Failed, plant: Option<Sabotage>) -> Result<()> {
    let theatre = Theatre::new(plant, Act::ALL)?;
    let smallest = shrink(&theatre, &failed.script, &failed.broken);
    say("");
    tell_broken(&failed.broken);
    match failed.seed {
        Some(seed) => say(format_args!("  again:   cargo xtask simulate --seed {seed}")),
        None => say(format_args!("  again:   cargo xtask simulate --script \"{}\"", failed.script)),
    }
    say(format_args!("  minimal: cargo xtask simulate --script \"{smallest}\""));
    Ok(())
}

fn tell_broken(broken: &[Broken]) {
    for Broken { promise, seen } in broken {
        say(format_args!("BROKEN  {promise}\n  {seen}"));
    }
}

/// Plays one script, and shows everything.
fn replay(script: &Script, plant: Option<Sabotage>) -> Result<bool> {
    let theatre = Theatre::new(plant, Act::ALL)?;
    let played = theatre.play(script);
    for prompt in &played.prompts {
        say(format_args!("--- {:?}: {}", prompt.role, prompt.text));
        for (at, event) in &prompt.events {
            say(format_args!("{at:>9} ms  {}", serde_json::to_string(&event.kind)?));
        }
    }
    let broken = broken_by(&theatre, script);
    tell_broken(&broken);
    say(format_args!("{} promises broken", broken.len()));
    Ok(broken.is_empty())
}

fn replay_seed(seed: u64, plant: Option<Sabotage>) -> Result<bool> {
    let mut tally = Tally::default();
    let began = Instant::now();
    random::play_one(&Theatre::new(plant, Act::ALL)?, seed, &mut tally);
    tell(&format!("the run of seed {seed}"), &tally, began.elapsed(), plant)
}

/// One line on standard output; a reader that went away is no error.
fn say(line: impl Display) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}
