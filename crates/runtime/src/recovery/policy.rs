//! The numbers of recovery, each with its reason. They live nowhere else.

use std::{collections::BTreeMap, time::Duration};

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
    /// How often a step may make its history smaller and ask again. Once: a
    /// request that is still too large after that will stay so.
    pub overflow_retries: u32,
    /// What happens when a server asks for a longer wait than its budget allows.
    pub over_cap: OverCap,
    /// Whether a step goes on after its budgets are spent. Off by default.
    pub always: Option<AlwaysMode>,
}

/// A step that goes on until it succeeds or is cancelled: for work that nobody
/// watches, where a late answer is worth more than an early failure.
///
/// When no budget pays, any failure of the model is repeated: what the provider
/// or the way to it did, a refused key too. Three things still end the step:
/// a cancellation, a server that says `x-should-retry: false`, and a context
/// that is too large, since the same request cannot become smaller.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AlwaysMode {
    /// The first wait; each next one doubles, with jitter on top.
    pub delay: Duration,
    /// The longest wait of our own. A minute asks a dead server 1,440 times a day.
    pub cap: Duration,
    /// The longest wait that a server may ask for; it is obeyed up to here, and a
    /// longer wish counts as this. It never makes a wait shorter than our own.
    pub server_cap: Duration,
}

impl Default for AlwaysMode {
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(2),
            cap: Duration::from_secs(60),
            server_cap: Duration::from_secs(3600),
        }
    }
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
            overflow_retries: 1,
            over_cap: OverCap::default(),
            always: None,
        }
    }
}

impl RecoveryPolicy {
    /// The most attempts that one step can make: the first, and every retry of
    /// every budget. `u32::MAX`, which is no bound, in `always` mode.
    ///
    /// The one request of a compaction is no attempt of the step and comes on top.
    #[must_use]
    pub const fn max_attempts(&self) -> u32 {
        if self.always.is_some() {
            return u32::MAX;
        }
        1_u32
            .saturating_add(self.setup.retries)
            .saturating_add(self.stream.retries)
            .saturating_add(self.capacity.retries)
            .saturating_add(self.silent_retries)
            .saturating_add(self.overflow_retries)
    }

    /// The longest that one step can wait between attempts: every retry of every
    /// budget, each as long as jitter or the server's wish can make it.
    /// `Duration::MAX`, which is no bound, in `always` mode.
    ///
    /// What a host adds through
    /// [`TurnObserver::on_retry`](crate::TurnObserver::on_retry) comes on top, and
    /// so does the work itself: the attempts and a compaction.
    #[must_use]
    pub fn max_wait(&self) -> Duration {
        if self.always.is_some() {
            return Duration::MAX;
        }
        let setup = self.setup.cap.saturating_mul(self.setup.retries);
        let stream = self.stream.delay.saturating_mul(self.stream.retries);
        let longest = self.capacity.cap.max(self.capacity.server_cap);
        let capacity = longest.saturating_mul(self.capacity.retries);
        // Silence and a smaller request are answered at once.
        setup.saturating_add(stream).saturating_add(capacity)
    }
}

/// The policies of a host: one for all providers, and others for some of them.
///
/// ```
/// use turnbuckle_runtime::recovery::{RecoveryPolicies, RecoveryPolicy};
///
/// let mut patient = RecoveryPolicy::default();
/// patient.capacity.retries = 9;
/// let policies = RecoveryPolicies::new(RecoveryPolicy::default()).with("anthropic", patient);
/// assert_eq!(policies.policy_for("anthropic").capacity.retries, 9);
/// assert_eq!(policies.policy_for("gemini").capacity.retries, 5);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecoveryPolicies {
    rest: RecoveryPolicy,
    by_provider: BTreeMap<String, RecoveryPolicy>,
}

impl RecoveryPolicies {
    /// `policy` for every provider.
    #[must_use]
    pub const fn new(policy: RecoveryPolicy) -> Self {
        Self { rest: policy, by_provider: BTreeMap::new() }
    }

    /// `policy` for the provider whose
    /// [`Provider::id`](turnbuckle_providers::Provider::id) is `provider`.
    #[must_use]
    pub fn with(mut self, provider: impl Into<String>, policy: RecoveryPolicy) -> Self {
        self.by_provider.insert(provider.into(), policy);
        self
    }

    /// The policy for a provider, by its id.
    #[must_use]
    pub fn policy_for(&self, provider: &str) -> &RecoveryPolicy {
        self.by_provider.get(provider).unwrap_or(&self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_worst_case_is_ten_attempts_and_five_and_a_half_minutes_of_waiting() {
        let policy = RecoveryPolicy::default();
        assert_eq!(policy.max_attempts(), 10);
        assert_eq!(policy.max_wait(), Duration::from_millis(8_000 + 750 + 5 * 65_000));
    }

    #[test]
    fn always_has_no_bound_and_is_off_by_default() {
        assert_eq!(RecoveryPolicy::default().always, None);
        let policy =
            RecoveryPolicy { always: Some(AlwaysMode::default()), ..RecoveryPolicy::default() };
        assert_eq!((policy.max_attempts(), policy.max_wait()), (u32::MAX, Duration::MAX));
    }

    #[test]
    fn a_bound_that_no_number_can_hold_is_the_largest_number() {
        let mut policy = RecoveryPolicy::default();
        policy.capacity.retries = u32::MAX;
        policy.capacity.server_cap = Duration::MAX;
        assert_eq!((policy.max_attempts(), policy.max_wait()), (u32::MAX, Duration::MAX));
    }
}
