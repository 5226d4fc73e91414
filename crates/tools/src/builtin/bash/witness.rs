//! Sees how the patch programs in a command ended, whatever the command makes
//! of it.
//!
//! `git apply x | tail`, `patch … || true` and `git apply x; echo done` all end
//! well when the patch did not. So a command with a patch program in it runs with
//! a folder in front of its `PATH`, where a script stands under the name of each
//! such program: it runs the real one and notes its exit code. That reaches what
//! `xargs`, `timeout` or another shell starts as well. What is started past the
//! `PATH` (by its whole path, by `sudo`) is not seen; such a command is judged by
//! its exit code, under `pipefail`.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::Stdio,
};

use super::{patch::applies, processes::Mark};
use crate::builtin::spill::Outputs;

/// The variable that names the file for the notes.
const VARIABLE: &str = "TURNBUCKLE_PATCHES";
/// The names that are stood in for.
const PROGRAMS: &[&str] = &["git", "patch", "gpatch", "apply_patch", "applypatch"];
const SCRIPT: &str = include_str!("witness.sh");
/// Makes the folder. A process of its own does it: a script that this process
/// has open for writing, while another thread starts a program, is busy for a moment.
const INSTALL: &str = "umask 077 && rm -rf \"$1.new\" && mkdir \"$1.new\" && cd \"$1.new\" && printf %s \"$2\" > git \
                       && chmod 700 git && shift 2 && for name; do ln git \"$name\" || exit; done";
/// The most notes that are read, in bytes.
const LARGEST: u64 = 256 * 1024;
/// The longest program call that is quoted, in characters.
const QUOTED: usize = 120;

/// Stands in for the patch programs of one command.
#[derive(Debug)]
pub(super) struct Witness {
    programs: PathBuf,
    notes: PathBuf,
}

/// What was seen of the patch programs of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Whether one ran at all.
    pub(super) any: bool,
    /// Those that failed and were not made good by a later run of the same patch.
    pub(super) failed: Vec<String>,
}

impl Witness {
    /// Gets ready for one command.
    ///
    /// # Errors
    ///
    /// Where the folder cannot be made; the command can be run without.
    pub(super) async fn new(outputs: &Outputs) -> io::Result<Self> {
        let folder = outputs.folder()?;
        let programs = folder.join("programs");
        if !programs.exists() {
            install(&programs).await?;
        }
        Ok(Self { programs, notes: folder.join(format!("patches-{}", Mark::new()?)) })
    }

    /// Puts the programs in front of the `PATH` of a command.
    pub(super) fn adapt(&self, environment: &mut Vec<(OsString, OsString)>) {
        let path = environment.iter_mut().find(|(name, _)| name == "PATH");
        if let Some((_, path)) = path {
            let mut whole = self.programs.clone().into_os_string();
            whole.push(OsStr::new(":"));
            whole.push(&path);
            *path = whole;
            environment.push((VARIABLE.into(), self.notes.clone().into()));
        }
    }

    /// What was seen, once the command has ended.
    pub(super) fn seen(&self) -> Seen {
        let mut notes = Vec::new();
        // No file means that no program ran.
        if let Ok(file) = File::open(&self.notes) {
            let _ = file.take(LARGEST).read_to_end(&mut notes);
        }
        judge(&read(&String::from_utf8_lossy(&notes)))
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // What is not there need not go; the rest goes with the session's folder.
        let _ = std::fs::remove_file(&self.notes);
    }
}

async fn install(programs: &Path) -> io::Result<()> {
    let (first, others) = PROGRAMS.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    debug_assert_eq!(*first, "git");
    let mut shell = tokio::process::Command::new("/bin/sh");
    shell.args(["-c", INSTALL, "sh"]).arg(programs).arg(SCRIPT).args(others);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    if !shell.status().await?.success() {
        return Err(io::Error::other("the stand-ins for patch programs could not be written"));
    }
    let mut made = programs.to_path_buf().into_os_string();
    made.push(".new");
    std::fs::rename(made, programs)
}

/// One run of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    code: i32,
    /// What its standard input was.
    input: String,
    /// Its name and its arguments.
    words: Vec<String>,
}

impl Run {
    /// Whether both apply the same patch, perhaps in another way.
    fn is_again(&self, other: &Self) -> bool {
        let what = |run: &Self| -> Vec<String> {
            run.words.iter().filter(|word| !word.starts_with('-')).cloned().collect()
        };
        self.input == other.input && what(self) == what(other)
    }
}

/// The runs in the notes, as far as they are whole.
fn read(notes: &str) -> Vec<Run> {
    let mut fields = notes.split('\0');
    let mut runs = Vec::new();
    while let Some(run) = next(&mut fields) {
        runs.push(run);
    }
    runs
}

fn next<'a>(fields: &mut impl Iterator<Item = &'a str>) -> Option<Run> {
    let code = fields.next()?.parse().ok()?;
    let input = fields.next()?.to_owned();
    let count = fields.next()?.parse().ok()?;
    let words: Vec<String> = fields.by_ref().take(count).map(str::to_owned).collect();
    (words.len() == count).then_some(Run { code, input, words })
}

fn judge(runs: &[Run]) -> Seen {
    let runs: Vec<&Run> = runs.iter().filter(|run| applies(&run.words)).collect();
    let mut rest = runs.iter();
    let mut failed = Vec::new();
    while let Some(run) = rest.next() {
        let made_good = rest.clone().any(|later| later.code == 0 && later.is_again(run));
        if run.code != 0 && !made_good {
            failed.push(tell(run));
        }
    }
    Seen { any: !runs.is_empty(), failed }
}

fn tell(run: &Run) -> String {
    let call = run.words.join(" ");
    let line = call.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = line.chars().take(QUOTED).collect();
    let more = if short.len() < line.len() { "…" } else { "" };
    format!("`{short}{more}` ended with exit code {}", run.code)
}

#[cfg(test)]
mod tests;
