//! Small streams of our own, one oddity each, through the conformance check.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::{fs, path::PathBuf};

use bytes::Bytes;
use turnbuckle_providers::conformance::{self, Row};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/streams")
}

#[test]
fn every_stream_reads_as_its_row_expects() {
    for seed in 0..20 {
        let report = conformance::run(&folder(), "chat", seed).unwrap();
        assert_eq!(report.misses, []);
        assert_eq!((report.rows, report.binding_percent()), (16, 100.0));
        assert!(report.truncations > 100);
    }
}

/// What the check finds in a row once `change` has made its expectation wrong.
fn differences(file: &str, change: impl FnOnce(&mut Row)) -> Vec<String> {
    let rows = conformance::rows(&folder()).unwrap();
    let mut row = rows.into_iter().find(|row| row.file == file).unwrap();
    change(&mut row);
    let body = Bytes::from(fs::read(folder().join(file)).unwrap());
    conformance::check(&row, &body, 1).err().unwrap_or_default()
}

#[test]
fn the_check_can_fail_in_every_part() {
    let differs = |file, change: fn(&mut Row), what: &str| {
        let found = differences(file, change);
        assert!(found.first().is_some_and(|first| first.starts_with(what)), "{file}: {found:?}");
    };
    let calls = "parallel-calls-all-index-0.sse";
    let cut = "call-cut-by-length.sse";
    differs("refusal.sse", |row| row.expect.refusal_chars = 1, "refusal_chars");
    differs("reasoning-twice.sse", |row| row.expect.reasoning_chars = 17, "reasoning_chars");
    differs("cr-lines.sse", |row| row.expect.text_chars = 6, "text");
    differs("cr-lines.sse", |row| row.expect.text_sha256.clear(), "text");
    differs("cr-lines.sse", |row| row.expect.finish = "length".into(), "finish");
    differs("cr-lines.sse", |row| row.expect.finish_raw = None, "finish_raw");
    differs("usage-before-in-after.sse", |row| row.expect.usage = None, "usage");
    differs(calls, |row| row.expect.tool_calls.clear(), "tool_calls");
    differs(calls, |row| row.expect.tool_calls.swap(0, 1), "arguments of Read");
    differs(cut, |row| row.expect.tool_calls[0].arguments_raw = Some("{".into()), "arguments");
    let no_error = |row: &mut Row| (row.expect.error, row.expect.finish) = (None, "stop".into());
    differs("error-event.sse", no_error, "end");
    differs(
        "status-429.json",
        |row| row.expect.error = Some(serde_json::json!({"code": "other"})),
        "error code",
    );
    differs(
        "status-429.json",
        |row| row.expect.error = Some(serde_json::json!({"message": "other"})),
        "error message",
    );
    // `lenient` takes a part out.
    let lenient = |row: &mut Row| {
        row.expect.text_sha256.clear();
        row.lenient.push("text".into());
    };
    assert!(differences("cr-lines.sse", lenient).is_empty());
}
