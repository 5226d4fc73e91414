use turnbuckle_providers::{
    Arguments, AssistantMessage, FinishReason, Image, Native, ToolCall, Usage,
};

use super::*;
use crate::session::FORMAT_VERSION;

fn session() -> Record {
    Record::Session {
        version: FORMAT_VERSION,
        session_id: "s1".into(),
        created: "now".into(),
        workspace: Some("here".into()),
        forked_from: None,
    }
}

fn user(text: &str) -> Record {
    Record::User { text: text.into(), images: Vec::new() }
}

fn end() -> Record {
    Record::PromptEnd { outcome: "completed".into(), failure: None }
}

fn image() -> Image {
    Image { media_type: "image/png".into(), base64: "AA==".into() }
}

/// A whole prompt with a record of every kind that a turn writes.
fn prompt() -> Vec<Record> {
    let call = ToolCall {
        id: "c1".into(),
        name: "Bash".into(),
        arguments: Arguments::parse("{\"command\": \"echo é\",  \"command\":1}".into()),
    };
    let native = Native {
        dialect: "anthropic".into(),
        model: "m".into(),
        parts: vec!["{\"type\":\"thinking\", \"signature\":\"x=\"}".into()],
    };
    vec![
        session(),
        Record::User { text: "go\nnow é漢🦀".into(), images: vec![image()] },
        Record::RetryScheduled {
            retry_id: "r".into(),
            attempt: 1,
            delay_ms: 750,
            failure: serde_json::json!({"code": "STREAM_FAILED"}),
        },
        Record::RetryStarted { retry_id: "r".into() },
        Record::Assistant {
            message_id: "m1".into(),
            message: AssistantMessage {
                text: "I will".into(),
                reasoning: "hm".into(),
                tool_calls: vec![call],
                native: Some(native),
            },
            finish: FinishReason::ToolCalls,
            usage: Usage::default(),
        },
        Record::ToolStart { call_id: "c1".into(), name: "Bash".into() },
        Record::ToolResult {
            call_id: "c1".into(),
            name: "Bash".into(),
            ok: true,
            text: "é".into(),
            images: vec![image()],
        },
        Record::StepEnd,
        end(),
    ]
}

async fn written(folder: &Path, records: &[Record]) -> PathBuf {
    let mut store = JsonlStore::create(folder, "s1").unwrap();
    for record in records {
        store.append(record).await.unwrap();
    }
    store.sync().await.unwrap();
    store.path().to_owned()
}

fn opened(folder: &Path) -> Journal {
    JsonlStore::open(folder, "s1").unwrap().1
}

#[tokio::test]
async fn what_was_appended_is_read_back_with_images_and_native_parts() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), &prompt()).await;
    let (mut store, journal) = JsonlStore::open(folder.path(), "s1").unwrap();
    assert_eq!(journal, Journal { records: prompt(), repairs: Repairs::default() });
    store.append(&user("more")).await.unwrap();
    store.append(&end()).await.unwrap();
    drop(store);
    assert_eq!(opened(folder.path()).records.len(), prompt().len() + 2);
    assert_eq!(JsonlStore::read(folder.path(), "s1").unwrap().records.len(), prompt().len() + 2);
}

#[tokio::test]
async fn every_line_says_when_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &prompt()).await;
    for line in fs::read_to_string(path).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["at"].as_u64().unwrap() > 1_700_000_000_000, "{line}");
    }
}

/// Whatever is cut off, each record whose line was whole is there, nothing else
/// is, and the session goes on.
#[tokio::test]
async fn a_file_cut_at_any_byte_opens_with_all_that_was_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &prompt()).await;
    let whole = fs::read(&path).unwrap();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        // A line that lacks nothing but its break is whole.
        let breaks = whole[..=length.min(whole.len() - 1)].iter().filter(|b| **b == b'\n').count();
        let expected = &prompt()[..breaks];
        let kept: usize =
            whole.split_inclusive(|b| *b == b'\n').take(breaks).map(<[u8]>::len).sum();
        let cut = u64::try_from(length.saturating_sub(kept)).unwrap();

        let read = JsonlStore::read(folder.path(), "s1").unwrap();
        assert_eq!((read.records.as_slice(), read.repairs.cut_bytes), (expected, cut), "{length}");

        let (mut store, journal) = JsonlStore::open(folder.path(), "s1").unwrap();
        assert!(journal.records.starts_with(expected), "{length}");
        assert_eq!(journal.repairs.cut_bytes, cut, "{length}");
        let ends = |record: Option<&Record>| {
            matches!(record, None | Some(Record::Session { .. } | Record::PromptEnd { .. }))
        };
        assert_eq!(journal.repairs.interrupted, !ends(expected.last()), "{length}");
        let prompt_ended =
            journal.records.iter().rfind(|record| !matches!(record, Record::Repaired { .. }));
        assert!(ends(prompt_ended), "{length}: {journal:?}");
        if journal.records.is_empty() {
            store.append(&session()).await.unwrap();
        }
        store.append(&user("next")).await.unwrap();
        drop(store);
        let again = opened(folder.path());
        assert!(again.records.starts_with(&journal.records), "{length}");
        assert!(again.records.contains(&user("next")) && !again.repairs.damaged(), "{length}");
        assert!(fs::read(&path).unwrap().starts_with(&whole[..kept.min(length)]), "{length}");
    }
}

/// A byte that turned over costs the record that it stood in, or the two around
/// a line break, and is told.
#[tokio::test]
async fn a_damaged_byte_anywhere_costs_its_line_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &prompt()).await;
    let whole = fs::read(&path).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] = 0xff;
        fs::write(&path, &damaged).unwrap();
        match JsonlStore::open(folder.path(), "s1").map(|(_, journal)| journal) {
            Ok(journal) => {
                assert!(at > first, "{at}");
                let lost = prompt().into_iter().filter(|known| !journal.records.contains(known));
                assert!(lost.count() <= 2 && journal.repairs.damaged(), "{at}: {journal:?}");
                assert!(!opened(folder.path()).repairs.damaged(), "{at}: it is told once");
            }
            Err(StoreError::Corrupt { line: 1, .. } | StoreError::Foreign { .. }) => {
                assert!(at <= first, "{at}");
                assert_eq!(fs::read(&path).unwrap(), damaged, "{at}: it is left as it was");
            }
            Err(error) => panic!("{at}: {error:?}"),
        }
    }
}

#[tokio::test]
async fn an_unreadable_line_stays_in_the_file_and_a_user_stays_in_the_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &prompt()).await;
    let text = fs::read_to_string(&path).unwrap().replacen("\"go\\nnow", "\"go\\qnow", 1);
    fs::write(&path, &text).unwrap();
    let journal = opened(folder.path());
    assert_eq!(journal.repairs, Repairs { unreadable: vec![2], ..Repairs::default() });
    let lost = crate::session::history::LOST;
    assert!(matches!(&journal.records[1], Record::User { text, .. } if text == lost));
    assert!(fs::read_to_string(&path).unwrap().starts_with(&text));
    assert!(!opened(folder.path()).repairs.damaged());
    assert_eq!(JsonlStore::read(folder.path(), "s1").unwrap().repairs.unreadable, [2]);
}

#[tokio::test]
async fn zeros_in_place_of_what_was_written_are_a_torn_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &[session(), user("a"), end()]).await;
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0; 4096]);
    fs::write(&path, &bytes).unwrap();
    let journal = opened(folder.path());
    assert_eq!((journal.repairs.cut_bytes, journal.records.len()), (4096, 4));
    fs::write(&path, [0; 100]).unwrap();
    assert_eq!(opened(folder.path()).records, []);
}

#[tokio::test]
async fn a_second_writer_is_refused_and_a_reader_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = JsonlStore::create(folder.path(), "s1").unwrap();
    store.append(&session()).await.unwrap();
    assert!(matches!(JsonlStore::open(folder.path(), "s1"), Err(StoreError::Locked)));
    assert_eq!(JsonlStore::read(folder.path(), "s1").unwrap().records, [session()]);
}

#[tokio::test]
async fn a_lock_that_a_child_keeps_for_a_moment_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &[session()]).await;
    let held = File::open(&path).unwrap();
    held.try_lock().unwrap();
    // Whoever shares the file shares the lock, until it is given back by name.
    let shared = held.try_clone().unwrap();
    drop(held);
    assert!(matches!(JsonlStore::open(folder.path(), "s1"), Err(StoreError::Locked)));
    let opening = std::thread::spawn({
        let folder = folder.path().to_owned();
        move || JsonlStore::open(&folder, "s1").map(|(store, _)| store)
    });
    drop(shared);
    let store = opening.join().unwrap().unwrap();
    // A store gives it back by name.
    let shared = store.file.try_clone().unwrap();
    drop(store);
    assert!(JsonlStore::open(folder.path(), "s1").is_ok());
    drop(shared);
}

#[tokio::test]
async fn a_file_of_another_kind_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s1.jsonl");
    let long = "x".repeat(300_000);
    for text in [
        "hello\n",
        "hello",
        "{\"record\":\"user\",\"text\":\"x\"}\n",
        "{\"type\":\"session\",\"version\":1}\n",
        "{\"record\":\"session\",\"version\":99,\"sessionId\":\"s\",\"created\":\"\"}\n",
        "{\"record\":\"session\",\"version\":2,\"id\":\"s\"}\n{\"what\":1}\n",
        "{\"record\":\"session\",\"version\":1}\n",
        "\n",
        &long,
    ] {
        fs::write(&path, text).unwrap();
        let refused = JsonlStore::open(folder.path(), "s1").unwrap_err();
        let expected = if text.contains("\"version\":99") || text.contains("\"version\":2") {
            matches!(refused, StoreError::Newer { .. })
        } else if text.contains("\"record\":\"session\"") {
            matches!(refused, StoreError::Corrupt { line: 1, .. })
        } else {
            matches!(refused, StoreError::Foreign { .. })
        };
        assert!(expected, "{text:.60}: {refused:?}");
        assert_eq!(refused.failure().code().as_str(), "SESSION_CORRUPT");
        assert!(JsonlStore::read(folder.path(), "s1").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[tokio::test]
async fn fields_and_records_of_a_newer_program_of_the_same_version_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &[session(), user("a"), end()]).await;
    let mut text =
        fs::read_to_string(&path).unwrap().replace("\"text\":\"a\"", "\"text\":\"a\",\"x\":[1]");
    text.push_str("{\"record\":\"mood\",\"value\":3}\n");
    fs::write(&path, text).unwrap();
    let journal = opened(folder.path());
    assert_eq!(journal.records, [session(), user("a"), end(), Record::Unknown]);
    assert!(!journal.repairs.damaged());
}

#[test]
fn an_id_cannot_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    for id in ["", "..", "a/b", "../x", "a b", &"x".repeat(200)] {
        assert!(
            matches!(JsonlStore::open(folder.path(), id), Err(StoreError::NotFound(_))),
            "{id}"
        );
        assert!(
            matches!(JsonlStore::create(folder.path(), id), Err(StoreError::NotFound(_))),
            "{id}"
        );
    }
}

#[tokio::test]
async fn a_session_in_which_nothing_was_said_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    drop(JsonlStore::create(folder.path(), "s1").unwrap());
    assert!(matches!(JsonlStore::open(folder.path(), "s1"), Err(StoreError::NotFound(_))));
    written(folder.path(), &[session()]).await;
    assert_eq!(opened(folder.path()).records, [session()]);
}

#[cfg(unix)]
#[test]
fn file_and_folder_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("sessions");
    let store = JsonlStore::create(&folder, "s1").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(store.path()), mode(&folder)), (0o600, 0o700));
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_was_removed_before_it_was_locked_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &[session()]).await;
    let held = File::open(&path).unwrap();
    assert!(still_there(&held, &path, "s1").is_ok());
    fs::remove_file(&path).unwrap();
    assert!(matches!(still_there(&held, &path, "s1"), Err(StoreError::NotFound(_))));
    fs::write(&path, "another").unwrap();
    assert!(matches!(still_there(&held, &path, "s1"), Err(StoreError::NotFound(_))));
}
