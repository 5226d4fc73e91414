//! Every sequence of attempts, to a depth: where the runtime stops, so does the
//! walk.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Result, anyhow};

use crate::{
    check::check,
    kind::Kind,
    play::{Role, Theatre},
    sabotage::Sabotage,
    script::{Act, Script},
    tally::Tally,
};

/// The sequences of this length are shared out among the threads.
const SHARED_DEPTH: usize = 2;

/// The tools of the walk: those that [`Kind::Tools`] calls.
const WALKED: &[Act] = &[Act::Look, Act::Change];

/// Walks all sequences of at most `depth` attempts.
pub(crate) fn walk(depth: usize, threads: usize, plant: Option<Sabotage>) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut open = Vec::new();
    let theatre = Theatre::new(plant, WALKED)?.brief();
    let shared = SHARED_DEPTH.min(depth);
    descend(&theatre, &mut Vec::new(), shared, &mut tally, &mut |path| open.push(path.to_vec()));
    if depth == shared {
        return Ok(tally);
    }
    let next = AtomicUsize::new(0);
    let sum = Mutex::new(tally);
    thread::scope(|scope| {
        let work = || -> Result<()> {
            let theatre = Theatre::new(plant, WALKED)?.brief();
            let mut own = Tally::default();
            while let Some(path) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut path = path.clone();
                expand(&theatre, &mut path, depth, &mut own, &mut |_| {});
            }
            sum.lock().unwrap_or_else(PoisonError::into_inner).add(own);
            Ok(())
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow!("a thread of the walk broke down"))??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Plays a sequence, and those that go on from it if the runtime asks for more.
fn descend(
    theatre: &Theatre,
    path: &mut Vec<Kind>,
    depth: usize,
    tally: &mut Tally,
    cut: &mut impl FnMut(&[Kind]),
) {
    let script = Script::of(path);
    let played = theatre.play(&script);
    let mut findings = std::mem::take(&mut tally.findings);
    check(&played, &mut findings);
    tally.findings = findings;
    tally.played(&script);
    let scripted = played.prompts.iter().find(|prompt| prompt.role == Role::Scripted);
    let hungry = scripted.is_some_and(|prompt| prompt.hungry);
    match hungry {
        true if path.len() == depth => cut(path),
        true => expand(theatre, path, depth, tally, cut),
        false => {}
    }
}

fn expand(
    theatre: &Theatre,
    path: &mut Vec<Kind>,
    depth: usize,
    tally: &mut Tally,
    cut: &mut impl FnMut(&[Kind]),
) {
    for kind in Kind::ALL {
        path.push(*kind);
        descend(theatre, path, depth, tally, cut);
        path.pop();
    }
}
