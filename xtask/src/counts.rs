//! How many tests ran, read from what the test programs print.

use std::{collections::BTreeMap, ops::AddAssign};

/// Passed, failed, skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// One check.
    pub(crate) fn one(ok: bool) -> Self {
        Self { passed: u64::from(ok), failed: u64::from(!ok), skipped: 0 }
    }

    /// The sum of all `test result:` lines.
    pub(crate) fn read(output: &str) -> Self {
        let mut sum = Self::default();
        for line in output.lines().filter_map(|line| line.trim().strip_prefix("test result:")) {
            sum += Self {
                passed: number_before(line, " passed"),
                failed: number_before(line, " failed"),
                skipped: number_before(line, " ignored"),
            };
        }
        sum
    }

    /// The line that other programs read: `3 passed, 0 failed`.
    pub(crate) fn line(&self) -> String {
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!(", {skipped} skipped"),
        };
        format!("{} passed, {} failed{skipped}", self.passed, self.failed)
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// What tests over tables say of themselves, summed up: `counted: 112 wording rows`.
pub(crate) fn told(output: &str) -> Vec<String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for line in output.lines().filter_map(|line| line.trim().strip_prefix("counted: ")) {
        if let Some((count, what)) = line.split_once(' ')
            && let Ok(count) = count.parse::<u64>()
        {
            *sums.entry(what).or_default() += count;
        }
    }
    sums.into_iter().map(|(what, count)| format!("counted: {count} {what}")).collect()
}

fn number_before(line: &str, word: &str) -> u64 {
    let before = line.split(word).next().unwrap_or_default();
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_several_programs_are_summed() {
        let output = "
running 3 tests
test a ... ok
test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
noise: 99 passed
test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.20s
";
        assert_eq!(Tally::read(output), Tally { passed: 15, failed: 2, skipped: 1 });
    }

    #[test]
    fn what_tests_count_is_summed_by_its_name() {
        let output =
            "counted: 2 shapes\n counted: 3 rows\nnoise\ncounted: 5 shapes\ncounted: x y\n";
        assert_eq!(told(output), ["counted: 3 rows", "counted: 7 shapes"]);
    }

    #[test]
    fn nothing_skipped_is_not_mentioned() {
        assert_eq!(Tally { passed: 3, failed: 1, skipped: 0 }.line(), "3 passed, 1 failed");
        assert_eq!(
            Tally { passed: 3, failed: 0, skipped: 2 }.line(),
            "3 passed, 0 failed, 2 skipped"
        );
    }
}
