//! From facts to a code: the one place where it is decided what happened.
//!
//! After our own abort or clock, the first conclusive fact in order of arrival
//! decides. Each kind of fact has its own file with its own table of tests;
//! wording is the last resort, for hosts that hold nothing but a flattened text.

mod protocol;
mod status;
mod transport;
mod wording;

use std::time::Duration;

use crate::{Clock, Delivered, ErrorCode, Fact, Facts, Origin, Phase, Transport};

/// What the facts mean.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Classification {
    /// What happened.
    pub code: ErrorCode,
    /// Whether trying again can help, the server's own word included.
    pub retriable: bool,
    /// Which part of the system reports it.
    pub source: Origin,
    /// The stable id of the rule that decided, for example `status.429+typed.quota`.
    pub rule: &'static str,
    /// Our own sentence for it, for want of the provider's.
    pub sentence: &'static str,
    /// The wait that the server asks for.
    pub retry_after: Option<Duration>,
    /// The provider's own code; outside text.
    pub provider_code: Option<String>,
    /// Whether the server can have worked, and billed.
    pub delivered: Delivered,
}

/// Decides what `facts` mean. Pure: no I/O, no clock, no chance.
///
/// A list of facts that decides nothing is `PROVIDER_ERROR`, not retriable.
#[must_use]
pub fn classify(facts: &Facts) -> Classification {
    let ours = facts.seen().iter().find_map(own_act);
    let verdict = ours
        .or_else(|| facts.seen().iter().find_map(|fact| conclude(fact, facts.phase())))
        .unwrap_or(UNKNOWN);
    let body = facts.seen().iter().find_map(|fact| match fact {
        Fact::Status(status) => Some(&status.body),
        Fact::InBand(error) => Some(&error.body),
        _ => None,
    });
    Classification {
        code: verdict.code,
        retriable: verdict.retriable && facts.should_retry() != Some(false),
        source: verdict.source,
        rule: verdict.rule,
        sentence: verdict.sentence,
        retry_after: facts
            .retry_after()
            .or_else(|| body.and_then(|body| body.delay))
            .or_else(|| wording_delay(facts)),
        provider_code: body.and_then(|body| body.provider_code()).map(str::to_owned),
        delivered: delivered(facts),
    }
}

/// What one step of the classifier concludes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Verdict {
    code: ErrorCode,
    retriable: bool,
    source: Origin,
    rule: &'static str,
    sentence: &'static str,
}

impl Verdict {
    /// A verdict with the retriability of its code.
    const fn new(
        code: ErrorCode,
        source: Origin,
        rule: &'static str,
        sentence: &'static str,
    ) -> Self {
        Self { code, retriable: code.retriable(), source, rule, sentence }
    }

    const fn never(self) -> Self {
        Self { retriable: false, ..self }
    }
}

/// The catch-all; never retriable, because we do not know what would repeat.
const UNKNOWN: Verdict = Verdict::new(
    ErrorCode::ProviderError,
    Origin::Provider,
    "unknown",
    "the provider failed in a way that is not known",
)
.never();

/// What we did ourselves comes before everything that followed from it.
fn own_act(fact: &Fact) -> Option<Verdict> {
    let clock =
        |rule, sentence| Some(Verdict::new(ErrorCode::Timeout, Origin::Transport, rule, sentence));
    match fact {
        Fact::Aborted => Some(Verdict::new(
            ErrorCode::TurnAborted,
            Origin::Runtime,
            "abort",
            "the prompt was cancelled",
        )),
        Fact::Clock(Clock::Connect) => {
            clock("clock.connect", "no connection in time: the clock `connect` expired")
        }
        Fact::Clock(Clock::FirstEvent) => {
            clock("clock.first_event", "no event in time: the clock `first_event` expired")
        }
        Fact::Clock(Clock::ByteIdle) => {
            clock("clock.byte_idle", "the answer fell silent: the clock `byte_idle` expired")
        }
        Fact::Clock(Clock::ProgressIdle) => clock(
            "clock.progress_idle",
            "the answer made no progress: the clock `progress_idle` expired",
        ),
        _ => None,
    }
}

fn conclude(fact: &Fact, phase: Phase) -> Option<Verdict> {
    match fact {
        Fact::Aborted | Fact::Clock(_) => None,
        Fact::Status(seen) => Some(status::conclude(seen.status, &seen.body)),
        Fact::InBand(error) => Some(status::conclude_in_band(&error.body)),
        Fact::Protocol(seen) => Some(protocol::conclude(*seen)),
        Fact::Transport(cause) => Some(transport::conclude(*cause, phase)),
        Fact::Message(text) => wording::conclude(text),
    }
}

/// Only a flattened text, held without anything better, may name a delay.
fn wording_delay(facts: &Facts) -> Option<Duration> {
    facts.seen().iter().find_map(|fact| match fact {
        Fact::Message(text) => crate::delay_from_wording(text),
        _ => None,
    })
}

fn delivered(facts: &Facts) -> Delivered {
    let answered = facts.phase() == Phase::Stream
        || facts
            .seen()
            .iter()
            .any(|fact| matches!(fact, Fact::Status(_) | Fact::InBand(_) | Fact::Protocol(_)));
    let never_sent = facts.seen().iter().any(|fact| match fact {
        Fact::Clock(Clock::Connect) => true,
        Fact::Transport(cause) => Transport::before_the_request(*cause),
        _ => false,
    });
    match (answered, never_sent) {
        (true, _) => Delivered::Yes,
        (false, true) => Delivered::No,
        (false, false) => Delivered::Unknown,
    }
}

#[cfg(test)]
mod tests;
