//! The built-in tools alone, without a model and without a runtime: finds the
//! files that say a word, and replaces it in each.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{fs, sync::Arc};

use serde_json::{Value, json};
use turnbuckle_tools::{
    Call, DenyAll, PermissionMode, PromptTools, ToolContext, ToolSet,
    builtin::{self, Workspace},
};

/// One call through the one door; its text, or an error that says what to do.
async fn call(tools: &PromptTools, name: &str, input: Value) -> Result<String, String> {
    let call = Call { id: "1".to_owned(), name: name.to_owned(), input: Ok(input) };
    let outcome = tools.call(&call, &ToolContext::default()).await;
    println!("> {name}\n{}\n", outcome.text());
    if outcome.ok() { Ok(outcome.text().to_owned()) } else { Err(outcome.text().to_owned()) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("src"))?;
    fs::write(folder.path().join("src/a.txt"), "one colour\r\n")?;
    fs::write(folder.path().join("b.txt"), "no such word\n")?;

    let set = builtin::tools(&Workspace::open(folder.path())?)
        .into_iter()
        .fold(ToolSet::new(), ToolSet::with)
        // Changes of files run without a question; programs would be asked for.
        .with_permissions(PermissionMode::AcceptEdits, Arc::new(DenyAll));
    let tools = set.begin_prompt();

    let found = json!({"pattern": "colour", "output_mode": "files_with_matches"});
    for path in call(&tools, "Grep", found).await?.lines() {
        call(&tools, "Read", json!({ "path": path })).await?;
        let edit = json!({"path": path, "old_string": "colour", "new_string": "color"});
        call(&tools, "Edit", edit).await?;
    }
    if fs::read(folder.path().join("src/a.txt"))? != b"one color\r\n" {
        return Err("the file was not changed".into());
    }
    match call(&tools, "Bash", json!({"command": "ls"})).await {
        Ok(_) => Err("nobody allowed this".into()),
        Err(_) => Ok(()),
    }
}

#[test]
fn it_runs() {
    main().unwrap();
}
