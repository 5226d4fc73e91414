use std::process::Command;

use serde_json::{Value, json};
use turnbuckle_errors::ErrorCode;

use super::*;
use crate::{ToolError, ToolOutput, Touched, builtin::fixture::Fixture};

fn ran(code: i32, input: &str, words: &str) -> Run {
    let words = words.split(' ').map(str::to_owned).collect();
    Run { code, input: input.to_owned(), words }
}

#[test]
fn notes_are_read_as_far_as_they_are_whole() {
    let whole = "1\0/dev/null\x003\0git\0apply\0a b\n\x000\0pipe:[7]\x001\0patch\0";
    let first = Run {
        words: vec!["git".into(), "apply".into(), "a b\n".into()],
        ..ran(1, "/dev/null", "")
    };
    let expected = vec![first, ran(0, "pipe:[7]", "patch")];
    assert_eq!(read(whole), expected);
    assert_eq!(read("1\0/dev/null\x003\0git\0apply"), []);
    assert_eq!(read("x\0"), []);
    assert_eq!(read(""), []);
}

#[test]
fn a_failure_stands_unless_the_same_patch_was_applied_later() {
    let failed = |runs: &[Run]| judge(runs).failed.len();
    assert_eq!(judge(&[ran(1, "", "git status")]), Seen::default());
    assert_eq!(failed(&[ran(1, "", "git apply a"), ran(0, "", "git apply b")]), 1);
    assert_eq!(failed(&[ran(1, "", "git apply a"), ran(0, "", "git apply --3way a")]), 0);
    assert_eq!(failed(&[ran(0, "", "git apply a"), ran(1, "", "git apply a")]), 1);
    assert_eq!(failed(&[ran(1, "/a", "patch -p1"), ran(0, "/a", "patch -p0")]), 0);
    assert_eq!(failed(&[ran(1, "/a", "patch -p1"), ran(0, "/b", "patch -p1")]), 1);
    assert_eq!(failed(&[ran(1, "", "git apply --check a")]), 0);
    let seen = judge(&[ran(2, "", &format!("patch -p1 {}", "x".repeat(500)))]);
    assert!(seen.any && seen.failed[0].ends_with("…` ended with exit code 2"), "{seen:?}");
}

/// A patch of `a` from `one` to `two`.
const GOOD: &str = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n";
const BAD: &str = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-other\n+two\n";

/// A folder with a file `a`, and with patches of which one does not match.
fn stage() -> Fixture {
    let fixture = Fixture::new();
    fixture.put("a", "one\n");
    fixture.put("good", GOOD);
    fixture.put("bad", BAD);
    fixture
}

fn command(text: &str) -> Value {
    json!({ "command": text })
}

async fn run(fixture: &Fixture, text: &str) -> Result<ToolOutput, ToolError> {
    fixture.call("Bash", command(text)).await
}

/// Whether these programs are there; a machine may lack them.
fn installed(programs: &[&str]) -> bool {
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    programs.iter().all(there)
}

#[tokio::test]
async fn a_failed_patch_is_a_failure_whatever_the_command_makes_of_it() {
    if !installed(&["git", "patch"]) {
        println!("SKIPPED: git or patch is not installed");
        return;
    }
    for (text, which) in [
        ("git apply bad | tail", "`git apply bad` ended with exit code 1"),
        ("git apply bad 2>/dev/null; echo done", "`git apply bad` ended with exit code 1"),
        ("patch -p1 < bad || true", "`patch -p1` ended with exit code 1"),
        ("patch -p1 -f < bad > /dev/null 2>&1 || :", "`patch -p1 -f` ended with exit code 1"),
        ("if git apply bad; then :; fi", "`git apply bad` ended with exit code 1"),
        ("cat bad | timeout 20 patch -p1 | cat", "`patch -p1` ended with exit code 1"),
        ("echo bad | xargs git apply | cat", "`git apply bad` ended with exit code 1"),
        ("bash -c 'git apply bad; true'", "`git apply bad` ended with exit code 1"),
        ("sh -c 'env A=1 patch -p1 < bad; exit 0'", "`patch -p1` ended with exit code 1"),
        ("find . -name bad -exec git apply {} \\; ; true", "`git apply ./bad` ended with"),
        ("f() { git apply bad; }; f; echo ok", "`git apply bad` ended with exit code 1"),
        ("git apply bad & wait; true", "`git apply bad` ended with exit code 1"),
        ("git apply bad; git apply good", "`git apply bad` ended with exit code 1"),
        ("apply_patch <<'EOF' || true\n*** Begin Patch\nEOF", "`apply_patch` ended with exit"),
        ("git status; git apply bad; git status; true", "`git apply bad` ended with exit code 1"),
    ] {
        let fixture = stage();
        let error = run(&fixture, text).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::ToolFailed, "{text}: {error}");
        assert!(error.text.starts_with("exit code 0 (cwd: "), "{text}: {error}");
        assert!(error.text.contains(&format!("\n(a patch failed: {which}")), "{text}: {error}");
        assert!(matches!(error.touched, Some(Touched::PatchCommand(_))), "{text}: {error:?}");
    }
}

#[tokio::test]
async fn a_patch_that_landed_is_no_failure_whatever_came_of_the_rest() {
    if !installed(&["git", "patch"]) {
        println!("SKIPPED: git or patch is not installed");
        return;
    }
    for (text, fails) in [
        ("git apply good", false),
        ("patch -p1 < good | cat", false),
        // `pipefail` would make a failure of this one.
        ("git apply good && seq 1 100000 | head -1", false),
        ("patch -p1 < bad -o /dev/null || true; patch -p1 < good; patch -p1 -R < good", true),
        ("git apply bad || git apply --stat bad; git apply good", true),
        ("git apply --recount -p9 good || git apply good", false),
        ("patch -p1 < good && false", true),
        ("git apply good; exit 3", true),
    ] {
        let fixture = stage();
        let result = run(&fixture, text).await;
        assert_eq!(result.is_err(), fails, "{text}: {result:?}");
        let landed = |touched: &Option<Touched>| matches!(touched, Some(Touched::PatchApplied(_)));
        match result {
            Ok(output) => assert!(landed(&output.touched), "{text}: {output:?}"),
            // Where a patch did not land, that is what is told.
            Err(error) => {
                assert_eq!(landed(&error.touched), !text.contains("bad"), "{text}: {error:?}")
            }
        }
    }
}

#[tokio::test]
async fn a_command_without_the_program_is_told_what_to_use_instead() {
    let fixture = stage();
    let error = run(&fixture, "apply_patch <<'EOF'\n*** Begin Patch\nEOF").await.unwrap_err();
    assert!(error.text.starts_with("exit code 127 "), "{error}");
    assert!(error.text.contains("to change a file use the tools Edit and Write"), "{error}");
    assert_eq!(error.touched, Some(Touched::PatchCommand("apply_patch".to_owned())));
}

#[tokio::test]
async fn what_is_started_past_the_path_is_judged_under_pipefail() {
    let fixture = stage();
    for text in ["/usr/bin/env -i patch -p1 < bad | cat", "PATH=/bin:/usr/bin git apply bad | cat"]
    {
        let error = run(&fixture, text).await.unwrap_err();
        assert!(matches!(error.touched, Some(Touched::PatchCommand(_))), "{text}: {error:?}");
    }
}

#[tokio::test]
async fn a_dry_run_and_other_work_of_the_programs_are_left_alone() {
    if !installed(&["git", "patch"]) {
        println!("SKIPPED: git or patch is not installed");
        return;
    }
    let fixture = stage();
    for text in
        ["git apply --check bad; true", "patch --dry-run -p1 < bad; true", "command -v git; true"]
    {
        let output = run(&fixture, text).await.unwrap();
        assert_eq!(output.touched, None, "{text}");
        assert!(!output.text.contains("/programs/"), "{text}: {}", output.text);
    }
    // Dry runs beside a real one do not count.
    let output = run(&fixture, "git apply --check bad; git apply good").await.unwrap();
    assert!(matches!(output.touched, Some(Touched::PatchApplied(_))), "{output:?}");
    assert_eq!(fixture.get("a"), b"two\n");
    assert_eq!(fixture.names(), ["a", "bad", "good"], "nothing else is left in the workspace");
}
