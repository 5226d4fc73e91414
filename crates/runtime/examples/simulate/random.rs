//! Longer runs by chance: several prompts and steps, tools of every sort, a user
//! who cancels, a machine that stops at every boundary of the journal.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use anyhow::{Result, anyhow};
use fastrand::Rng;

use crate::{
    check::check,
    kind::{Kind, Means},
    play::{Played, PlayedPrompt, Role, Theatre},
    sabotage::Sabotage,
    script::{Act, Attempt, Crash, Loss, Policy, PromptScript, Script},
    tally::Tally,
};

/// Of so many scripts one is stopped at every boundary of its journal, the others
/// at one of them.
const EVERY_BOUNDARY: u32 = 20;

/// Plays `runs` scripts made from `seed`, each with everything that can stop it.
pub(crate) fn play(runs: u64, seed: u64, threads: usize, plant: Option<Sabotage>) -> Result<Tally> {
    let next = AtomicU64::new(0);
    let sum = Mutex::new(Tally::default());
    thread::scope(|scope| {
        let work = || -> Result<()> {
            let theatre = Theatre::new(plant, Act::ALL)?;
            let mut own = Tally::default();
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= runs {
                    break;
                }
                play_one(&theatre, seed_of(seed, run), &mut own);
            }
            sum.lock().unwrap_or_else(PoisonError::into_inner).add(own);
            Ok(())
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow!("a thread of the runs broke down"))??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The seed of one run, with which it can be played alone.
fn seed_of(seed: u64, run: u64) -> u64 {
    // 48 bits of it, so that it is short enough to be typed.
    let base = Rng::with_seed(seed).u64(..);
    Rng::with_seed(base.wrapping_add(run)).u64(..) >> 16
}

/// Plays the run of a seed: as it is, cancelled, and stopped at every boundary.
pub(crate) fn play_one(theatre: &Theatre, seed: u64, tally: &mut Tally) {
    let mut rng = Rng::with_seed(seed);
    let script = script(&mut rng);
    let played = run(theatre, seed, &script, "as they are", tally);
    let script = match say(&mut rng, &script, &played) {
        Some(script) if rng.bool() => {
            run(theatre, seed, &script, "with more to say", tally);
            script
        }
        _ => script,
    };
    let script = match abort(&mut rng, &script, &played) {
        Some(script) if rng.bool() => {
            run(theatre, seed, &script, "cancelled", tally);
            script
        }
        _ => script,
    };
    if let (Some(script), true) = (kill(&mut rng, &script, &played), rng.bool()) {
        run(theatre, seed, &script, "killed", tally);
    }
    let loss = any(&mut rng, &[Loss::Kept, Loss::Lost, Loss::Full], Loss::Kept);
    let stopped_after = |after| Script { crash: Some(Crash { loss, after }), ..script.clone() };
    if rng.u32(..EVERY_BOUNDARY) > 0 {
        // Most of them before the last write of a run.
        let after = rng.usize(..60);
        run(theatre, seed, &stopped_after(after), "stopped at one record", tally);
        return;
    }
    for after in 0.. {
        let played = run(theatre, seed, &stopped_after(after), "stopped at every record", tally);
        let stopped = |prompt: &PlayedPrompt| {
            matches!(prompt.role, Role::Resumed | Role::GoneOn) || prompt.full
        };
        if !played.prompts.iter().any(stopped) {
            break;
        }
    }
}

fn run(
    theatre: &Theatre,
    seed: u64,
    script: &Script,
    how: &'static str,
    tally: &mut Tally,
) -> Played {
    let played = theatre.play(script);
    let mut findings = std::mem::take(&mut tally.findings);
    check(&played, &mut findings);
    tally.findings = findings;
    tally.played_by(Some(seed), script);
    tally.count(how, 1);
    played
}

/// A script: mostly such that it goes on, since what stops is walked already.
pub(crate) fn script(rng: &mut Rng) -> Script {
    let policy = match rng.u32(..10) {
        0 => Policy::Clamp,
        1 => Policy::Always,
        _ => Policy::Default,
    };
    let prompts = (0..rng.usize(1..=3)).map(|_| {
        let attempts = (0..rng.usize(0..=9)).map(|_| attempt(rng)).collect();
        PromptScript { attempts, goes_on: rng.bool(), ..PromptScript::default() }
    });
    Script { prompts: prompts.collect(), crash: None, policy }
}

fn attempt(rng: &mut Rng) -> Attempt {
    let kind = match rng.u32(..100) {
        0..40 => Kind::Tools,
        40..46 => Kind::Pause,
        46..92 => goes_on(rng),
        _ => any(rng, Kind::ALL, Kind::Answer),
    };
    let calls = match kind {
        Kind::Tools => (0..rng.usize(1..=4)).map(|_| any(rng, Act::ALL, Act::Look)).collect(),
        _ => Vec::new(),
    };
    Attempt { kind, calls }
}

/// One of these; `none` if there is none.
fn any<T: Copy>(rng: &mut Rng, all: &[T], none: T) -> T {
    rng.choice(all).copied().unwrap_or(none)
}

fn goes_on(rng: &mut Rng) -> Kind {
    loop {
        let kind = any(rng, Kind::ALL, Kind::Answer);
        if matches!(kind.means(), Means::Again(..) | Means::Smaller) {
            return kind;
        }
    }
}

/// The same script, in which the user has more to say.
fn say(rng: &mut Rng, script: &Script, played: &Played) -> Option<Script> {
    let mut script = script.clone();
    for _ in 0..rng.usize(1..=3) {
        let (prompt, at) = instant(rng, played)?;
        script.prompts.get_mut(prompt)?.said.push((at, rng.bool()));
    }
    Some(script)
}

/// The same script, cancelled in one of its instants or just beside it.
fn abort(rng: &mut Rng, script: &Script, played: &Played) -> Option<Script> {
    let (prompt, at) = instant(rng, played)?;
    let mut script = script.clone();
    script.prompts.get_mut(prompt)?.abort_ms = Some(at);
    Some(script)
}

/// The same script, killed in one of its instants.
fn kill(rng: &mut Rng, script: &Script, played: &Played) -> Option<Script> {
    let (prompt, at) = instant(rng, played)?;
    let mut script = script.clone();
    script.prompts.get_mut(prompt)?.kill_ms = Some(at);
    Some(script)
}

/// An instant of a prompt in which something happens, in milliseconds since the
/// prompt began, or one just beside it.
fn instant(rng: &mut Rng, played: &Played) -> Option<(usize, u64)> {
    let scripted: Vec<_> =
        played.prompts.iter().filter(|prompt| prompt.role == Role::Scripted).collect();
    let at = rng.usize(..scripted.len().max(1));
    let prompt = scripted.get(at)?;
    let began = prompt.events.first().map(|(at, _)| *at)?;
    let (instant, _) = prompt.events.get(rng.usize(..prompt.events.len()))?;
    let beside = match rng.u32(..6) {
        0 => 1,
        1 => rng.u64(2..2_000),
        _ => 0,
    };
    Some((at, (instant - began).saturating_sub(beside)))
}
