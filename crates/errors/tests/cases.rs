//! Failures that users reported, as tables: facts, and what they mean.
//!
//! Each row names its case, what was seen (a report for [`Facts::from_json`]), what
//! it must be classified as, and a near miss that must be something else. Where the
//! case itself asks for another answer than we give, the row says why.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::{collections::BTreeSet, time::SystemTime};

use serde::Deserialize;
use serde_json::Value;
use turnbuckle_errors::{Classification, ErrorCode, Facts, classify};

const STREAMS: &str = include_str!("cases/streams.jsonl");
const WORDINGS: &str = include_str!("cases/wordings.jsonl");
const NOT_APPLICABLE: &str = include_str!("cases/not_applicable.tsv");

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    case: String,
    seen: Value,
    code: String,
    retriable: bool,
    delivered: String,
    /// Milliseconds; 0 for "none at all"; absent where the case does not care.
    retry_after_ms: Option<u64>,
    near: Value,
    near_code: String,
    /// Why we differ from the case, or what makes the near miss another thing.
    #[serde(default)]
    why: Option<String>,
}

fn cases(table: &str) -> Vec<Case> {
    let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    table.lines().map(read).collect()
}

fn seen(report: &Value) -> Classification {
    let now = httpdate::parse_http_date("Mon, 30 Nov 2026 12:00:00 GMT").unwrap();
    let facts = Facts::from_json(report, now);
    classify(&facts.unwrap_or_else(|error| panic!("{error}: {report}")))
}

fn delivered(seen: &Classification) -> Value {
    serde_json::to_value(seen.delivered).unwrap()
}

/// What differs between a row and what we say; empty if all is well.
fn faults(case: &Case) -> Vec<String> {
    let mut faults = Vec::new();
    let is = seen(&case.seen);
    let mut check = |what: &str, is: String, must: String| {
        if is != must {
            faults.push(format!("{}: {what} is {is}, must be {must}: {}", case.case, case.seen));
        }
    };
    let code: ErrorCode = case.code.parse().unwrap();
    check("code", format!("{} ({})", is.code, is.rule), format!("{code} ({})", is.rule));
    check("retriable", is.retriable.to_string(), case.retriable.to_string());
    check(
        "delivered",
        delivered(&is).to_string(),
        Value::from(case.delivered.as_str()).to_string(),
    );
    if let Some(wait) = case.retry_after_ms {
        let is = is.retry_after.map_or(0, |wait| wait.as_millis());
        check("retryAfterMs", is.to_string(), wait.to_string());
    }
    let near = seen(&case.near);
    check(
        "near miss",
        format!("{} ({})", near.code, near.rule),
        format!("{} ({})", case.near_code, near.rule),
    );
    let same = (near.code, near.rule, near.retriable, near.delivered)
        == (is.code, is.rule, is.retriable, is.delivered);
    if same {
        faults.push(format!("{}: the near miss matches just the same ({})", case.case, is.rule));
    }
    if near.code == is.code && case.why.is_none() {
        faults.push(format!("{}: say why a near miss of the same code is one", case.case));
    }
    faults
}

#[track_caller]
fn check(table: &str) -> Vec<Case> {
    let cases = cases(table);
    let faults: Vec<String> = cases.iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    cases
}

#[test]
fn every_reported_stream_failure_is_told_for_what_it_is() {
    let cases = check(STREAMS);
    println!("counted: {} reported stream failures", cases.len());
}

#[test]
fn every_wording_is_told_for_what_it_means() {
    let cases = check(WORDINGS);
    println!("counted: {} wording rows", cases.len());
}

#[test]
fn a_case_is_tested_or_has_a_reason_not_to_be() {
    let tested: BTreeSet<String> = cases(STREAMS).into_iter().map(|case| case.case).collect();
    let mut without = BTreeSet::new();
    for line in NOT_APPLICABLE.lines() {
        let (case, reason) = line.split_once('\t').unwrap();
        assert!(reason.len() > 20, "{case} needs a reason");
        assert!(!tested.contains(case), "{case} is tested, and has a reason not to be");
        assert!(without.insert(case), "{case} twice");
    }
    assert_eq!((tested.len(), without.len()), (110, 44), "154 cases were reported");
}

#[test]
fn what_we_say_does_not_depend_on_the_clock_of_the_machine() {
    for case in cases(STREAMS) {
        let early = classify(&Facts::from_json(&case.seen, SystemTime::UNIX_EPOCH).unwrap());
        assert_eq!(early.code, seen(&case.seen).code, "{}", case.case);
    }
}
