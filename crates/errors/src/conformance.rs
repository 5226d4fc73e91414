//! Recorded error bodies against the classifier, for our tests and for xtask.
//!
//! The corpus is a folder with an `index.jsonl`, one row a recorded response;
//! every row with a status from 400 on, or with an error inside, is classified.
//! What each must come out as is written down in `conformance/recorded.tsv`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{ErrorBody, ErrorCode, Fact, Facts, InBandError, Phase, StatusFact, classify};

/// What each recorded error means: file, tab, code.
const RECORDED: &str = include_str!("conformance/recorded.tsv");

/// Recorded bodies that may fall to the catch-all, and why.
const NO_RULE: &[(&str, &str)] = &[(
    "gemini/vertex-error-in-body-unary-failure-invalid-response-8be0.json",
    "a 200 body that is neither an answer nor an error; the adapter reports it as undecodable",
)];

/// Rules that say only that nothing is known.
const CATCH_ALL: &[&str] = &["unknown", "inband.unknown", "status.other"];

/// One recorded error and what it was classified as.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// The file in the corpus.
    pub file: String,
    /// The HTTP status of the recorded response.
    pub status: u16,
    /// What it was classified as.
    pub code: ErrorCode,
    /// Whether it may be tried again.
    pub retriable: bool,
    /// The rule that decided.
    pub rule: &'static str,
    /// What it must be classified as; `None` for a file that is not in our table.
    pub expected: Option<ErrorCode>,
    /// Why it may fall to the catch-all, where it does.
    pub reason: Option<&'static str>,
}

impl Row {
    /// What is wrong with it: another code than expected, or a catch-all without
    /// a written reason.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        match self.expected {
            Some(expected) if expected != self.code => {
                Some(format!("is {}, must be {expected} (rule {})", self.code, self.rule))
            }
            _ if CATCH_ALL.contains(&self.rule) && self.reason.is_none() => {
                Some(format!("falls to the catch-all `{}` without a written reason", self.rule))
            }
            _ => None,
        }
    }
}

/// Classifies every recorded error in `corpus`, in the order of its index.
///
/// # Errors
/// The folder, its `index.jsonl` or a file that it names cannot be read.
pub fn errors(corpus: &Path) -> io::Result<Vec<Row>> {
    let index = read(&corpus.join("index.jsonl"))?;
    let index = String::from_utf8_lossy(&index).into_owned();
    let lines = index.lines().filter(|line| !line.trim().is_empty());
    let rows = lines.map(|line| row(corpus, line));
    rows.filter_map(Result::transpose).collect()
}

fn row(corpus: &Path, line: &str) -> io::Result<Option<Row>> {
    let entry: Value = serde_json::from_str(line)?;
    let failed = entry.pointer("/expect/error").is_some_and(|error| !error.is_null());
    let status = entry.get("status").and_then(Value::as_u64).unwrap_or(200);
    let status = u16::try_from(status).unwrap_or_default();
    let Some(file) = entry.get("file").and_then(Value::as_str).filter(|_| failed || status >= 400)
    else {
        return Ok(None);
    };
    let raw = read(&corpus.join(file))?;
    let content_type = entry.pointer("/headers/content-type").and_then(Value::as_str);
    let seen = classify(&facts(file, status, &raw, content_type));
    let expected = RECORDED.lines().find_map(|line| line.strip_prefix(file)?.strip_prefix('\t'));
    let reason = NO_RULE.iter().find(|(known, _)| *known == file).map(|(_, reason)| *reason);
    Ok(Some(Row {
        file: file.to_owned(),
        status,
        code: seen.code,
        retriable: seen.retriable,
        rule: seen.rule,
        expected: expected.and_then(|code| code.trim().parse().ok()),
        reason,
    }))
}

fn facts(file: &str, status: u16, raw: &[u8], content_type: Option<&str>) -> Facts {
    if status >= 300 {
        let body = ErrorBody::parse_bytes(raw, content_type);
        return Facts::new(Phase::Request).with(Fact::Status(StatusFact::new(status, body)));
    }
    let body = if file.ends_with(".sse") {
        error_event(&String::from_utf8_lossy(raw)).unwrap_or_default()
    } else {
        ErrorBody::parse_bytes(raw, content_type)
    };
    Facts::new(Phase::Stream).with(Fact::InBand(InBandError::new(body)))
}

/// The last event of a recorded stream that carries an error, in any field.
fn error_event(stream: &str) -> Option<ErrorBody> {
    let events = stream.lines().rev().filter_map(|line| {
        let data = line.strip_prefix("data:").or_else(|| line.strip_prefix("error:"))?;
        serde_json::from_str::<Value>(data.trim()).ok()
    });
    let holds_error = |event: &Value| {
        ["/error", "/response/error"]
            .iter()
            .any(|path| event.pointer(path).is_some_and(|error| !error.is_null()))
    };
    events.into_iter().find(holds_error).map(|event| ErrorBody::from_json(&event))
}

fn read(path: &PathBuf) -> io::Result<Vec<u8>> {
    fs::read(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the corpus is; the test says so if it was not told.
    const CORPUS: &str = "TURNBUCKLE_WIRE";

    #[test]
    fn every_recorded_error_body_reaches_the_right_code() {
        let Some(corpus) = std::env::var_os(CORPUS) else {
            println!("SKIPPED: set {CORPUS} to the folder of recorded responses");
            return;
        };
        let rows = errors(Path::new(&corpus)).unwrap();
        let faults: Vec<String> =
            rows.iter().filter_map(|row| Some(format!("{} {}", row.file, row.fault()?))).collect();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        let unjudged: Vec<&str> =
            rows.iter().filter(|row| row.expected.is_none()).map(|row| row.file.as_str()).collect();
        assert!(unjudged.is_empty(), "not in recorded.tsv: {unjudged:?}");
        let missing: Vec<&str> = RECORDED
            .lines()
            .filter_map(|line| line.split('\t').next())
            .filter(|file| !rows.iter().any(|row| row.file == **file))
            .collect();
        assert!(missing.is_empty(), "not in the corpus: {missing:?}");
        let protocols: std::collections::BTreeSet<_> =
            rows.iter().filter_map(|row| row.file.split('/').next()).collect();
        assert!(protocols.len() >= 4, "{protocols:?}");
        println!("{} error bodies", rows.len());
    }

    #[test]
    fn a_wrong_code_and_an_unexplained_catch_all_are_faults() {
        let good = Row {
            file: "a".to_owned(),
            status: 500,
            code: ErrorCode::ProviderError,
            retriable: true,
            rule: "status.5xx",
            expected: Some(ErrorCode::ProviderError),
            reason: None,
        };
        assert_eq!(good.fault(), None);
        let wrong = Row { expected: Some(ErrorCode::Timeout), ..good.clone() };
        assert!(wrong.fault().is_some_and(|fault| fault.contains("must be TIMEOUT")));
        let unknown = Row { rule: "inband.unknown", ..good };
        assert!(unknown.fault().is_some_and(|fault| fault.contains("catch-all")));
        assert_eq!(Row { reason: Some("because"), ..unknown }.fault(), None);
    }

    #[test]
    fn a_missing_corpus_is_named() {
        let error = errors(Path::new("no-such-folder")).unwrap_err().to_string();
        assert!(error.contains("no-such-folder"), "{error}");
    }
}
