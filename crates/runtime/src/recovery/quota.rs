//! A purse that all sessions of a fleet share, so that their retries do not make
//! an outage worse.
//!
//! The purse of a step bounds one step. In an outage a thousand steps spend theirs
//! at once, and the provider that is coming back gets several times its usual
//! load. The quota bounds the sum: while most requests succeed it never runs
//! out, and when most fail, retries stop until successes have paid in again.
//!
//! ```
//! use turnbuckle_runtime::recovery::RetryQuota;
//!
//! let quota = RetryQuota::new(10);
//! assert!(quota.withdraw(5) && quota.withdraw(5));
//! assert!(!quota.withdraw(5));
//! quota.deposit(5);
//! assert!(quota.withdraw(5));
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};

use turnbuckle_errors::{ErrorCode, Failure};

use super::Budget;

/// A token bucket: a retry is paid before it is made, a success pays in.
///
/// Share one, in an `Arc`, between all runtimes that lean on the same provider.
/// There is no refill by time: a provider is healthy when it answers, not when a
/// minute has passed.
#[derive(Debug)]
pub struct RetryQuota {
    capacity: u32,
    costs: QuotaCosts,
    tokens: Mutex<u32>,
}

/// What retries cost, by kind, and what a success without a retry pays in.
/// A success after a retry pays back what its last retry cost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaCosts {
    /// After an expired clock. Dearer: the attempt has held a connection, and a
    /// place in the provider's queue, for minutes.
    pub timeout: u32,
    /// After a rate limit or overload.
    pub capacity: u32,
    /// After any other failure of the provider or the connection.
    pub transient: u32,
    /// After silence or a context that was too large. Nothing by default: a healthy
    /// server has answered.
    pub answered: u32,
    /// What a success without a retry pays in.
    pub success: u32,
}

impl Default for QuotaCosts {
    /// The numbers of the AWS SDKs: about one retry for five successes in the long
    /// run.
    fn default() -> Self {
        Self { timeout: 10, capacity: 5, transient: 5, answered: 0, success: 1 }
    }
}

impl QuotaCosts {
    /// What a retry paid from `budget` after `failure` costs.
    #[must_use]
    pub fn of(&self, budget: Budget, failure: &Failure) -> u32 {
        match (budget, failure.code()) {
            (Budget::Silent | Budget::Overflow, _) | (_, ErrorCode::EmptyModelResponse) => {
                self.answered
            }
            (_, ErrorCode::Timeout) => self.timeout,
            (_, ErrorCode::ProviderRateLimited | ErrorCode::ProviderOverloaded) => self.capacity,
            _ => self.transient,
        }
    }
}

impl RetryQuota {
    /// A full bucket of `capacity` tokens. 500 lets a hundred retries through
    /// before the first success has to pay in.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Self::with_costs(capacity, QuotaCosts::default())
    }

    /// A full bucket with prices of its own.
    #[must_use]
    pub const fn with_costs(capacity: u32, costs: QuotaCosts) -> Self {
        Self { capacity, costs, tokens: Mutex::new(capacity) }
    }

    /// What retries cost.
    #[must_use]
    pub const fn costs(&self) -> &QuotaCosts {
        &self.costs
    }

    /// How many tokens are left.
    #[must_use]
    pub fn available(&self) -> u32 {
        *self.tokens()
    }

    /// Takes `cost` tokens, or none and says `false` if there are fewer.
    #[must_use]
    pub fn withdraw(&self, cost: u32) -> bool {
        let mut tokens = self.tokens();
        match tokens.checked_sub(cost) {
            Some(left) => {
                *tokens = left;
                true
            }
            None => false,
        }
    }

    /// Pays in, up to the capacity.
    pub fn deposit(&self, amount: u32) {
        let mut tokens = self.tokens();
        *tokens = tokens.saturating_add(amount).min(self.capacity);
    }

    /// Pays in what one complete answer is worth: what its last retry had cost, or
    /// else, if that was nothing, the price of a success.
    pub(crate) fn deposit_success(&self, last_retry: Option<u32>) {
        self.deposit(last_retry.filter(|cost| *cost > 0).unwrap_or(self.costs.success));
    }

    /// A number is whole even if its holder panicked.
    fn tokens(&self) -> MutexGuard<'_, u32> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use turnbuckle_errors::Phase;

    use super::*;

    #[test]
    fn what_a_retry_costs_by_kind() {
        let costs = QuotaCosts::default();
        for (budget, code, cost) in [
            (Budget::Setup, ErrorCode::Timeout, 10),
            (Budget::Stream, ErrorCode::Timeout, 10),
            (Budget::Setup, ErrorCode::NetworkError, 5),
            (Budget::Stream, ErrorCode::StreamFailed, 5),
            (Budget::Capacity, ErrorCode::ProviderRateLimited, 5),
            (Budget::Always, ErrorCode::ProviderUnauthorized, 5),
            (Budget::Silent, ErrorCode::EmptyModelResponse, 0),
            (Budget::Overflow, ErrorCode::ContextTooLarge, 0),
        ] {
            let failure = Failure::new(code, "x").with_phase(Phase::Stream);
            assert_eq!(costs.of(budget, &failure), cost, "{budget} {code}");
        }
    }

    #[test]
    fn a_bucket_never_holds_more_than_its_capacity_nor_less_than_nothing() {
        let quota = RetryQuota::new(7);
        quota.deposit(u32::MAX);
        assert_eq!(quota.available(), 7);
        assert!(quota.withdraw(5));
        assert!(!quota.withdraw(3));
        assert_eq!(quota.available(), 2);
        quota.deposit_success(None);
        quota.deposit_success(Some(4));
        assert_eq!(quota.available(), 7);
    }
}
