//! Keeps `docs/FAULTS.md` equal to the catalogue, and the catalogue true to the reports.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::PathBuf,
};

use serde_json::Value;
use turnbuckle_faults::{
    Api, Needs,
    catalogue::{self, Entry, Expected, Recovery, Report},
};

/// Rewrites the page instead of comparing it.
const UPDATE: &str = "FAULTS_UPDATE";

/// Where the verdict differs from what the classifier alone says of the report; the note
/// of the report says why.
const APART: &[&str] = &["S096", "S132"];

fn in_workspace(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn entry(name: &str) -> &'static Entry {
    catalogue::find(name).unwrap_or_else(|| panic!("no fault is named {name}"))
}

fn verdict(expected: Expected) -> String {
    let again = match expected.recovery {
        Recovery::None => "",
        Recovery::Recoverable => ", again",
        _ => ", final",
    };
    match (expected.code, expected.phase, expected.tool) {
        (Some(code), Some(phase), _) => format!("`{code}` in the {phase}{again}"),
        (_, _, Some(tool)) => format!("whole; the model reads `{tool}`"),
        _ => "whole".to_owned(),
    }
}

fn apis(entry: &Entry) -> String {
    if entry.apis.len() == Api::ALL.len() {
        return "all".to_owned();
    }
    entry.apis.iter().map(|api| api.as_str()).collect::<Vec<_>>().join(", ")
}

fn needs(needs: Needs) -> &'static str {
    match needs {
        Needs::Plain => "",
        Needs::Http1 => "HTTP/1.1",
        Needs::Tls => "TLS",
        Needs::Http2 => "HTTP/2",
        _ => "more",
    }
}

fn faults() -> String {
    let mut table = format!(
        "\n{} faults.\n\n\
         | fault | what the server does | dialects | over | verdict | once | always |\n\
         |---|---|---|---|---|---|---|\n",
        catalogue::all().len()
    );
    for entry in catalogue::all() {
        let expected = entry.expected;
        let once = match expected.recovery {
            Recovery::Final => "-".to_owned(),
            _ => expected.attempts_if_once.to_string(),
        };
        writeln!(
            table,
            "| `{}` | {} | {} | {} | {} | {once} | {} |",
            entry.name,
            entry.sentence,
            apis(entry),
            needs(entry.needs()),
            verdict(expected),
            expected.attempts_if_always,
        )
        .unwrap();
    }
    table.push('\n');
    table
}

fn variants() -> String {
    let mut by_fault: BTreeMap<&str, Vec<&'static Entry>> = BTreeMap::new();
    for row in catalogue::variants() {
        by_fault.entry(row.variant_of.unwrap()).or_default().push(row);
    }
    let mut table = format!(
        "\n{} rows of {} faults.\n\n| fault | rows | which |\n|---|---|---|\n",
        catalogue::variants().len(),
        by_fault.len()
    );
    for (fault, rows) in by_fault {
        let names: Vec<&str> = rows.iter().map(|row| &row.name[fault.len() + 1..]).collect();
        writeln!(table, "| `{fault}` | {} | {} |", rows.len(), told(&names)).unwrap();
    }
    table.push('\n');
    table
}

/// The names, those of a status and a shape of body gathered by their shape.
fn told(names: &[&str]) -> String {
    let mut shapes: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
    let mut words = Vec::new();
    for name in names {
        let (status, shape) = name.split_once('_').unwrap_or((name, "whole"));
        match status.parse() {
            Ok(status) => shapes.entry(shape).or_default().push(status),
            Err(_) => words.push(format!("`{name}`")),
        }
    }
    let shapes = shapes.into_iter().map(|(shape, statuses)| {
        let statuses = spans(statuses);
        format!("{statuses}: `{shape}`")
    });
    shapes.chain(words).collect::<Vec<_>>().join("; ")
}

/// `500, 502 to 504` for 500, 502, 503 and 504.
fn spans(mut numbers: Vec<u16>) -> String {
    numbers.sort_unstable();
    let mut spans: Vec<(u16, u16)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, end)) if *end + 1 == number => *end = number,
            _ => spans.push((number, number)),
        }
    }
    let span = |(first, last): &(u16, u16)| match last - first {
        0 => first.to_string(),
        _ => format!("{first} to {last}"),
    };
    spans.iter().map(span).collect::<Vec<_>>().join(", ")
}

fn reports() -> String {
    let shown = catalogue::reports().iter().filter(|report| !report.shown_by.is_empty()).count();
    let mut table = format!(
        "\n{} reports, of which {shown} are shown.\n\n\
         | report | shown by | verdict | note |\n|---|---|---|---|\n",
        catalogue::reports().len(),
    );
    for Report { case, shown_by, note, .. } in catalogue::reports() {
        let names: Vec<String> = shown_by.iter().map(|name| format!("`{name}`")).collect();
        let mut verdicts: Vec<String> = Vec::new();
        for verdict in shown_by.iter().map(|name| verdict(entry(name).expected)) {
            if !verdicts.contains(&verdict) {
                verdicts.push(verdict);
            }
        }
        let names = if names.is_empty() { "no fault".to_owned() } else { names.join(", ") };
        writeln!(table, "| {case} | {names} | {} | {note} |", verdicts.join("; ")).unwrap();
    }
    table.push('\n');
    table
}

/// `page` with what stands between the marks of `name` replaced.
fn with(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let (head, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no mark {begin}"));
    let (_, tail) = rest.split_once(&end).unwrap_or_else(|| panic!("no mark {end}"));
    format!("{head}{begin}{table}{end}{tail}")
}

#[test]
fn the_page_is_equal_to_the_catalogue() {
    let path = in_workspace("docs/FAULTS.md");
    let page = fs::read_to_string(&path).unwrap();
    let fresh = with(&page, "faults", &faults());
    let fresh = with(&fresh, "variants", &variants());
    let fresh = with(&fresh, "reports", &reports());
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, fresh).unwrap();
        return;
    }
    let differs = page.lines().zip(fresh.lines()).find(|(is, must)| is != must);
    assert!(
        page == fresh,
        "docs/FAULTS.md differs from the catalogue, first here:\n  {differs:?}\n\
         rewrite it with: {UPDATE}=1 cargo test -p turnbuckle-faults --test page"
    );
}

/// The reports of which an error is named, a line each; one may have several.
fn named() -> Vec<(String, Value)> {
    let path = in_workspace("crates/errors/tests/cases/streams.jsonl");
    let lines = fs::read_to_string(path).unwrap();
    let parse = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["case"].as_str().unwrap().to_owned(), line)
    };
    lines.lines().map(parse).collect()
}

/// The reports of which no error is classified, each with what becomes of it.
fn nameless() -> Vec<(String, String)> {
    let path = in_workspace("crates/errors/tests/cases/not_applicable.tsv");
    let lines = fs::read_to_string(path).unwrap();
    let split = |line: &str| {
        let (case, why) = line.split_once('\t').unwrap();
        (case.to_owned(), why.to_owned())
    };
    lines.lines().map(split).collect()
}

#[test]
fn every_report_has_a_home_or_a_reason() {
    let nameless = nameless().into_iter().map(|it| it.0);
    let known: BTreeSet<String> = named().into_iter().map(|it| it.0).chain(nameless).collect();
    assert_eq!(known.len(), 154);
    let ours = catalogue::reports();
    let distinct: BTreeSet<String> = ours.iter().map(|report| report.case.to_owned()).collect();
    assert_eq!(distinct.len(), ours.len(), "a report stands twice");
    assert_eq!(distinct, known);
    for report in ours {
        assert!(!report.shown_by.is_empty() || !report.note.is_empty(), "{}", report.case);
        for name in report.shown_by {
            assert!(entry(name).reports().any(|known| known.case == report.case), "{name}");
        }
    }
}

#[test]
fn the_verdict_of_a_fault_is_that_of_the_reports_it_shows() {
    let mut right: BTreeMap<String, BTreeSet<(String, bool)>> = BTreeMap::new();
    for (case, line) in named() {
        let code = line["code"].as_str().unwrap().to_owned();
        right.entry(case).or_default().insert((code, line["retriable"].as_bool().unwrap()));
    }
    let mut compared = 0;
    for report in catalogue::reports() {
        let Some(right) = right.get(report.case) else { continue };
        if report.shown_by.is_empty() || APART.contains(&report.case) {
            assert!(!report.note.is_empty(), "{}", report.case);
            continue;
        }
        // A fault with a whole answer is the other half of a report, where nothing fails.
        let given = report.shown_by.iter().map(|name| entry(name).expected).filter_map(|given| {
            Some((given.code?.to_owned(), given.recovery == Recovery::Recoverable))
        });
        assert_eq!(given.collect::<BTreeSet<_>>(), *right, "{}", report.case);
        compared += 1;
    }
    assert!(compared > 90, "{compared}");
}

#[test]
fn what_must_be_read_is_whole_and_what_is_no_answer_has_its_code() {
    for (case, why) in nameless() {
        let report = catalogue::reports().iter().find(|report| report.case == case).unwrap();
        let codes: Vec<_> = report.shown_by.iter().map(|name| entry(name).expected.code).collect();
        if why.starts_with("it must parse") {
            assert!(codes.iter().all(Option::is_none), "{case}: {codes:?}");
        }
        for code in ["CONTENT_FILTERED", "EMPTY_MODEL_RESPONSE"] {
            if why.contains(code) {
                assert!(!codes.is_empty() && codes.iter().all(|it| *it == Some(code)), "{case}");
            }
        }
    }
}
