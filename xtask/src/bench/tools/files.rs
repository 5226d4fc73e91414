//! Edit against reading and writing the file once; Grep against `rg`.

use std::{
    fmt::Write as _,
    fs::{self, File},
    future::Future,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle_tools::{
    Tool, ToolContext,
    builtin::{self, Workspace},
};

use super::{super::report::Check, Args, Found};
use crate::terminal::say;

/// The most that an Edit may take of the time of reading and writing once.
const EDIT: f64 = 3.0;
/// The most that a Grep may take of the time of `rg`.
const GREP: f64 = 1.3;
/// The size of the edited file, in bytes.
const LARGE: usize = 50_000_000;
/// How many files are searched.
const FILES: usize = 20_000;
/// What is looked for: one line in each file of fifty has it, so that a result
/// shows them all.
const PATTERN: &str = r"fn handle_[0-9]+_request\(";

pub(super) async fn measure(args: &Args) -> Result<Found> {
    let part = if args.quick { 10 } else { 1 };
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let mut found = Found::default();
    found.checks.push(edit(&folder.path().join("edit"), LARGE / part, args.runs).await?);
    match grep(&folder.path().join("grep"), FILES / part, args.runs).await? {
        Some(check) => found.checks.push(check),
        None => found.skipped.push("Grep / rg: `rg` is not installed (Debian: ripgrep)".to_owned()),
    }
    Ok(found)
}

/// The tools of a workspace, to be called by name.
struct Tools(Vec<Arc<dyn Tool>>);

impl Tools {
    fn open(folder: &Path) -> Result<Self> {
        Ok(Self(builtin::tools(&Workspace::open(folder)?)))
    }

    async fn call(&self, name: &str, input: Value) -> Result<String> {
        let tool = self.0.iter().find(|tool| tool.spec().name == name).context("no such tool")?;
        Ok(tool.run(input, &ToolContext::default()).await?.text)
    }
}

async fn edit(folder: &Path, size: usize, runs: u32) -> Result<Check> {
    fs::create_dir_all(folder)?;
    let mut text = String::with_capacity(size + 100);
    for number in 0.. {
        if text.len() >= size {
            break;
        }
        let _ = writeln!(text, "line {number:08} of a file that is much longer than most are");
    }
    let middle = text.len() / 2 / 65;
    let (path, copy) = (folder.join("large"), folder.join("copy"));
    fs::write(&path, &text)?;
    drop(text);
    let tools = Tools::open(folder)?;
    tools.call("Read", json!({"path": "large", "limit": 1})).await?;
    let mut version = format!("line {middle:08} of");
    let mut rounds = Vec::new();
    for run in 0..=runs {
        let next = format!("line {middle:08} in its version {run} of");
        let input = json!({"path": "large", "old_string": version, "new_string": next});
        let ours = timed(async { tools.call("Edit", input).await.map(drop) }).await?;
        let once = timed(async { copy_once(&path, &copy) }).await?;
        version = next;
        // The first round warms up.
        if run > 0 {
            rounds.push((ours, once));
        }
    }
    Ok(ratio(
        &format!("Edit of a line in {} MB / read and write once", size / 1_000_000),
        EDIT,
        &rounds,
    ))
}

/// Reads a file and writes it to another one that lasts.
fn copy_once(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from)?;
    let mut file = File::create(to)?;
    file.write_all(&bytes)?;
    Ok(file.sync_all()?)
}

async fn grep(folder: &Path, files: usize, runs: u32) -> Result<Option<Check>> {
    let expected = plant(folder, files)?;
    if Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok(None);
    }
    let tools = Tools::open(folder)?;
    let mut rounds = Vec::new();
    for run in 0..=runs {
        let input = json!({ "pattern": PATTERN });
        let ours = timed(async {
            let lines = tools.call("Grep", input).await?.lines().count();
            same(lines, expected, "Grep")
        });
        let ours = ours.await?;
        let theirs = timed(async {
            let mut rg = Command::new("rg");
            rg.args(["--no-config", "--line-number", "--no-heading", PATTERN, "."]);
            let out = rg.current_dir(folder).stdin(Stdio::null()).output()?;
            same(out.stdout.iter().filter(|byte| **byte == b'\n').count(), expected, "rg")
        });
        let theirs = theirs.await?;
        if run > 0 {
            rounds.push((ours, theirs));
        }
    }
    Ok(Some(ratio(&format!("Grep over {files} files / rg"), GREP, &rounds)))
}

fn same(lines: usize, expected: usize, who: &str) -> Result<()> {
    if lines == expected {
        return Ok(());
    }
    bail!("{who} found {lines} lines and not {expected}")
}

/// Makes a tree of sources of some kilobytes each; how many lines match.
fn plant(folder: &Path, files: usize) -> Result<usize> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut matching = 0;
    for number in 0..files {
        let module = folder.join(format!("crate_{}/module_{}", number % 20, number % 200));
        fs::create_dir_all(&module)?;
        let mut text = String::new();
        let lines = random.usize(20..120);
        for line in 0..lines {
            let _ = writeln!(text, "    let value_{line} = compute({}, \"text\");", random.u32(..));
        }
        if number % 50 == 0 {
            let _ = writeln!(text, "fn handle_{number}_request(request: Request) {{}}");
            matching += 1;
        }
        fs::write(module.join(format!("file_{number}.rs")), text)?;
    }
    // Also what is left out.
    fs::write(folder.join(".gitignore"), "target/\n")?;
    Ok(matching)
}

async fn timed(work: impl Future<Output = Result<()>>) -> Result<Duration> {
    let start = Instant::now();
    work.await?;
    Ok(start.elapsed())
}

/// Round by round, so that what slowed both down is in neither.
fn ratio(what: &str, target: f64, rounds: &[(Duration, Duration)]) -> Check {
    let mut ratios: Vec<f64> =
        rounds.iter().map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |place: usize| ratios.get(place).copied().unwrap_or(f64::NAN);
    let (median, least, most) = (at(ratios.len() / 2), at(0), at(ratios.len().saturating_sub(1)));
    let mean = |of: fn(&(Duration, Duration)) -> Duration| {
        let sum: Duration = rounds.iter().map(of).sum();
        sum.as_secs_f64() * 1e3 / f64::from(u32::try_from(rounds.len()).unwrap_or(1))
    };
    say(format_args!("{what}: {:.1} ms / {:.1} ms", mean(|round| round.0), mean(|round| round.1)));
    Check {
        what: what.to_owned(),
        measured: format!("{median:.2} ({least:.2}-{most:.2})"),
        target: format!("<= {target}"),
        holds: median <= target,
        gate: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_median_of_the_rounds_and_fails_above_its_target() {
        let ms = Duration::from_millis;
        let rounds = [(ms(10), ms(10)), (ms(900), ms(300)), (ms(20), ms(10))];
        let check = ratio("a / b", 2.0, &rounds);
        assert_eq!((check.measured.as_str(), check.holds), ("2.00 (1.00-3.00)", true));
        assert!(!ratio("a / b", 1.9, &rounds).holds);
    }

    #[tokio::test]
    async fn both_parts_measure_a_small_amount() {
        let folder = tempfile::tempdir().unwrap();
        let check = edit(&folder.path().join("edit"), 100_000, 2).await.unwrap();
        assert!(check.what.starts_with("Edit of a line"), "{check:?}");
        let check = grep(&folder.path().join("grep"), 50, 1).await.unwrap();
        assert!(check.is_none_or(|check| check.what == "Grep over 50 files / rg"));
    }
}
