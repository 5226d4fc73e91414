use std::{
    fs::{self, File},
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    time::{Duration, SystemTime},
};

use serde_json::json;
use turnbuckle_errors::ErrorCode;

use super::*;
use crate::builtin::fixture::Fixture;

/// Makes files, the first one newest.
fn put_in_order(fixture: &Fixture, names: &[&str]) {
    for (age, name) in names.iter().enumerate() {
        fixture.put(name, "text\n");
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
        File::options()
            .write(true)
            .open(fixture.path(name))
            .unwrap()
            .set_modified(changed)
            .unwrap();
    }
}

async fn found(fixture: &Fixture, pattern: &str) -> Vec<String> {
    let text = fixture.text("Glob", json!({ "pattern": pattern })).await;
    text.lines().filter(|line| !line.starts_with('(')).map(str::to_owned).collect()
}

#[tokio::test]
async fn paths_come_newest_first_and_stars_stay_within_a_name() {
    let fixture = Fixture::new();
    put_in_order(&fixture, &["src/b.rs", "a.rs", "src/deep/c.rs", "src/a.rs", "src/a.ts"]);
    assert_eq!(found(&fixture, "*.rs").await, ["a.rs"]);
    assert_eq!(found(&fixture, "src/*.rs").await, ["src/b.rs", "src/a.rs"]);
    assert_eq!(found(&fixture, "**/*.rs").await, ["src/b.rs", "a.rs", "src/deep/c.rs", "src/a.rs"]);
    assert_eq!(
        found(&fixture, "src/**/[ac].{rs,ts}").await,
        ["src/deep/c.rs", "src/a.rs", "src/a.ts"]
    );
    assert_eq!(found(&fixture, "./src/b.rs").await, ["src/b.rs"]);
    assert_eq!(found(&fixture, "src/../src/b.rs").await, ["src/b.rs"]);
    let absolute = format!("{}/src/*.ts", fixture.workspace.path().display());
    assert_eq!(found(&fixture, &absolute).await, ["src/a.ts"]);
    let below = fixture.text("Glob", json!({"pattern": "deep/*", "path": "src"})).await;
    assert_eq!(below, "src/deep/c.rs\n");
}

#[tokio::test]
async fn equal_times_are_ordered_by_path_every_time() {
    let fixture = Fixture::new();
    let names: Vec<String> =
        (0..300).map(|number| format!("dir{}/{number:03}", number % 7)).collect();
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    for name in &names {
        fixture.put(name, "");
        File::options()
            .write(true)
            .open(fixture.path(name))
            .unwrap()
            .set_modified(changed)
            .unwrap();
    }
    let mut sorted = names.clone();
    sorted.sort();
    for _ in 0..5 {
        assert_eq!(found(&fixture, "**/*").await, sorted);
    }
}

#[tokio::test]
async fn ignored_and_hidden_names_are_left_out_unless_named() {
    let fixture = Fixture::new();
    fixture.put(".gitignore", "/target\n*.log\n");
    fixture.put(".ignore", "vendor/\n");
    for name in ["a", "target/a", "vendor/a", "x.log", ".hidden/a", ".git/a", ".env"] {
        fixture.put(name, "");
    }
    assert_eq!(found(&fixture, "**/*").await, ["a"]);
    assert_eq!(found(&fixture, "target/*").await, ["target/a"]);
    assert_eq!(found(&fixture, ".hidden/*").await, [".hidden/a"]);
    assert_eq!(found(&fixture, ".e*").await, [".env"]);
    assert_eq!(found(&fixture, ".git/**").await, [".git/a"]);
    let named = fixture.text("Glob", json!({"pattern": "*", "path": "vendor"})).await;
    assert_eq!(named, "vendor/a\n");
    // A dot in the pattern asks for hidden names, not for the repository's own.
    assert_eq!(found(&fixture, "**/.*/a").await, [".hidden/a"]);
}

#[tokio::test]
async fn links_are_listed_where_they_lead_to_a_file_inside_and_never_followed_to_folders() {
    let fixture = Fixture::new();
    put_in_order(&fixture, &["dir/a"]);
    fs::write(fixture.folder.path().join("outside"), "").unwrap();
    symlink("..", fixture.path("dir/loop")).unwrap();
    symlink("dir/a", fixture.path("inside")).unwrap();
    symlink("../outside", fixture.path("leaks")).unwrap();
    symlink(fixture.folder.path(), fixture.path("out")).unwrap();
    symlink("nowhere", fixture.path("dangling")).unwrap();
    assert_eq!(found(&fixture, "**/*").await, ["dir/a", "inside"]);
    for pattern in ["out/*", "../*", "/etc/*", "leaks/*"] {
        let error = fixture.call("Glob", json!({ "pattern": pattern })).await;
        assert_eq!(error.unwrap_err().code, ErrorCode::PathOutsideWorkspace, "{pattern}");
    }
}

#[tokio::test]
async fn the_result_is_bounded_and_says_how_many_there_are() {
    let fixture = Fixture::new();
    put_in_order(&fixture, &["a", "b", "c"]);
    let text = fixture.text("Glob", json!({"pattern": "*", "limit": 2})).await;
    assert_eq!(
        text,
        "a\nb\n(the newest 2 of 3 files; to see others, narrow `pattern` or `path`, or raise `limit`)\n"
    );
    for number in 0..2100 {
        fixture
            .put(&format!("many/{}{number}", "x".repeat(if number < 500 { 200 } else { 1 })), "");
    }
    for pattern in ["many/*", "many/x?*"] {
        let text = fixture.text("Glob", json!({ "pattern": pattern })).await;
        assert!(text.len() <= MAX_BYTES && text.lines().count() <= 2001, "{}", text.len());
        assert!(text.ends_with(" of 2100 files; to see others, narrow `pattern` or `path`)\n"));
    }
}

#[tokio::test]
async fn nothing_found_says_what_was_left_out_and_bad_arguments_what_is_wrong() {
    let fixture = Fixture::new();
    fixture.put("a.rs", "");
    let text = fixture.text("Glob", json!({"pattern": "*.py"})).await;
    assert!(
        text.starts_with("(no file fits `*.py`; for folders below, begin it with `**/`"),
        "{text}"
    );
    let text = fixture.text("Glob", json!({"pattern": "none/*.py"})).await;
    assert!(text.starts_with("(no file fits `none/*.py`; ignored files"), "{text}");
    for (input, code, why) in [
        (json!({"pattern": ""}), ErrorCode::InvalidArgument, "`pattern` is empty"),
        (json!({"pattern": "[a"}), ErrorCode::InvalidArgument, "close each bracket"),
        (json!({"pattern": "a\u{0}"}), ErrorCode::InvalidArgument, "NUL"),
        (json!({"pattern": "a".repeat(5000)}), ErrorCode::InvalidArgument, "5000 bytes"),
        (json!({"pattern": "*", "limit": 0}), ErrorCode::InvalidArgument, "at least 1"),
        (json!({"pattern": "*", "path": "a.rs"}), ErrorCode::InvalidArgument, "is a file"),
        (json!({"pattern": "*", "path": "a.r"}), ErrorCode::ToolFailed, "near names there: `a.rs`"),
    ] {
        let error = fixture.error("Glob", input, code).await;
        assert!(error.text.contains(why), "{error}");
    }
}

#[tokio::test]
async fn names_that_no_result_can_hold_are_counted_or_spelled_out() {
    let fixture = Fixture::new();
    fixture.put("two\nlines", "");
    fs::write(fixture.path("x").with_file_name(std::ffi::OsStr::from_bytes(b"gr\xfcn")), "")
        .unwrap();
    let text = fixture.text("Glob", json!({"pattern": "*"})).await;
    assert_eq!(text, "two\\nlines\n(1 file or folder: left out: a name that is not UTF-8)\n");
}

#[tokio::test]
async fn a_cancelled_search_says_so() {
    let fixture = Fixture::new();
    let cancel = tokio_util::sync::CancellationToken::new();
    cancel.cancel();
    let error = fixture.call_until("Glob", json!({"pattern": "*"}), &cancel).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::TurnAborted);
}

#[test]
fn a_pattern_is_split_before_its_first_name_that_is_more_than_a_name() {
    for (pattern, folder, rest) in [
        ("*.rs", "", "*.rs"),
        ("./*.rs", ".", "*.rs"),
        ("src/*.rs", "src", "*.rs"),
        ("src/a/b.rs", "src/a", "b.rs"),
        ("src//a{b,c}/d", "src/", "a{b,c}/d"),
        ("/ws/src/**", "/ws/src", "**"),
        ("/*", "/", "*"),
        ("a", "", "a"),
        ("src/", "src", ""),
    ] {
        assert_eq!(split(pattern), (folder, rest), "{pattern}");
    }
}
