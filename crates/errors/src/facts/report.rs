//! Facts out of a JSON object, for hosts in other languages and for tables of cases.

use std::{
    error::Error,
    fmt,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value};

use super::{
    BodyShape, Clock, ErrorBody, Fact, Facts, Flattened, Http2Reason, InBandError, Protocol,
    StatusFact, Transport,
};
use crate::{Phase, delay_from_headers};

/// The fields of a report, in the order in which [`Facts::from_json`] weighs them.
pub const REPORT_FIELDS: &[&str] = &[
    "aborted",
    "clock",
    "status",
    "headers",
    "body",
    "event",
    "protocol",
    "transport",
    "message",
    "phase",
    "provider",
];

impl Facts {
    /// Reads a report of a failed attempt: an object with any of
    ///
    /// - `status`: the HTTP status; `headers`: an object, for the server's wish to wait;
    /// - `body`: the response body, as text or as JSON;
    /// - `event`: an error event inside a 2xx stream, as text or as JSON;
    /// - `message`: what another stack made of it;
    /// - `transport` (`reset`, `refused`, `http2_reset:7`, …), `protocol`
    ///   (`ended_early`, …), `clock` (`byte_idle`, …), `aborted` (`true`): what is
    ///   known by type;
    /// - `phase`: `request` or `stream`, where it does not follow from the rest;
    /// - `provider`: its name.
    ///
    /// `now` is what an HTTP date in a header is compared with. A status whose body
    /// is left out is not taken for one with an empty body.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use turnbuckle_errors::{ErrorCode, Facts, classify};
    /// let report = serde_json::json!({"status": 429, "body": {"error": {"code": "insufficient_quota"}}});
    /// let facts = Facts::from_json(&report, SystemTime::UNIX_EPOCH).unwrap();
    /// assert_eq!(classify(&facts).code, ErrorCode::ProviderQuotaExceeded);
    /// ```
    ///
    /// # Errors
    /// [`BadReport`] names the field that cannot be read, and what it may hold.
    pub fn from_json(report: &Value, now: SystemTime) -> Result<Self, BadReport> {
        let fields = report.as_object().ok_or(BadReport::NotAnObject)?;
        let known = |name: &String| REPORT_FIELDS.contains(&name.as_str());
        if let Some(position) = fields.keys().position(|name| !known(name)) {
            return Err(BadReport::UnknownField { position });
        }
        let report = Report(fields);
        let status = report.status()?;
        let facts = Self::new(report.phase(status)?)
            .with_retry_after(report.retry_after(now)?)
            .with_should_retry(report.should_retry());
        let facts = match report.text("provider")? {
            Some(name) => facts.with_provider(name),
            None => facts,
        };
        let seen = report.seen(status)?;
        if seen.is_empty() {
            return Err(BadReport::Nothing);
        }
        Ok(seen.into_iter().fold(facts, Self::with))
    }
}

/// A report that cannot be read. It holds nothing of the report itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadReport {
    /// It is JSON, and no object.
    NotAnObject,
    /// A field has a name that is not known; where it stands, from 0.
    UnknownField {
        /// The position of the field in the object.
        position: usize,
    },
    /// A field holds what it cannot hold.
    WrongField {
        /// The field.
        field: &'static str,
        /// What it may hold.
        wants: &'static str,
    },
    /// No field says what happened.
    Nothing,
}

impl fmt::Display for BadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("the report is no JSON object"),
            Self::UnknownField { position } => write!(
                f,
                "field {} of the report is none of {}",
                position + 1,
                REPORT_FIELDS.join(", ")
            ),
            Self::WrongField { field, wants } => write!(f, "`{field}` must be {wants}"),
            Self::Nothing => f.write_str(
                "nothing says what happened: give `status`, `body`, `event` or `message`",
            ),
        }
    }
}

impl Error for BadReport {}

/// The fields of a report; `null` is the same as absent.
struct Report<'a>(&'a Map<String, Value>);

impl<'a> Report<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, field: &'static str) -> Result<Option<&'a str>, BadReport> {
        let text = self.get(field).map(|value| value.as_str().ok_or(wrong(field, "a text")));
        text.transpose()
    }

    fn status(&self) -> Result<Option<u16>, BadReport> {
        let Some(value) = self.get("status") else { return Ok(None) };
        let status = value.as_u64().and_then(|status| u16::try_from(status).ok());
        let status = status.filter(|status| (100..600).contains(status));
        status.map(Some).ok_or(wrong("status", "a number from 100 to 599"))
    }

    fn phase(&self, status: Option<u16>) -> Result<Phase, BadReport> {
        match self.text("phase")? {
            Some("request") => Ok(Phase::Request),
            Some("stream") => Ok(Phase::Stream),
            Some(_) => Err(wrong("phase", "`request` or `stream`")),
            // A 2xx head opens a stream, and so did whatever sent an event.
            None if status.is_some_and(|status| status < 300) => Ok(Phase::Stream),
            None if self.get("event").is_some() && status.is_none() => Ok(Phase::Stream),
            None => Ok(Phase::Request),
        }
    }

    fn retry_after(&self, now: SystemTime) -> Result<Option<Duration>, BadReport> {
        match self.get("headers") {
            Some(headers) if !headers.is_object() => Err(wrong("headers", "an object")),
            _ => Ok(delay_from_headers(|name| self.header(name), now)),
        }
    }

    fn should_retry(&self) -> Option<bool> {
        match self.header("x-should-retry").map(str::trim) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        }
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        let headers = self.get("headers")?.as_object()?;
        let found = headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.as_str())
    }

    fn seen(&self, status: Option<u16>) -> Result<Vec<Fact>, BadReport> {
        let mut seen = Vec::new();
        match self.get("aborted") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => seen.push(Fact::Aborted),
            Some(_) => return Err(wrong("aborted", "true or false")),
        }
        let clock =
            self.named("clock", CLOCKS, "`connect`, `first_event`, `byte_idle` or `progress_idle`");
        seen.extend(clock?.map(Fact::Clock));
        let message = self.text("message")?;
        let mut message_left = message;
        match (status, self.get("body")) {
            (Some(status), body) if status >= 300 => {
                let mut body = body.map_or_else(unknown_body, body_of);
                if body.message.is_none() && body.words().next().is_none() {
                    body = with_message(body, message_left.take());
                }
                seen.push(Fact::Status(StatusFact::new(status, body)));
            }
            (_, Some(body)) => seen.push(Fact::InBand(InBandError::new(body_of(body)))),
            _ => {}
        }
        seen.extend(self.get("event").map(|event| Fact::InBand(InBandError::new(body_of(event)))));
        let protocol = self.named("protocol", PROTOCOLS, "`ended_early`, `empty_body`, `undecodable`, `answer_too_large`, `html` or `line_too_long`");
        seen.extend(protocol?.map(Fact::Protocol));
        seen.extend(self.transport()?.map(Fact::Transport));
        seen.extend(message_left.map(|text| Fact::Message(text.to_owned())));
        Ok(seen)
    }

    fn named<T: Copy>(
        &self,
        field: &'static str,
        names: &[(&str, T)],
        wants: &'static str,
    ) -> Result<Option<T>, BadReport> {
        let Some(name) = self.text(field)? else { return Ok(None) };
        let found = names.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| Some(*value)).ok_or(wrong(field, wants))
    }

    fn transport(&self) -> Result<Option<Transport>, BadReport> {
        let wants = "`refused`, `unresolved`, `unreachable`, `tls`, `tls_broken`, `proxy`, `connect`, `reset`, \
                     `incomplete`, `bad_chunk`, `bad_compression`, `http2_reset:CODE`, \
                     `http2_goaway:CODE` or `other`";
        let Some(name) = self.text("transport")? else { return Ok(None) };
        if let Some((name, code)) = name.split_once(':') {
            let reason = code.parse().map(Http2Reason).map_err(|_| wrong("transport", wants))?;
            return match name {
                "http2_reset" => Ok(Some(Transport::Http2Reset(reason))),
                "http2_goaway" => Ok(Some(Transport::Http2GoAway(reason))),
                _ => Err(wrong("transport", wants)),
            };
        }
        self.named("transport", TRANSPORTS, wants)
    }
}

const fn wrong(field: &'static str, wants: &'static str) -> BadReport {
    BadReport::WrongField { field, wants }
}

fn body_of(value: &Value) -> ErrorBody {
    match value {
        Value::String(text) => ErrorBody::parse(text),
        value => ErrorBody::from_json(value),
    }
}

/// A body that was not reported may have held anything.
fn unknown_body() -> ErrorBody {
    ErrorBody { shape: BodyShape::Text, ..ErrorBody::default() }
}

/// The message of an SDK's error stands in for the body that it does not show.
fn with_message(body: ErrorBody, message: Option<&str>) -> ErrorBody {
    let Some(message) = message else { return body };
    if let Some(flat) = Flattened::read(message) {
        return flat.body;
    }
    ErrorBody { message: Some(message.to_owned()), ..body }
}

const CLOCKS: &[(&str, Clock)] = &[
    ("connect", Clock::Connect),
    ("first_event", Clock::FirstEvent),
    ("byte_idle", Clock::ByteIdle),
    ("progress_idle", Clock::ProgressIdle),
];

const PROTOCOLS: &[(&str, Protocol)] = &[
    ("ended_early", Protocol::EndedEarly),
    ("empty_body", Protocol::EmptyBody),
    ("undecodable", Protocol::Undecodable),
    ("answer_too_large", Protocol::AnswerTooLarge),
    ("html", Protocol::Html),
    ("line_too_long", Protocol::LineTooLong),
];

const TRANSPORTS: &[(&str, Transport)] = &[
    ("refused", Transport::Refused),
    ("unresolved", Transport::Unresolved),
    ("unreachable", Transport::Unreachable),
    ("tls", Transport::Tls),
    ("tls_broken", Transport::TlsBroken),
    ("proxy", Transport::Proxy),
    ("connect", Transport::Connect),
    ("reset", Transport::Reset),
    ("incomplete", Transport::Incomplete),
    ("bad_chunk", Transport::BadChunk),
    ("bad_compression", Transport::BadCompression),
    ("other", Transport::Other),
];

#[cfg(test)]
mod tests;
