use std::fs::File;

use turnbuckle_providers::{Arguments, AssistantMessage, FinishReason, ToolCall, Usage};

use super::*;
use crate::{Conversation, Entry, SessionStore as _};

fn session(id: &str, workspace: &str) -> Record {
    Record::Session {
        version: FORMAT_VERSION,
        session_id: id.into(),
        created: "now".into(),
        workspace: Some(workspace.into()),
        forked_from: None,
    }
}

fn user(text: &str) -> Record {
    Record::User { text: text.into(), images: Vec::new() }
}

fn answer(text: &str, calls: &[&str]) -> Record {
    let call = |id: &&str| ToolCall {
        id: (*id).into(),
        name: "f".into(),
        arguments: Arguments::parse(String::new()),
    };
    Record::Assistant {
        message_id: "m".into(),
        message: AssistantMessage {
            text: text.into(),
            tool_calls: calls.iter().map(call).collect(),
            ..AssistantMessage::default()
        },
        finish: FinishReason::Stop,
        usage: Usage::default(),
    }
}

fn result(id: &str) -> Record {
    Record::ToolResult {
        call_id: id.into(),
        name: "f".into(),
        ok: true,
        text: "done".into(),
        images: Vec::new(),
    }
}

fn end() -> Record {
    Record::PromptEnd { outcome: "completed".into(), failure: None }
}

/// Two prompts: messages 1 and 2 with a call, 3; then 4 and 5.
fn talk() -> Vec<Record> {
    vec![
        user("first"),
        answer("I look", &["a", "b"]),
        Record::ToolStart { call_id: "a".into(), name: "f".into() },
        result("a"),
        result("b"),
        Record::StepEnd,
        answer("one", &[]),
        Record::StepEnd,
        end(),
        user("second"),
        answer("two", &[]),
        Record::StepEnd,
        end(),
    ]
}

async fn write(folder: &SessionFolder, id: &str, workspace: &str, records: &[Record]) {
    let mut store = JsonlStore::create(folder.path(), id).unwrap();
    store.append(&session(id, workspace)).await.unwrap();
    for record in records {
        store.append(record).await.unwrap();
    }
}

fn used(folder: &SessionFolder, id: &str, seconds: u64) {
    let path = folder.path().join(format!("{id}.jsonl"));
    let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
}

#[tokio::test]
async fn sessions_are_listed_by_their_last_use_and_problems_with_them() {
    let place = tempfile::tempdir().unwrap();
    let folder = SessionFolder::new(place.path().join("sessions"));
    assert_eq!(folder.list().unwrap(), []);
    write(&folder, "old", "w1", &[user(&"many  words\n".repeat(20))]).await;
    write(&folder, "new", "w2", &[user("hello")]).await;
    fs::write(folder.path().join("odd.jsonl"), "hello\n").unwrap();
    fs::write(folder.path().join("empty.jsonl"), "").unwrap();
    fs::write(folder.path().join("notes.txt"), "x").unwrap();
    for (id, seconds) in [("new", 1), ("old", 3), ("odd", 2)] {
        used(&folder, id, seconds);
    }
    let listed = folder.list().unwrap();
    assert_eq!(
        listed.iter().map(|info| info.id.as_str()).collect::<Vec<_>>(),
        ["old", "odd", "new"]
    );
    let title = listed[0].about.as_ref().unwrap().title.clone().unwrap();
    assert!(title.starts_with("many words many") && title.chars().count() == TITLE + 1, "{title}");
    assert!(listed[1].about.as_ref().unwrap_err().message.contains("not written by this program"));
    assert_eq!(folder.newest(Path::new("w2")).unwrap().as_deref(), Some("new"));
    assert_eq!(folder.newest(Path::new("w1")).unwrap().as_deref(), Some("old"));
    assert_eq!(folder.newest(Path::new("w3")).unwrap(), None);
}

/// What else may lie under the name of a session: each is told, none is waited for,
/// and none hides the others.
#[cfg(unix)]
#[tokio::test]
async fn what_is_no_file_is_told_and_hides_no_session() {
    let dir = tempfile::tempdir().unwrap();
    let folder = SessionFolder::new(dir.path());
    write(&folder, "good", "/work", &talk()).await;
    let at = |name: &str| dir.path().join(format!("{name}.jsonl"));
    fs::create_dir(at("folder")).unwrap();
    std::os::unix::fs::symlink(at("circle"), at("circle")).unwrap();
    std::os::unix::fs::symlink(at("gone"), at("dangling")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    assert!(made.success());

    let list = folder.list().unwrap();
    let mut told: Vec<_> = list.iter().map(|info| (&*info.id, info.about.is_ok())).collect();
    told.sort_unstable();
    let expected =
        [("circle", false), ("device", false), ("folder", false), ("good", true), ("pipe", false)];
    assert_eq!(told, expected);
    assert_eq!(folder.newest(Path::new("/work")).unwrap().as_deref(), Some("good"));
    for id in ["folder", "device", "pipe"] {
        assert!(matches!(folder.read(id), Err(StoreError::Foreign { .. })), "{id}");
        let opened = JsonlStore::open(dir.path(), id);
        assert!(matches!(opened, Err(StoreError::Foreign { .. })), "{id}");
    }
    assert!(matches!(folder.read("circle"), Err(StoreError::Io { .. })));
}

#[tokio::test]
async fn an_id_is_found_by_what_only_it_begins_with() {
    let place = tempfile::tempdir().unwrap();
    let folder = SessionFolder::new(place.path());
    for id in ["ab1", "ab2", "ab", "cd9"] {
        write(&folder, id, "w", &[user("x")]).await;
    }
    assert_eq!(folder.find("c").unwrap(), "cd9");
    assert_eq!(folder.find("ab").unwrap(), "ab");
    let ambiguous = folder.find("a").unwrap_err();
    assert!(matches!(ambiguous, StoreError::Ambiguous { count: 3, .. }), "{ambiguous:?}");
    for wrong in ["x", "", "../ab", "ab1x"] {
        assert!(matches!(folder.find(wrong), Err(StoreError::NotFound(_))), "{wrong}");
    }
}

fn said(folder: &SessionFolder, id: &str) -> Vec<String> {
    let conversation = Conversation::of(&folder.read(id).unwrap().records);
    let words = conversation.entries.iter().map(|entry| match entry {
        Entry::User { number, text, .. } => format!("{number} user {text}"),
        Entry::Assistant { number, text, tool_calls, .. } => {
            let done = tool_calls.iter().filter(|call| call.result.is_some()).count();
            format!("{number} model {text} {done}/{}", tool_calls.len())
        }
        Entry::Ended { outcome, .. } => outcome.clone(),
        other => format!("{other:?}"),
    });
    words.collect()
}

#[tokio::test]
async fn a_fork_takes_the_messages_up_to_one_with_their_results() {
    let place = tempfile::tempdir().unwrap();
    let folder = SessionFolder::new(place.path());
    write(&folder, "s", "w", &talk()).await;
    let all = [
        "1 user first",
        "2 model I look 2/2",
        "3 model one 0/0",
        "4 user second",
        "5 model two 0/0",
    ];
    for message in 0..=5 {
        let id = format!("fork{message}");
        folder.fork("s", Some(message), &id, Timestamp::UNIX_EPOCH).unwrap();
        let mut expected = all[..message].to_vec();
        // The prompt of message 5 and that of message 3 ended; the others are cut.
        if [1, 2, 4].contains(&message) {
            expected.push("interrupted");
        }
        assert_eq!(said(&folder, &id), expected);
        let journal = folder.read(&id).unwrap();
        let Record::Session { session_id, workspace, forked_from, .. } = &journal.records[0] else {
            panic!("{journal:?}")
        };
        assert_eq!((session_id, workspace.as_deref()), (&id, Some("w")));
        let origin = ForkedFrom { session_id: "s".into(), message };
        assert_eq!(forked_from.as_ref(), Some(&origin));
        // Nothing is left to be closed.
        assert!(!JsonlStore::open(folder.path(), &id).unwrap().1.repairs.interrupted);
    }
    folder.fork("s", None, "whole", Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(said(&folder, "whole"), all);
    assert_eq!(said(&folder, "s"), all);
    let missing = folder.fork("s", Some(6), "none", Timestamp::UNIX_EPOCH).unwrap_err();
    assert!(matches!(missing, StoreError::NoMessage { message: 6, last: 5 }), "{missing:?}");
    assert!(matches!(folder.read("none"), Err(StoreError::NotFound(_))));
    let taken = folder.fork("s", None, "whole", Timestamp::UNIX_EPOCH).unwrap_err();
    assert!(matches!(taken, StoreError::Io { .. }), "{taken:?}");
    assert_eq!(said(&folder, "whole"), all);
    let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| name.to_string_lossy().ends_with(".jsonl")));
}

#[tokio::test]
async fn a_session_in_use_is_read_and_forked_and_not_removed() {
    let place = tempfile::tempdir().unwrap();
    let folder = SessionFolder::new(place.path());
    write(&folder, "s", "w", &talk()).await;
    let (store, _) = JsonlStore::open(folder.path(), "s").unwrap();
    assert!(matches!(folder.remove("s"), Err(StoreError::Locked)));
    folder.fork("s", None, "f", Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(folder.list().unwrap().len(), 2);
    drop(store);
    folder.remove("s").unwrap();
    assert!(matches!(folder.remove("s"), Err(StoreError::NotFound(_))));
    assert_eq!(folder.list().unwrap().len(), 1);
}
