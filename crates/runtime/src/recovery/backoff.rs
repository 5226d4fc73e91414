//! How long to wait. Pure: the jitter sample is an argument.

use std::time::Duration;

use super::{Budget, OverCap, RecoveryPolicy, policy::JITTER};

/// The wait before the retry number `spent + 1` of `budget`, or `None` if the
/// server asks for more than the budget allows and the policy says to stop.
///
/// `jitter` is a sample from 0 to 1.
pub(super) fn wait(
    policy: &RecoveryPolicy,
    budget: Budget,
    spent: u32,
    server: Option<Duration>,
    jitter: f64,
) -> Option<Duration> {
    let (delay, cap, server_cap) = match budget {
        Budget::Silent => return Some(Duration::ZERO),
        Budget::Stream => return Some(policy.stream.delay),
        Budget::Setup => (policy.setup.delay, policy.setup.cap, policy.setup.cap),
        Budget::Capacity => {
            (policy.capacity.delay, policy.capacity.cap, policy.capacity.server_cap)
        }
    };
    match server {
        Some(wish) if wish <= server_cap => Some(wish),
        Some(_) => match policy.over_cap {
            OverCap::Stop => None,
            OverCap::Clamp => Some(server_cap),
        },
        None => {
            let doubled = delay.saturating_mul(1_u32.checked_shl(spent).unwrap_or(u32::MAX));
            let spread = doubled.mul_f64(1.0 + JITTER * jitter.clamp(0.0, 1.0));
            Some(spread.min(cap))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        budget: Budget,
        spent: u32,
        server_ms: Option<u64>,
        jitter: f64,
        expected_ms: Option<u64>,
    ) {
        let policy = RecoveryPolicy::default();
        let seen = wait(&policy, budget, spent, server_ms.map(Duration::from_millis), jitter);
        assert_eq!(
            seen,
            expected_ms.map(Duration::from_millis),
            "{budget} {spent} {server_ms:?} {jitter}"
        );
    }

    #[test]
    fn capacity_doubles_from_two_seconds_to_thirty_with_positive_jitter() {
        use Budget::Capacity;
        for (spent, low, high) in [
            (0, 2000, 2500),
            (1, 4000, 5000),
            (2, 8000, 10_000),
            (3, 16_000, 20_000),
            (4, 30_000, 30_000),
        ] {
            check(Capacity, spent, None, 0.0, Some(low));
            check(Capacity, spent, None, 1.0, Some(high));
        }
        check(Capacity, 40, None, 0.5, Some(30_000));
    }

    #[test]
    fn a_server_wish_is_obeyed_exactly_up_to_the_cap_and_never_shortened() {
        check(Budget::Capacity, 3, Some(1), 1.0, Some(1));
        check(Budget::Capacity, 0, Some(65_000), 1.0, Some(65_000));
        check(Budget::Capacity, 0, Some(65_001), 0.0, None);
        check(Budget::Setup, 0, Some(8000), 1.0, Some(8000));
        check(Budget::Setup, 0, Some(8001), 1.0, None);
    }

    #[test]
    fn a_policy_may_clamp_instead() {
        let policy = RecoveryPolicy { over_cap: OverCap::Clamp, ..RecoveryPolicy::default() };
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(wait(&policy, Budget::Capacity, 0, hour, 0.0), Some(Duration::from_secs(65)));
        assert_eq!(wait(&policy, Budget::Setup, 0, hour, 0.0), Some(Duration::from_secs(8)));
    }

    #[test]
    fn setup_has_jitter_and_stream_has_none() {
        check(Budget::Setup, 0, None, 0.0, Some(500));
        check(Budget::Setup, 0, None, 1.0, Some(625));
        check(Budget::Setup, 9, None, 0.0, Some(8000));
        check(Budget::Stream, 0, None, 1.0, Some(750));
        check(Budget::Stream, 0, Some(99_000), 1.0, Some(750));
        check(Budget::Silent, 0, None, 1.0, Some(0));
    }
}
