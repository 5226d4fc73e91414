//! No sequence of failures leads beyond what the policy prints.

use std::{collections::HashSet, time::Duration};

use proptest::prelude::*;
use turnbuckle_errors::{ErrorCode, Failure, Phase};

use super::*;
use crate::recovery::{AlwaysMode, OverCap};

/// Every code in both phases, without a server's wish, with one at each cap, and
/// with one that is too long.
fn every_failure(policy: &RecoveryPolicy) -> Vec<Failure> {
    let wishes = [
        None,
        Some(policy.setup.cap),
        Some(policy.capacity.server_cap),
        Some(Duration::from_secs(86_400)),
    ];
    let mut all = Vec::new();
    for code in ErrorCode::ALL {
        for phase in [Phase::Request, Phase::Stream] {
            for wish in wishes {
                let wish = wish.map(|wish| u64::try_from(wish.as_millis()).unwrap_or(u64::MAX));
                let failure = Failure::new(*code, "x")
                    .with_phase(phase)
                    .with_details(|details| details.retry_after_ms = wish);
                all.push(failure);
            }
        }
    }
    all
}

/// Walks every sequence of failures to the end of every budget, and says how many
/// attempts and how much waiting the worst of them takes.
fn worst(policy: &RecoveryPolicy) -> (u32, Duration) {
    let full = StepAllowance::new(policy);
    let mut failures = every_failure(policy);
    failures.retain(|failure| {
        matches!(decide(failure, policy, &mut full.clone(), 1.0), Decision::Retry(_))
    });
    let mut seen = HashSet::new();
    let mut open = vec![(1_u32, Duration::ZERO, full)];
    let (mut attempts, mut wait) = (0, Duration::ZERO);
    while let Some((made, waited, allowance)) = open.pop() {
        attempts = attempts.max(made);
        wait = wait.max(waited);
        for failure in &failures {
            let mut allowance = allowance.clone();
            if let Decision::Retry(claim) = decide(failure, policy, &mut allowance, 1.0) {
                let next = (made + 1, waited + claim.delay, allowance);
                // Two ways to one state are one.
                if seen.insert(format!("{next:?}")) {
                    open.push(next);
                }
            }
        }
    }
    (attempts, wait)
}

#[test]
fn the_worst_sequence_takes_exactly_what_the_policy_prints() {
    let clamping = RecoveryPolicy { over_cap: OverCap::Clamp, ..RecoveryPolicy::default() };
    for policy in [RecoveryPolicy::default(), clamping] {
        assert_eq!(worst(&policy), (policy.max_attempts(), policy.max_wait()));
    }
}

#[test]
fn nothing_is_left_when_every_budget_is_empty() {
    let mut policy = RecoveryPolicy::default();
    (policy.setup.retries, policy.stream.retries, policy.capacity.retries) = (0, 0, 0);
    (policy.silent_retries, policy.overflow_retries) = (0, 0);
    assert_eq!(worst(&policy), (1, Duration::ZERO));
    assert_eq!((policy.max_attempts(), policy.max_wait()), (1, Duration::ZERO));
}

/// Always goes on, with waits that grow to the cap, after any failure of the model;
/// what it does not repeat is in the table.
#[test]
fn what_always_mode_repeats() {
    let policy =
        RecoveryPolicy { always: Some(AlwaysMode::default()), ..RecoveryPolicy::default() };
    let mut ended = Vec::new();
    for failure in every_failure(&policy) {
        let mut allowance = StepAllowance::new(&policy);
        let goes_on = (0..50)
            .all(|_| matches!(decide(&failure, &policy, &mut allowance, 0.0), Decision::Retry(_)));
        if !goes_on && !ended.contains(&failure.code().as_str()) {
            ended.push(failure.code().as_str());
        }
        let of_the_model =
            matches!(failure.code().info().family, Family::Provider | Family::Transport);
        assert!(goes_on || !of_the_model || failure.code() == ErrorCode::ContextTooLarge);
    }
    assert!(ended.contains(&"TURN_ABORTED") && ended.contains(&"CONTEXT_TOO_LARGE"), "{ended:?}");
}

#[test]
fn a_server_that_forbids_a_retry_is_obeyed_in_always_mode_too() {
    let policy =
        RecoveryPolicy { always: Some(AlwaysMode::default()), ..RecoveryPolicy::default() };
    let forbidden = Failure::new(ErrorCode::ProviderError, "x")
        .with_retriable(false)
        .with_details(|details| details.should_retry = Some(false));
    let mut allowance = StepAllowance::new(&policy);
    let seen = decide(&forbidden, &policy, &mut allowance, 0.0);
    assert_eq!(seen, Decision::Stop(StopReason::NotRetriable));
}

#[test]
fn a_server_that_asks_for_a_retry_gets_none_that_the_table_or_the_purse_forbids() {
    let policy = RecoveryPolicy::default();
    let wished = |code| {
        Failure::new(code, "x")
            .with_phase(Phase::Stream)
            .with_details(|details| details.should_retry = Some(true))
    };
    let mut allowance = StepAllowance::new(&policy);
    let seen = decide(&wished(ErrorCode::ProviderUnauthorized), &policy, &mut allowance, 0.0);
    assert_eq!(seen, Decision::Stop(StopReason::NotRetriable));
    let cut = wished(ErrorCode::StreamFailed);
    assert!(matches!(decide(&cut, &policy, &mut allowance, 0.0), Decision::Retry(_)));
    let seen = decide(&cut, &policy, &mut allowance, 0.0);
    assert_eq!(seen, Decision::Stop(StopReason::Spent(Budget::Stream)));
}

#[test]
fn a_too_large_request_is_made_smaller_once_whatever_the_server_says_of_retries() {
    let policy = RecoveryPolicy::default();
    let mut allowance = StepAllowance::new(&policy);
    let too_large = Failure::new(ErrorCode::ContextTooLarge, "x")
        .with_details(|details| details.should_retry = Some(false));
    let first = decide(&too_large, &policy, &mut allowance, 0.0);
    assert!(matches!(&first, Decision::Retry(claim) if claim.compacts()), "{first:?}");
    let second = decide(&too_large, &policy, &mut allowance, 0.0);
    assert_eq!(second, Decision::Stop(StopReason::Spent(Budget::Overflow)));
}

proptest! {
    /// With any budgets and any jitter, any sequence ends within the bounds.
    #[test]
    fn any_policy_keeps_its_bounds(
        retries in [0_u32..4, 0_u32..4, 0_u32..7, 0_u32..3, 0_u32..3],
        millis in [0_u64..5_000, 0_u64..5_000, 0_u64..5_000, 0_u64..9_000, 0_u64..9_000, 0_u64..9_000],
        clamp in any::<bool>(),
        sequence in prop::collection::vec((0_usize..1000, 0.0_f64..1.0), 0..60),
    ) {
        let ms = Duration::from_millis;
        let mut policy = RecoveryPolicy::default();
        [policy.setup.retries, policy.stream.retries, policy.capacity.retries, ..] = retries;
        [.., policy.silent_retries, policy.overflow_retries] = retries;
        policy.setup.delay = ms(millis[0]);
        policy.stream.delay = ms(millis[1]);
        policy.capacity.delay = ms(millis[2]);
        policy.setup.cap = ms(millis[3]);
        policy.capacity.cap = ms(millis[4]);
        policy.capacity.server_cap = ms(millis[5]);
        policy.over_cap = if clamp { OverCap::Clamp } else { OverCap::Stop };

        let failures = every_failure(&policy);
        let mut allowance = StepAllowance::new(&policy);
        let (mut attempts, mut waited) = (1, Duration::ZERO);
        for (pick, jitter) in sequence {
            let failure = &failures[pick % failures.len()];
            match decide(failure, &policy, &mut allowance, jitter) {
                Decision::Retry(claim) => {
                    attempts += 1;
                    waited += claim.delay;
                }
                Decision::Stop(_) => {}
            }
        }
        prop_assert!(attempts <= policy.max_attempts());
        prop_assert!(waited <= policy.max_wait());
    }
}
