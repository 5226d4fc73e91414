use std::sync::Arc;

use serde_json::{Value, json};
use turnbuckle_errors::ErrorCode;

use super::{SYSTEM_PROMPT, fixture::Fixture, tools};
use crate::{Call, DenyAll, Effect, PermissionMode, ToolContext, ToolSet};

#[test]
fn what_models_are_told() {
    let fixture = Fixture::new();
    let mut told = format!("# System prompt\n\n{SYSTEM_PROMPT}");
    for tool in tools(&fixture.workspace) {
        let spec = tool.spec();
        let schema = serde_json::to_string_pretty(&spec.input_schema).unwrap();
        told.push_str(&format!("\n# {}\n\n{}\n\n{schema}\n", spec.name, spec.description));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn effects_tell_what_a_call_does() {
    let fixture = Fixture::new();
    for (tool, effect) in [
        ("Read", Effect::Read),
        ("Write", Effect::Mutate),
        ("Edit", Effect::Mutate),
        ("Glob", Effect::Read),
        ("Grep", Effect::Read),
        ("Bash", Effect::Execute),
    ] {
        assert_eq!(fixture.tool(tool).effect(&json!({})), effect);
    }
}

/// Runs calls through the one door; the index of the one that ended the prompt.
async fn ended_at(fixture: &Fixture, calls: &[(&str, Value)]) -> Option<usize> {
    let set = tools(&fixture.workspace)
        .into_iter()
        .fold(ToolSet::new(), ToolSet::with)
        .with_permissions(PermissionMode::Auto, Arc::new(DenyAll));
    let prompt = set.begin_prompt();
    for (at, (name, input)) in calls.iter().enumerate() {
        let call = Call { id: at.to_string(), name: (*name).to_owned(), input: Ok(input.clone()) };
        prompt.call(&call, &ToolContext::default()).await;
        if let Some(failure) = prompt.ended() {
            assert_eq!(failure.code(), ErrorCode::MutationRetryBudgetExhausted);
            return Some(at);
        }
    }
    None
}

#[tokio::test]
async fn the_same_failed_change_ends_the_prompt_however_it_is_spelled() {
    let fixture = Fixture::new();
    fixture.put("a", "text\n");
    fixture.put("b", "text\n");
    std::os::unix::fs::symlink("a", fixture.path("link")).unwrap();
    let edit = |path: &str, old: &str| {
        ("Edit", json!({"path": path, "old_string": old, "new_string": "new"}))
    };
    let read = ("Read", json!({"path": "a"}));
    let calls = [edit("./a", "none"), read, edit("b", "none"), edit("link", "none")];
    assert_eq!(ended_at(&fixture, &calls).await, Some(3));
    let repaired = [edit("a", "none"), edit("link", "text"), edit("a", "none")];
    assert_eq!(ended_at(&fixture, &repaired).await, None);
    let bash = |command: &str| ("Bash", json!({ "command": command }));
    let patches = [bash("git apply none | tail -1"), bash("false"), bash("cd . && git am none")];
    assert_eq!(ended_at(&fixture, &patches).await, Some(2));
    let dry = [bash("git apply --check none"), bash("git apply --check none"), bash("echo patch")];
    assert_eq!(ended_at(&fixture, &dry).await, None);
}
