//! What the process holds: memory, open descriptors, tasks; and whether that grows.

use std::fs;

use tokio::runtime::Handle;

/// What was held in one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) memory_kib: u64,
    pub(super) descriptors: u64,
    pub(super) tasks: u64,
}

impl Held {
    /// What is held now. Memory and descriptors are read where Linux tells them, and
    /// are nothing elsewhere.
    pub(super) fn now() -> Self {
        let tasks = Handle::current().metrics().num_alive_tasks();
        Self {
            memory_kib: memory_kib().unwrap_or(0),
            descriptors: fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64),
            tasks: u64::try_from(tasks).unwrap_or(u64::MAX),
        }
    }
}

fn memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// One quantity at the beginning and at the end of what was watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Course {
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) most: u64,
    /// How much more than at first there may be at last.
    pub(super) slack: u64,
}

impl Course {
    /// Whether it stayed where it was, but for a tenth and the slack.
    pub(super) fn is_flat(&self) -> bool {
        self.last <= self.first + self.first / 10 + self.slack
    }
}

/// The courses of all quantities over what was watched after the warm-up: the medians
/// of its first and of its last third.
pub(super) fn courses(watched: &[Held]) -> Vec<Course> {
    let third = watched.len().div_ceil(3);
    let first = watched.get(..third).unwrap_or_default();
    let last = watched.get(watched.len() - third..).unwrap_or_default();
    let course = |what, unit, slack, of: fn(&Held) -> u64| Course {
        what,
        unit,
        first: median(first.iter().map(of).collect()),
        last: median(last.iter().map(of).collect()),
        most: watched.iter().map(of).max().unwrap_or(0),
        slack,
    };
    vec![
        course("memory", "KiB", 8 * 1024, |held| held.memory_kib),
        course("descriptors", "", 24, |held| held.descriptors),
        course("tasks", "", 24, |held| held.tasks),
    ]
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(of: impl Fn(u64) -> Held) -> Vec<Held> {
        (0..60).map(of).collect()
    }

    #[test]
    fn what_only_wavers_is_flat_and_what_grows_is_not() {
        let wavering = series(|at| Held {
            memory_kib: 90_000 + at % 7 * 900,
            descriptors: 420 + at % 5 * 3,
            tasks: 600 - at % 3,
        });
        assert!(courses(&wavering).iter().all(Course::is_flat));
        let growing = series(|at| Held {
            memory_kib: 90_000 + at * 600,
            descriptors: 420 + at * 2,
            tasks: 600 + at * 3,
        });
        assert!(courses(&growing).iter().all(|course| !course.is_flat()));
    }

    #[test]
    fn nothing_watched_is_no_course_at_all() {
        assert!(courses(&[]).iter().all(|course| course.last == 0));
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_task_and_a_file_are_seen() {
        let before = Held::now();
        let waiting = tokio::spawn(std::future::pending::<()>());
        let file = tempfile::tempfile().unwrap();
        let held = Held::now();
        assert!(held.tasks == before.tasks + 1 && held.memory_kib > 0);
        // Other tests of this process open and close files too.
        assert!(held.descriptors > 3);
        drop(file);
        waiting.abort();
    }
}
