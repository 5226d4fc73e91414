//! The newest few of many files, in bounded memory.

use std::{cmp::Reverse, collections::BinaryHeap};

/// A time in seconds and nanoseconds, then the path: newest first, and where
/// times are equal by path.
type Rank = (Reverse<(i64, i64)>, String);

/// Keeps the newest files and counts all.
#[derive(Debug)]
pub(super) struct Newest {
    limit: usize,
    total: usize,
    /// The last of those that are kept is on top.
    kept: BinaryHeap<Rank>,
}

impl Newest {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, total: 0, kept: BinaryHeap::new() }
    }

    pub(super) fn add(&mut self, modified: (i64, i64), path: &str) {
        self.total += 1;
        self.kept.push((Reverse(modified), path.to_owned()));
        if self.kept.len() > self.limit {
            self.kept.pop();
        }
    }

    pub(super) const fn total(&self) -> usize {
        self.total
    }

    /// The kept paths, newest first.
    pub(super) fn into_paths(self) -> impl Iterator<Item = String> {
        self.kept.into_sorted_vec().into_iter().map(|(_, path)| path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_in_one_order_whatever_order_they_came_in() {
        let files = [((1, 0), "old"), ((2, 5), "b"), ((2, 5), "a"), ((2, 6), "new")];
        for turn in 0..files.len() {
            let mut newest = Newest::new(3);
            for (modified, path) in files.iter().cycle().skip(turn).take(files.len()) {
                newest.add(*modified, path);
            }
            assert_eq!(newest.total(), 4);
            assert_eq!(newest.into_paths().collect::<Vec<_>>(), ["new", "a", "b"]);
        }
    }
}
