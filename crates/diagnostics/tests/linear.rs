//! Sixteen times the adversarial text costs at most twenty times the
//! instructions, counted by callgrind. What starting the program costs is taken
//! off first, so that it cannot hide anything.
//!
//! Without valgrind these tests say so and do nothing.

#![expect(clippy::expect_used, reason = "a test that cannot count has failed")]
#![expect(clippy::print_stdout, reason = "the ratios are worth seeing")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The example that masks an adversarial text, built now: with all targets, cargo
/// builds it as a test only.
fn example() -> PathBuf {
    let own = std::env::current_exe().expect("a running test has a path");
    let profile = own.ancestors().nth(2).expect("tests lie in a folder of the profile");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", "turnbuckle-diagnostics", "--example", "redact_linear"]);
    cargo.arg("--target-dir").arg(profile.parent().expect("profiles lie in the target folder"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().is_ok_and(|status| status.success()), "the example does not build");
    profile.join("examples").join(format!("redact_linear{}", std::env::consts::EXE_SUFFIX))
}

fn has_valgrind() -> bool {
    let found = Command::new("valgrind").arg("--version").output().is_ok();
    if !found {
        println!("skipped: valgrind is not installed");
    }
    found
}

fn kinds(example: &Path) -> Vec<String> {
    let output = Command::new(example).arg("list").output().expect("the example runs");
    let names = String::from_utf8(output.stdout).expect("names are text");
    let kinds: Vec<String> = names.lines().map(str::to_owned).collect();
    assert!(kinds.len() >= 20, "{kinds:?}");
    kinds
}

fn instructions(example: &Path, arguments: &[&str]) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(example)
        .args(arguments)
        .output()
        .expect("valgrind runs");
    let report = String::from_utf8_lossy(&output.stderr);
    let count = report.split("Collected : ").nth(1).expect("callgrind tells what it counted");
    count.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number")
}

fn check(kinds: &[String], size: usize, how: &[&str]) {
    let example = example();
    let of = |kind: &str, size: usize| {
        let size = size.to_string();
        instructions(&example, &[&[kind, size.as_str()], how].concat())
    };
    let start = of("near", 0);
    for kind in kinds {
        let (once, sixteen) = (of(kind, size) - start, of(kind, size * 16) - start);
        let ratio = sixteen as f64 / once as f64;
        println!("{kind}: {ratio:.1} times the instructions");
        assert!(ratio <= 20.0, "{kind} {how:?}: {once} became {sixteen}, {ratio:.1} times");
    }
}

/// The dearest by the byte: places that are judged and then are no secret.
const DEAREST: &[&str] = &["open-quotes", "short"];

#[test]
fn sixteen_times_the_text_costs_at_most_twenty_times_the_instructions() {
    if has_valgrind() {
        check(&DEAREST.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>(), 1024, &[]);
    }
}

#[test]
#[ignore = "minutes under valgrind; run it with --release"]
fn the_same_holds_for_every_kind_for_large_texts_and_for_streams() {
    if has_valgrind() {
        let kinds = kinds(&example());
        check(&kinds, 64 * 1024, &[]);
        check(&kinds, 64 * 1024, &["stream"]);
    }
}
