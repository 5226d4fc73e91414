use std::{fs, os::unix::fs::symlink};

use serde_json::json;
use turnbuckle_errors::ErrorCode;

use crate::{Touched, builtin::fixture::Fixture};

fn touched(path: &str) -> Option<Touched> {
    Some(Touched::Edit(path.to_owned()))
}

#[tokio::test]
async fn an_edit_changes_one_place_and_shows_the_diff() {
    let fixture = Fixture::new();
    fixture.put("src/a.rs", "one\r\ntwo\r\nthree\r\n");
    fixture.chmod("src/a.rs", 0o755);
    symlink(fixture.path("src/a.rs"), fixture.path("link")).unwrap();
    fixture.text("Read", json!({"path": "link"})).await;
    let input = json!({"path": "./link", "old_string": "one\ntwo", "new_string": "one\n2"});
    let output = fixture.call("Edit", input).await.unwrap();
    assert_eq!(output.text, "edited `src/a.rs`: replaced 1 place, at line 1");
    assert_eq!(output.touched, touched("src/a.rs"));
    let diff = output.diff.unwrap();
    assert!(diff.starts_with("--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@\n"), "{diff}");
    assert!(diff.contains("-two\r\n+2\r\n"), "{diff}");
    assert_eq!(fixture.get("src/a.rs"), b"one\r\n2\r\nthree\r\n");
    assert_eq!(fixture.mode("src/a.rs"), 0o755);
    assert!(fs::symlink_metadata(fixture.path("link")).unwrap().is_symlink());
    assert_eq!(fixture.names(), ["link", "src"]);
}

#[tokio::test]
async fn the_encoding_of_a_file_is_kept_and_what_it_lacks_is_refused() {
    let fixture = Fixture::new();
    fixture.put("old", b"const x = 1;\n// caf\xe9 note\n");
    let edit = |path: &str, old: &str, new: &str| json!({"path": path, "old_string": old, "new_string": new});
    fixture.text("Read", json!({"path": "old"})).await;
    let text = fixture.text("Edit", edit("old", "x = 1", "ü = 2")).await;
    assert_eq!(text, "edited `old`: replaced 1 place, at line 1; its windows-1252 kept");
    assert_eq!(fixture.get("old"), b"const \xfc = 2;\n// caf\xe9 note\n");
    let error = fixture.error("Edit", edit("old", "café", "→"), ErrorCode::InvalidArgument).await;
    assert!(error.text.contains("windows-1252, which has no `→`"), "{error}");
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>();
    fixture.put("wide", wide("\u{feff}one\r\ntwo\r\n"));
    let text = fixture.text("Edit", edit("wide", "one\ntwo", "1\n😀")).await;
    assert!(text.contains("; its UTF-16BE kept; you had not read"), "{text}");
    assert_eq!(fixture.get("wide"), wide("\u{feff}1\r\n😀\r\n"));
}

#[tokio::test]
async fn all_places_are_listed() {
    let fixture = Fixture::new();
    fixture.put("a", "x\n".repeat(12));
    fixture.text("Read", json!({"path": "a"})).await;
    let input = json!({"path": "a", "old_string": "x", "new_string": "y", "replace_all": true});
    let text = fixture.text("Edit", input).await;
    assert_eq!(text, "edited `a`: replaced 12 places, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …");
}

#[tokio::test]
async fn a_file_that_changed_or_was_never_read_is_edited_if_it_matches_once() {
    let fixture = Fixture::new();
    fixture.put("a", "one\ntwo\n");
    let edit = |old: &str, new: &str| json!({"path": "a", "old_string": old, "new_string": new});
    let text = fixture.text("Edit", edit("one", "1")).await;
    assert!(text.ends_with("; you had not read the file in this session"), "{text}");
    fixture.text("Read", json!({"path": "a"})).await;
    fixture.put("a", "zero\n1\ntwo\n");
    let text = fixture.text("Edit", edit("two", "2")).await;
    assert!(text.contains("at line 3; the file had changed since you saw it"), "{text}");
    assert_eq!(fixture.get("a"), b"zero\n1\n2\n");
    // The change of the other program is still unseen: a Write may not undo it.
    let input = json!({"path": "a", "content": "1\n2\n"});
    fixture.error("Write", input, ErrorCode::EditStale).await;
}

#[tokio::test]
async fn a_file_that_changed_and_does_not_match_is_stale_with_a_fresh_excerpt() {
    let fixture = Fixture::new();
    fixture.put("a", "first\nsecond thing\nthird\n");
    let input = json!({"path": "a", "old_string": "second things", "new_string": "x"});
    let error = fixture.error("Edit", input.clone(), ErrorCode::EditStale).await;
    assert!(error.text.starts_with("`a` was not read in this session, and the Edit"), "{error}");
    assert!(error.text.contains("     2\tsecond thing\n"), "{error}");
    fixture.text("Read", json!({"path": "a"})).await;
    fixture.error("Edit", input.clone(), ErrorCode::EditNoMatch).await;
    fixture.put("a", "all new\n");
    let error = fixture.error("Edit", input.clone(), ErrorCode::EditStale).await;
    assert!(error.text.starts_with("`a` changed since you saw it"), "{error}");
    assert!(error.text.contains("     1\tall new\n"), "{error}");
    fixture.put("a", "");
    let error = fixture.error("Edit", input, ErrorCode::EditStale).await;
    assert!(error.text.contains("(it is empty)"), "{error}");
}

#[tokio::test]
async fn an_edit_of_its_own_edit_is_not_stale() {
    let fixture = Fixture::new();
    fixture.put("a", "1 2 3");
    fixture.text("Read", json!({"path": "a"})).await;
    for number in ["1", "2", "3"] {
        let input = json!({"path": "a", "old_string": number, "new_string": "x"});
        let text = fixture.text("Edit", input).await;
        assert_eq!(text, "edited `a`: replaced 1 place, at line 1");
    }
    assert_eq!(fixture.get("a"), b"x x x");
}

#[tokio::test]
async fn every_error_names_the_canonical_file_for_the_guard() {
    let fixture = Fixture::new();
    fixture.put("dir/a", "text text\n");
    fixture.put("dir/binary", b"\0\x01");
    fixture.put("dir/latin1", b"one\ngr\xfcn\n");
    fixture.put("dir/utf8", ["grün\n".as_bytes(), b"\xfc\n"].concat());
    fixture.put("dir/utf16", b"\xff\xfea");
    fixture.text("Read", json!({"path": "dir/latin1"})).await;
    fixture.text("Read", json!({"path": "dir/a"})).await;
    for (path, old, code, why) in [
        ("dir/../dir/a", "none", ErrorCode::EditNoMatch, "not in the file"),
        ("./dir/a", "text", ErrorCode::EditAmbiguous, "2 times"),
        ("dir/a", "new", ErrorCode::EditNoChange, "the same"),
        ("dir/a", "", ErrorCode::InvalidArgument, "use Write"),
        (
            "dir/latin",
            "x",
            ErrorCode::ToolFailed,
            "near names there: `dir/latin1`; to create a file use Write",
        ),
        ("dir/binary", "x", ErrorCode::ToolBinaryContent, "is binary"),
        ("dir/latin1", "x", ErrorCode::EditNoMatch, "not in the file"),
        ("dir/utf8", "x", ErrorCode::ToolBinaryContent, "broken bytes (first at line 2)"),
        ("dir/utf16", "x", ErrorCode::ToolBinaryContent, "broken UTF-16"),
        ("dir", "x", ErrorCode::InvalidArgument, "is a directory"),
    ] {
        let input = json!({"path": path, "old_string": old, "new_string": "new"});
        let error = fixture.error("Edit", input, code).await;
        assert!(error.text.contains(why), "{error}");
        let canonical = path.replace("dir/../", "").replace("./", "");
        assert_eq!(error.touched, touched(&canonical), "{error}");
    }
    let input = json!({"path": "../a", "old_string": "a", "new_string": "b"});
    let error = fixture.error("Edit", input, ErrorCode::PathOutsideWorkspace).await;
    assert_eq!(error.touched, None);
}
