//! Holds an adapter against recorded answers of real servers (feature
//! `test-support`).
//!
//! [`run`] reads a folder with an `index.jsonl`, one row per recorded body; each
//! body is fed whole, byte by byte and cut at seeded random places, and has to
//! give what its row expects each time. Every stream is also cut off before its
//! finish event, which must never give a whole message.

mod compare;
mod row;

use std::{
    borrow::Cow,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use turnbuckle_errors::{ErrorCode, Failure, Redact};

pub use self::row::{Expected, ExpectedCall, ExpectedUsage, Row};
use crate::{
    CompletedMessage, PartialMessage,
    intake::{BodyEnding, FailedAnswer},
    transport::ResponseHead,
};

/// The protocols whose adapters are built in.
pub const PROTOCOLS: &[&str] = &[
    #[cfg(feature = "openai-chat")]
    "chat",
    #[cfg(feature = "openai-responses")]
    "responses",
    #[cfg(feature = "anthropic")]
    "anthropic",
    #[cfg(feature = "gemini")]
    "gemini",
];

/// How many random ways each body is cut, and how many places it is cut off at.
const RANDOM_CUTS: usize = 4;
const TRUNCATIONS: usize = 12;

/// What an adapter made of a body.
pub type Outcome = Result<CompletedMessage, FailedAnswer>;

/// The result of a whole corpus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Rows of the protocol.
    pub rows: usize,
    /// Rows without any difference.
    pub matched: usize,
    /// Rows whose expectation binds in every part.
    pub binding_rows: usize,
    /// Of those, the rows without any difference.
    pub binding_matched: usize,
    /// How often a stream was cut off before its finish event.
    pub truncations: usize,
    /// Rows with differences.
    pub misses: Vec<Miss>,
}

/// A row that was read differently from what it expects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Miss {
    /// The row's file.
    pub file: String,
    /// What differs, one sentence each.
    pub differences: Vec<String>,
    /// The parts of the row's expectation that do not bind.
    pub lenient: Vec<String>,
}

/// A corpus that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusError {
    /// There is no adapter for the protocol.
    #[error("no adapter speaks `{0}`; built in are {known}", known = PROTOCOLS.join(", "))]
    Protocol(String),
    /// A file of the corpus cannot be read.
    #[error("cannot read {path}", path = .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A line of the index is not a row.
    #[error("line {0} of index.jsonl is not a row")]
    Row(usize, #[source] serde_json::Error),
}

/// Checks every row of `protocol` in the corpus at `dir`. The same `seed` cuts in
/// the same places.
///
/// # Errors
///
/// A [`CorpusError`] if the corpus cannot be read; differences are no error but
/// in the report.
pub fn run(dir: &Path, protocol: &str, seed: u64) -> Result<Report, CorpusError> {
    if !PROTOCOLS.contains(&protocol) {
        return Err(CorpusError::Protocol(protocol.to_owned()));
    }
    let mut report = Report::default();
    for row in rows(dir)? {
        if row.protocol != protocol {
            continue;
        }
        let path = dir.join(&row.file);
        let body = fs::read(&path).map_err(|error| CorpusError::Read(path, error))?;
        report.add(&row, check(&row, &Bytes::from(body), seed));
    }
    Ok(report)
}

/// Reads the index of a corpus.
///
/// # Errors
///
/// A [`CorpusError`] if it cannot be read.
pub fn rows(dir: &Path) -> Result<Vec<Row>, CorpusError> {
    let path = dir.join("index.jsonl");
    let index = fs::read_to_string(&path).map_err(|error| CorpusError::Read(path, error))?;
    let lines = index.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(n, line)| serde_json::from_str(line).map_err(|error| CorpusError::Row(n + 1, error)))
        .collect()
}

/// Checks one body against its row: `Ok` with the number of truncations tried, or
/// every difference found.
///
/// # Errors
///
/// The differences, one sentence each.
pub fn check(row: &Row, body: &Bytes, seed: u64) -> Result<usize, Vec<String>> {
    let whole = decode(row, [body.clone()]);
    let mut differences = compare::compare(row, &whole);

    let by_bytes = (0..body.len()).map(|at| body.slice(at..=at));
    differences.extend(compare::same("byte by byte", &whole, &decode(row, by_bytes)));
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..RANDOM_CUTS {
        let pieces = cut(body, &mut random);
        differences.extend(compare::same("cut at random", &whole, &decode(row, pieces)));
    }

    let mut truncations = 0;
    if row.is_stream() {
        let end = finish_event(&row.protocol, body);
        for _ in 0..TRUNCATIONS.min(end) {
            let at = random.usize(0..end);
            truncations += 1;
            if decode(row, [body.slice(..at)]).is_ok() {
                differences.push(format!("a whole message came of the first {at} bytes"));
            }
        }
    }
    if differences.is_empty() { Ok(truncations) } else { Err(differences) }
}

impl Report {
    /// The share of binding rows without a difference, in percent.
    #[must_use]
    pub fn binding_percent(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a corpus has far fewer rows than 2^52")]
        let share =
            |part: usize, of: usize| if of == 0 { 100.0 } else { part as f64 * 100.0 / of as f64 };
        share(self.binding_matched, self.binding_rows)
    }

    fn add(&mut self, row: &Row, result: Result<usize, Vec<String>>) {
        let binding = usize::from(row.lenient.is_empty());
        self.rows += 1;
        self.binding_rows += binding;
        match result {
            Ok(truncations) => {
                self.matched += 1;
                self.binding_matched += binding;
                self.truncations += truncations;
            }
            Err(differences) => self.misses.push(Miss {
                file: row.file.clone(),
                differences,
                lenient: row.lenient.clone(),
            }),
        }
    }
}

fn decode(row: &Row, pieces: impl IntoIterator<Item = Bytes>) -> Outcome {
    let headers = row.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    let head = ResponseHead::new(row.status, headers);
    let (end, redact) = (BodyEnding::Clean, Arc::new(AsItIs));
    match &*row.protocol {
        #[cfg(feature = "openai-chat")]
        "chat" => crate::openai_chat::decode_body(head, pieces, end, redact),
        #[cfg(feature = "anthropic")]
        "anthropic" => crate::anthropic::decode_body(head, pieces, end, "", redact),
        #[cfg(feature = "openai-responses")]
        "responses" => crate::openai_responses::decode_body(head, pieces, end, redact),
        #[cfg(feature = "gemini")]
        "gemini" => crate::gemini::decode_body(head, pieces, end, redact),
        _ => Err(Box::new((
            Failure::new(ErrorCode::InvalidArgument, "no adapter speaks this protocol"),
            PartialMessage::default(),
        ))),
    }
}

/// Recorded bodies hold no secret, and their texts are compared.
struct AsItIs;

impl Redact for AsItIs {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }
}

fn cut(body: &Bytes, random: &mut fastrand::Rng) -> Vec<Bytes> {
    let largest = random.usize(2..200);
    let mut rest = body.clone();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        pieces.push(rest.split_to(random.usize(1..=largest).min(rest.len())));
    }
    pieces
}

/// Where a stream says that it ends, else its length: the place before which no
/// prefix is a whole message.
fn finish_event(protocol: &str, body: &[u8]) -> usize {
    let marks: &[&[u8]] = match protocol {
        "responses" => &[b"response.completed", b"response.incomplete"],
        "anthropic" => return end_of_message(body),
        "gemini" => &[b"\"finishReason\"", b"\"blockReason\""],
        _ => return finish_reason(body),
    };
    marks.iter().filter_map(|mark| find(body, mark)).min().unwrap_or(body.len())
}

/// Where a line begins that ends an Anthropic message, else the length.
fn end_of_message(body: &[u8]) -> usize {
    let mut at = 0;
    for line in body.split_inclusive(|byte| *byte == b'\n' || *byte == b'\r') {
        let is_data = line.starts_with(b"data:");
        let reason = find(line, b"message_delta").and(find(line, br#""stop_reason":"#));
        if is_data && (reason.is_some() || find(line, b"message_stop").is_some()) {
            return at;
        }
        at += line.len();
    }
    body.len()
}

/// Where the first finish reason that says something begins, else the length.
fn finish_reason(body: &[u8]) -> usize {
    const FIELD: &[u8] = br#""finish_reason":"#;
    let mut from = 0;
    while let Some(at) = body.get(from..).and_then(|rest| find(rest, FIELD)) {
        let value = from + at + FIELD.len();
        let word = body.get(value..).unwrap_or_default().trim_ascii_start();
        if word.first() == Some(&b'"') && word.get(1) != Some(&b'"') {
            return value;
        }
        from = value;
    }
    body.len()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
