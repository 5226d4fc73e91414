//! The purse of one step.

use std::fmt;

use serde::Serialize;

use super::RecoveryPolicy;

/// Which budget a retry is paid from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Budget {
    /// Failures before a 2xx response head.
    Setup,
    /// Failures from a 2xx response head on.
    Stream,
    /// Rate limits and overload, in either phase.
    Capacity,
    /// A step that ended in silence.
    Silent,
    /// A request that was too large, after one compaction.
    Overflow,
    /// Nothing pays: the policy says to go on for ever.
    Always,
}

impl Budget {
    /// The wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Stream => "stream",
            Self::Capacity => "capacity",
            Self::Silent => "silent",
            Self::Overflow => "overflow",
            Self::Always => "always",
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What one step may still spend. Born with the step, lent by `&mut` to every
/// attempt of it, dropped with it; there is no way to refill it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepAllowance {
    setup: Purse,
    stream: Purse,
    capacity: Purse,
    silent: Purse,
    overflow: Purse,
    always: Purse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Purse {
    spent: u32,
    limit: u32,
}

impl StepAllowance {
    /// A full purse.
    #[must_use]
    pub const fn new(policy: &RecoveryPolicy) -> Self {
        const fn full(limit: u32) -> Purse {
            Purse { spent: 0, limit }
        }
        Self {
            setup: full(policy.setup.retries),
            stream: full(policy.stream.retries),
            capacity: full(policy.capacity.retries),
            silent: full(policy.silent_retries),
            overflow: full(policy.overflow_retries),
            always: full(if policy.always.is_some() { u32::MAX } else { 0 }),
        }
    }

    /// Whether a retry can still be paid from `budget`.
    #[must_use]
    pub const fn affords(&self, budget: Budget) -> bool {
        let purse = self.purse(budget);
        purse.spent < purse.limit
    }

    /// How many retries were paid from `budget`.
    #[must_use]
    pub const fn spent(&self, budget: Budget) -> u32 {
        self.purse(budget).spent
    }

    /// Pays one retry from `budget`; `false` if it is empty.
    pub(crate) const fn spend(&mut self, budget: Budget) -> bool {
        let affords = self.affords(budget);
        if affords {
            match budget {
                Budget::Setup => self.setup.spent += 1,
                Budget::Stream => self.stream.spent += 1,
                Budget::Capacity => self.capacity.spent += 1,
                Budget::Silent => self.silent.spent += 1,
                Budget::Overflow => self.overflow.spent += 1,
                Budget::Always => self.always.spent += 1,
            }
        }
        affords
    }

    const fn purse(&self, budget: Budget) -> Purse {
        match budget {
            Budget::Setup => self.setup,
            Budget::Stream => self.stream,
            Budget::Capacity => self.capacity,
            Budget::Silent => self.silent,
            Budget::Overflow => self.overflow,
            Budget::Always => self.always,
        }
    }
}
