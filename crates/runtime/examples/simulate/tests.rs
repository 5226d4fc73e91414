//! The simulator's own tests: the runtime keeps its promises in every short run
//! and in many long ones, and a fault that is planted is found.

use std::{collections::BTreeSet, time::Duration};

use fastrand::Rng;
use turnbuckle_runtime::RecoveryPolicy;

use crate::{
    arguments::Arguments,
    check::Findings,
    decisions,
    kind::{Kind, Means},
    oracle::{MAX_ATTEMPTS, MAX_WAIT_MS},
    play::Theatre,
    random,
    sabotage::Sabotage,
    script::{Act, Script},
    shrink::{broken_by, shrink},
    tally::Tally,
    walk,
};

const THREADS: usize = 2;

#[track_caller]
fn assert_kept(tally: &Tally, what: &str) {
    println!("counted: {} simulated runs", tally.runs);
    println!("counted: {} checks of simulated runs", tally.findings.checks);
    for failed in &tally.failed {
        let theatre = Theatre::new(None, Act::ALL).unwrap();
        let smallest = shrink(&theatre, &failed.script, &failed.broken);
        println!("seed {:?}, minimal: {smallest}\n{:#?}", failed.seed, failed.broken);
    }
    assert_eq!(tally.failures, 0, "{what}");
}

#[test]
fn every_short_sequence_keeps_every_promise() {
    let tally = walk::walk(3, THREADS, None).unwrap();
    assert!(tally.runs > 10_000, "{} runs", tally.runs);
    assert_kept(&tally, "depth 3");
}

#[test]
fn long_runs_by_chance_keep_every_promise() {
    let tally = random::play(500, 1, THREADS, None).unwrap();
    assert!(tally.runs > 1_500, "{} runs", tally.runs);
    assert_kept(&tally, "seed 1");
}

#[test]
fn every_decision_is_as_the_table_says_until_every_budget_is_spent() {
    let walked = decisions::walk(&RecoveryPolicy::default());
    println!("counted: {} orders of attempts in decisions", walked.orders);
    assert_eq!(walked.wrong, Vec::<String>::new());
    let policy = RecoveryPolicy::default();
    assert_eq!((walked.most_attempts, policy.max_attempts()), (MAX_ATTEMPTS, MAX_ATTEMPTS));
    let longest = Duration::from_millis(MAX_WAIT_MS);
    assert_eq!((walked.longest_wait_ms, policy.max_wait()), (MAX_WAIT_MS, longest));
}

#[test]
fn a_policy_that_pays_more_or_waits_longer_is_found() {
    let mut generous = RecoveryPolicy::default();
    generous.setup.retries += 1;
    assert!(!decisions::walk(&generous).wrong.is_empty());
    let mut slow = RecoveryPolicy::default();
    slow.stream.delay *= 2;
    assert!(!decisions::walk(&slow).wrong.is_empty());
}

#[test]
fn every_kind_of_attempt_reaches_its_end_in_both_phases() {
    assert!(Kind::ALL.len() >= 14);
    let means: BTreeSet<String> =
        Kind::ALL.iter().map(|kind| format!("{:?}", kind.means())).collect();
    assert!(means.len() >= 14, "{means:#?}");
    for kind in Kind::ALL {
        let told = kind.failure().map(|failure| failure.code());
        match kind.means() {
            Means::Again(code, _) | Means::Final(code) if told.is_some() => {
                assert_eq!(told, Some(code), "{}", kind.name());
            }
            _ => {}
        }
    }
}

/// The smallest script in which a planted fault shows, and the promises it breaks.
fn found(fault: Sabotage) -> Option<(String, BTreeSet<&'static str>)> {
    let theatre = Theatre::new(Some(fault), Act::ALL).unwrap();
    let honest = Theatre::new(None, Act::ALL).unwrap();
    let mut tally = Tally::default();
    for seed in 1..40 {
        random::play_one(&theatre, seed, &mut tally);
        if let Some(failed) = tally.failed.first() {
            let smallest = shrink(&theatre, &failed.script, &failed.broken);
            let again = Script::parse(&smallest.to_string()).unwrap();
            assert_eq!(again, smallest);
            assert_eq!(broken_by(&honest, &again), [], "{again} fails without the fault");
            let broken = broken_by(&theatre, &again).into_iter().map(|broken| broken.promise);
            return Some((again.to_string(), broken.collect()));
        }
    }
    None
}

#[test]
fn every_planted_fault_is_found_and_told_by_a_small_script() {
    let mut seen = BTreeSet::new();
    for fault in Sabotage::ALL {
        let (script, broken) = found(*fault).unwrap_or_default();
        assert!(!broken.is_empty(), "{} was not found", fault.name());
        let words = script.split_whitespace().count();
        assert!(words <= 6, "{}: {script} is not small", fault.name());
        println!("{}: \"{script}\" breaks {broken:?}", fault.name());
        seen.extend(broken);
    }
    let made = random::play(40, 1, THREADS, None).unwrap().findings.promises;
    let never: Vec<_> = made.into_iter().filter(|promise| !seen.contains(promise)).collect();
    assert_eq!(never, Vec::<&str>::new(), "no planted fault breaks these");
}

#[test]
fn one_seed_gives_one_run() {
    let theatre = Theatre::new(None, Act::ALL).unwrap();
    let play = |seed| {
        let mut tally = Tally::default();
        random::play_one(&theatre, seed, &mut tally);
        (tally.runs, tally.findings.checks)
    };
    assert_eq!(play(7), play(7));
    assert_ne!(play(7), play(8));
}

#[test]
fn a_script_reads_as_it_prints() {
    let mut rng = Rng::with_seed(1);
    for _ in 0..200 {
        let script = random::script(&mut rng);
        assert_eq!(Script::parse(&script.to_string()).unwrap(), script);
    }
    let all =
        "429 tools:look+change steer@3 follow@1 abort@2500 / cut-text kill@3 go-on lost@7 always";
    assert_eq!(Script::parse(all).unwrap().to_string(), all);
    for wrong in ["nothing", "tools", "tools:hammer", "answer:look", "abort@x", "crash@3"] {
        assert!(Script::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_command_line_takes_what_a_failing_run_prints() {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let read = |line: &str| Arguments::parse(words(line));
    assert_eq!(read("--seed 12").unwrap().seed, Some(12));
    let whole = read("--depth 5 --random 100000 --seed 1 --plant deaf").unwrap();
    assert_eq!((whole.depth, whole.random, whole.seed), (Some(5), Some(100_000), Some(1)));
    assert_eq!(whole.plant, Some(Sabotage::Deaf));
    assert_eq!(read("--script answer").unwrap().script, Some(Script::of(&[Kind::Answer])));
    for wrong in ["--depth", "--depth x", "--deep 3", "--plant nothing"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_check_that_fails_tells_what_was_seen() {
    let mut findings = Findings::default();
    findings.equal("two is two", 3, 2);
    assert_eq!(findings.broken.first().unwrap().seen, "3 instead of 2");
}
