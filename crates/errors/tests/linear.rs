//! Classification is linear: sixteen times the adversarial text costs at most
//! twenty times the instructions. Counted by valgrind, not timed.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

const SMALL: usize = 3 * 1024;
const GROWTH: usize = 16;
const MOST: u64 = 20;

#[test]
fn sixteen_times_the_text_costs_at_most_twenty_times_the_instructions() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("SKIPPED: valgrind is not installed");
        return;
    }
    let example = example();
    let kinds = Command::new(&example).output().unwrap();
    let kinds = String::from_utf8(kinds.stdout).unwrap();
    assert!(kinds.lines().count() >= 10, "{kinds}");
    for kind in kinds.lines() {
        let base = instructions(&example, kind, 0);
        let small = instructions(&example, kind, SMALL).saturating_sub(base);
        let large = instructions(&example, kind, SMALL * GROWTH).saturating_sub(base);
        println!("{kind}: {small} instructions, {large} for {GROWTH} times the text");
        assert!(small > 1000, "{kind}: {small} instructions are no work at all");
        assert!(large <= small * MOST, "{kind}: {small} grew to {large}");
    }
}

/// The example `classify_linear`, built now: a test that is run alone may find an old one.
fn example() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap().join("examples/classify_linear");
    let release = tests.to_string_lossy().contains("/release/");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", "turnbuckle-errors", "--example", "classify_linear"]);
    if release {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success(), "the example `classify_linear` does not build");
    built
}

fn instructions(example: &Path, kind: &str, size: usize) -> u64 {
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(example)
        .args([kind, &size.to_string()])
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{report}");
    let collected = report.lines().find_map(|line| line.split_once("Collected :"));
    collected.unwrap().1.trim().parse().unwrap()
}
