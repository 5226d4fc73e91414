//! Runs a shell in a session of its own.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    pin::pin,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessSession};
use rustix::process::Pid;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    live::Live,
    output::{self, HeadTail},
    processes::{Mark, VARIABLE},
    stream::Collector,
    tree::{Ended, Tree},
    witness::Witness,
};
use crate::{
    ToolContext,
    builtin::spill::{Outputs, Spill},
};

/// How long output is still read once the shell has ended: what is in the pipe
/// comes at once, and whatever else holds the pipe may hold it for ever.
const DRAIN: Duration = Duration::from_millis(250);

/// How much is read at once, in bytes: what a pipe holds.
const CHUNK: usize = 64 * 1024;

/// Variables that programs need and that hold no secrets. Others, provider keys
/// among them, do not reach the command.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "PKG_CONFIG_PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "NODE_PATH",
    "NVM_DIR",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Nobody looks on: no terminal, no pager, no editor, no question for a password.
const FIXED: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// What to run.
#[derive(Debug)]
pub(super) struct Job<'a> {
    /// The shell with the arguments that come before the command.
    pub(super) shell: &'a [&'a str],
    pub(super) command: &'a str,
    pub(super) folder: &'a Path,
    pub(super) limit: Duration,
    /// Where output goes that is too long to show.
    pub(super) outputs: &'a Arc<Outputs>,
    /// Who looks at the patch programs in the command.
    pub(super) witness: Option<&'a Witness>,
}

/// How a job ended, and what it printed.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) end: End,
    pub(super) stdout: HeadTail,
    pub(super) stderr: HeadTail,
    /// Whether the pipes were read to their end; something else may hold them.
    pub(super) read: bool,
    /// What became of the processes that the shell left, or was ended with.
    pub(super) tree: Ended,
}

/// How a job ended.
#[derive(Debug)]
pub(super) enum End {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
}

impl Job<'_> {
    /// Runs the job to its end, and ends all that is found of it then.
    ///
    /// Cancel safety: dropping the future kills all that is found of it.
    ///
    /// # Errors
    ///
    /// Where the shell cannot be started or waited for.
    pub(super) async fn run(&self, context: &ToolContext) -> io::Result<Finished> {
        let (mut child, mut tree) = self.spawn()?;
        let (mut stdout, mut stderr) = (Collector::default(), Collector::default());
        let spill = || Spill::new(Arc::clone(self.outputs));
        let (mut out_spill, mut err_spill) = (spill(), spill());
        let (out, err) = (child.stdout().take(), child.stderr().take());
        let reading = async {
            tokio::join!(
                collect(out, &mut stdout, &mut out_spill, Live::new(context)),
                collect(err, &mut stderr, &mut err_spill, Live::new(context))
            );
        };
        let (end, tree, read) =
            self.follow(&mut *child, &mut tree, reading, &context.cancel).await?;
        let (mut stdout, mut stderr) = (stdout.finish(), stderr.finish());
        output::fit(&mut stdout, &mut stderr);
        for (stream, spill) in [(&mut stdout, out_spill), (&mut stderr, err_spill)] {
            if stream.leaves_out() {
                stream.tell_whole(spill.keep().await);
            }
        }
        Ok(Finished { end, stdout, stderr, read, tree })
    }

    /// Waits for the shell to end, or ends it, while its output is read. The
    /// last value is whether the output was read to its end.
    async fn follow(
        &self,
        child: &mut dyn ChildWrapper,
        tree: &mut Tree,
        reading: impl Future<Output = ()>,
        cancel: &CancellationToken,
    ) -> io::Result<(End, Ended, bool)> {
        let mut reading = pin!(reading);
        let mut read = false;
        let mut limit = pin!(sleep(self.limit));
        let end = loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break End::Cancelled,
                // The inner child: the wrapper's own wait goes on for the whole group.
                status = child.inner_mut().wait() => break End::Exited(status?),
                () = &mut limit => break End::TimedOut,
                () = &mut reading, if !read => read = true,
            }
        };
        let mut exited = matches!(end, End::Exited(_));
        if exited {
            read = read || timeout(DRAIN, &mut reading).await.is_ok();
            if !tree.outlives_shell().await {
                let mut ended = Ended::default();
                if !read {
                    // What no look has found and its group took with it lets go of the output.
                    read = timeout(DRAIN, &mut reading).await.is_ok();
                    ended.found = read;
                }
                return Ok((end, ended, read));
            }
        }
        let mut ending = pin!(tree.end());
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut ending => break ended,
                _ = child.inner_mut().wait(), if !exited => exited = true,
                () = &mut reading, if !read => read = true,
            }
        };
        read = read || timeout(DRAIN, reading).await.is_ok();
        Ok((end, ended, read))
    }

    fn spawn(&self) -> io::Result<(Box<dyn ChildWrapper>, Tree)> {
        let mark = Mark::new()?;
        let (program, arguments) = self.shell.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut environment = environment(std::env::vars_os());
        if let Some(witness) = self.witness {
            witness.adapt(&mut environment);
        }
        let mut command = CommandWrap::with_new(program, |command| {
            command
                .args(arguments)
                .arg(self.command)
                .current_dir(self.folder)
                .env_clear()
                .envs(environment)
                .env(VARIABLE, mark.value(std::env::var_os(VARIABLE)))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        });
        let child = command.wrap(ProcessSession).wrap(KillOnDrop).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let id = id.ok_or_else(|| io::Error::other("the shell has no process id"))?;
        Ok((child, Tree::new(id, mark)))
    }
}

async fn collect(
    pipe: Option<impl AsyncRead + Unpin>,
    collector: &mut Collector,
    spill: &mut Spill,
    mut live: Live<'_>,
) {
    let Some(mut pipe) = pipe else { return };
    let mut chunk = vec![0; CHUNK];
    // A pipe that cannot be read any more has ended for us.
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        let bytes = chunk.get(..count).unwrap_or_default();
        collector.push(bytes);
        live.push(bytes);
        spill.push(bytes).await;
    }
    live.end();
}

/// The environment of a command: the allowed variables, and no terminal.
pub(super) fn environment(
    own: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let allowed = |name: &OsStr| {
        name.to_str().is_some_and(|name| PASSED.contains(&name) || name.starts_with("LC_"))
    };
    let pair = |(name, value): (&str, &str)| (name.into(), value.into());
    let mut all: Vec<(OsString, OsString)> =
        own.filter(|(name, _)| allowed(name)).chain(FIXED.iter().copied().map(pair)).collect();
    // Without any, programs print question marks for what is not ASCII.
    if !all.iter().any(|(name, _)| name == "LANG" || name == "LC_ALL" || name == "LC_CTYPE") {
        all.push(pair(("LANG", "C.UTF-8")));
    }
    all
}
