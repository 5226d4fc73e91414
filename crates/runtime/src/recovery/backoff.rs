//! How long to wait. Pure: the jitter sample is an argument.

use std::time::Duration;

use super::{AlwaysMode, Budget, OverCap, RecoveryPolicy, policy::JITTER};

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
        Budget::Silent | Budget::Overflow => return Some(Duration::ZERO),
        Budget::Stream => return Some(policy.stream.delay),
        Budget::Always => {
            return policy.always.as_ref().map(|mode| always(mode, spent, server, jitter));
        }
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
        None => Some(doubled(delay, cap, spent, jitter)),
    }
}

/// A server's wish counts here only where it is longer than our own wait: a tiny
/// one, repeated for ever, would be a storm.
fn always(mode: &AlwaysMode, spent: u32, server: Option<Duration>, jitter: f64) -> Duration {
    let own = doubled(mode.delay, mode.cap, spent, jitter);
    server.map_or(own, |wish| wish.min(mode.server_cap).max(own))
}

/// `delay`, doubled `spent` times, with jitter on top, at most `cap`.
fn doubled(delay: Duration, cap: Duration, spent: u32, jitter: f64) -> Duration {
    let doubled = delay.saturating_mul(1_u32.checked_shl(spent).unwrap_or(u32::MAX)).min(cap);
    let spread = doubled.as_secs_f64() * (1.0 + JITTER * jitter.clamp(0.0, 1.0));
    Duration::try_from_secs_f64(spread).map_or(cap, |spread| spread.min(cap))
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

    #[test]
    fn always_doubles_to_its_cap_and_a_wish_only_makes_it_longer() {
        let policy =
            RecoveryPolicy { always: Some(AlwaysMode::default()), ..RecoveryPolicy::default() };
        for (spent, server_ms, expected_ms) in [
            (0, None, 2000),
            (4, None, 32_000),
            (5, None, 60_000),
            (4_000_000, None, 60_000),
            (0, Some(1), 2000),
            (5, Some(61_000), 61_000),
            (0, Some(86_400_000), 3_600_000),
        ] {
            let server = server_ms.map(Duration::from_millis);
            let seen = wait(&policy, Budget::Always, spent, server, 0.0);
            assert_eq!(seen, Some(Duration::from_millis(expected_ms)), "{spent} {server_ms:?}");
        }
    }

    #[test]
    fn the_largest_numbers_of_a_host_break_nothing() {
        let mut policy = RecoveryPolicy::default();
        (policy.capacity.delay, policy.capacity.cap) = (Duration::MAX, Duration::MAX);
        let longest = wait(&policy, Budget::Capacity, 31, None, 1.0);
        assert_eq!(longest, Some(Duration::MAX));
    }
}
