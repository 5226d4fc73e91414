//! What users reported of agents, played against the tools: the cases of
//! `agent_cases.jsonl` that no other test plays as they were told.

#![cfg(all(unix, feature = "builtin"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;
use turnbuckle_errors::ErrorCode;
use turnbuckle_tools::{
    Call, DenyAll, PermissionMode, PromptTools, ToolContext, ToolOutcome, ToolSet,
    builtin::{self, Workspace},
};

/// Far more than anything here takes, far less than what it must not wait for.
const SOON: Duration = Duration::from_secs(60);

struct Stage {
    folder: TempDir,
    tools: PromptTools,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let set = builtin::tools(&workspace).into_iter().fold(ToolSet::new(), ToolSet::with);
        let set = set.with_permissions(PermissionMode::Auto, Arc::new(DenyAll));
        Self { tools: set.begin_prompt(), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn call(&self, tool: &str, input: Value) -> ToolOutcome {
        let call = Call { id: "1".to_owned(), name: tool.to_owned(), input: Ok(input) };
        timeout(SOON, self.tools.call(&call, &ToolContext::default())).await.unwrap()
    }

    /// Runs a command; its code and what the model reads.
    async fn bash(&self, command: &str) -> (Option<ErrorCode>, String) {
        let outcome = self.call("Bash", json!({ "command": command })).await;
        (outcome.result.as_ref().err().map(|error| error.code), outcome.text().to_owned())
    }

    /// An Edit of the file `f`; its code, and the file after it.
    async fn edit(&self, before: &str, old: &str, new: &str) -> (Option<ErrorCode>, String) {
        fs::write(self.path("f"), before).unwrap();
        let input = json!({"path": "f", "old_string": old, "new_string": new});
        let outcome = self.call("Edit", input).await;
        let code = outcome.result.as_ref().err().map(|error| error.code);
        (code, fs::read_to_string(self.path("f")).unwrap())
    }
}

#[tokio::test]
async fn commands_without_output_or_with_bytes_that_are_no_text_come_back() {
    let stage = Stage::new();
    for (command, code) in [
        ("true", None),
        ("false", Some(ErrorCode::ToolFailed)),
        ("grep zzz /etc/hostname", Some(ErrorCode::ToolFailed)),
    ] {
        let (got, text) = stage.bash(command).await;
        assert_eq!(got, code, "{command}");
        assert!(text.ends_with("(no output)\n"), "{command}: {text}");
    }
    let (code, text) = stage.bash("printf '\\xff\\xfe ok\\n'; sleep 600 &").await;
    assert_eq!(code, None, "{text}");
    assert!(text.contains("\u{fffd}\u{fffd} ok\n"), "{text}");
}

#[tokio::test]
async fn what_asks_for_input_gets_its_end_at_once() {
    let stage = Stage::new();
    let (code, text) = stage.bash("read x; echo \"got:$x\"; cat; cat /dev/tty; true").await;
    assert_eq!(code, None, "{text}");
    assert!(text.contains("got:\n") && text.contains("/dev/tty"), "{text}");
    let (_, text) = stage.bash("echo $GIT_EDITOR $GIT_SEQUENCE_EDITOR $GIT_TERMINAL_PROMPT").await;
    assert!(text.contains("\ntrue true 0\n"), "{text}");
}

#[tokio::test]
async fn an_exit_code_is_told_as_it_is_and_no_pipe_is_judged_by_its_parts() {
    let stage = Stage::new();
    for (command, code) in [
        ("sh -c 'exit 1' | tail -1", None),
        ("false; echo done", None),
        ("seq 1 100000 | head -3", None),
        ("grep zzz /etc/hostname | wc -l", None),
        ("kill -TERM $$", Some(ErrorCode::ToolFailed)),
    ] {
        let (got, text) = stage.bash(command).await;
        assert_eq!(got, code, "{command}: {text}");
        let how = if code.is_none() { "exit code 0 (" } else { "ended by signal 15 (TERM) (" };
        assert!(text.starts_with(how), "{command}: {text}");
        assert!(!text.contains("succe"), "nothing more is claimed: {text}");
    }
}

#[tokio::test]
async fn both_streams_are_read_at_once_and_text_comes_back_as_it_was_printed() {
    let stage = Stage::new();
    let (code, text) = stage.bash("head -c 300000 /dev/zero | tr '\\0' e >&2; echo out").await;
    assert_eq!(code, None, "{text:.200}");
    assert!(text.contains("[stdout]\nout\n[stderr]\neeee"), "{text:.200}");
    let (_, text) = stage
        .bash("printf '\\360\\237\\224\\215 \\342\\200\\224\\n'; locale 2>/dev/null; true")
        .await;
    assert!(text.contains("\u{1f50d} \u{2014}\n"), "{text}");
}

#[tokio::test]
async fn a_line_of_many_megabytes_costs_a_line() {
    let stage = Stage::new();
    let (code, text) = stage.bash("head -c 50M /dev/urandom | tr -d '\\n'").await;
    assert_eq!(code, None);
    assert!(text.len() < 97 * 1024, "{}", text.len());
}

#[tokio::test]
async fn each_command_starts_in_the_workspace_and_one_that_is_gone_is_named() {
    let stage = Stage::new();
    fs::create_dir(stage.path("sub")).unwrap();
    let (_, text) = stage.bash("cd sub && pwd").await;
    assert!(text.contains("/sub\n"), "{text}");
    let (_, text) = stage.bash("rmdir sub; pwd").await;
    let root = stage.folder.path().canonicalize().unwrap();
    assert!(text.ends_with(&format!("[stdout]\n{}\n", root.display())), "{text}");
    assert!(text.starts_with(&format!("exit code 0 (cwd: {})\n", root.display())), "{text}");
    fs::remove_dir(stage.folder.path()).unwrap();
    let (code, text) = stage.bash("echo hi").await;
    assert_eq!(code, Some(ErrorCode::ToolFailed));
    assert!(text.contains("the workspace `") && text.contains("is not there any more"), "{text}");
}

#[tokio::test]
async fn new_text_is_put_in_as_it_is() {
    let stage = Stage::new();
    let quotes = "say “hi” — it’s\n";
    for (before, old, new, after) in [
        ("a X b\n", "X", "$1 $& ${name} \\1 \\n $$", "a $1 $& ${name} \\1 \\n $$ b\n"),
        ("say \"hi\"\n", "\"hi\"", "“hi”", "say “hi”\n"),
        (quotes, "“hi”", "\"hi\"", "say \"hi\" — it’s\n"),
        ("a\u{a0}b\n", "a\u{a0}b", "a b", "a b\n"),
        ("<div>&amp;</div>", "&amp;", "&", "<div>&</div>"),
    ] {
        assert_eq!(stage.edit(before, old, new).await, (None, after.to_owned()), "{old} to {new}");
    }
}

#[tokio::test]
async fn what_looks_alike_is_not_the_same_and_the_file_stays() {
    for (before, old, why) in [
        ("say “hi”\n", "say \"hi\"", "quot"),
        ("\tif x:\n", "    if x:", "tab"),
        ("def f():\n    return 1\n", "def f():\n  return 1", "spaces"),
        ("one\ntwo\n", "     1\tone\n     2\ttwo", "line number"),
        ("one", "one\n", "line break"),
        ("  a()\n    b()\n", "a()\nb()", "spaces"),
    ] {
        let stage = Stage::new();
        fs::write(stage.path("f"), before).unwrap();
        assert!(stage.call("Read", json!({"path": "f"})).await.ok());
        let input = json!({"path": "f", "old_string": old, "new_string": "x"});
        let outcome = stage.call("Edit", input).await;
        let error = outcome.result.unwrap_err();
        assert_eq!(error.code, ErrorCode::EditNoMatch, "{old:?}: {error}");
        assert!(error.text.contains(why), "{old:?} should name a {why}: {error}");
        assert_eq!(fs::read_to_string(stage.path("f")).unwrap(), before);
    }
}
