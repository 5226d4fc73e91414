//! Calls that leave the workspace, through the door that asks.

use std::{fs, path::Path, sync::Mutex};

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::{
    Answer, ApprovalRequest, Approver, Call, PermissionMode, PromptTools, ToolOutcome, ToolSet,
    builtin::fixture::Fixture,
};

/// Answers the same each time, and notes what it was asked.
struct Notes {
    answer: Answer,
    asked: Mutex<Vec<ApprovalRequest>>,
}

#[async_trait]
impl Approver for Notes {
    async fn answer(&self, request: &ApprovalRequest) -> Answer {
        self.asked.lock().unwrap().push(request.clone());
        self.answer
    }
}

/// A workspace `base` with a folder `out` beside it.
struct Stage {
    fixture: Fixture,
    notes: Arc<Notes>,
    tools: PromptTools,
}

impl Stage {
    fn new(mode: PermissionMode, answer: Answer) -> Self {
        let fixture = Fixture::new();
        let out = fixture.folder.path().join("out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("a.txt"), "one\n").unwrap();
        let notes = Arc::new(Notes { answer, asked: Mutex::default() });
        let approver: Arc<dyn Approver> = Arc::<Notes>::clone(&notes);
        let tools = crate::builtin::tools(&fixture.workspace)
            .into_iter()
            .fold(ToolSet::new(), ToolSet::with)
            .with_permissions(mode, approver)
            .begin_prompt();
        Self { fixture, notes, tools }
    }

    /// The folder outside, as it really is.
    fn out(&self) -> PathBuf {
        self.fixture.folder.path().join("out").canonicalize().unwrap()
    }

    async fn call(&self, tool: &str, input: Value) -> ToolOutcome {
        let call = Call { id: "1".to_owned(), name: tool.to_owned(), input: Ok(input) };
        self.tools.call(&call, &ToolContext::default()).await
    }

    fn asked(&self) -> Vec<ApprovalRequest> {
        self.notes.asked.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn a_path_outside_is_asked_about_whatever_runs_inside() {
    for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::Auto] {
        let stage = Stage::new(mode, Answer::Allow);
        let path = stage.out().join("a.txt");
        let read = stage.call("Read", json!({"path": "../out/a.txt"})).await;
        assert_eq!(read.text(), "     1\tone\n", "{mode:?}");
        let edit = json!({"path": path, "old_string": "one", "new_string": "two"});
        let edit = stage.call("Edit", edit).await;
        assert!(edit.ok(), "{mode:?}: {}", edit.text());
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        let touched = edit.result.unwrap().touched;
        assert_eq!(touched, Some(Touched::Edit(path.to_str().unwrap().to_owned())));
        let asked = stage.asked();
        assert_eq!(asked.len(), 2, "{mode:?}: once a call");
        assert_eq!(asked[0].outside.as_deref(), Some(stage.out().as_path()));
        let expected =
            format!("go OUTSIDE the workspace, to {}:\nread the file ../out/a.txt", path.display());
        assert_eq!(asked[0].description, expected);
    }
}

#[tokio::test]
async fn what_is_not_allowed_outside_is_not_run() {
    for (mode, questions) in [(PermissionMode::Auto, 1), (PermissionMode::ReadOnly, 0)] {
        let stage = Stage::new(mode, Answer::Deny);
        let path = stage.out().join("a.txt");
        let outcome = stage.call("Read", json!({"path": path})).await;
        assert!(!outcome.started, "{mode:?}");
        let error = outcome.result.unwrap_err();
        assert_eq!(error.code, ErrorCode::PathOutsideWorkspace, "{mode:?}: {error}");
        assert!(error.text.contains("use a path inside it"), "{error}");
        assert_eq!(stage.asked().len(), questions, "{mode:?}");
        let write = json!({"path": "../out/new.txt", "content": "x"});
        assert!(!stage.call("Write", write).await.started);
        assert!(!stage.out().join("new.txt").exists());
    }
}

#[tokio::test]
async fn inside_nothing_is_asked_and_links_are_judged_by_where_they_lead() {
    let stage = Stage::new(PermissionMode::Auto, Answer::Deny);
    stage.fixture.put("in.txt", "inside\n");
    let link = |target: &Path, name: &str| {
        std::os::unix::fs::symlink(target, stage.fixture.path(name)).unwrap();
    };
    link(Path::new("in.txt"), "near");
    link(&stage.out().join("a.txt"), "far");
    link(&stage.out(), "folder");
    link(&stage.out().join("absent"), "dangling");
    assert!(stage.call("Read", json!({"path": "near"})).await.ok());
    assert!(stage.call("Read", json!({"path": stage.fixture.path("in.txt")})).await.ok());
    assert_eq!(stage.asked().len(), 0);
    for path in ["far", "folder/a.txt"] {
        assert!(!stage.call("Read", json!({"path": path})).await.started, "{path}");
        let last = stage.asked().pop().unwrap();
        let real = stage.out().join("a.txt");
        assert!(last.description.contains(&format!("to {}:", real.display())), "{last:?}");
    }
    let outcome = stage.call("Write", json!({"path": "dangling", "content": "x"})).await;
    assert_eq!(outcome.result.unwrap_err().code, ErrorCode::PathOutsideWorkspace);
    assert!(!stage.out().join("absent").exists());
}

#[tokio::test]
async fn what_was_allowed_reaches_its_folder_and_nothing_else() {
    let stage = Stage::new(PermissionMode::Auto, Answer::Allow);
    let outside = stage.out();
    fs::write(stage.fixture.folder.path().join("secret"), "s").unwrap();
    std::os::unix::fs::symlink("../secret", outside.join("link")).unwrap();
    // The question is about the secret, and not about the folder of the link.
    assert!(stage.call("Read", json!({"path": outside.join("link")})).await.ok());
    let asked = stage.asked();
    assert!(asked[0].description.contains("/secret:"), "{asked:?}");
    // A folder that is searched is no way to what its links lead to.
    let found = stage.call("Grep", json!({"pattern": "s", "path": outside})).await;
    assert!(found.text().starts_with("(no line matches"), "{}", found.text());
    let listed = stage.call("Glob", json!({"pattern": "*", "path": "../out"})).await;
    assert_eq!(listed.text(), "a.txt\n");
    // Without the door there is no permission.
    let error = stage.fixture.call("Read", json!({"path": outside.join("a.txt")})).await;
    assert_eq!(error.unwrap_err().code, ErrorCode::PathOutsideWorkspace);
}

#[tokio::test]
async fn for_the_session_means_this_tool_in_this_folder() {
    let stage = Stage::new(PermissionMode::Auto, Answer::AllowForSession);
    let other = stage.fixture.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("b.txt"), "b\n").unwrap();
    for (tool, input, questions) in [
        ("Read", json!({"path": "../out/a.txt"}), 1),
        ("Read", json!({"path": stage.out().join("a.txt")}), 1),
        ("Write", json!({"path": "../out/new/b.txt", "content": "x"}), 2),
        ("Read", json!({"path": "../other/b.txt"}), 3),
        ("Read", json!({"path": "../other/b.txt"}), 3),
    ] {
        let outcome = stage.call(tool, input).await;
        assert!(outcome.ok(), "{}", outcome.text());
        assert_eq!(stage.asked().len(), questions);
    }
    assert_eq!(fs::read_to_string(stage.out().join("new/b.txt")).unwrap(), "x");
}

#[tokio::test]
async fn files_outside_are_no_files_inside_of_the_same_name() {
    let stage = Stage::new(PermissionMode::Auto, Answer::Allow);
    stage.fixture.put("a.txt", "inside\n");
    assert!(stage.call("Read", json!({"path": "a.txt"})).await.ok());
    assert!(stage.call("Read", json!({"path": "../out/a.txt"})).await.ok());
    // Seen and unchanged: neither is stale, and neither is the other.
    assert!(stage.call("Write", json!({"path": "a.txt", "content": "x"})).await.ok());
    assert!(stage.call("Write", json!({"path": "../out/a.txt", "content": "y"})).await.ok());
    for (path, inside) in [("a.txt", true), ("../out/a.txt", false)] {
        let edit = json!({"path": path, "old_string": "none", "new_string": ""});
        let error = stage.call("Edit", edit).await.result.unwrap_err();
        assert_eq!(error.touched == Some(Touched::Edit("a.txt".to_owned())), inside);
    }
    assert_eq!(stage.tools.ended(), None, "each failed once");
}
