//! A disk that fills up while a file is written: the old content stays, whole.
#![cfg(feature = "builtin")]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::{env, fs, path::Path, process::Command};

use serde_json::{Value, json};
use turnbuckle_errors::ErrorCode;
use turnbuckle_tools::{
    ToolContext, ToolError, ToolOutput,
    builtin::{self, Workspace},
};

/// Names the folder in which a child of the test works.
const FOLDER: &str = "TURNBUCKLE_FULL_DISK";
/// A tiny file system of its own, gone with the child.
const TINY: &str = "mount -t tmpfs -o size=256k none \"$TURNBUCKLE_FULL_DISK\" && exec \"$@\"";
/// A limit on each file instead, which needs no privilege.
const LIMITED: &str = "trap '' XFSZ; ulimit -f 200 && exec \"$@\"";

/// Runs a test of this program again under a shell that sets up what it needs.
fn again(name: &str, mut shell: Command) -> Option<bool> {
    let folder = tempfile::tempdir().unwrap();
    shell.arg("sh").arg(env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]);
    let output = shell.env(FOLDER, folder.path()).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !said.contains("running 1 test") {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(true)
}

#[tokio::test]
async fn a_tiny_file_system_that_fills_up_leaves_the_old_file() {
    if let Some(folder) = env::var_os(FOLDER) {
        return fill(Path::new(&folder), "free some space").await;
    }
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", TINY]);
    if again("a_tiny_file_system_that_fills_up_leaves_the_old_file", shell).is_none() {
        eprintln!("skipped: only root can mount a tiny file system");
    }
}

#[tokio::test]
async fn a_limit_on_the_size_of_files_leaves_the_old_file() {
    if let Some(folder) = env::var_os(FOLDER) {
        return fill(Path::new(&folder), "write less").await;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", LIMITED]);
    let ran = again("a_limit_on_the_size_of_files_leaves_the_old_file", shell);
    assert_eq!(ran, Some(true), "every system can limit the size of files");
}

async fn call(folder: &Path, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
    let tools = builtin::tools(&Workspace::open(folder).unwrap());
    let tool = tools.iter().find(|known| known.spec().name == tool).unwrap();
    tool.run(input, &ToolContext::default()).await
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

async fn fill(folder: &Path, fix: &str) {
    let old = format!("first\n{}", "an old line\n".repeat(4000));
    let large = "a new line\n".repeat(100_000);
    fs::write(folder.join("a"), &old).unwrap();
    fs::write(folder.join("linked"), &old).unwrap();
    fs::hard_link(folder.join("linked"), folder.join("other")).unwrap();
    let before = names(folder);
    for (tool, input) in [
        ("Write", json!({"path": "a", "content": large})),
        ("Write", json!({"path": "new", "content": large})),
        ("Write", json!({"path": "linked", "content": large})),
        ("Edit", json!({"path": "a", "old_string": "first", "new_string": large})),
        ("Edit", json!({"path": "linked", "old_string": "first", "new_string": large})),
    ] {
        let error = call(folder, tool, input).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::ToolFailed, "{error}");
        assert!(error.text.contains(fix), "{error}");
        for file in ["a", "linked", "other"] {
            assert!(fs::read_to_string(folder.join(file)).unwrap() == old, "{tool}: {file}");
        }
        assert_eq!(names(folder), before, "nothing is left behind");
    }
    let small = json!({"path": "linked", "old_string": "first", "new_string": "1"});
    let output = call(folder, "Edit", small).await.unwrap();
    assert!(output.text.contains("written in place because it has several hard links"));
    assert_eq!(fs::read(folder.join("other")).unwrap(), fs::read(folder.join("linked")).unwrap());
}
