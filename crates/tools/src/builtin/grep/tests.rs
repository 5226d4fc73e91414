use std::{
    fs::File,
    os::unix::fs::symlink,
    time::{Duration, SystemTime},
};

use serde_json::json;
use turnbuckle_errors::ErrorCode;

use super::*;
use crate::builtin::{fixture::Fixture, search::MAX_BYTES};

/// Makes files, the first one newest.
fn put_in_order(fixture: &Fixture, files: &[(&str, &str)]) {
    for (age, (name, content)) in files.iter().enumerate() {
        fixture.put(name, content);
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
        File::options()
            .write(true)
            .open(fixture.path(name))
            .unwrap()
            .set_modified(changed)
            .unwrap();
    }
}

#[tokio::test]
async fn lines_paths_and_counts_come_newest_files_first() {
    let fixture = Fixture::new();
    put_in_order(
        &fixture,
        &[
            ("src/b.rs", "fn b\nlet x\nfn c\n"),
            ("a.rs", "fn a\r\n"),
            ("src/a.ts", "fn t\n"),
            ("n", "-"),
        ],
    );
    let text = fixture.text("Grep", json!({"pattern": "^fn .$"})).await;
    assert_eq!(text, "src/b.rs:1:fn b\nsrc/b.rs:3:fn c\na.rs:1:fn a\nsrc/a.ts:1:fn t\n");
    let mode = |mode: &str| json!({"pattern": "(?i)FN", "output_mode": mode});
    assert_eq!(
        fixture.text("Grep", mode("files_with_matches")).await,
        "src/b.rs\na.rs\nsrc/a.ts\n"
    );
    assert_eq!(fixture.text("Grep", mode("count")).await, "src/b.rs:2\na.rs:1\nsrc/a.ts:1\n");
    for (include, files) in [
        ("*.rs", "src/b.rs\na.rs\n"),
        ("src/*.{rs,ts}", "src/b.rs\nsrc/a.ts\n"),
        ("!*.rs", "src/a.ts\n"),
    ] {
        let input =
            json!({"pattern": "fn", "include": include, "output_mode": "files_with_matches"});
        assert_eq!(fixture.text("Grep", input).await, files, "{include}");
    }
    let below = json!({"pattern": "fn", "path": "src", "include": "*.ts"});
    assert_eq!(fixture.text("Grep", below).await, "src/a.ts:1:fn t\n");
    let one = json!({"pattern": "fn", "path": "./src/b.rs"});
    assert_eq!(fixture.text("Grep", one).await, "src/b.rs:1:fn b\nsrc/b.rs:3:fn c\n");
}

#[tokio::test]
async fn ignored_hidden_and_binary_files_are_left_out_unless_named() {
    let fixture = Fixture::new();
    fixture.put(".gitignore", "target\n");
    for name in ["target/a", ".env", ".git/config"] {
        fixture.put(name, "needle\n");
    }
    fixture.put("binary", b"needle\n\0needle\n");
    symlink(fixture.path(".env"), fixture.path("link")).unwrap();
    std::process::Command::new("mkfifo").arg(fixture.path("pipe")).status().unwrap();
    let text = fixture.text("Grep", json!({"pattern": "needle"})).await;
    assert!(text.starts_with("(no line matches `needle`; 0 files searched, without"), "{text}");
    for (path, line) in [
        ("target", "target/a:1:needle\n"),
        (".env", ".env:1:needle\n"),
        (".git", ".git/config:1:needle\n"),
        ("link", ".env:1:needle\n"),
    ] {
        let text = fixture.text("Grep", json!({"pattern": "needle", "path": path})).await;
        assert_eq!(text, line);
    }
    let text = fixture.text("Grep", json!({"pattern": "needle", "include": ".e*"})).await;
    assert_eq!(text, ".env:1:needle\n");
    let named = json!({"pattern": "needle", "path": "binary"});
    fixture.error("Grep", named, ErrorCode::ToolBinaryContent).await;
    let pipe = json!({"pattern": "needle", "path": "pipe"});
    fixture.error("Grep", pipe, ErrorCode::InvalidArgument).await;
}

#[tokio::test]
async fn the_result_is_bounded_and_says_how_many_lines_there_are() {
    let fixture = Fixture::new();
    fixture.put("many", "x\n".repeat(5000));
    let text = fixture.text("Grep", json!({"pattern": "x"})).await;
    assert_eq!(text.lines().count(), 2001);
    assert!(text.contains("(2000 of 5000 matching lines in 1 file shown, newest"), "{text}");
    let text = fixture.text("Grep", json!({"pattern": "x", "head_limit": 3})).await;
    assert!(text.starts_with("many:1:x\nmany:2:x\nmany:3:x\n(3 of 5000 "), "{text}");
    fixture.put("wide", format!("{}x\n", "ä".repeat(3000)).repeat(100));
    let text = fixture.text("Grep", json!({"pattern": "x", "path": "wide"})).await;
    assert!(text.len() <= MAX_BYTES, "{}", text.len());
    assert!(text.contains("ä … (1001 more characters of this line)\n"));
    assert!(text.contains(" of 100 matching lines in 1 file shown"));
}

#[tokio::test]
async fn what_is_shown_of_many_files_does_not_depend_on_the_order_of_the_walk() {
    let fixture = Fixture::new();
    let line = format!("{}\n", "needle ".repeat(100));
    let files: Vec<(String, String)> =
        (0..400).map(|number| (format!("d{}/{number}", number % 9), line.repeat(20))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    put_in_order(&fixture, &files);
    let first = fixture.text("Grep", json!({"pattern": "needle"})).await;
    assert!(first.starts_with("d0/0:1:needle") && first.len() <= MAX_BYTES);
    assert!(first.contains(" of 8000 matching lines in 400 files shown"), "{}", first.len());
    for _ in 0..5 {
        assert_eq!(fixture.text("Grep", json!({"pattern": "needle"})).await, first);
    }
}

#[tokio::test]
async fn utf_16_is_searched_and_bytes_of_old_encodings_are_shown_as_unknown() {
    let fixture = Fixture::new();
    let units = "\u{feff}grün\r\nneedle\r\n".encode_utf16();
    fixture.put("wide", units.flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    fixture.put("old", b"gr\xfcn needle\n");
    let text = fixture.text("Grep", json!({"pattern": "needle", "path": "wide"})).await;
    assert_eq!(text, "wide:2:needle\n");
    let text = fixture.text("Grep", json!({"pattern": "needle", "path": "old"})).await;
    assert_eq!(text, "old:1:gr\u{fffd}n needle\n");
}

#[tokio::test]
async fn bad_arguments_say_what_is_wrong() {
    let fixture = Fixture::new();
    for (input, why) in [
        (json!({"pattern": ""}), "`pattern` is empty"),
        (json!({"pattern": "fn ("}), "put a \\ before a character"),
        (json!({"pattern": "a\nb"}), "one line at a time"),
        (json!({"pattern": "a{1000}{1000}"}), "is not a regular expression"),
        (json!({"pattern": "a", "include": "[a"}), "`include` is not a pattern"),
        (json!({"pattern": "a", "output_mode": "all"}), "unknown variant `all`, expected one of"),
        (json!({"pattern": "a", "head_limit": 0}), "`head_limit` must be at least 1"),
    ] {
        let error = fixture.error("Grep", input, ErrorCode::InvalidArgument).await;
        assert!(error.text.contains(why), "{error}");
    }
    let outside = json!({"pattern": "a", "path": "../x"});
    fixture.error("Grep", outside, ErrorCode::PathOutsideWorkspace).await;
}

#[tokio::test]
async fn an_output_of_a_command_can_be_searched() {
    let fixture = Fixture::new();
    let text = fixture.text("Bash", json!({"command": "seq 1 200000"})).await;
    let path = text.split('`').find(|part| part.ends_with(".txt")).unwrap();
    let text = fixture.text("Grep", json!({"pattern": "^1999..$", "path": path})).await;
    assert!(text.starts_with("output-1.txt:199900:199900\n"), "{text}");
    assert_eq!(text.lines().count(), 100);
}

#[tokio::test]
async fn a_search_ends_soon_after_it_is_cancelled() {
    let fixture = Fixture::new();
    // Sparse, so that there is much to read and nothing to store.
    let file = File::create(fixture.path("large")).unwrap();
    file.set_len(64 << 30).unwrap();
    let stop = Stop(tokio_util::sync::CancellationToken::new());
    stop.0.cancel();
    let matcher = matcher("x").unwrap();
    let mut scanner = Scanner::new(&matcher, Mode::Content, 10);
    assert!(scanner.scan(File::open(fixture.path("large")).unwrap(), &stop).is_err());
    let cancel = tokio_util::sync::CancellationToken::new();
    cancel.cancel();
    let error = fixture.call_until("Grep", json!({"pattern": "x"}), &cancel).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::TurnAborted);
}
