//! Finds the processes of one command.
//!
//! A process belongs to a command if it is in the session of its shell, if it
//! carries the command's [`Mark`] in its environment, or if its parent belongs.
//! One that leaves the session, clears its environment and loses its parent
//! cannot be found. Only Linux lets us look; elsewhere, and without `/proc`, the
//! shell's process group stands for all.

use std::{
    collections::HashSet,
    ffi::OsString,
    fmt::{self, Write as _},
    io,
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The variable that carries the mark.
pub(super) const VARIABLE: &str = "TURNBUCKLE_CALL";

/// What marks the processes of one command: 128 random bits in hexadecimal.
///
/// Unguessable, so that no other process has it by accident or by intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark(String);

impl Mark {
    /// A new mark.
    ///
    /// # Errors
    ///
    /// Where the system gives no random bytes.
    pub(crate) fn new() -> io::Result<Self> {
        let mut bytes = [0; 16];
        random(&mut bytes)?;
        let mut mark = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            let _ = write!(mark, "{byte:02x}");
        }
        Ok(Self(mark))
    }

    /// The value of [`VARIABLE`]: the marks of the commands that we run in, and
    /// this one, so that an outer command finds the processes of inner ones.
    pub(super) fn value(&self, outer: Option<OsString>) -> OsString {
        let mut value = outer.unwrap_or_default();
        if !value.is_empty() {
            value.push(":");
        }
        value.push(&self.0);
        value
    }

    /// Whether an environment as `/proc` has it carries this mark.
    #[cfg(any(target_os = "linux", test))]
    fn is_in(&self, environment: &[u8]) -> bool {
        let marks = environment
            .split(|byte| *byte == 0)
            .filter_map(|variable| variable.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="));
        marks
            .flat_map(|value| value.split(|byte| *byte == b':'))
            .any(|mark| mark == self.0.as_bytes())
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(target_os = "linux")]
fn random(bytes: &mut [u8]) -> io::Result<()> {
    let count = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
    // Up to 256 bytes the system gives all or none.
    if count == bytes.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(not(target_os = "linux"))]
fn random(bytes: &mut [u8]) -> io::Result<()> {
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, bytes)
}

/// Something that was found and can be signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Process {
    /// One process: an id is used again, but not with the same start.
    #[cfg(target_os = "linux")]
    One { id: Pid, started: u64 },
    /// The process group of a shell, where one cannot look closer.
    Group(Pid),
}

impl Process {
    pub(super) fn id(&self) -> i32 {
        match self {
            #[cfg(target_os = "linux")]
            Self::One { id, .. } => id.as_raw_nonzero().get(),
            Self::Group(id) => id.as_raw_nonzero().get(),
        }
    }

    /// Sends a signal. A process that is gone already is what we want, and one
    /// that we may not signal is found again.
    pub(super) fn signal(self, signal: Signal) {
        let _ = match self {
            #[cfg(target_os = "linux")]
            Self::One { id, started } => linux::signal(id, started, signal),
            Self::Group(id) => kill_process_group(id, signal),
        };
    }
}

/// The living processes of a command.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) alive: Vec<Process>,
    /// Whether some process shows no environment at all, as one does for a moment
    /// while it becomes another program: a second look will tell.
    pub(super) unsure: bool,
}

/// Looks for the processes of the command with this shell and mark; `known` are
/// those that were found before.
pub(super) fn find(shell: Pid, mark: &Mark, known: &HashSet<Process>) -> Found {
    #[cfg(target_os = "linux")]
    if let Ok(found) = linux::find(shell, mark, known) {
        return found;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (mark, known);
    let alive = test_kill_process_group(shell).map(|()| Process::Group(shell));
    Found { alive: alive.into_iter().collect(), unsure: false }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{collections::HashSet, fs, io};

    use rustix::{
        io::Errno,
        process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal},
    };

    use super::{Found, Mark, Process};

    /// The flag of a thread of the kernel (`PF_KTHREAD`); those have no environment.
    const KERNEL_THREAD: u64 = 0x20_0000;

    /// What `/proc/ID/stat` says of a living process.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) struct Stat {
        pub(super) parent: i32,
        pub(super) session: i32,
        pub(super) started: u64,
    }

    impl Stat {
        /// `None` also for one that has ended and is not yet reaped, and for the kernel's own.
        fn of(id: Pid) -> Option<Self> {
            let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
            Self::parse(&String::from_utf8_lossy(&stat))
        }

        pub(super) fn parse(stat: &str) -> Option<Self> {
            // The name before the last parenthesis may hold anything.
            let mut fields = stat.rsplit_once(") ")?.1.split(' ');
            if matches!(fields.next()?, "Z" | "X" | "x") {
                return None;
            }
            let parent = fields.next()?.parse().ok()?;
            let session = fields.nth(1)?.parse().ok()?;
            let flags: u64 = fields.nth(2)?.parse().ok()?;
            let started = fields.nth(12)?.parse().ok()?;
            if flags & KERNEL_THREAD != 0 {
                return None;
            }
            Some(Self { parent, session, started })
        }
    }

    pub(super) fn find(shell: Pid, mark: &Mark, known: &HashSet<Process>) -> io::Result<Found> {
        let mut ids = HashSet::new();
        let mut found = Found::default();
        let mut others = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
            else {
                continue;
            };
            let Some(stat) = Stat::of(id).filter(|_| id != getpid()) else { continue };
            let process = Process::One { id, started: stat.started };
            let sure = stat.session == shell.as_raw_nonzero().get() || known.contains(&process);
            let environment =
                if sure { None } else { fs::read(format!("/proc/{id}/environ")).ok() };
            found.unsure |= environment.as_ref().is_some_and(Vec::is_empty);
            if sure || environment.is_some_and(|environment| mark.is_in(&environment)) {
                ids.insert(process.id());
                found.alive.push(process);
            } else {
                others.push((process, stat.parent));
            }
        }
        // Their children, and theirs.
        loop {
            let before = found.alive.len();
            others.retain(|(process, parent)| {
                let ours = ids.contains(parent);
                if ours {
                    ids.insert(process.id());
                    found.alive.push(*process);
                }
                !ours
            });
            if found.alive.len() == before {
                return Ok(found);
            }
        }
    }

    /// Signals the process that started then, and no other that has its id now.
    pub(super) fn signal(id: Pid, started: u64, signal: Signal) -> rustix::io::Result<()> {
        let same = || Stat::of(id).is_some_and(|stat| stat.started == started);
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(process) if same() => pidfd_send_signal(process, signal),
            // Linux before 5.3, and some sandboxes.
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) if same() => kill_process(id, signal),
            Ok(_) => Err(Errno::SRCH),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_alone_and_behind_outer_ones_only() {
        let (outer, inner) = (Mark::new().unwrap(), Mark::new().unwrap());
        assert_ne!(outer, inner);
        let value = inner.value(Some(outer.value(None)));
        let value = value.to_str().unwrap();
        assert_eq!(value, format!("{}:{}", outer.0, inner.0));
        let environment = format!("PATH=/bin\0{VARIABLE}={value}\0HOME=/h\0");
        assert!(outer.is_in(environment.as_bytes()) && inner.is_in(environment.as_bytes()));
        assert!(!Mark::new().unwrap().is_in(environment.as_bytes()));
        assert!(!inner.is_in(format!("OTHER={}\0", inner.0).as_bytes()));
        assert!(!inner.is_in(b""));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_read_whatever_its_name_and_one_that_has_ended_is_none() {
        let tail = "7 10 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 100 200";
        let expected = linux::Stat { parent: 7, session: 9, started: 4711 };
        assert_eq!(linux::Stat::parse(&format!("12 (a) Z (b)) S {tail}")), Some(expected));
        assert_eq!(linux::Stat::parse(&format!("12 (sleep) Z {tail}")), None);
        assert_eq!(linux::Stat::parse("12 (sleep) S 7"), None);
        let kernel = tail.replace(" 4194560 ", " 2129984 ");
        assert_eq!(linux::Stat::parse(&format!("12 (kworker) S {kernel}")), None);
    }
}
