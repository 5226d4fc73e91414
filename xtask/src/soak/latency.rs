//! How long prompts took.

use std::time::Duration;

/// How long each of some prompts took.
#[derive(Debug, Default)]
pub(super) struct Latency(Vec<Duration>);

impl Latency {
    pub(super) fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// A row: how many, and milliseconds at the percentiles 50, 90, 99, and the most.
    pub(super) fn row(&self, name: &str) -> Vec<String> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
            sorted.get(place).map_or_else(|| "-".to_owned(), |took| took.as_millis().to_string())
        };
        vec![name.to_owned(), sorted.len().to_string(), at(50), at(90), at(99), at(100)]
    }

    pub(super) fn head() -> Vec<String> {
        ["latency of a prompt, ms", "prompts", "p50", "p90", "p99", "most"]
            .map(str::to_owned)
            .to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_measured() {
        let mut latency = Latency::default();
        (1..=200).rev().for_each(|ms| latency.add(Duration::from_millis(ms)));
        assert_eq!(latency.row("x"), ["x", "200", "100", "180", "198", "200"]);
        assert_eq!(Latency::default().row("x"), ["x", "0", "-", "-", "-", "-"]);
    }
}
