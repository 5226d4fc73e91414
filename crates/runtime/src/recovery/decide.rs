//! The heart: from a failure and a purse to what happens next.

use std::time::Duration;

use turnbuckle_errors::{Failure, Family, Phase, Recovery};

use super::{Budget, RecoveryPolicy, StepAllowance, backoff};

/// What happens after a failed attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Wait, then try again; it is paid for.
    Retry(Claim),
    /// The step ends with the failure.
    Stop(StopReason),
}

/// A retry that is paid for.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The budget it was paid from.
    pub budget: Budget,
    /// The wait before it.
    pub delay: Duration,
}

impl Claim {
    /// Whether the history has to be made smaller before the request goes out.
    #[must_use]
    pub fn compacts(&self) -> bool {
        self.budget == Budget::Overflow
    }
}

/// Why there is no retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The same request would fail the same way.
    NotRetriable,
    /// The budget that would pay for it is spent.
    Spent(Budget),
    /// The server asks for a longer wait than the budget allows.
    ServerDelayAboveCap(Budget),
}

/// Decides what happens after `failure`, and pays for it. Pure but for the purse.
///
/// `jitter` is a sample from 0 to 1.
pub fn decide(
    failure: &Failure,
    policy: &RecoveryPolicy,
    allowance: &mut StepAllowance,
    jitter: f64,
) -> Decision {
    let stop = match budget_for(failure) {
        None => StopReason::NotRetriable,
        Some(budget) if !allowance.affords(budget) => StopReason::Spent(budget),
        Some(budget) => match claim(failure, policy, allowance, budget, jitter) {
            Some(claim) => return Decision::Retry(claim),
            None => StopReason::ServerDelayAboveCap(budget),
        },
    };
    if goes_on_for_ever(failure)
        && allowance.affords(Budget::Always)
        && let Some(claim) = claim(failure, policy, allowance, Budget::Always, jitter)
    {
        return Decision::Retry(claim);
    }
    Decision::Stop(stop)
}

/// Pays from a budget that affords it, unless the server wants a longer wait.
fn claim(
    failure: &Failure,
    policy: &RecoveryPolicy,
    allowance: &mut StepAllowance,
    budget: Budget,
    jitter: f64,
) -> Option<Claim> {
    let spent = allowance.spent(budget);
    let delay = backoff::wait(policy, budget, spent, failure.retry_after(), jitter)?;
    allowance.spend(budget).then_some(Claim { budget, delay })
}

/// The budget that pays for a retry after `failure`, if it may be retried at all.
fn budget_for(failure: &Failure) -> Option<Budget> {
    let recovery = failure.code().recovery();
    // The next request is another one, so what the server says of this one is no
    // matter: providers answer every 400 with `x-should-retry: false`.
    if recovery == Recovery::Reduce {
        return Some(Budget::Overflow);
    }
    if !failure.retriable() {
        return None;
    }
    match recovery {
        Recovery::AfterWait => Some(Budget::Capacity),
        Recovery::Transient => match failure.phase() {
            Some(Phase::Stream) => Some(Budget::Stream),
            _ => Some(Budget::Setup),
        },
        Recovery::Nudge => Some(Budget::Silent),
        _ => None,
    }
}

/// Whether `always` mode repeats it: what the model's provider or the way to it
/// did, unless the server forbids it or the request has to change first.
fn goes_on_for_ever(failure: &Failure) -> bool {
    let of_the_model = matches!(failure.code().info().family, Family::Provider | Family::Transport);
    let forbidden = failure.details().should_retry == Some(false);
    of_the_model && !forbidden && failure.code().recovery() != Recovery::Reduce
}

#[cfg(test)]
mod bounds;

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use turnbuckle_errors::ErrorCode;

    use super::*;

    fn failure(code: ErrorCode, phase: Phase) -> Failure {
        Failure::new(code, "x").with_phase(phase)
    }

    #[test]
    fn every_code_in_every_phase_with_a_full_purse() {
        let policy = RecoveryPolicy::default();
        let mut table = String::new();
        for code in ErrorCode::ALL {
            let told = [Phase::Request, Phase::Stream].map(|phase| {
                let mut allowance = StepAllowance::new(&policy);
                match decide(&failure(*code, phase), &policy, &mut allowance, 0.0) {
                    Decision::Retry(claim) => {
                        format!("{} after {} ms", claim.budget, claim.delay.as_millis())
                    }
                    Decision::Stop(_) => "stop".to_owned(),
                }
            });
            if told.iter().any(|told| told != "stop") {
                writeln!(table, "{code:<24} request: {:<24} stream: {}", told[0], told[1]).unwrap();
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn switching_phase_never_refills_the_capacity_budget() {
        let policy = RecoveryPolicy::default();
        let mut allowance = StepAllowance::new(&policy);
        let phases = [Phase::Request, Phase::Stream];
        for phase in phases.into_iter().cycle().take(5) {
            let seen = decide(
                &failure(ErrorCode::ProviderRateLimited, phase),
                &policy,
                &mut allowance,
                0.0,
            );
            assert!(matches!(seen, Decision::Retry(_)));
        }
        for phase in phases {
            let seen = decide(
                &failure(ErrorCode::ProviderOverloaded, phase),
                &policy,
                &mut allowance,
                0.0,
            );
            assert_eq!(seen, Decision::Stop(StopReason::Spent(Budget::Capacity)));
        }
    }

    #[test]
    fn what_is_not_retriable_costs_nothing() {
        let policy = RecoveryPolicy::default();
        let mut allowance = StepAllowance::new(&policy);
        let final_5xx = failure(ErrorCode::ProviderError, Phase::Request).with_retriable(false);
        assert_eq!(
            decide(&final_5xx, &policy, &mut allowance, 0.0),
            Decision::Stop(StopReason::NotRetriable)
        );
        assert_eq!(allowance, StepAllowance::new(&policy));
    }

    #[test]
    fn a_wish_above_the_cap_stops_and_costs_nothing() {
        let policy = RecoveryPolicy::default();
        let mut allowance = StepAllowance::new(&policy);
        let later = failure(ErrorCode::ProviderRateLimited, Phase::Request)
            .with_details(|details| details.retry_after_ms = Some(66_000));
        let seen = decide(&later, &policy, &mut allowance, 0.0);
        assert_eq!(seen, Decision::Stop(StopReason::ServerDelayAboveCap(Budget::Capacity)));
        assert_eq!(allowance, StepAllowance::new(&policy));
    }
}
