//! Bash: one shell command, bounded in time and output.
//!
//! `process` runs a shell in a session of its own, `tree` ends what it started
//! and `processes` finds that, `output` bounds what it prints, `live` shows it to
//! the host and `report` to the model; `patch` finds the patch programs in a
//! command and `witness` sees how they ended.

mod live;
mod output;
mod patch;
mod process;
mod processes;
mod report;
mod stream;
mod tree;
mod witness;

use std::{io, path::Path, time::Duration};

use async_trait::async_trait;
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use turnbuckle_errors::ErrorCode;

pub use self::patch::patch_command;
pub(crate) use self::processes::Mark;
use self::{
    patch::{Patches, patches},
    process::Job,
    report::report,
    witness::{Seen, Witness},
};
use super::{Shared, arguments, question};
use crate::{Effect, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Touched};

/// How long a command may run unless it asks for more.
const DEFAULT_LIMIT: Duration = Duration::from_secs(60);
/// The most a command may ask for.
const MAX_LIMIT: Duration = Duration::from_secs(300);
/// How many failed patch programs, or processes that are left, a result lists.
const LISTED: usize = 10;
/// The longest single argument that Linux takes, its end included, in bytes.
const MAX_COMMAND: usize = 128 * 1024 - 1;

const DESCRIPTION: &str = "\
Runs one shell command in the workspace root by `bash -c` (or `sh -c`), without a terminal and \
with empty input. Each call is a new shell: a `cd` or a variable does not last. It may run 60 s, or \
`timeout_ms`, at most 300000; then it is ended. Whichever way it ends, its background processes are \
ended with it; one in a session of its own may escape this if it clears its environment, or where \
the system has no `/proc`. The output comes back with the exit code; more than 96 KiB or 4000 lines \
are cut in the middle, and the result then names a file for Read that has all of it, up to 64 MiB a \
stream. A non-zero exit is a failure (TOOL_FAILED). Do not change files by shell patches \
(`apply_patch`, `git apply`, `patch`) or hand-edited diffs: use Edit or Write.";

/// The arguments of Bash.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BashArguments {
    /// The command, as one would type it.
    command: String,
    /// How long it may run, in milliseconds. Default: 60000. Maximum: 300000.
    #[serde(default)]
    #[schemars(with = "u64", range(min = 1, max = 300_000))]
    timeout_ms: Option<u64>,
}

/// Runs shell commands.
pub(crate) struct Bash {
    spec: ToolSpec,
    shared: Shared,
    has_bash: bool,
}

impl Bash {
    pub(crate) fn new(shared: Shared) -> Self {
        let has_bash = Path::new("/bin/bash").exists();
        Self { spec: arguments::spec::<BashArguments>("Bash", DESCRIPTION), shared, has_bash }
    }

    /// The shell for a command; `pipefail` where a pipe could hide how a patch
    /// program ended and nobody else sees it.
    const fn shell(&self, pipefail: bool) -> &'static [&'static str] {
        match (self.has_bash, pipefail) {
            (true, true) => &["/bin/bash", "-o", "pipefail", "-c"],
            (true, false) => &["/bin/bash", "-c"],
            // Not every `sh` knows `pipefail`.
            (false, _) => &["/bin/sh", "-c"],
        }
    }
}

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Execute
    }

    fn describe(&self, input: &Value) -> String {
        let command = question::text(input, "command").unwrap_or("?");
        let folder = question::line(&self.shared.workspace.path().to_string_lossy());
        let command = question::whole(command);
        format!("run this shell command in {folder}, with all your rights:\n{command}")
    }

    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments: BashArguments = arguments::parse(&self.spec, input)?;
        let limit = limit(&arguments)?;
        check_command(&arguments.command)?;
        let patches = patches(&arguments.command);
        let outputs = &self.shared.outputs;
        let witness = match patches {
            // Without one the exit code decides.
            Some(_) => Witness::new(outputs).await.ok(),
            None => None,
        };
        let unseen = |patches: &Patches| patches.past_path || witness.is_none();
        let job = Job {
            shell: self.shell(patches.as_ref().is_some_and(unseen)),
            command: &arguments.command,
            folder: self.shared.workspace.path(),
            outputs,
            witness: witness.as_ref(),
            limit,
        };
        let result = match job.run(context).await {
            Ok(finished) => report(&finished, &job),
            Err(error) => Err(not_started(&error, job.folder)),
        };
        match patches {
            None => result,
            Some(patches) => {
                let seen = witness.as_ref().map(Witness::seen).unwrap_or_default();
                judged(result, patches.command, &seen)
            }
        }
    }
}

/// The result of a command with a patch program in it: a patch that failed is a
/// failure, whatever the command made of it, and the guard is told.
fn judged(
    result: Result<ToolOutput, ToolError>,
    command: String,
    seen: &Seen,
) -> Result<ToolOutput, ToolError> {
    if seen.any && seen.failed.is_empty() {
        let touched = Touched::PatchApplied(command);
        return match result {
            Ok(output) => Ok(output.with_touched(touched)),
            Err(error) => Err(error.with_touched(touched)),
        };
    }
    let touched = Touched::PatchCommand(command);
    let error = match result {
        Ok(output) if seen.failed.is_empty() => return Ok(output.with_touched(touched)),
        Ok(output) => ToolError::new(ErrorCode::ToolFailed, output.text),
        Err(error) if error.code == ErrorCode::TurnAborted => {
            return Err(error.with_touched(touched));
        }
        Err(error) => error,
    };
    let which: String =
        seen.failed.iter().take(LISTED).map(|failed| format!(": {failed}")).collect();
    let (how, rest) = error.text.split_once('\n').unwrap_or((&error.text, ""));
    let text = format!(
        "{how}\n(a patch failed{which}; change files with Edit or Write instead, since a second \
         failed patch command ends the prompt)\n{rest}"
    );
    Err(ToolError::new(error.code, text).with_touched(touched))
}

fn limit(arguments: &BashArguments) -> Result<Duration, ToolError> {
    let Some(asked) = arguments.timeout_ms else { return Ok(DEFAULT_LIMIT) };
    let asked = Duration::from_millis(asked);
    if asked.is_zero() || asked > MAX_LIMIT {
        let text = format!(
            "Bash: `timeout_ms` must be from 1 to {}; leave it out for {}",
            MAX_LIMIT.as_millis(),
            DEFAULT_LIMIT.as_millis()
        );
        return Err(ToolError::new(ErrorCode::InvalidArgument, text));
    }
    Ok(asked)
}

fn check_command(command: &str) -> Result<(), ToolError> {
    let why = if command.trim().is_empty() {
        "`command` is empty; give a shell command".to_owned()
    } else if command.contains('\0') {
        "`command` holds a NUL character, which no command can; remove it".to_owned()
    } else if command.len() > MAX_COMMAND {
        format!(
            "`command` has {} bytes, and at most {MAX_COMMAND} are possible; Write it to a file and run that",
            command.len()
        )
    } else {
        return Ok(());
    };
    Err(ToolError::new(ErrorCode::InvalidArgument, format!("Bash: {why}")))
}

fn not_started(error: &io::Error, folder: &Path) -> ToolError {
    let exhausted = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE];
    let code = match Errno::from_io_error(error) {
        Some(errno) if exhausted.contains(&errno) => ErrorCode::ProcessResourceExhausted,
        _ => ErrorCode::ToolFailed,
    };
    let advice = if error.kind() == io::ErrorKind::NotFound && !folder.is_dir() {
        format!("; the workspace `{}` is not there any more: say so and stop", folder.display())
    } else {
        String::new()
    };
    ToolError::new(code, format!("the shell could not be started: {error}{advice}"))
}

#[cfg(test)]
mod tests;
