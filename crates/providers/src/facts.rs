//! From what an attempt saw to its failure: the facts in order of arrival, and
//! the details around them.

use std::{error::Error, time::SystemTime};

use turnbuckle_diagnostics::AttemptTiming;
use turnbuckle_errors::{
    ErrorBody, Fact, Facts, Failure, Phase, Redact, SafeToken, StatusFact, Usage,
    delay_from_headers, render_chain,
};

use crate::transport::{ResponseHead, TransportError};

/// The most of an error body that is read.
pub(crate) const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// Where servers put the id of a request, the most telling first: OpenAI and most
/// others, Anthropic, OpenRouter, Azure, AWS; Cloudflare's own id at last.
const REQUEST_ID_HEADERS: [&str; 6] = [
    "x-request-id",
    "request-id",
    "x-generation-id",
    "apim-request-id",
    "x-amzn-requestid",
    "cf-ray",
];

/// Everything that a failure is made of.
pub(crate) struct Seen<'a> {
    pub(crate) phase: Phase,
    /// The kind of server, where it is known.
    pub(crate) provider: Option<&'static str>,
    /// The response head, if one came.
    pub(crate) head: Option<&'a ResponseHead>,
    /// What happened, if it was not the connection itself.
    pub(crate) fact: Option<Fact>,
    /// The connection's failure; it came after `fact`.
    pub(crate) broken: Option<&'a TransportError>,
    pub(crate) usage: Option<Usage>,
    pub(crate) timing: &'a AttemptTiming,
    pub(crate) redact: &'a dyn Redact,
}

impl Seen<'_> {
    /// Classifies it, and writes down all that is known.
    pub(crate) fn into_failure(self) -> Failure {
        let Seen { head, redact, .. } = self;
        let mut facts = facts_of_head(self.phase, head);
        if let Some(provider) = self.provider {
            facts = facts.with_provider(provider);
        }
        facts = self.fact.into_iter().fold(facts, Facts::with);
        facts = self.broken.map(TransportError::fact).into_iter().fold(facts, Facts::with);
        let causes = self.broken.and_then(Error::source);
        let failure = Failure::from_facts(&facts, redact);
        tracing::debug!(code = %failure.code(), rule = failure.details().rule, "the attempt failed");
        failure
            .with_causes(causes.map(|error| render_chain(error, redact)).unwrap_or_default())
            .with_details(|details| {
                self.timing.describe(details);
                details.provider_status = head.map(|head| head.status);
                details.provider_request_id = head.and_then(|head| request_id(head, redact));
                details.usage = self.usage;
            })
    }
}

/// A response outside 2xx, with as much of its body as could be read, in the
/// charset that it says.
pub(crate) fn status_fact(head: &ResponseHead, body: &[u8]) -> Fact {
    let body = ErrorBody::parse_bytes(body, head.header("content-type"));
    Fact::Status(StatusFact::new(head.status, body))
}

fn facts_of_head(phase: Phase, head: Option<&ResponseHead>) -> Facts {
    let Some(head) = head else { return Facts::new(phase) };
    Facts::new(phase)
        .with_retry_after(delay_from_headers(|name| head.header(name), SystemTime::now()))
        .with_should_retry(match head.header("x-should-retry").map(str::trim) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        })
}

fn request_id(head: &ResponseHead, redact: &dyn Redact) -> Option<SafeToken> {
    let mut ids = REQUEST_ID_HEADERS.iter().filter_map(|name| head.header(name));
    ids.find_map(|id| SafeToken::new(id.trim(), redact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_body_is_read_in_the_charset_that_it_says() {
        let latin = [("content-type".into(), "application/json; charset=iso-8859-1".into())];
        let fact = status_fact(
            &ResponseHead::new(400, latin),
            b"{\"error\":{\"message\":\"d\xe9j\xe0\"}}",
        );
        let Fact::Status(seen) = fact else { panic!("{fact:?}") };
        assert_eq!((seen.status, seen.body.message.as_deref()), (400, Some("déjà")));
    }
}
