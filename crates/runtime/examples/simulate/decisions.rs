//! The pure decision, walked until every budget is spent.
//!
//! Attempts that are alike to the decision form a class. Orders of attempts that
//! have spent the same lead to one state, which is proved and not assumed: their
//! allowances must be equal. So every order is covered, and each decision is held
//! against the oracle.

use std::collections::BTreeMap;

use turnbuckle_errors::{ErrorCode, Failure, Phase};
use turnbuckle_runtime::{
    RecoveryPolicy,
    recovery::{Budget, Decision, StepAllowance, decide},
};

use crate::{
    kind::{Kind, Means},
    oracle::{Purse, wait_ms},
};

/// One kind for each class.
const CLASSES: &[Kind] = &[
    Kind::Refused,
    Kind::ServerWait,
    Kind::ServerLong,
    Kind::CutText,
    Kind::RateLimited,
    Kind::RateLimitedWait,
    Kind::RateLimitedLong,
    Kind::InBandOverload,
    Kind::Empty,
    Kind::ContextRequest,
    Kind::InBandContext,
    Kind::Unauthorized,
];

/// What the walk saw.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// States of the purse, each with a decision about each class.
    pub(crate) states: u64,
    pub(crate) decisions: u64,
    /// The orders of attempts that lead to these decisions.
    pub(crate) orders: u64,
    pub(crate) most_attempts: u32,
    pub(crate) longest_wait_ms: u64,
    /// After what the decision was wrong.
    pub(crate) wrong: Vec<String>,
}

/// Orders of attempts that have spent the same.
struct State {
    allowance: StepAllowance,
    orders: u64,
    longest_wait_ms: u64,
    /// One of them.
    path: Vec<Kind>,
}

/// Walks every order of classes.
pub(crate) fn walk(policy: &RecoveryPolicy) -> Walked {
    let mut walked = Walked::default();
    let failures: Vec<(Kind, Failure)> =
        CLASSES.iter().filter_map(|kind| Some((*kind, failure(*kind)?))).collect();
    let allowance = StepAllowance::new(policy);
    let first = State { allowance, orders: 1, longest_wait_ms: 0, path: Vec::new() };
    let mut level = BTreeMap::from([(Purse::default(), first)]);
    while !level.is_empty() && walked.wrong.is_empty() {
        walked.most_attempts += 1;
        let mut next = BTreeMap::new();
        for (purse, state) in &level {
            walked.states += 1;
            walked.longest_wait_ms = walked.longest_wait_ms.max(state.longest_wait_ms);
            for (kind, failure) in &failures {
                walked.decisions += 1;
                walked.orders = walked.orders.saturating_add(state.orders);
                go(purse, state, *kind, failure, policy, &mut next, &mut walked);
            }
        }
        level = next;
    }
    walked
}

/// Decides about one more attempt in a state.
fn go(
    purse: &Purse,
    state: &State,
    kind: Kind,
    failure: &Failure,
    policy: &RecoveryPolicy,
    next: &mut BTreeMap<Purse, State>,
    walked: &mut Walked,
) {
    let mut allowance = state.allowance.clone();
    // The longest waits, so that their sum is the longest there can be.
    let decision = decide(failure, policy, &mut allowance, 1.0);
    let mut purse = purse.clone();
    let due = due(&mut purse, kind);
    let seen = match &decision {
        Decision::Retry(claim) => Some((claim.budget, claim.delay.as_millis())),
        Decision::Stop(_) => None,
    };
    let mut path = state.path.clone();
    path.push(kind);
    if seen != due.map(|(budget, wait)| (budget, u128::from(wait))) {
        walked.wrong.push(format!("{}: {decision:?} instead of {due:?}", names(&path)));
        return;
    }
    let Some((_, wait)) = due else { return };
    let longest_wait_ms = state.longest_wait_ms + wait;
    let known = next.entry(purse).or_insert_with(|| State {
        allowance: allowance.clone(),
        orders: 0,
        longest_wait_ms,
        path: path.clone(),
    });
    if known.allowance != allowance {
        walked.wrong.push(format!("{} is unlike {}", names(&path), names(&known.path)));
    }
    known.orders = known.orders.saturating_add(state.orders);
    known.longest_wait_ms = known.longest_wait_ms.max(longest_wait_ms);
}

/// The budget that has to pay, and the longest wait.
fn due(purse: &mut Purse, kind: Kind) -> Option<(Budget, u64)> {
    let budget = match kind.means() {
        Means::Again(_, budget) => budget,
        Means::Smaller => Budget::Overflow,
        _ => return None,
    };
    let paid = purse.pay(budget)?;
    Some((budget, wait_ms(budget, paid, kind.wish_ms()).1))
}

/// What the runtime would report of an attempt of this kind.
fn failure(kind: Kind) -> Option<Failure> {
    let silence = || {
        let silent = Failure::new(ErrorCode::EmptyModelResponse, "silence");
        silent.with_phase(Phase::Stream)
    };
    kind.failure().or_else(|| (kind == Kind::Empty).then(silence))
}

fn names(path: &[Kind]) -> String {
    path.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" ")
}
