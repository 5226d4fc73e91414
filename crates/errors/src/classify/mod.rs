//! From facts to a code: the one place where it is decided what happened.
//!
//! After our own abort or clock, the first conclusive fact in order of arrival
//! decides. Each kind of fact has its own file with its own table of tests;
//! wording is the last resort, for hosts that hold nothing but a flattened text.

mod explain;
mod protocol;
mod status;
mod transport;
mod wording;

pub use explain::{Explanation, Weighed, explain};

use std::{borrow::Cow, fmt, time::Duration};

use crate::{
    Clock, Delivered, ErrorCode, Fact, Facts, Http2Reason, Origin, Phase, Transport,
    facts::{Flattened, Unseen},
};

/// What the facts mean. Its `Debug` does not show the provider's words.
#[derive(Clone, PartialEq)]
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

impl fmt::Debug for Classification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classification")
            .field("code", &self.code)
            .field("retriable", &self.retriable)
            .field("source", &self.source)
            .field("rule", &self.rule)
            .field("sentence", &self.sentence)
            .field("retry_after", &self.retry_after)
            .field("provider_code", &self.provider_code.as_deref().map(Unseen::new))
            .field("delivered", &self.delivered)
            .finish()
    }
}

/// Decides what `facts` mean. Pure: no I/O, no clock, no chance.
///
/// A list of facts that decides nothing is `PROVIDER_ERROR`, not retriable.
#[must_use]
pub fn classify(facts: &Facts) -> Classification {
    let scene = Scene::of(facts);
    let ours = facts.seen().iter().find_map(own_act);
    let verdict = ours
        .or_else(|| facts.seen().iter().find_map(|fact| conclude(fact, scene)))
        .unwrap_or(UNKNOWN);
    let body = facts.seen().iter().find_map(|fact| match fact {
        Fact::Status(status) => Some(Cow::Borrowed(&status.body)),
        Fact::InBand(error) => Some(Cow::Borrowed(&error.body)),
        Fact::Message(text) => Flattened::read(text).map(|flat| Cow::Owned(flat.body)),
        _ => None,
    });
    let body = body.as_deref();
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
        delivered: delivered(facts, &verdict),
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
    /// What the words themselves say about it, where nothing but words is held.
    delivered: Option<Delivered>,
}

impl Verdict {
    /// A verdict with the retriability of its code.
    const fn new(
        code: ErrorCode,
        source: Origin,
        rule: &'static str,
        sentence: &'static str,
    ) -> Self {
        Self { code, retriable: code.retriable(), source, rule, sentence, delivered: None }
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

/// What a fact is seen against.
#[derive(Debug, Clone, Copy)]
struct Scene {
    phase: Phase,
    /// A Google server, where "exceeded your current quota" is said of a rate.
    google: bool,
}

impl Scene {
    fn of(facts: &Facts) -> Self {
        let google = facts.provider().is_some_and(|name| {
            let name = name.to_ascii_lowercase();
            ["gemini", "google", "vertex"].iter().any(|known| name.contains(known))
        });
        Self { phase: facts.phase(), google }
    }
}

fn conclude(fact: &Fact, scene: Scene) -> Option<Verdict> {
    let (verdict, text) = match fact {
        Fact::Aborted | Fact::Clock(_) => return None,
        Fact::Protocol(seen) => return Some(protocol::conclude(*seen)),
        Fact::Transport(cause) => return Some(transport::conclude(*cause, scene.phase)),
        Fact::Status(seen) => {
            (status::conclude(seen.status, &seen.body, scene), seen.body.message.as_deref())
        }
        Fact::InBand(error) => {
            (status::conclude_in_band(&error.body, scene), error.body.message.as_deref())
        }
        Fact::Message(text) => (flattened(text, scene)?, Some(text.as_str())),
    };
    // A single request above the whole limit: waiting does not make it fit.
    let never_fits = verdict.code == ErrorCode::ProviderRateLimited
        && text.and_then(wording::above_the_limit) == Some(true);
    Some(if never_fits {
        Verdict { sentence: "the request is above the rate limit of its tier", ..verdict.never() }
    } else {
        verdict
    })
}

/// A flattened text: the status or the error object that it begins with, else
/// its words.
fn flattened(text: &str, scene: Scene) -> Option<Verdict> {
    let Some(flat) = Flattened::read(text) else { return wording::conclude(text, scene) };
    let verdict = match flat.status {
        Some(status) => status::conclude(status, &flat.body, scene),
        None => status::conclude_in_band(&flat.body, scene),
    };
    Some(Verdict { delivered: Some(Delivered::Yes), ..verdict })
}

/// Only a flattened text, held without anything better, may name a delay.
fn wording_delay(facts: &Facts) -> Option<Duration> {
    facts.seen().iter().find_map(|fact| match fact {
        Fact::Message(text) => crate::delay_from_wording(text),
        _ => None,
    })
}

fn delivered(facts: &Facts, verdict: &Verdict) -> Delivered {
    let answered = facts.phase() == Phase::Stream
        || facts
            .seen()
            .iter()
            .any(|fact| matches!(fact, Fact::Status(_) | Fact::InBand(_) | Fact::Protocol(_)));
    let never_sent = facts.seen().iter().any(|fact| match fact {
        Fact::Clock(Clock::Connect) => true,
        // REFUSED_STREAM promises that nothing was done with the request.
        Fact::Transport(Transport::Http2Reset(Http2Reason(7))) => true,
        Fact::Transport(cause) => Transport::before_the_request(*cause),
        _ => false,
    });
    match (answered, never_sent) {
        (true, _) => Delivered::Yes,
        (false, true) => Delivered::No,
        (false, false) => verdict.delivered.unwrap_or(Delivered::Unknown),
    }
}

#[cfg(test)]
mod tests;
