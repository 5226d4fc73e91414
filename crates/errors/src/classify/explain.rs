//! How a classification came about: every fact, in order, and what each would say.

use serde::Serialize;

use super::{Classification, Scene, classify, conclude, own_act};
use crate::{Fact, Facts};

/// A classification with the facts that were weighed for it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// What the facts mean.
    pub classification: Classification,
    /// Each fact, in order of arrival.
    pub weighed: Vec<Weighed>,
}

/// One fact, and what it says by itself. Holds no outside text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Weighed {
    /// What kind of fact it is: `aborted`, `clock`, `status`, `event`, `protocol`,
    /// `transport` or `message`.
    pub fact: &'static str,
    /// The HTTP status it carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The rule that it would decide by; `None` if it decides nothing.
    pub rule: Option<&'static str>,
    /// Whether it is the one that decided.
    pub decided: bool,
}

/// Does what [`classify`] does, and tells how.
///
/// ```
/// use turnbuckle_errors::{ErrorBody, Fact, Facts, Phase, StatusFact, Transport, explain};
/// let torn = Facts::new(Phase::Request)
///     .with(Fact::Status(StatusFact::new(401, ErrorBody::default())))
///     .with(Fact::Transport(Transport::Reset));
/// let weighed = explain(&torn).weighed;
/// assert_eq!((weighed[0].rule, weighed[0].decided), (Some("status.401"), true));
/// assert_eq!((weighed[1].rule, weighed[1].decided), (Some("transport.reset"), false));
/// ```
#[must_use]
pub fn explain(facts: &Facts) -> Explanation {
    let scene = Scene::of(facts);
    let mut weighed: Vec<Weighed> = facts
        .seen()
        .iter()
        .map(|fact| Weighed {
            fact: kind_of(fact),
            status: Facts::new(facts.phase()).with(fact.clone()).status(),
            rule: own_act(fact).or_else(|| conclude(fact, scene)).map(|verdict| verdict.rule),
            decided: false,
        })
        .collect();
    // Our own act decides wherever it stands, else the first that says something.
    let ours = facts.seen().iter().position(|fact| own_act(fact).is_some());
    let decided = ours.or_else(|| weighed.iter().position(|fact| fact.rule.is_some()));
    if let Some(fact) = decided.and_then(|at| weighed.get_mut(at)) {
        fact.decided = true;
    }
    Explanation { classification: classify(facts), weighed }
}

const fn kind_of(fact: &Fact) -> &'static str {
    match fact {
        Fact::Aborted => "aborted",
        Fact::Clock(_) => "clock",
        Fact::Status(_) => "status",
        Fact::InBand(_) => "event",
        Fact::Protocol(_) => "protocol",
        Fact::Transport(_) => "transport",
        Fact::Message(_) => "message",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, ErrorCode, Phase, Transport};

    #[test]
    fn our_own_act_decides_wherever_it_stands() {
        let facts = Facts::new(Phase::Stream)
            .with(Fact::Message("nothing known".to_owned()))
            .with(Fact::Transport(Transport::Reset))
            .with(Fact::Clock(Clock::ByteIdle));
        let seen = explain(&facts);
        assert_eq!(seen.classification.code, ErrorCode::Timeout);
        let rules: Vec<_> = seen.weighed.iter().map(|fact| (fact.rule, fact.decided)).collect();
        assert_eq!(
            rules,
            [(None, false), (Some("transport.reset"), false), (Some("clock.byte_idle"), true)]
        );
    }

    #[test]
    fn what_decided_is_what_classify_says() {
        let facts = Facts::new(Phase::Request)
            .with(Fact::Message("hm".to_owned()))
            .with(Fact::Message("429 You exceeded your current quota".to_owned()));
        let seen = explain(&facts);
        let decided = seen.weighed.iter().find(|fact| fact.decided).unwrap();
        assert_eq!(decided.rule, Some(seen.classification.rule));
        assert_eq!((decided.fact, decided.status), ("message", Some(429)));
    }
}
