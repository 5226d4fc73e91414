//! The rules of the house that no compiler knows.

mod rules;

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{course::Outcome, workspace::Workspace};

/// A file of the project: its path from the root, with `/`, and its text unless
/// it is binary.
#[derive(Debug)]
struct ProjectFile {
    path: String,
    text: String,
}

/// Checks every file that is, or would be, committed.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let files = files(workspace)?;
    let mut complaints: Vec<String> = files.iter().flat_map(rules::broken_by).collect();
    complaints.extend(rules::idle_exceptions(&files));
    complaints.extend(rules::readme_examples(&files));
    let outcome = Outcome::complaints(&complaints);
    let long = rules::getting_long(&files);
    Ok(long.into_iter().fold(outcome, Outcome::note))
}

/// Whether the lock file is committed, and names what the manifests ask for.
pub(crate) fn lock(workspace: &Workspace) -> Result<Outcome> {
    let mut complaints = Vec::new();
    if git(workspace, &["ls-files", "Cargo.lock"])?.is_empty() {
        complaints.push("Cargo.lock is not committed: git add Cargo.lock".to_owned());
    }
    let ran = workspace
        .run("lock", workspace.cargo(&["tree", "--workspace", "--locked", "--depth", "0"]))?;
    if !ran.ok {
        complaints.push(format!("Cargo.lock is out of date: run cargo check\n{}", ran.tail()));
    }
    Ok(Outcome::complaints(&complaints))
}

fn files(workspace: &Workspace) -> Result<Vec<ProjectFile>> {
    let listed = git(workspace, &["ls-files", "-z", "-co", "--exclude-standard"])?;
    let mut files = Vec::new();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        // A file that was deleted is listed until that is committed; one that is
        // not UTF-8 has no lines to judge.
        let Ok(bytes) = fs::read(workspace.root().join(PathBuf::from(path))) else { continue };
        let text = String::from_utf8(bytes).unwrap_or_default();
        files.push(ProjectFile { path: path.to_owned(), text });
    }
    if files.is_empty() {
        bail!("git lists no file of the project: run this in a clone of it");
    }
    Ok(files)
}

fn git(workspace: &Workspace, args: &[&str]) -> Result<String> {
    let git = std::process::Command::new("git")
        .args(args)
        .current_dir(workspace.root())
        .output()
        .context("cannot run git, which knows the files of the project")?;
    if !git.status.success() {
        bail!("git {}: {}", args.join(" "), String::from_utf8_lossy(&git.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&git.stdout).into_owned())
}
