//! One failure, as programs and people get to see it.

use std::{error::Error, fmt, time::Duration};

use serde::{Serialize, Serializer};

use crate::{
    Classification, Delivered, ErrorCode, Facts, Origin, Phase, Redact, SafeText, SafeToken,
    classify,
};

/// What went wrong, with everything needed to act on it and nothing secret.
///
/// Serialises to the wire shape of the documentation (`camelCase` JSON). It
/// cannot be deserialised: text from a file is outside text, and outside text
/// enters only as [`SafeText`].
///
/// ```
/// use turnbuckle_errors::{ErrorCode, Failure, Phase};
/// let failure = Failure::new(ErrorCode::StreamFailed, "the answer broke off").with_phase(Phase::Stream);
/// assert_eq!(failure.to_string(), "STREAM_FAILED: the answer broke off");
/// assert!(failure.retriable());
/// ```
///
/// ```compile_fail
/// use turnbuckle_errors::{ErrorCode, Failure};
/// let from_outside = String::from("raw body");
/// let _ = Failure::new(ErrorCode::StreamFailed, from_outside);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Inner {
    code: ErrorCode,
    message: SafeText,
    retriable: bool,
    source: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause_code: Option<ErrorCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<SafeToken>,
    details: Details,
}

impl Failure {
    /// A failure with the defaults of its code.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<SafeText>) -> Self {
        Self(Box::new(Inner {
            code,
            message: message.into(),
            retriable: code.retriable(),
            source: origin_of(code),
            cause_code: None,
            trace_id: None,
            details: Details::default(),
        }))
    }

    /// Classifies `facts` and tells the result, with outside text redacted.
    ///
    /// The message is the provider's own where it sent one, else our sentence
    /// for what happened.
    #[must_use]
    pub fn from_facts(facts: &Facts, redact: &dyn Redact) -> Self {
        let verdict = classify(facts);
        let told = facts.told_message().map(str::trim).filter(|text| !text.is_empty());
        let message = match told {
            Some(text) => SafeText::redacted(text, redact),
            None => SafeText::from(verdict.sentence),
        };
        Self::new(verdict.code, message).with_verdict(facts, &verdict, redact)
    }

    fn with_verdict(
        mut self,
        facts: &Facts,
        verdict: &Classification,
        redact: &dyn Redact,
    ) -> Self {
        self.0.retriable = verdict.retriable;
        self.0.source = verdict.source;
        let token = |raw: &String| SafeToken::new(raw, redact);
        self.with_details(|details| {
            details.phase = Some(facts.phase());
            details.provider_status = facts.status();
            details.provider_code = verdict.provider_code.as_ref().and_then(token);
            details.retry_after_ms = verdict.retry_after.map(millis);
            details.should_retry = facts.should_retry();
            details.delivered = Some(verdict.delivered);
            details.rule = Some(verdict.rule);
        })
    }

    /// Its code. Branch on this, never on the message.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// What happened, in words.
    #[must_use]
    pub fn message(&self) -> &SafeText {
        &self.0.message
    }

    /// Whether the same thing is worth trying again.
    #[must_use]
    pub fn retriable(&self) -> bool {
        self.0.retriable
    }

    /// Which part of the system reports it. Named `source` on the wire.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.0.source
    }

    /// The code of the failure behind this one.
    #[must_use]
    pub fn cause_code(&self) -> Option<ErrorCode> {
        self.0.cause_code
    }

    /// The facts around it.
    #[must_use]
    pub fn details(&self) -> &Details {
        &self.0.details
    }

    /// Where the attempt stood.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        self.0.details.phase
    }

    /// The wait that the server asked for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.details.retry_after_ms.map(Duration::from_millis)
    }

    /// Sets where the attempt stood.
    #[must_use]
    pub fn with_phase(self, phase: Phase) -> Self {
        self.with_details(|details| details.phase = Some(phase))
    }

    /// Overrides whether it is worth trying again.
    #[must_use]
    pub fn with_retriable(mut self, retriable: bool) -> Self {
        self.0.retriable = retriable;
        self
    }

    /// Overrides which part of the system reports it.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.0.source = origin;
        self
    }

    /// Names the code of the failure behind this one.
    #[must_use]
    pub fn with_cause_code(mut self, code: ErrorCode) -> Self {
        self.0.cause_code = Some(code);
        self
    }

    /// Names the trace it belongs to.
    #[must_use]
    pub fn with_trace_id(mut self, trace_id: SafeToken) -> Self {
        self.0.trace_id = Some(trace_id);
        self
    }

    /// Sets the rendered cause chain, outermost first.
    #[must_use]
    pub fn with_causes(self, causes: Vec<SafeText>) -> Self {
        self.with_details(|details| details.causes = causes)
    }

    /// Fills in details.
    #[must_use]
    pub fn with_details(mut self, fill: impl FnOnce(&mut Details)) -> Self {
        fill(&mut self.0.details);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl Error for Failure {}

/// The facts around a [`Failure`]; whatever is not known is left out on the wire.
///
/// Every field is a number, a closed enum, or text that is safe by type; that is
/// what events, journals and spans carry of a failure.
///
/// ```compile_fail
/// use turnbuckle_errors::{ErrorCode, Failure};
/// let from_outside = String::from("raw");
/// let _ = Failure::new(ErrorCode::Internal, "x").with_details(|d| d.target = Some(from_outside));
/// ```
///
/// ```compile_fail
/// use turnbuckle_errors::{ErrorCode, Failure};
/// let from_outside = String::from("raw");
/// let _ = Failure::new(ErrorCode::Internal, "x").with_causes(vec![from_outside]);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Details {
    /// Where the attempt stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The HTTP status the provider answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_status: Option<u16>,
    /// The provider's own error code or type, if it looks like one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<SafeToken>,
    /// The provider's id of this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_request_id: Option<SafeToken>,
    /// Milliseconds from sending the request to the response head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_wait_ms: Option<u64>,
    /// Milliseconds from the response head to the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_ms: Option<u64>,
    /// Milliseconds without a byte before the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// Which attempt of its step failed, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_attempt: Option<u32>,
    /// Milliseconds the server asks to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What the server says about a retry, in `x-should-retry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
    /// Bytes of the response body that came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// Events of the stream that came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_received: Option<u64>,
    /// Whether the server can have worked, and billed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Delivered>,
    /// Token usage of the failed attempt, where it was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The stable id of the rule that decided the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// For an exhausted budget: what kind of work it counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// For an exhausted budget: the file or command it was counted for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<SafeText>,
    /// For an exhausted budget: what each failure said, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mismatches: Vec<SafeText>,
    /// The cause chain, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<SafeText>,
}

/// Token counts, disjoint: they add up to what was processed. What a provider did
/// not report is unknown, which is not the same as zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens of the request that came from no cache and went into none.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer, without reasoning.
    pub output_tokens: Option<u64>,
    /// Tokens of the request that were read from a cache.
    pub cached_tokens: Option<u64>,
    /// Tokens of the request that were written to a cache, where that is billed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Adds `other` to `self`; unknown and unknown stays unknown.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        self.input_tokens = sum(self.input_tokens, other.input_tokens);
        self.output_tokens = sum(self.output_tokens, other.output_tokens);
        self.cached_tokens = sum(self.cached_tokens, other.cached_tokens);
        self.cache_write_tokens = sum(self.cache_write_tokens, other.cache_write_tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens);
    }
}

impl Serialize for crate::Recovery {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

fn origin_of(code: ErrorCode) -> Origin {
    use crate::Family;
    match code.info().family {
        Family::Provider => Origin::Provider,
        Family::Transport => Origin::Transport,
        Family::Turn => Origin::Runtime,
        Family::Tools => Origin::Tool,
        Family::Host => Origin::Host,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorBody, Fact, Opaque, StatusFact};

    #[test]
    fn the_wire_shape_is_camel_case_and_leaves_out_what_is_unknown() {
        let bare = Failure::new(ErrorCode::TurnAborted, "cancelled");
        insta::assert_json_snapshot!(bare, @r#"
        {
          "code": "TURN_ABORTED",
          "message": "cancelled",
          "retriable": false,
          "source": "runtime",
          "details": {}
        }
        "#);

        let facts = Facts::new(Phase::Request)
            .with(Fact::Status(StatusFact::new(
                429,
                ErrorBody::parse(r#"{"error":{"code":"rate_limit_exceeded"}}"#),
            )))
            .with_retry_after(Some(Duration::from_millis(1500)));
        let full = Failure::from_facts(&facts, &Opaque)
            .with_cause_code(ErrorCode::NetworkError)
            .with_causes(vec!["connection reset by peer".into()])
            .with_details(|d| {
                d.provider_wait_ms = Some(12);
                d.retry_attempt = Some(1);
                d.usage = Some(Usage { input_tokens: Some(3), ..Usage::default() });
            });
        insta::assert_json_snapshot!(full);
    }

    #[test]
    fn usage_adds_up_and_keeps_the_unknown_unknown() {
        let mut sum = Usage::default();
        sum.add(&Usage { input_tokens: Some(2), ..Usage::default() });
        sum.add(&Usage { input_tokens: Some(3), output_tokens: Some(1), ..Usage::default() });
        assert_eq!(
            sum,
            Usage {
                input_tokens: Some(5),
                output_tokens: Some(1),
                cached_tokens: None,
                cache_write_tokens: None,
                reasoning_tokens: None
            }
        );
    }
}
