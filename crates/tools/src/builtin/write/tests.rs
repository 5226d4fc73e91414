use std::{
    fs as std_fs,
    os::unix::fs::{MetadataExt as _, symlink},
};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::builtin::{Shared, fixture::Fixture};

#[tokio::test]
async fn creating_and_overwriting_are_told_apart() {
    let fixture = Fixture::new();
    let created =
        fixture.call("Write", json!({"path": "./dir/new/a", "content": "one\n"})).await.unwrap();
    assert_eq!(created.text, "created `dir/new/a` (1 line, 4 bytes)");
    assert_eq!(created.touched, Some(Touched::Write("dir/new/a".to_owned())));
    assert_eq!(
        created.diff.as_deref(),
        Some("--- a/dir/new/a\n+++ b/dir/new/a\n@@ -0,0 +1 @@\n+one\n")
    );
    let again = json!({"path": "dir/new/a", "content": "two\nthree\n"});
    let overwritten = fixture.call("Write", again.clone()).await.unwrap();
    assert_eq!(
        overwritten.text,
        "overwrote `dir/new/a` (2 lines, 10 bytes, before 1 line, 4 bytes)"
    );
    assert_eq!(fixture.get("dir/new/a"), b"two\nthree\n");
    let same = fixture.call("Write", again).await.unwrap();
    assert_eq!(same.text, "`dir/new/a` has exactly this content already");
    fixture.put("old", "x");
    let unseen = fixture.text("Write", json!({"path": "old", "content": "y"})).await;
    assert_eq!(
        unseen,
        "overwrote `old` (1 line, 1 byte, before 1 line, 1 byte; you had not read it before)"
    );
    let emptied = fixture.text("Write", json!({"path": "old", "content": ""})).await;
    assert_eq!(emptied, "emptied `old` (it had 1 line, 1 byte)");
    let empty = fixture.text("Write", json!({"path": "empty", "content": ""})).await;
    assert_eq!(empty, "created `empty` (0 lines, 0 bytes)");
    let missing = fixture.error("Write", json!({"path": "old"}), ErrorCode::InvalidArgument).await;
    assert!(missing.text.contains("`content` is missing"), "{missing}");
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_seen_is_not_overwritten() {
    let fixture = Fixture::new();
    fixture.put("a", "one\ntwo\n");
    fixture.text("Read", json!({"path": "a"})).await;
    fixture.put("a", "one\nTWO\n");
    let write = json!({"path": "a", "content": "mine\n"});
    let error = fixture.error("Write", write.clone(), ErrorCode::EditStale).await;
    assert_eq!(error.touched, Some(Touched::Write("a".to_owned())));
    assert!(error.text.contains("-two\n+TWO\n"), "{error}");
    assert_eq!(fixture.get("a"), b"one\nTWO\n");
    fixture.text("Read", json!({"path": "a"})).await;
    fixture.text("Write", write).await;
    assert_eq!(fixture.get("a"), b"mine\n");
}

#[tokio::test]
async fn a_large_stale_file_is_compared_with_what_would_be_written_in_a_short_diff() {
    let fixture = Fixture::new();
    fixture.put("a", "line\n".repeat(20_000));
    fixture.text("Read", json!({"path": "a"})).await;
    fixture.put("a", "other\n".repeat(20_000));
    let input = json!({"path": "a", "content": "mine\n"});
    let error = fixture.error("Write", input, ErrorCode::EditStale).await;
    assert!(error.text.contains("+++ as you would write it"), "{error}");
    assert!(error.text.len() < SHORT_DIFF + 500, "{}", error.text.len());
}

#[tokio::test]
async fn mode_line_endings_mark_and_link_survive_and_nothing_is_left_behind() {
    let fixture = Fixture::new();
    fixture.put("a", "\u{feff}one\r\ntwo\r\n");
    fixture.chmod("a", 0o750);
    symlink(fixture.path("a"), fixture.path("link")).unwrap();
    let text = fixture.text("Write", json!({"path": "link", "content": "x\ny\n"})).await;
    assert!(text.contains("; its CRLF line endings and byte-order mark kept"), "{text}");
    assert_eq!(fixture.get("a"), "\u{feff}x\r\ny\r\n".as_bytes());
    assert_eq!(fixture.mode("a"), 0o750);
    assert!(std_fs::symlink_metadata(fixture.path("link")).unwrap().is_symlink());
    assert_eq!(fixture.names(), ["a", "link"]);
    // What the file holds now is known: the next Write is not stale.
    fixture.text("Write", json!({"path": "a", "content": "z"})).await;
}

#[tokio::test]
async fn an_encoding_is_kept_and_what_it_cannot_hold_or_is_binary_is_refused() {
    let fixture = Fixture::new();
    fixture.put("wide", b"\xff\xfea\0\r\0\n\0");
    let text = fixture.text("Write", json!({"path": "wide", "content": "b\n"})).await;
    assert!(text.contains("its CRLF line endings and byte-order mark and UTF-16LE kept"), "{text}");
    assert_eq!(fixture.get("wide"), b"\xff\xfeb\0\r\0\n\0");
    fixture.put("old", b"gr\xfcn\n");
    fixture.text("Write", json!({"path": "old", "content": "blau, süß\n"})).await;
    assert_eq!(fixture.get("old"), b"blau, s\xfc\xdf\n");
    let lacking = json!({"path": "old", "content": "→\n"});
    let error = fixture.error("Write", lacking, ErrorCode::InvalidArgument).await;
    assert!(error.text.contains("windows-1252, which has no `→`"), "{error}");
    fixture.put("binary", b"a\0b");
    let binary = json!({"path": "binary", "content": "text"});
    fixture.error("Write", binary, ErrorCode::ToolBinaryContent).await;
    assert_eq!(fixture.get("binary"), b"a\0b");
}

#[tokio::test]
async fn a_new_file_replaces_the_old_one_in_one_step() {
    let fixture = Fixture::new();
    fixture.put("a", "one");
    let before = std_fs::metadata(fixture.path("a")).unwrap().ino();
    let open = std_fs::File::open(fixture.path("a")).unwrap();
    fixture.text("Write", json!({"path": "a", "content": "two"})).await;
    assert_ne!(std_fs::metadata(fixture.path("a")).unwrap().ino(), before);
    assert_eq!(std::io::read_to_string(open).unwrap(), "one", "a reader sees one whole file");
}

#[tokio::test]
async fn a_file_with_several_links_is_written_in_place_and_the_result_says_so() {
    let fixture = Fixture::new();
    fixture.put("a", "a longer old text");
    std_fs::hard_link(fixture.path("a"), fixture.path("b")).unwrap();
    let text = fixture.text("Write", json!({"path": "a", "content": "new"})).await;
    assert!(text.contains("written in place because it has several hard links"), "{text}");
    assert_eq!(fixture.get("b"), b"new");
    assert_eq!(std_fs::metadata(fixture.path("a")).unwrap().nlink(), 2);
    assert_eq!(fixture.names(), ["a", "b"], "the backup is gone");
}

#[tokio::test]
async fn what_cannot_be_written_says_why() {
    let fixture = Fixture::new();
    fixture.put("file", "");
    fixture.put("dir/a", "");
    for (path, code, why) in [
        ("file/below", ErrorCode::InvalidArgument, "as if it were a directory"),
        ("dir", ErrorCode::InvalidArgument, "is a directory"),
        ("../out", ErrorCode::PathOutsideWorkspace, "leads out"),
    ] {
        let error = fixture.error("Write", json!({"path": path, "content": ""}), code).await;
        assert!(error.text.contains(why), "{error}");
    }
}

#[test]
fn a_file_that_changes_between_the_plan_and_the_write_is_left_alone() {
    let fixture = Fixture::new();
    fixture.put("a", "one");
    let stop = Stop(CancellationToken::new());
    let planned = fixture.workspace.resolve("a").unwrap();
    fixture.put("a", "other");
    let raced = fs::store(&fixture.workspace, &planned, &[b"mine"], &stop);
    assert!(matches!(raced, Err(StoreError::Changed)), "{raced:?}");
    assert_eq!(fixture.get("a"), b"other");
    let planned = fixture.workspace.resolve("new").unwrap();
    fixture.put("new", "theirs");
    let raced = fs::store(&fixture.workspace, &planned, &[b"mine"], &stop);
    assert!(matches!(raced, Err(StoreError::Changed)), "{raced:?}");
    assert_eq!(fixture.names(), ["a", "new"]);
}

#[test]
fn a_cancelled_write_changes_nothing() {
    let fixture = Fixture::new();
    fixture.put("a", "one");
    let stop = Stop(CancellationToken::new());
    stop.0.cancel();
    let shared = Shared::new(fixture.workspace.clone());
    let place = fixture.workspace.resolve("a").unwrap();
    let error = write(&shared, &place, "two".to_owned(), &stop).unwrap_err();
    assert_eq!(error.code, ErrorCode::TurnAborted);
    assert_eq!(fixture.get("a"), b"one");
    assert_eq!(fixture.names(), ["a"]);
}

#[tokio::test]
async fn changes_of_one_session_run_one_at_a_time() {
    let fixture = Fixture::new();
    fixture.put("a", "0");
    let writes = (0..20).map(|number| {
        let input = json!({"path": "a", "content": format!("{number}\n").repeat(1000)});
        fixture.call("Write", input)
    });
    for result in futures_util::future::join_all(writes).await {
        // Side by side, one would find the file changed under it.
        result.unwrap();
    }
}

#[tokio::test]
async fn the_owner_of_a_file_is_kept() {
    let fixture = Fixture::new();
    fixture.put("a", "one");
    fixture.chmod("a", 0o640);
    if let Err(error) = std::os::unix::fs::chown(fixture.path("a"), Some(65534), Some(65534)) {
        eprintln!("skipped: only root can give a file away ({error})");
        return;
    }
    fixture.text("Write", json!({"path": "a", "content": "two"})).await;
    let metadata = std_fs::metadata(fixture.path("a")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (65534, 65534));
    assert_eq!((fixture.mode("a"), fixture.get("a")), (0o640, b"two".to_vec()));
}
