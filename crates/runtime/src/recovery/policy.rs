//! The numbers of recovery, each with its reason. They live nowhere else.

use std::time::Duration;

/// How often, and after which waits, the attempts of one step are repeated.
///
/// Budgets belong to the step, over all its phases and re-runs; changing phase
/// refills nothing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecoveryPolicy {
    /// For failures before a 2xx response head, capacity aside.
    pub setup: SetupBudget,
    /// For failures from a 2xx response head on, capacity aside.
    pub stream: StreamBudget,
    /// For rate limits and overload, in either phase.
    pub capacity: CapacityBudget,
    /// How often a step that ended in silence is run again with a nudge. Once: a
    /// model that stays silent after being asked again has nothing to say.
    pub silent_retries: u32,
    /// What happens when a server asks for a longer wait than its budget allows.
    pub over_cap: OverCap,
}

/// The budget for failures before a 2xx response head.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SetupBudget {
    /// Retries. One: connections that fail twice in a row are down, and a person
    /// wants to know.
    pub retries: u32,
    /// The wait, before jitter; it doubles if there are several retries.
    pub delay: Duration,
    /// The longest wait. A server's wish up to here is obeyed exactly.
    pub cap: Duration,
}

/// The budget for failures from a 2xx response head on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StreamBudget {
    /// Retries. One: each costs a whole answer, which the provider may bill.
    pub retries: u32,
    /// The wait, without jitter: only the connection broke, nobody is crowded.
    pub delay: Duration,
}

/// The budget for rate limits and overload.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CapacityBudget {
    /// Retries over both phases. Five waits of the default backoff span a
    /// one-minute rate window.
    pub retries: u32,
    /// The first wait where the server names none; each next one doubles.
    pub delay: Duration,
    /// The longest such wait.
    pub cap: Duration,
    /// The longest wait that a server may ask for. A little over a minute,
    /// because per-minute limits say up to 60 s.
    pub server_cap: Duration,
}

/// What happens when a server asks for a longer wait than its budget allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverCap {
    /// The step ends at once; the failure says how long to wait, so that the
    /// host can schedule it. To ask earlier would only be refused again.
    #[default]
    Stop,
    /// Wait as long as the budget allows and try all the same.
    Clamp,
}

/// Positive jitter, as a share of the delay: enough to spread a crowd, and a
/// wait is never shorter than documented.
pub(super) const JITTER: f64 = 0.25;

impl Default for RecoveryPolicy {
    fn default() -> Self {
        Self {
            setup: SetupBudget {
                retries: 1,
                delay: Duration::from_millis(500),
                cap: Duration::from_secs(8),
            },
            stream: StreamBudget { retries: 1, delay: Duration::from_millis(750) },
            capacity: CapacityBudget {
                retries: 5,
                delay: Duration::from_secs(2),
                cap: Duration::from_secs(30),
                server_cap: Duration::from_secs(65),
            },
            silent_retries: 1,
            over_cap: OverCap::default(),
        }
    }
}

impl RecoveryPolicy {
    /// The most attempts that one step can make: the first, and every retry of
    /// every budget.
    #[must_use]
    pub const fn max_attempts(&self) -> u32 {
        1 + self.setup.retries + self.stream.retries + self.capacity.retries + self.silent_retries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_worst_case_is_nine_attempts() {
        assert_eq!(RecoveryPolicy::default().max_attempts(), 9);
    }
}
