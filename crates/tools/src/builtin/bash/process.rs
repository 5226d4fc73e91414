//! Runs a shell in a session of its own and ends all of it.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    pin::pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessSession};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::output::Collector;

/// How long processes have between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long output is still read once the shell has ended: what is in the pipe
/// comes at once, and whatever else holds the pipe may hold it for ever.
const DRAIN: Duration = Duration::from_millis(250);
/// How often the end of a group is looked for during the grace.
const LOOK: Duration = Duration::from_millis(20);

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

/// What to run.
#[derive(Debug)]
pub(super) struct Job<'a> {
    /// The shell with the arguments that come before the command.
    pub(super) shell: &'a [&'a str],
    pub(super) command: &'a str,
    pub(super) folder: &'a Path,
    pub(super) limit: Duration,
}

/// How a job ended, and what it printed.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) end: End,
    pub(super) stdout: Collector,
    pub(super) stderr: Collector,
    /// Whether something still held the pipes when we stopped to read.
    pub(super) held: bool,
}

/// How a job ended.
#[derive(Debug)]
pub(super) enum End {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
}

impl Job<'_> {
    /// Runs the job to its end; nothing of its group is left then.
    ///
    /// Cancel safety: dropping the future kills the group.
    ///
    /// # Errors
    ///
    /// What the system said when the shell could not be started or waited for.
    pub(super) async fn run(&self, cancel: &CancellationToken) -> io::Result<Finished> {
        let (mut child, group) = self.spawn()?;
        let (mut stdout, mut stderr) = (Collector::default(), Collector::default());
        let (out, err) = (child.stdout().take(), child.stderr().take());
        let reading = async {
            tokio::join!(collect(out, &mut stdout), collect(err, &mut stderr));
        };
        let (end, read) = self.follow(&mut *child, &group, reading, cancel).await?;
        drop(group);
        Ok(Finished { end, stdout, stderr, held: !read })
    }

    /// Waits for the shell to end, or ends it, while its output is read. The
    /// second value is whether the output was read to its end.
    async fn follow(
        &self,
        child: &mut dyn ChildWrapper,
        group: &Group,
        reading: impl Future<Output = ()>,
        cancel: &CancellationToken,
    ) -> io::Result<(End, bool)> {
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
        if !matches!(end, End::Exited(_)) {
            let mut ended = pin!(group.end(child));
            loop {
                tokio::select! {
                    biased;
                    () = &mut ended => break,
                    () = &mut reading, if !read => read = true,
                }
            }
        }
        if !read {
            read = timeout(DRAIN, reading).await.is_ok();
        }
        Ok((end, read))
    }

    fn spawn(&self) -> io::Result<(Box<dyn ChildWrapper>, Group)> {
        let (program, arguments) = self.shell.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = CommandWrap::with_new(program, |command| {
            command
                .args(arguments)
                .arg(self.command)
                .current_dir(self.folder)
                .env_clear()
                .envs(environment(std::env::vars_os()))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        });
        let child = command.wrap(ProcessSession).wrap(KillOnDrop).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let group = Group(id.ok_or_else(|| io::Error::other("the shell has no process id"))?);
        Ok((child, group))
    }
}

async fn collect(pipe: Option<impl AsyncRead + Unpin>, collector: &mut Collector) {
    let Some(mut pipe) = pipe else { return };
    let mut chunk = vec![0; 16 * 1024];
    // A pipe that cannot be read any more has ended for us.
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        collector.push(chunk.get(..count).unwrap_or_default());
    }
}

/// The process group of a job. Dropping it kills what is left of it.
///
/// Its id stays taken as long as a process is in it. Once it is empty the id is
/// free, so it is signalled only until right after its shell has ended.
#[derive(Debug)]
struct Group(Pid);

impl Group {
    /// Asks the group to end, and kills it after the grace.
    async fn end(&self, child: &mut dyn ChildWrapper) {
        self.signal(Signal::TERM);
        let gone = async {
            let _ = child.inner_mut().wait().await;
            while test_kill_process_group(self.0).is_ok() {
                sleep(LOOK).await;
            }
        };
        let gone = timeout(GRACE, gone).await;
        if gone.is_err() {
            self.signal(Signal::KILL);
            let _ = child.inner_mut().wait().await;
        }
    }

    fn signal(&self, signal: Signal) {
        // A group that is gone already is what we want.
        let _ = kill_process_group(self.0, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// The environment of a command: the allowed variables, and no terminal.
pub(super) fn environment(
    own: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let allowed = |name: &OsStr| {
        name.to_str().is_some_and(|name| PASSED.contains(&name) || name.starts_with("LC_"))
    };
    let fixed = [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];
    own.filter(|(name, _)| allowed(name))
        .chain(fixed.map(|(name, value)| (name.into(), value.into())))
        .collect()
}
