//! Recovery: what is done about a failed attempt.
//!
//! *Whether it may be repeated* is a table in `turnbuckle-errors`. Here is *how
//! often and after which wait* ([`RecoveryPolicy`], plain data), the purse that
//! is spent from ([`StepAllowance`], one per step, lent by `&mut`), and the pure
//! decision over both ([`decide`]). No I/O, no clock, no chance: jitter is an
//! argument.

mod allowance;
mod backoff;
mod decide;
mod policy;
mod quota;

pub use allowance::{Budget, StepAllowance};
pub use decide::{Claim, Decision, StopReason, decide};
pub use policy::{
    AlwaysMode, CapacityBudget, OverCap, RecoveryPolicies, RecoveryPolicy, SetupBudget,
    StreamBudget,
};
pub use quota::{QuotaCosts, RetryQuota};
