//! What users reported of agents, and the test that holds each case.
//!
//! The reports lie beside the project; [`TABLE`] maps each of them, by its id, to
//! the tests that cover it, or says why none of ours can. A test that is renamed
//! or removed is missed here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::{counts::Tally, course::Outcome, workspace::Workspace};

/// The reports, beside the project.
const REPORTS: &str = "../shared/cases/agent.jsonl";
/// Which test covers which report.
const TABLE: &str = "crates/tools/tests/agent_cases.jsonl";

#[derive(Debug, Deserialize)]
struct Report {
    id: String,
    kind: String,
}

/// A row of the table: tests, or a reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Covered {
    id: String,
    /// Each as `path of its file::name of the test`.
    #[serde(default)]
    tests: Vec<String>,
    /// Why no test covers it, or what of it is left out.
    why: Option<String>,
}

/// The table as a part of `test`; the reports themselves may be missing.
pub(crate) fn part(workspace: &Workspace, require: bool) -> Result<Outcome> {
    check(workspace.root(), require)
}

fn check(root: &Path, require: bool) -> Result<Outcome> {
    let table = fs::read_to_string(root.join(TABLE)).with_context(|| format!("no {TABLE}"))?;
    let table: Vec<Covered> = rows(&table).with_context(|| TABLE.to_owned())?;
    let mut complaints = broken(&table, |path| fs::read_to_string(root.join(path)).ok());
    let reports = root.join(REPORTS);
    let mut notes = Vec::new();
    let mut skipped = 0;
    if reports.is_file() {
        let reports: Vec<Report> = rows(&fs::read_to_string(&reports)?)?;
        complaints.extend(uncovered(&table, &reports));
        notes.extend(counts(&table, &reports));
    } else {
        let absent = format!("NO REPORTS: there is no {}", shown(&reports));
        match require {
            true => complaints.push(format!("{absent}, and they are required")),
            false => notes.push(absent),
        }
        skipped = u64::from(!require);
    }
    let outcome = Outcome::complaints(&complaints);
    let tally = Tally { skipped, ..outcome.tally };
    Ok(Outcome { tally, notes, ..outcome })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn rows<T: for<'a> Deserialize<'a>>(text: &str) -> Result<Vec<T>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).with_context(|| format!("line {number} is not a row"))
        })
        .collect()
}

/// Rows that say nothing, stand twice, or name a test that is not there.
fn broken(table: &[Covered], read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut seen = BTreeSet::new();
    let mut files: BTreeMap<&str, Option<String>> = BTreeMap::new();
    for row in table {
        let id = &row.id;
        if !seen.insert(id) {
            complaints.push(format!("{id} stands twice"));
        }
        if row.tests.is_empty() && row.why.as_ref().is_none_or(|why| why.trim().is_empty()) {
            complaints.push(format!("{id} has neither a test nor a reason"));
        }
        for test in &row.tests {
            let (path, name) = test.rsplit_once("::").unwrap_or((test, ""));
            let file = files.entry(path).or_insert_with(|| read(path));
            let there = file.as_ref().is_some_and(|text| text.contains(&format!("fn {name}(")));
            if name.is_empty() || !there {
                complaints.push(format!("{id}: there is no test {test}"));
            }
        }
    }
    complaints
}

/// Reports without a row, and rows without a report.
fn uncovered(table: &[Covered], reports: &[Report]) -> Vec<String> {
    let covered: BTreeSet<&str> = table.iter().map(|row| row.id.as_str()).collect();
    let reported: BTreeSet<&str> = reports.iter().map(|report| report.id.as_str()).collect();
    let missing = reported.difference(&covered).map(|id| format!("{id} is not in {TABLE}"));
    let unknown = covered.difference(&reported).map(|id| format!("{id} is no report"));
    missing.chain(unknown).collect()
}

fn counts(table: &[Covered], reports: &[Report]) -> Vec<String> {
    let kinds: BTreeSet<&str> = reports.iter().map(|report| report.kind.as_str()).collect();
    let tested = table.iter().filter(|row| !row.tests.is_empty()).count();
    vec![
        format!("counted: {} agent cases of {} kinds", reports.len(), kinds.len()),
        format!("counted: {tested} agent cases with a test"),
        format!("counted: {} agent cases with a reason why not", table.len() - tested),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = r#"
{"id":"A1","tests":["a.rs::holds","b.rs::holds"]}
{"id":"A2","tests":["a.rs::gone"]}
{"id":"A2","why":"not ours"}
{"id":"A3"}
{"id":"A4","tests":["c.rs::holds"]}
"#;

    #[test]
    fn a_row_must_say_something_once_and_its_tests_must_be_there() {
        let table: Vec<Covered> = rows(ROWS).unwrap();
        let read = |path: &str| (path != "c.rs").then(|| "fn holds() {}\nfn gone_by".to_owned());
        let expected = [
            "A2: there is no test a.rs::gone",
            "A2 stands twice",
            "A3 has neither a test nor a reason",
            "A4: there is no test c.rs::holds",
        ];
        assert_eq!(broken(&table, read), expected);
    }

    #[test]
    fn every_report_has_a_row_and_every_row_a_report() {
        let table: Vec<Covered> = rows(ROWS).unwrap();
        let report = |id: &str| Report { id: id.to_owned(), kind: "edit".to_owned() };
        let reports = ["A1", "A2", "A3", "A5"].map(report);
        let expected = [format!("A5 is not in {TABLE}"), "A4 is no report".to_owned()];
        assert_eq!(uncovered(&table, &reports), expected);
        assert_eq!(counts(&table, &reports).first().unwrap(), "counted: 4 agent cases of 1 kinds");
    }

    #[test]
    fn the_table_of_the_project_names_tests_that_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let outcome = check(root, false).unwrap();
        assert_eq!(outcome.tally.failed, 0, "{:?}", outcome.trouble);
        assert!(!outcome.notes.is_empty());
    }

    #[test]
    fn reports_that_are_required_and_not_there_are_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join(TABLE);
        fs::create_dir_all(table.parent().unwrap()).unwrap();
        fs::write(&table, "{\"id\":\"A1\",\"why\":\"not ours\"}\n").unwrap();
        assert_eq!(check(folder.path(), true).unwrap().tally, Tally::one(false));
        let skipped = Tally { skipped: 1, ..Tally::one(true) };
        assert_eq!(check(folder.path(), false).unwrap().tally, skipped);
    }

    #[test]
    fn a_line_that_is_no_row_is_named() {
        let error = rows::<Covered>("{\"id\":\"A1\"}\n{\"ids\":1}\n").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error:#}");
    }
}
