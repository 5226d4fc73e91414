//! What a prompt has to do with a script, by the promises alone.
//!
//! Written from the table of budgets in docs/RECOVERY.md. It shares no code with
//! the decision that it foretells, and none of its numbers are read from it.

use std::collections::BTreeMap;

use turnbuckle_errors::ErrorCode;
use turnbuckle_runtime::recovery::Budget;

use crate::{
    kind::{Kind, Means},
    play::MAX_STEPS,
    script::{Act, Attempt, Policy},
};

/// The most requests of one step.
pub(crate) const MAX_ATTEMPTS: u32 = 10;
/// The longest that the waits of one step can sum up to: one of setup, one of
/// stream, and five that a server asks for.
pub(crate) const MAX_WAIT_MS: u64 = 8_000 + 750 + 5 * 65_000;

/// How often each budget pays in one step.
const fn pays(budget: Budget) -> u32 {
    match budget {
        Budget::Setup | Budget::Stream | Budget::Silent | Budget::Overflow => 1,
        Budget::Capacity => 5,
        Budget::Always => u32::MAX,
        _ => 0,
    }
}

/// The shortest and the longest wait before the retry number `paid + 1`.
pub(crate) fn wait_ms(budget: Budget, paid: u32, wish: Option<u64>) -> (u64, u64) {
    // A quarter on top at most, and never above the cap.
    let jittered = |base: u64, cap: u64| (base.min(cap), (base + base / 4).min(cap));
    match (budget, wish) {
        (Budget::Capacity | Budget::Setup, Some(wish)) => (wish, wish),
        (Budget::Setup, None) => jittered(500 << paid, 8_000),
        (Budget::Capacity, None) => jittered(2_000 << paid, 30_000),
        (Budget::Stream, _) => (750, 750),
        // What a server asks for counts only where it is longer, up to an hour.
        (Budget::Always, wish) => {
            let wish = wish.unwrap_or(0).min(3_600_000);
            let (least, most) = jittered(2_000 << paid.min(20), 60_000);
            (least.max(wish), most.max(wish))
        }
        _ => (0, 0),
    }
}

/// How a prompt has to go.
#[derive(Debug)]
pub(crate) struct Story {
    /// Requests.
    pub(crate) attempts: usize,
    pub(crate) steps: u32,
    pub(crate) waits: Vec<Wait>,
    /// None if the prompt completes.
    pub(crate) failure: Option<ErrorCode>,
}

/// A wait that has to come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) budget: Budget,
    pub(crate) code: ErrorCode,
    /// The shortest and the longest that it may be.
    pub(crate) ms: (u64, u64),
}

/// What one step has spent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Purse(BTreeMap<&'static str, u32>);

impl Purse {
    /// Pays where no other budget does, if the policy goes on for ever: for whatever
    /// the provider or the way to it did, unless the server forbids it.
    fn pay_always(&mut self, kind: Kind, policy: Policy) -> Option<(Budget, u32)> {
        let ours = matches!(kind, Kind::Endless | Kind::ServerFinal);
        let pays = policy == Policy::Always && !ours;
        pays.then(|| self.pay(Budget::Always)).flatten().map(|paid| (Budget::Always, paid))
    }

    /// Pays for a retry; tells how many were paid before, or that none is left.
    pub(crate) fn pay(&mut self, budget: Budget) -> Option<u32> {
        let spent = self.0.entry(budget.as_str()).or_default();
        let paid = *spent;
        if paid < pays(budget) {
            *spent += 1;
            Some(paid)
        } else {
            None
        }
    }
}

/// What an attempt means under a policy.
const fn means(kind: Kind, policy: Policy) -> Means {
    match (kind, policy) {
        (Kind::RateLimitedLong, Policy::Clamp) => {
            Means::Again(ErrorCode::ProviderRateLimited, Budget::Capacity)
        }
        (Kind::ServerLong, Policy::Clamp) => Means::Again(ErrorCode::ProviderError, Budget::Setup),
        _ => kind.means(),
    }
}

/// What the server asks for, as far as the budget obeys.
fn wish_ms(kind: Kind, budget: Budget) -> Option<u64> {
    let most = match budget {
        Budget::Setup => 8_000,
        Budget::Capacity => 65_000,
        _ => u64::MAX,
    };
    kind.wish_ms().map(|wish| wish.min(most))
}

/// Tells how a prompt goes whose attempts go like these; beyond them are answers.
/// After which of them the history was made smaller, and after which the user has
/// more to say, is told by `compacted` and `more`.
pub(crate) fn foretell(
    attempts: &[Attempt],
    policy: Policy,
    compacted: impl Fn(usize) -> bool,
    more: impl Fn(usize) -> bool,
) -> Story {
    let mut script = attempts.iter();
    let mut story = Story { attempts: 0, steps: 0, waits: Vec::new(), failure: None };
    // Both count for one answer.
    let (mut strikes, mut steps) = (0, 0);
    while steps < MAX_STEPS {
        (story.steps, steps) = (story.steps + 1, steps + 1);
        let mut purse = Purse::default();
        loop {
            story.attempts += 1;
            let attempt = script.next();
            let kind = attempt.map_or(Kind::Answer, |attempt| attempt.kind);
            match means(kind, policy) {
                Means::Done if more(story.attempts - 1) => {
                    (strikes, steps) = (0, 0);
                    break;
                }
                Means::Done => return story,
                Means::GoesOn => {
                    let calls = attempt.map_or(&[][..], |attempt| attempt.calls.as_slice());
                    if strikes_out(calls, &mut strikes) {
                        story.failure = Some(ErrorCode::MutationRetryBudgetExhausted);
                        return story;
                    }
                    break;
                }
                Means::Again(code, budget) => {
                    let paid = purse.pay(budget).map(|paid| (budget, paid));
                    match paid.or_else(|| purse.pay_always(kind, policy)) {
                        Some((budget, paid)) => {
                            let ms = wait_ms(budget, paid, wish_ms(kind, budget));
                            story.waits.push(Wait { budget, code, ms });
                        }
                        None => {
                            story.failure = Some(code);
                            return story;
                        }
                    }
                }
                Means::Smaller => {
                    let code = ErrorCode::ContextTooLarge;
                    let paid = purse.pay(Budget::Overflow);
                    if paid.is_some() && compacted(story.attempts - 1) {
                        let budget = Budget::Overflow;
                        story.waits.push(Wait { budget, code, ms: (0, 0) });
                        continue;
                    }
                    story.failure = Some(ErrorCode::ContextTooLarge);
                    return story;
                }
                Means::Final(code) => match purse.pay_always(kind, policy) {
                    Some((budget, paid)) => {
                        let ms = wait_ms(budget, paid, kind.wish_ms());
                        story.waits.push(Wait { budget, code, ms });
                    }
                    None => {
                        story.failure = Some(code);
                        return story;
                    }
                },
            }
        }
    }
    story.failure = Some(ErrorCode::TurnLimitReached);
    story
}

/// Whether one file's edit failed for the second time; a good edit forgives.
fn strikes_out(calls: &[Act], strikes: &mut u32) -> bool {
    let mut out = false;
    for call in calls {
        match call {
            Act::MissedEdit => *strikes += 1,
            Act::Edit => *strikes = 0,
            _ => {}
        }
        out |= *strikes >= 2;
    }
    out
}
