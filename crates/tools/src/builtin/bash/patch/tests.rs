use std::collections::BTreeSet;

use serde::Deserialize;

use super::*;

/// Command lines, and what is found in each.
const LINES: &str = include_str!("lines.jsonl");

#[derive(Debug, Deserialize)]
struct Line {
    command: String,
    /// The command that applies a patch; none where the line only looks like it.
    found: Option<String>,
}

fn lines() -> Vec<Line> {
    LINES.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn patch_programs_are_found_in_command_lines_and_words_alone_are_not() {
    let lines = lines();
    let wrong: Vec<_> = lines
        .iter()
        .map(|line| (line, patch_command(&line.command)))
        .filter(|(line, found)| *found != line.found)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let different: BTreeSet<&str> = lines.iter().map(|line| line.command.as_str()).collect();
    assert_eq!(different.len(), lines.len(), "a line stands twice");
    let patches = lines.iter().filter(|line| line.found.is_some()).count();
    let others = lines.len() - patches;
    assert!(patches >= 60 && others >= 60, "{patches} and {others}");
    println!("counted: {} patch command lines", lines.len());
    println!("counted: {patches} patch command lines that apply a patch");
    println!("counted: {others} patch command lines that only look like it");
}

#[test]
fn a_program_started_past_the_path_is_told() {
    let past = |command| patches(command).unwrap().past_path;
    for command in [
        "/usr/bin/patch -p1",
        "sudo patch -p1",
        "su bob -c 'git apply x'",
        "env -i patch -p1",
        "env PATH=/bin patch",
        "PATH=/bin git apply x",
        "command -p patch",
        "sudo bash -c 'patch -p1'",
        "git apply x; /usr/bin/git apply y",
    ] {
        assert!(past(command), "{command}");
    }
    for command in
        ["patch -p1", "env A=1 git apply x", "ls | xargs patch", "bash -c 'timeout 5 git apply x'"]
    {
        assert!(!past(command), "{command}");
    }
}

#[test]
fn what_a_program_did_is_told_by_its_arguments() {
    let does = |line: &str| applies(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert!(does("git -C a apply x") && does("patch -p1") && does("apply_patch"));
    assert!(!does("git status") && !does("git apply --check x") && !does("patch --dry-run"));
}

#[test]
fn broken_and_deep_commands_are_searched_as_far_as_they_parse() {
    assert_eq!(patch_command("patch -p1 < x; if then ((").as_deref(), Some("patch -p1"));
    let deep = "( ".repeat(5000) + "patch" + &" )".repeat(5000);
    assert_eq!(patch_command(&deep).as_deref(), Some("patch"));
    let nested = (0..20).fold("patch".to_owned(), |inner, _| format!("eval {inner}"));
    assert_eq!(patch_command(&nested), None, "deeper than shells are followed");
}

#[test]
fn what_is_named_is_one_short_line() {
    let found = patch_command(&format!("patch\t-p1   {}", "x".repeat(500))).unwrap();
    assert_eq!(found.chars().count(), SHORT + 1);
    assert!(found.starts_with("patch -p1 xxx"), "{found}");
}

#[test]
fn commands_made_to_be_slow_are_searched_in_linear_time() {
    // Each of these took minutes, or would never end, if it were not linear.
    for command in [
        "( a;".repeat(30_000),
        "( ".repeat(30_000) + &"a;".repeat(30_000),
        "find -exec ".repeat(10_000),
        "find -exec a ; ".repeat(8_000),
        "command ".repeat(15_000),
        "eval ".repeat(25_000),
        "sudo env ".repeat(14_000),
    ] {
        assert_eq!(patch_command(&command), None);
    }
}
