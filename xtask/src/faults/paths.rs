//! The way a cell took, in a line that is the same each time: what a host is told of its
//! first prompt, without texts, times, and how far the message was told. The ways of all
//! cells are written down in one file, so that another way is seen as a difference.

use std::{collections::BTreeMap, fs, io, path::Path};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{row::Row, stage::Seen};

/// Where the ways are written down.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/paths.tsv");

/// The way a session took. What follows the first prompt is partly up to chance: which
/// connections are used again.
pub(crate) fn path(seen: &Seen) -> String {
    let told = seen.prompts.first().map_or(&[][..], |told| &told.events);
    told.iter().filter_map(beat).collect::<Vec<_>>().join(" ")
}

/// What an event adds to the way.
fn beat(event: &Value) -> Option<String> {
    let word =
        |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or("?").to_owned();
    Some(match word("/type").as_str() {
        "turn_start" => "ask".to_owned(),
        "retry_scheduled" => {
            let (code, phase) = (word("/failure/code"), word("/failure/details/phase"));
            format!("{code}/{phase} again({})", word("/budget"))
        }
        "message_end" if event.get("failure").is_none() => word("/finish"),
        "tool_execution_end" => match event.get("ok") {
            Some(Value::Bool(true)) => "tool".to_owned(),
            _ => word("/failure/code"),
        },
        "error" => word("/failure/code"),
        "agent_end" => word("/outcome"),
        _ => return None,
    })
}

/// The ways that are written down: of each fault in each situation, by dialect.
#[derive(Debug, Default, PartialEq, Eq)]
struct Book(BTreeMap<(String, String), BTreeMap<String, String>>);

impl Book {
    fn read(text: &str) -> Self {
        let mut book = Self::default();
        for line in text.lines() {
            let mut fields = line.split('\t');
            let (Some(fault), Some(when), Some(dialects), Some(path)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            for dialect in dialects.split(' ') {
                book.note(fault, when, dialect, path);
            }
        }
        book
    }

    fn note(&mut self, fault: &str, when: &str, dialect: &str, path: &str) {
        let ways = self.0.entry((fault.to_owned(), when.to_owned())).or_default();
        ways.insert(dialect.to_owned(), path.to_owned());
    }

    fn of(&self, row: &Row) -> Option<&str> {
        let key = (row.cell.entry.name.to_owned(), row.cell.when.to_string());
        self.0.get(&key)?.get(row.cell.dialect().name()).map(String::as_str)
    }

    /// Dialects that went the same way share a line.
    fn write(&self) -> String {
        let mut lines = String::new();
        for ((fault, when), ways) in &self.0 {
            let mut by_path: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for (dialect, path) in ways {
                by_path.entry(path).or_default().push(dialect);
            }
            for (path, dialects) in by_path {
                lines.push_str(&format!("{fault}\t{when}\t{}\t{path}\n", dialects.join(" ")));
            }
        }
        lines
    }
}

/// What differs from the ways that are written down.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Each as the old line and the new one.
    pub(super) changed: Vec<String>,
    /// How many cells had no way so far.
    pub(super) new: usize,
}

/// Compares the ways of these cells with those that are written down, and writes them
/// down if they are accepted. `all` says that every cell was played, so that what was not
/// is forgotten.
pub(super) fn compare(rows: &[Row], accept: bool, all: bool) -> Result<Differences> {
    compare_with(Path::new(FILE), rows, accept, all)
}

fn compare_with(file: &Path, rows: &[Row], accept: bool, all: bool) -> Result<Differences> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.context("cannot read the ways that are written down"),
    }?;
    let before = Book::read(&text);
    let mut after = if all { Book::default() } else { Book::read(&text) };
    let mut differences = Differences::default();
    for row in rows {
        let Some(path) = &row.path else { continue };
        after.note(
            row.cell.entry.name,
            &row.cell.when.to_string(),
            row.cell.dialect().name(),
            path,
        );
        match before.of(row) {
            Some(known) if known == path => {}
            None => differences.new += 1,
            Some(known) => {
                let name = row.name();
                differences.changed.push(format!("{name}:\n  - {known}\n  + {path}"));
            }
        }
    }
    if accept && after != before {
        fs::write(file, after.write()).context("cannot write the ways down")?;
    }
    Ok(differences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{
        cell::{Choice, cells},
        dialect::Dialect,
        row,
    };

    #[test]
    fn a_book_is_read_as_it_was_written() {
        let mut book = Book::default();
        book.note("stall", "first once text", "chat", "ask stop completed");
        book.note("stall", "first once text", "gemini", "ask stop completed");
        book.note("stall", "first once text", "anthropic", "ask completed");
        let text = book.write();
        assert_eq!(
            text,
            "stall\tfirst once text\tanthropic\task completed\n\
             stall\tfirst once text\tchat gemini\task stop completed\n"
        );
        assert_eq!(Book::read(&text), book);
    }

    #[tokio::test]
    async fn another_way_than_last_time_is_shown_until_it_is_accepted() {
        let choice = Choice {
            only: Some("end_before_terminal"),
            dialect: Some(Dialect::Chat),
            thin: true,
            seed: 1,
        };
        let mut rows = row::play(cells(choice).cells, 1, |_| {}).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths.tsv");
        let differences = |rows: &[Row], accept| {
            let found = compare_with(&file, rows, accept, true).unwrap();
            (found.changed, found.new)
        };
        assert_eq!(differences(&rows, true), (vec![], 1));
        assert_eq!(differences(&rows, false), (vec![], 0));
        let path = rows[0].path.replace("another".to_owned()).unwrap();
        assert!(path.contains("STREAM_FAILED/stream again(stream)"), "{path}");
        let (changed, _) = differences(&rows, false);
        assert!(changed[0].ends_with(&format!(":\n  - {path}\n  + another")), "{changed:?}");
        assert_eq!(differences(&rows, true).0.len(), 1);
        assert_eq!(differences(&rows, false), (vec![], 0));
    }
}
