use std::os::unix::fs::symlink;

use serde_json::json;

use super::{window::MAX_BYTES, *};
use crate::builtin::{fixture::Fixture, text::LINE_CHARS};

#[tokio::test]
async fn lines_come_back_numbered_without_marks_that_models_do_not_see() {
    let fixture = Fixture::new();
    fixture.put("a", "\u{feff}one\r\n\ttwo\r\n\r\nfour");
    let text = fixture.text("Read", json!({"path": "a"})).await;
    assert_eq!(
        text,
        "     1\tone\n     2\t\ttwo\n     3\t\n     4\tfour\n(no line break at the end of the file)\n"
    );
    fixture.put("empty", "");
    assert_eq!(fixture.text("Read", json!({"path": "empty"})).await, "(`empty` is empty)\n");
    fixture.put("key", "api_key = \"sk-ant-REDACTED-0123456789abcdef\"\n");
    let text = fixture.text("Read", json!({"path": "key"})).await;
    assert!(text.contains("sk-ant-REDACTED-0123456789abcdef"), "content is never masked");
}

#[tokio::test]
async fn a_window_says_how_to_get_the_rest() {
    let fixture = Fixture::new();
    fixture.put("a", "1\n2\n3\n4\n5\n");
    let text = fixture.text("Read", json!({"path": "a", "offset": 2, "limit": 2})).await;
    assert_eq!(text, "     2\t2\n     3\t3\n(lines 2 to 3 of 5; to go on, Read with offset 4)\n");
    let rest = fixture.text("Read", json!({"path": "a", "offset": 4})).await;
    assert_eq!(rest, "     4\t4\n     5\t5\n");
    let all = fixture.text("Read", json!({"path": "a", "offset": 0, "limit": 9999})).await;
    assert_eq!(all.lines().count(), 5);
    let input = json!({"path": "a", "offset": 6});
    let error = fixture.error("Read", input, ErrorCode::InvalidArgument).await;
    assert_eq!(error.text, "Read: `offset` is 6, but `a` ends at line 5; use a smaller offset");
    let input = json!({"path": "a", "limit": 0});
    let error = fixture.error("Read", input, ErrorCode::InvalidArgument).await;
    assert!(error.text.contains("`limit` must be at least 1"), "{error}");
}

#[tokio::test]
async fn lines_bytes_and_long_lines_are_bounded_and_reading_on_reaches_the_end() {
    let fixture = Fixture::new();
    let many: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    fixture.put("many", &many);
    let text = fixture.text("Read", json!({"path": "many"})).await;
    assert!(text.ends_with("(lines 1 to 2000 of 5000; to go on, Read with offset 2001)\n"));

    fixture.put("wide", format!("{}\n", "w".repeat(1000)).repeat(200));
    let (mut offset, mut seen) = (1, 0);
    loop {
        let text = fixture.text("Read", json!({"path": "wide", "offset": offset})).await;
        assert!(text.len() <= MAX_BYTES, "{}", text.len());
        seen += text.matches(&"w".repeat(1000)).count();
        let Some((_, next)) = text.split_once("Read with offset ") else { break };
        offset = next.trim_end_matches(")\n").parse().unwrap();
    }
    assert_eq!(seen, 200);

    fixture.put("long", format!("{}\nend\n", "ä".repeat(100_000)));
    let text = fixture.text("Read", json!({"path": "long"})).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0].matches('ä').count(), LINE_CHARS);
    assert!(lines[0].ends_with("… (a line of 200000 bytes, cut)"), "{}", text.len());
    assert_eq!(lines[1], "     2\tend");
    fixture.put("longer", format!("{}\n", "x".repeat(LINE_CHARS + 5)));
    let text = fixture.text("Read", json!({"path": "longer"})).await;
    assert!(text.ends_with("x … (5 more characters of this line)\n"));
}

#[tokio::test]
async fn content_that_is_not_text_is_refused_by_name() {
    let fixture = Fixture::new();
    fixture.put("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    fixture.put("late", [vec![b'a'; 200_000], vec![0]].concat());
    fixture.put("utf32", b"\xff\xfe\0\0a\0\0\0");
    fixture.put("nul", b"\xff\xfea\0\0\0");
    for (path, what) in
        [("png", "binary"), ("late", "binary"), ("nul", "binary"), ("utf32", "UTF-32 text")]
    {
        let error =
            fixture.error("Read", json!({ "path": path }), ErrorCode::ToolBinaryContent).await;
        assert!(error.text.contains(what), "{error}");
    }
}

#[tokio::test]
async fn other_encodings_than_utf_8_are_read_and_named() {
    let fixture = Fixture::new();
    fixture.put("old", b"gr\xfcn\n");
    let text = fixture.text("Read", json!({"path": "old"})).await;
    let (line, remark) = text.split_once('\n').unwrap();
    assert_eq!(line, "     1\tgrün");
    assert!(remark.starts_with("(the file is not UTF-8 and was read as windows-1252"), "{text}");
    let wide = "\u{feff}grün\r\n😀".repeat(20_000);
    fixture.put("wide", wide.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>());
    let input = json!({"path": "wide", "offset": 20_000, "limit": 1});
    let text = fixture.text("Read", input).await;
    assert!(text.starts_with(" 20000\t😀\u{feff}grün\n(lines 20000 to 20000 of 20001;"), "{text}");
    assert!(text.ends_with("(the file is in UTF-16BE; changes are written in it)\n"), "{text}");
    fixture.put("broken", "grün\n".repeat(9) + "x");
    let broken = [fixture.get("broken"), b"\xfc\n".to_vec()].concat();
    fixture.put("broken", broken);
    let text = fixture.text("Read", json!({"path": "broken"})).await;
    assert!(
        text.contains("    10\tx\u{fffd}\n(the file is UTF-8 with broken bytes (first at line 10)")
    );
}

#[tokio::test]
async fn a_missing_file_names_near_ones_in_its_folder() {
    let fixture = Fixture::new();
    for name in ["src/parser.rs", "src/Parser_test.rs", "src/other.rs", "README.md"] {
        fixture.put(name, "");
    }
    for (path, near) in [
        ("src/praser.rs", "there is no file `src/praser.rs`; near names there: `src/parser.rs`"),
        ("src/parser.py", "there is no file `src/parser.py`; near names there: `src/parser.rs`"),
        ("readme.md", "there is no file `readme.md`; near names there: `README.md`"),
        ("none/a", "there is no file `none/a`; check the path"),
        ("quite-different", "there is no file `quite-different`; check the path"),
    ] {
        let error = fixture.error("Read", json!({ "path": path }), ErrorCode::ToolFailed).await;
        assert!(error.text.starts_with(near), "{error}");
    }
}

#[tokio::test]
async fn a_pipe_put_in_the_place_of_a_file_does_not_hang() {
    let fixture = Fixture::new();
    let made = std::process::Command::new("mkfifo").arg(fixture.path("pipe")).status().unwrap();
    assert!(made.success());
    symlink("pipe", fixture.path("link")).unwrap();
    for path in ["pipe", "link"] {
        let error =
            fixture.error("Read", json!({ "path": path }), ErrorCode::InvalidArgument).await;
        assert!(error.text.contains("named pipe"), "{error}");
    }
    // Also past the first look, as after a swap.
    let error = fs::open(&fixture.workspace, "pipe").unwrap_err();
    assert!(error.text.contains("named pipe"), "{error}");
}

#[tokio::test]
async fn a_cancelled_read_says_so() {
    let fixture = Fixture::new();
    fixture.put("a", "text");
    let cancel = tokio_util::sync::CancellationToken::new();
    cancel.cancel();
    let error = fixture.call_until("Read", json!({"path": "a"}), &cancel).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::TurnAborted);
}
