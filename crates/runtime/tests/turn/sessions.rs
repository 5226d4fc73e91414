//! A session that ends anywhere, and goes on from its journal.

use std::sync::Arc;

use turnbuckle_providers::{
    History, Message,
    testing::{ScriptedAttempt, ScriptedProvider},
};
use turnbuckle_runtime::{Conversation, Entry, MemoryStore, Record, Runtime, SessionFolder};

use crate::{
    scene::{Plain, Still, cut},
    tools::{asks, tools},
};

/// A prompt with a retry, changes that are noted before they run, and an answer.
fn script() -> [ScriptedAttempt; 3] {
    let calls = [("a", "Change", r#"{"what":"one"}"#), ("b", "Look", "{}"), ("c", "Change", "{}")];
    [ScriptedAttempt::cut(["par"], cut()), asks(&calls), ScriptedAttempt::answer(["done"])]
}

fn runtime(provider: &ScriptedProvider) -> (Runtime, Arc<std::sync::Mutex<Vec<String>>>) {
    let (set, calls) = tools();
    let builder = Runtime::builder(Arc::new(provider.clone()), "model-x")
        .world(Arc::new(Still::default()))
        .redactor(Arc::new(Plain))
        .tools(set);
    (builder.build(), calls)
}

/// Every call of a history is answered once, at its place.
fn check_paired(history: &History) {
    let mut open: Vec<&str> = Vec::new();
    for message in history {
        match message {
            Message::Tool(result) => assert_eq!(open.remove(0), result.call_id),
            _ => assert!(open.is_empty(), "{history:?}"),
        }
        if let Message::Assistant(message) = message {
            open.extend(message.tool_calls.iter().map(|call| call.id.as_str()));
        }
    }
    assert!(open.is_empty(), "{history:?}");
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_ends_anywhere_gives_a_valid_request_and_runs_nothing_again() {
    let provider = ScriptedProvider::new(script());
    let (runtime_, calls) = runtime(&provider);
    let store = MemoryStore::new();
    let mut session = runtime_.session(store.clone());
    assert!(session.prompt("go").outcome().await.ok);
    let whole = store.records();
    assert_eq!(calls.lock().unwrap().len(), 3);

    for kept in 1..=whole.len() {
        let provider = ScriptedProvider::new([ScriptedAttempt::answer(["back"])]);
        let (runtime_, calls) = runtime(&provider);
        let store = MemoryStore::with(whole[..kept].to_vec());
        let mut session =
            runtime_.resume_from(store.clone(), whole[..kept].to_vec()).await.unwrap();
        let interrupted =
            !matches!(whole[kept - 1], Record::Session { .. } | Record::PromptEnd { .. });
        assert_eq!(session.repairs().interrupted, interrupted, "{kept}");
        check_paired(session.transcript().messages());

        // What was closed is in the journal, and closed once.
        let closed = store.records();
        let again = runtime_.resume_from(store.clone(), closed.clone()).await.unwrap();
        assert!(!again.repairs().interrupted, "{kept}");
        assert_eq!(again.transcript(), session.transcript(), "{kept}");
        assert_eq!(store.records(), closed, "{kept}");

        assert!(session.prompt("go on").outcome().await.ok, "{kept}");
        assert!(calls.lock().unwrap().is_empty(), "{kept}");
        let asked = &provider.requests()[0].messages;
        check_paired(asked);
        let records = store.records();
        assert!(records.starts_with(&whole[..kept]), "{kept}");
        let resumed = runtime_.resume_from(MemoryStore::new(), records).await.unwrap();
        assert_eq!(resumed.transcript(), session.transcript(), "{kept}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_prompt_is_told_as_interrupted_when_its_file_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let slow = [asks(&[("a", "Change", r#"{"what":"slow"}"#)])];
    let (runtime_, calls) = runtime(&ScriptedProvider::new(slow));
    let mut session = runtime_.session_in(folder.path()).unwrap().in_workspace("w".as_ref());
    let id = session.id().to_owned();
    {
        let mut prompt = session.prompt("go");
        while calls.lock().unwrap().is_empty() {
            prompt.next().await.unwrap();
        }
    }
    drop(session);
    let sessions = SessionFolder::new(folder.path());
    assert_eq!(sessions.newest("w".as_ref()).unwrap().as_deref(), Some(id.as_str()));
    // Whoever only reads mends nothing.
    let shown = Conversation::of(&sessions.read(&id).unwrap().records);
    assert!(matches!(shown.entries.last(), Some(Entry::Assistant { .. })), "{shown:?}");

    let (runtime_, calls) = runtime(&ScriptedProvider::new([ScriptedAttempt::answer(["back"])]));
    let mut session = runtime_.resume(folder.path(), &id).unwrap();
    assert!(session.repairs().interrupted && !session.repairs().damaged());
    assert!(session.prompt("go on").outcome().await.ok);
    assert!(calls.lock().unwrap().is_empty());
    let shown = Conversation::of(&sessions.read(&id).unwrap().records);
    let [_, Entry::Assistant { tool_calls, .. }, Entry::Ended { outcome, .. }, ..] =
        shown.entries.as_slice()
    else {
        panic!("{shown:?}")
    };
    assert_eq!(outcome, "interrupted");
    let result = tool_calls[0].result.as_ref().unwrap();
    assert!(!result.ok && result.text.contains("outcome is unknown"), "{result:?}");
    assert_eq!(shown.last_message(), 4);
}
