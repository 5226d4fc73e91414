//! Each library crate alone, as a stranger would use it: a program outside the
//! workspace, `checks/alone`, that depends on one of them at a time.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::{counts::Tally, course::Outcome, workspace::Workspace};

/// The features of `checks/alone`, one a crate. Each is built and run by itself.
const CRATES: &[&str] = &["errors", "diagnostics", "providers", "tools", "runtime", "faults"];

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let missing = missing(workspace);
    if !missing.is_empty() {
        bail!("checks/alone leaves out {}: give it a feature there and here", missing.join(", "));
    }
    let folder = workspace.root().join("checks/alone");
    // The same versions as in the workspace; cargo drops what is not needed.
    fs::copy(workspace.root().join("Cargo.lock"), folder.join("Cargo.lock"))
        .context("cannot copy Cargo.lock to checks/alone")?;
    let mut outcome = Outcome::default();
    for name in CRATES {
        let target = workspace.target().to_string_lossy();
        let args = ["run", "--quiet", "--no-default-features", "--features", name, "--target-dir"];
        let mut cargo = workspace.cargo(&args);
        cargo.arg(&*target).current_dir(&folder);
        let ran = workspace.run(&format!("alone-{name}"), cargo)?;
        outcome.tally += Tally::one(ran.ok);
        if !ran.ok {
            let trouble = outcome.trouble.get_or_insert_default();
            trouble.push_str(&format!("{name} does not build and run alone:\n{}\n", ran.tail()));
        }
    }
    Ok(outcome.note(format!("{} library crates built alone, and run", CRATES.len())))
}

/// Members with a library that the check does not know.
fn missing(workspace: &Workspace) -> Vec<String> {
    let libraries = workspace
        .members()
        .into_iter()
        .filter_map(|member| member.name.strip_prefix("turnbuckle-").map(str::to_owned));
    libraries.filter(|name| !CRATES.contains(&name.as_str())).collect()
}
