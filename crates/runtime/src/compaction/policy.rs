//! When a history is made smaller, and how small.

/// When a history is made smaller, and how small.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionPolicy {
    /// The model's context in tokens, request and answer together. Without it, only
    /// the provider's own refusal makes a history smaller.
    pub window: Option<u64>,
    /// How full of the window a request may be, in percent. 90: the estimate is
    /// good to a few percent, and the answer needs room too. If the answer's
    /// limit is set and needs more room, it gets it.
    pub fill_percent: u8,
    /// How large the request should be afterwards, in percent of the most it may be,
    /// or of what the provider refused. 50: small enough that it does not come back
    /// at the next step, and large enough that the work at hand stays.
    pub target_percent: u8,
}

impl Default for CompactionPolicy {
    fn default() -> Self {
        Self { window: None, fill_percent: 90, target_percent: 50 }
    }
}

impl CompactionPolicy {
    /// The most tokens of a request, if the window is known.
    #[must_use]
    pub fn limit(&self, max_output_tokens: Option<u32>) -> Option<u64> {
        let window = self.window?;
        let filled = percent(window, self.fill_percent);
        // A limit of the answer beyond half of the window is a slip, or a server's
        // whole window; it does not leave the request without room.
        let output = max_output_tokens.map_or(0, u64::from).min(window / 2);
        Some(filled.min(window - output))
    }

    /// The size to aim at, given the most that a request may have.
    pub(super) fn target(&self, most: u64) -> u64 {
        percent(most, self.target_percent)
    }
}

fn percent(whole: u64, percent: u8) -> u64 {
    whole / 100 * u64::from(percent.min(100)) + whole % 100 * u64::from(percent.min(100)) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_leaves_room_for_the_answer() {
        let policy = CompactionPolicy { window: Some(200_000), ..CompactionPolicy::default() };
        for (output, limit) in [
            (None, 180_000),
            (Some(8_000), 180_000),
            (Some(64_000), 136_000),
            (Some(200_000), 100_000),
            (Some(u32::MAX), 100_000),
        ] {
            assert_eq!(policy.limit(output), Some(limit), "{output:?}");
        }
        assert_eq!(CompactionPolicy::default().limit(Some(1)), None);
        let tiny = CompactionPolicy { window: Some(0), ..policy };
        assert_eq!(tiny.limit(Some(1)), Some(0));
    }

    #[test]
    fn percents_of_the_largest_numbers_do_not_overflow() {
        assert_eq!(percent(u64::MAX, 100), u64::MAX);
        assert_eq!(percent(u64::MAX, 255), u64::MAX);
        assert_eq!(percent(199, 50), 99);
    }
}
