//! The snapshot tests alone: what differs from the accepted snapshots, or
//! accepting it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::Result;
use cargo_metadata::{Target, TargetKind};
use serde_json::Value;

use crate::{counts::Tally, terminal::say, workspace::Workspace};

/// The options of `test-snapshots`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Makes what the tests now say the accepted snapshots.
    #[arg(long)]
    accept: bool,
}

/// Runs them all, even where one differs, then lists what differs.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let root = workspace.root();
    forget_pending(root)?;
    let before = if args.accept { snapshots(root) } else { Vec::new() };
    // With the whole workspace, so that the crates are those that `test` built.
    let mut words = vec!["test", "--workspace", "--locked", "--no-fail-fast"];
    let targets = targets_with_snapshots(workspace);
    words.extend(targets.iter().map(String::as_str));
    let mut cargo = workspace.cargo(&words);
    let update = if args.accept { "always" } else { "new" };
    cargo.env("INSTA_UPDATE", update).env("INSTA_FORCE_PASS", "1");
    let ran = workspace.run("snapshots", cargo)?;
    if !ran.ok {
        say(ran.tail());
    }
    let pending = pending(root);
    report(root, args, &before, &pending);
    let mut sum = Tally::read(&ran.output);
    sum.failed += u64::try_from(pending.len()).unwrap_or(u64::MAX);
    if !ran.ok {
        sum.failed = sum.failed.max(1);
    }
    say(sum.line());
    Ok(ExitCode::from(u8::from(sum.failed > 0)))
}

fn report(root: &Path, args: &Args, before: &[(PathBuf, String)], pending: &[PathBuf]) {
    let name = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    for path in pending {
        say(format_args!("differs: {}", name(path)));
        say(shown(path));
    }
    if args.accept {
        let after = snapshots(root);
        for (path, _) in after.iter().filter(|found| !before.contains(found)) {
            say(format_args!("accepted: {}", name(path)));
        }
    }
    match (pending.is_empty(), args.accept) {
        (true, _) => say("every snapshot is as accepted"),
        (false, false) => say("look at them, then run: cargo xtask test-snapshots --accept"),
        // Insta writes no source code by itself.
        (false, true) => say("these stand in the source: correct them there"),
    }
}

/// What a pending snapshot would change, as a diff where there is an old one.
fn shown(pending: &Path) -> String {
    let text = fs::read_to_string(pending).unwrap_or_default();
    if pending.extension().is_some_and(|extension| extension == "pending-snap") {
        return inline(&text);
    }
    let accepted = pending.with_extension("");
    let diff = Command::new("git")
        .args(["diff", "--no-index", "--no-color", "--"])
        .args([accepted.as_path(), pending])
        .output();
    match diff {
        Ok(diff) if accepted.is_file() => String::from_utf8_lossy(&diff.stdout).into_owned(),
        _ => text,
    }
}

/// The lines of a source file whose inline snapshots differ, with the new ones.
fn inline(list: &str) -> String {
    let entries = list.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let differs = entries.filter_map(|entry| {
        let snapshot = entry.pointer("/new/snapshot")?.as_str()?.to_owned();
        Some(format!("line {}:\n{snapshot}\n", entry.get("line")?))
    });
    differs.collect()
}

/// What selects the test targets whose source asserts a snapshot. A library is
/// not selected by name, so with one of them come all.
fn targets_with_snapshots(workspace: &Workspace) -> BTreeSet<String> {
    let members = workspace.members().into_iter();
    members
        .flat_map(|member| &member.targets)
        .filter(|target| asserts_snapshots(target))
        .filter_map(|target| match target.kind.first()? {
            TargetKind::Lib => Some("--lib".to_owned()),
            TargetKind::Bin => Some(format!("--bin={}", target.name)),
            TargetKind::Test => Some(format!("--test={}", target.name)),
            _ => None,
        })
        .collect()
}

/// A target is its file, or the folder of a `lib.rs` or `main.rs`.
fn asserts_snapshots(target: &Target) -> bool {
    let file = target.src_path.as_std_path();
    let is_folder = ["lib", "main"].iter().any(|stem| file.file_stem().is_some_and(|s| s == *stem));
    let sources = match file.parent().filter(|_| is_folder) {
        Some(folder) => below(folder, &|path| path.extension().is_some_and(|e| e == "rs")),
        None => vec![file.to_owned()],
    };
    sources.iter().any(|path| {
        let source = fs::read_to_string(path).unwrap_or_default();
        source.contains("insta::assert") || source.contains("use insta::")
    })
}

fn pending(root: &Path) -> Vec<PathBuf> {
    let is_pending = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".snap.new") || name.ends_with(".pending-snap")
    };
    // Insta leaves a list of what it looked at even where nothing differs.
    let mut found = below(root, &is_pending);
    found.retain(|path| fs::read_to_string(path).is_ok_and(|text| !is_settled(&text)));
    found
}

/// Whether every inline snapshot in a pending list was found to be as accepted.
fn is_settled(list: &str) -> bool {
    let mut lines = list.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_none()
        || lines.all(|line| line.starts_with('{') && line.contains("\"new\":null"))
}

fn forget_pending(root: &Path) -> Result<()> {
    for path in pending(root) {
        fs::remove_file(path)?;
    }
    Ok(())
}

fn snapshots(root: &Path) -> Vec<(PathBuf, String)> {
    let found = below(root, &|path| path.extension().is_some_and(|e| e == "snap"));
    found
        .into_iter()
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap_or_default()))
        .collect()
}

/// The files below a folder that `wanted` takes, sorted. Links, hidden folders
/// and `target` are left alone.
fn below(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() && !name.starts_with('.') && name != "target" {
            found.extend(below(&path, wanted));
        } else if kind.is_file() && wanted(&path) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_with_snapshots_are_found_and_others_are_not() {
        let targets = targets_with_snapshots(&Workspace::find().unwrap());
        assert!(targets.contains("--lib") && targets.contains("--test=turn"), "{targets:?}");
        assert!(!targets.contains("--test=streams"), "{targets:?}");
    }

    #[test]
    fn a_changed_snapshot_is_pending_and_a_settled_list_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("a.snap", "old");
        write("a.snap.new", "new");
        write(".b.rs.pending-snap", "{\"run_id\":\"1-2\",\"line\":3,\"new\":null,\"old\":null}\n");
        write(
            ".c.rs.pending-snap",
            "{\"run_id\":\"1-2\",\"line\":3,\"new\":{\"snapshot\":\"x\"}}\n",
        );
        let names: Vec<_> = pending(folder.path())
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, [".c.rs.pending-snap", "a.snap.new"]);
    }

    #[test]
    fn what_differs_is_shown_as_a_diff_or_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("a.snap", "one\ntwo\n");
        write("a.snap.new", "one\nthree\n");
        write("b.snap.new", "only new\n");
        let shown = |name| shown(&folder.path().join(name));
        assert!(shown("a.snap.new").contains("-two\n+three"), "{}", shown("a.snap.new"));
        assert_eq!(shown("b.snap.new"), "only new\n");
        let list = "{\"line\":3,\"new\":{\"snapshot\":\"x\"}}\n{\"line\":9,\"new\":null}\n";
        assert_eq!(inline(list), "line 3:\nx\n");
    }
}
