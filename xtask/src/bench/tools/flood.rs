//! What a command that prints a gigabyte costs the process that runs it.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use turnbuckle_tools::{
    Progress, ToolContext,
    builtin::{self, Workspace},
};

use super::{
    super::{client::memory, report::Check},
    Args, Found,
};
use crate::terminal::say;

/// How much is printed, in bytes.
const PRINTED: usize = 1_000_000_000;
/// The most memory that the whole process may ever have held, in MiB.
const PEAK: f64 = 16.0;

/// What the process took that ran the command.
#[derive(Debug, Serialize, Deserialize)]
struct Took {
    seconds: f64,
    /// The most that it ever held; none where the system does not say.
    peak_kib: Option<u64>,
    /// What of it the process held before.
    idle_kib: Option<u64>,
}

/// Each run is a process of its own, since a process has one peak.
pub(super) fn measure(args: &Args) -> Result<Found> {
    let bytes = if args.quick { PRINTED / 10 } else { PRINTED };
    let what = format!("Bash that prints {} MB: peak of the process", bytes / 1_000_000);
    let mut peaks = Vec::new();
    for _ in 0..args.runs {
        let took = in_a_process(bytes)?;
        let Some(peak) = took.peak_kib else {
            let skipped = vec![format!("{what}: this system does not tell it")];
            return Ok(Found { skipped, ..Found::default() });
        };
        let idle = took.idle_kib.unwrap_or_default();
        say(format_args!("{what}: {peak} KiB, {idle} KiB before; {:.2} s", took.seconds));
        peaks.push(mib(peak));
    }
    let most = peaks.iter().copied().fold(0.0, f64::max);
    let least = peaks.iter().copied().fold(f64::INFINITY, f64::min);
    let check = Check {
        what,
        measured: format!("{most:.1} MiB ({least:.1}-{most:.1})"),
        target: format!("<= {PEAK} MiB"),
        holds: most <= PEAK,
        gate: true,
    };
    Ok(Found { checks: vec![check], ..Found::default() })
}

#[expect(clippy::cast_precision_loss, reason = "no machine has 2^52 KiB")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

fn in_a_process(bytes: usize) -> Result<Took> {
    let mut process = Command::new(std::env::current_exe()?);
    process.args(["bench-tools", "--runs", "1", "--flood", &bytes.to_string()]);
    let out = process.stdin(Stdio::null()).output().context("cannot start the process")?;
    if !out.status.success() {
        bail!("the command did not run: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    serde_json::from_slice(&out.stdout).context("the process did not say what it took")
}

/// Is the process that runs the command: a host with an executor of many threads
/// that shows what the command prints.
pub(super) fn run(bytes: usize) -> Result<()> {
    let executor = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let tools = builtin::tools(&Workspace::open(folder.path())?);
    let bash = tools.iter().find(|tool| tool.spec().name == "Bash").context("no such tool")?;
    let (wake, mut woken) = tokio::sync::mpsc::unbounded_channel();
    let progress = Progress::new(move || {
        // The reader lives as long as the command.
        let _ = wake.send(());
    });
    let context = ToolContext::default().with_progress(progress.clone());
    let idle_kib = memory("VmRSS:");
    let input = json!({"command": format!("yes | head -c {bytes}"), "timeout_ms": 300_000});
    let (text, seconds) = executor.block_on(async {
        let begun = Instant::now();
        let mut run = bash.run(input, &context);
        loop {
            tokio::select! {
                output = &mut run => return output.map(|output| (output.text, begun.elapsed())),
                Some(()) = woken.recv() => drop(progress.take()),
            }
        }
    })?;
    ensure!(text.contains(" bytes left out here) …"), "the output was not cut: {text:.200}");
    let took = Took { seconds: seconds.as_secs_f64(), peak_kib: memory("VmHWM:"), idle_kib };
    say(serde_json::to_string(&took)?);
    Ok(())
}
