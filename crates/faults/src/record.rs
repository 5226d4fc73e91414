//! What the server saw: one record a request, for assertions and for people.
//!
//! In memory a record holds the headers as sent, so that a test can prove
//! that a key arrived. Whatever is written down, by serde or by `Debug`, is
//! masked.

mod kept;

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

pub(crate) use kept::Kept;

/// One request as the server saw it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// Its number since the start or the last reset, from 1.
    pub seq: usize,
    /// The connection it came on, from 1.
    pub connection: usize,
    /// The session it named, in any of the ways clients have.
    pub session: Option<String>,
    /// The step of the script that answered it, from 1; `None` when it was no
    /// valid chat request, or no step was for it.
    pub step: Option<usize>,
    /// The name of the behaviour, or its description when it has none; `None`
    /// when it was no valid chat request.
    pub behaviour: Option<String>,
    /// Milliseconds from the start of the server to the end of this request.
    pub at_ms: u64,
    /// The same to the end of the exchange; `None` while it is under way.
    pub ended_ms: Option<u64>,
    /// The method.
    pub method: String,
    /// The path with its query; keys in the query are masked when written.
    #[serde(serialize_with = "masked_path")]
    pub path: Path,
    /// The headers.
    pub headers: Headers,
    /// The body: its JSON, a string when it is not JSON, null when empty. Beyond
    /// 256 MiB of bodies the oldest ones are null too.
    pub body: Value,
    /// How many bytes the body had, also when it is kept no more.
    pub body_bytes: usize,
    /// How the exchange ended, or will end when it is still under way.
    pub ended: Ended,
}

/// How an exchange ended, as the server saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ended {
    /// It is under way.
    Open,
    /// The response was sent to its end.
    Complete,
    /// The server reset the connection.
    Reset,
    /// The server closed its side in the middle.
    Fin,
    /// The server ended the body properly, but too early.
    CleanEnd,
    /// The server reset the HTTP/2 stream.
    StreamReset,
    /// The server closed the HTTP/2 connection by GOAWAY.
    GoAway,
    /// The server fell silent, and the client has not left.
    Silence,
    /// The server fell silent, and the client closed the connection.
    LeftInSilence,
    /// The client closed the connection before the server was done.
    ClientLeft,
    /// The server was stopped before it was done.
    Stopped,
}

/// A path with its query. `Debug` and serde mask keys in the query.
#[derive(Clone, PartialEq, Eq)]
pub struct Path(pub(crate) String);

impl Path {
    /// The path with its query, as sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn masked(&self) -> String {
        let Some((path, query)) = self.0.split_once('?') else {
            return self.0.clone();
        };
        let mask = |pair: &str| match pair.split_once('=') {
            Some((name, _)) if names_a_key(name) => format!("{name}=…"),
            _ => pair.to_owned(),
        };
        let pairs: Vec<String> = query.split('&').map(mask).collect();
        format!("{path}?{}", pairs.join("&"))
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.masked())
    }
}

fn masked_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.masked())
}

/// The headers of a request, in order, names in lower case. `Debug` and serde
/// mask the values that hold a key.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        let value = String::from_utf8_lossy(value).into_owned();
        self.0.push((name.to_ascii_lowercase(), value));
    }

    /// The first value of this header as sent, unmasked; the name is given in
    /// lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a comma-separated header holds this word.
    pub(crate) fn has_word(&self, name: &str, word: &str) -> bool {
        let values = self.0.iter().filter(|(known, _)| known == name);
        let mut words = values.flat_map(|(_, value)| value.split(','));
        words.any(|found| found.trim().eq_ignore_ascii_case(word))
    }

    /// All headers as sent, unmasked.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The key a client sent, in whatever header it did.
    pub(crate) fn key(&self) -> Option<&str> {
        let bearer = self.get("authorization").map(|value| match value.split_once(' ') {
            Some((_, key)) => key.trim(),
            None => value,
        });
        let others = ["api-key", "x-api-key", "x-goog-api-key"];
        bearer.or_else(|| others.into_iter().find_map(|name| self.get(name)))
    }

    fn masked(&self) -> impl Iterator<Item = (&str, String)> {
        self.iter().map(|(name, value)| (name, masked_value(name, value)))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.masked()).finish()
    }
}

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut joined: Vec<(&str, String)> = Vec::new();
        for (name, value) in self.masked() {
            match joined.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) => {
                    all.push_str(", ");
                    all.push_str(&value);
                }
                None => joined.push((name, value)),
            }
        }
        let mut map = serializer.serialize_map(Some(joined.len()))?;
        for (name, value) in &joined {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The scheme of a credential is worth reading, the rest is not.
fn masked_value(name: &str, value: &str) -> String {
    if !names_a_key(name) {
        return value.to_owned();
    }
    match value.split_once(' ') {
        Some((scheme, _)) if name.ends_with("authorization") && is_scheme(scheme) => {
            format!("{scheme} …")
        }
        _ => "…".to_owned(),
    }
}

fn is_scheme(word: &str) -> bool {
    ["basic", "bearer", "digest", "token"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn names_a_key(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-api-key",
        "api-key",
        "api_key",
        "x-goog-api-key",
        "key",
        "access_token",
    ];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    pub(super) fn record() -> RecordedRequest {
        let mut headers = Headers::default();
        headers.push("Authorization", b"Bearer sk-very-secret");
        headers.push("X-Api-Key", b"sk-very-secret");
        headers.push("api-key", b"sk-very-secret");
        headers.push("Accept", b"text/event-stream");
        headers.push("accept", b"application/json");
        RecordedRequest {
            seq: 1,
            connection: 1,
            session: Some("s-1".into()),
            step: Some(1),
            behaviour: Some("whole".into()),
            at_ms: 7,
            ended_ms: Some(9),
            method: "POST".into(),
            path: Path("/v1/chat/completions?key=sk-very-secret&alt=sse".into()),
            headers,
            body: json!({"model": "m"}),
            body_bytes: 13,
            ended: Ended::LeftInSilence,
        }
    }

    #[test]
    fn a_written_record_masks_keys_and_keeps_the_rest() {
        assert_eq!(
            serde_json::to_value(record()).unwrap(),
            json!({
                "seq": 1, "connection": 1, "session": "s-1", "step": 1, "behaviour": "whole",
                "at_ms": 7, "ended_ms": 9, "method": "POST", "path": "/v1/chat/completions?key=…&alt=sse",
                "headers": {
                    "authorization": "Bearer …", "x-api-key": "…", "api-key": "…",
                    "accept": "text/event-stream, application/json",
                },
                "body": {"model": "m"}, "body_bytes": 13, "ended": "left_in_silence",
            })
        );
    }

    #[test]
    fn a_debugged_record_shows_no_key_while_the_value_itself_keeps_it() {
        let record = record();
        assert!(!format!("{record:?}").contains("secret"), "{record:?}");
        assert_eq!(record.headers.get("authorization"), Some("Bearer sk-very-secret"));
        assert_eq!(record.headers.key(), Some("sk-very-secret"));
    }
}
