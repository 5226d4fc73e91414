//! What a running tool says before it ends, on its way to the host.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// The most bytes of progress that wait for a host; of more, the newest stay.
///
/// A screen or two: enough to see that something moves, and no log.
pub const MAX_PROGRESS: usize = 16 * 1024;

/// What one call has said and nobody has fetched yet.
///
/// The tool never waits for the reader and cannot fill its memory: while the
/// reader is slow, what was said is put together, and the oldest is left out.
#[derive(Clone)]
pub struct Progress {
    pending: Arc<Mutex<ProgressUpdate>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

/// A piece of progress: more text of a running call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ProgressUpdate {
    /// What was said since the last update: content, exact.
    pub text: String,
    /// How many bytes before it were left out, because the reader was slow.
    pub skipped: u64,
}

impl Progress {
    /// Nothing yet. `wake` is called, on the thread of the tool, each time when
    /// there is something to [`take`](Self::take) after there was nothing.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self { pending: Arc::default(), wake: Arc::new(wake) }
    }

    /// Adds text.
    pub fn say(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let was_empty = {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            let was_empty = pending.text.is_empty();
            pending.add(text);
            was_empty
        };
        if was_empty {
            (self.wake)();
        }
    }

    /// Leaves out this many bytes of what the tool could say next, and what is
    /// older than that and was not fetched.
    pub fn skip(&self, bytes: usize) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = pending.text.len();
        pending.text.clear();
        pending.skipped += (waiting + bytes) as u64;
    }

    /// What was said since it was last asked; `None` if nothing was.
    #[must_use]
    pub fn take(&self) -> Option<ProgressUpdate> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        (!pending.text.is_empty()).then(|| std::mem::take(&mut *pending))
    }
}

impl ProgressUpdate {
    /// Adds text and cuts the oldest above the bound, never within a character.
    fn add(&mut self, text: &str) {
        let fresh = tail(text, MAX_PROGRESS);
        let kept = tail(&self.text, MAX_PROGRESS - fresh.len()).len();
        let old = self.text.len() - kept;
        self.skipped += (old + text.len() - fresh.len()) as u64;
        self.text.drain(..old);
        self.text.push_str(fresh);
    }
}

/// The end of a text, at most so many bytes of it.
fn tail(text: &str, most: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(most));
    text.get(start..).unwrap_or_default()
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn watched() -> (Progress, Arc<AtomicUsize>) {
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        let wake = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        (Progress::new(wake), woken)
    }

    #[test]
    fn what_was_said_is_put_together_until_it_is_fetched() {
        let (progress, woken) = watched();
        assert_eq!(progress.take(), None);
        progress.say("");
        progress.say("one ");
        progress.say("two");
        assert_eq!(woken.load(Ordering::Relaxed), 1, "once for all that waits");
        assert_eq!(progress.take(), Some(ProgressUpdate { text: "one two".into(), skipped: 0 }));
        assert_eq!(progress.take(), None);
        progress.say("three");
        assert_eq!(woken.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_is_skipped_is_counted_with_what_came_before() {
        let (progress, _) = watched();
        progress.say("old");
        progress.skip(100);
        assert_eq!(progress.take(), None);
        progress.skip(100);
        progress.say("new");
        assert_eq!(progress.take(), Some(ProgressUpdate { text: "new".into(), skipped: 203 }));
    }

    #[test]
    fn above_the_bound_the_newest_stays_and_no_character_is_cut() {
        let (progress, _) = watched();
        // Three bytes each, and the bound is no multiple of three.
        let line = "\u{20ac}".repeat(MAX_PROGRESS / 3);
        progress.say("old");
        progress.say(&line);
        progress.say("new");
        let update = progress.take().unwrap();
        assert!(update.text.len() <= MAX_PROGRESS);
        assert!(update.text.ends_with("\u{20ac}new"));
        assert_eq!(update.skipped as usize + update.text.len(), line.len() + 6);

        progress.say(&"\u{20ac}".repeat(MAX_PROGRESS));
        let update = progress.take().unwrap();
        assert!(update.text.len() > MAX_PROGRESS - 3 && update.text.starts_with('\u{20ac}'));
        assert_eq!(update.skipped as usize + update.text.len(), 3 * MAX_PROGRESS);
    }
}
