//! Ends what a command started, wherever it went.

use std::{collections::HashSet, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::{Instant, sleep};

use super::processes::{Found, Mark, Process, find};

/// How long processes have between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long KILL is repeated for processes that are still found.
const KILLING: Duration = Duration::from_secs(2);
/// How often the processes are looked for meanwhile.
const LOOK: Duration = Duration::from_millis(20);
/// How often a dropped tree is looked through: new processes may be made meanwhile.
const DROP_ROUNDS: usize = 10;

/// The processes of a command. Dropping it kills those that are found.
///
/// What can be found is told in [`processes`](super::processes). The session's id
/// is free again once nobody is in it, so a tree is looked through only until
/// shortly after its shell has ended.
#[derive(Debug)]
pub(super) struct Tree {
    shell: Pid,
    mark: Mark,
    /// All that were found so far: what belonged once belongs for good.
    known: HashSet<Process>,
    over: bool,
}

/// What became of a tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    /// Whether processes were found that had to be ended.
    pub(super) found: bool,
    /// The ids of those that are still there.
    pub(super) left: Vec<i32>,
}

impl Tree {
    pub(super) fn new(shell: Pid, mark: Mark) -> Self {
        Self { shell, mark, known: HashSet::new(), over: false }
    }

    /// Whether something is still there although the shell has ended by itself.
    pub(super) async fn outlives_shell(&mut self) -> bool {
        let first = self.look().await;
        if !first.alive.is_empty() || first.unsure {
            // What is about to exit, like a `>(tee log)` at the end of its input, may.
            sleep(LOOK).await;
            if !self.look().await.alive.is_empty() {
                return true;
            }
        }
        self.kill_group();
        self.over = true;
        false
    }

    /// Kills the process group of the shell, if anybody is in it: what forks faster
    /// than one can look is found by no look, and a group is killed all at once.
    ///
    /// Only while the id is surely that of the group: shortly after somebody was in it.
    fn kill_group(&self) {
        // A group that is gone already is what we want.
        let _ = kill_process_group(self.shell, Signal::KILL);
    }

    /// Asks all to end, kills them after the grace, and looks again until none
    /// is found, in bounded time.
    pub(super) async fn end(&mut self) -> Ended {
        let begun = Instant::now();
        let mut told = HashSet::new();
        let mut empty = false;
        loop {
            let alive = self.look().await.alive;
            // Twice, since a process hides while it becomes another program.
            let before = std::mem::replace(&mut empty, alive.is_empty());
            if empty && before {
                self.kill_group();
                self.over = true;
                return Ended { found: !told.is_empty(), left: Vec::new() };
            }
            let elapsed = begun.elapsed();
            if elapsed > GRACE + KILLING {
                let mut left: Vec<i32> = alive.iter().map(Process::id).collect();
                left.sort_unstable();
                return Ended { found: true, left };
            }
            for process in alive {
                if elapsed > GRACE {
                    process.signal(Signal::KILL);
                } else if told.insert(process) {
                    process.signal(Signal::TERM);
                }
            }
            sleep(LOOK).await;
        }
    }

    /// All that are alive now. Reading the process table takes milliseconds, so
    /// it is done beside the executor.
    async fn look(&mut self) -> Found {
        let (shell, mark, known) = (self.shell, self.mark.clone(), self.known.clone());
        let look = tokio::task::spawn_blocking(move || find(shell, &mark, &known)).await;
        let found = look.unwrap_or_else(|_| find(self.shell, &self.mark, &self.known));
        self.known.extend(&found.alive);
        found
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.kill_group();
        let mut killed = HashSet::new();
        for _ in 0..DROP_ROUNDS {
            let alive = find(self.shell, &self.mark, &self.known).alive;
            self.known.extend(&alive);
            let mut fresh = alive.into_iter().filter(|process| killed.insert(*process)).peekable();
            if fresh.peek().is_none() {
                return;
            }
            fresh.for_each(|process| process.signal(Signal::KILL));
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
