//! From the bytes of a session file to its records, whatever happened to it.
//!
//! Only reads: what is to be mended, and how, is left to the one who holds the
//! lock.

use std::{
    io::{self, BufRead, Read as _},
    path::Path,
};

use serde::Deserialize;

use super::{FORMAT_VERSION, Record, StoreError, history::LOST};

/// How every session file begins.
const OPENING: &[u8] = b"{\"record\":\"session\",";

/// How the record of a user's message begins.
const USER: &[u8] = b"{\"record\":\"user\",";

/// The longest first line. A file that has a longer one is none of ours, and is
/// not read to its end to find that out.
const LONGEST_OPENING: u64 = 256 * 1024;

/// What a session file holds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Reading {
    pub(super) records: Vec<Record>,
    pub(super) end: End,
    /// The lines that cannot be read, from 1.
    pub(super) unreadable: Vec<u64>,
}

/// How the file ends.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// With a whole line, or before the first byte.
    #[default]
    Whole,
    /// With a record that is whole but for its line break.
    Unbroken,
    /// In the middle of a record, which was never committed.
    Torn { keep: u64, cut: u64 },
}

impl Reading {
    /// The unreadable lines that no earlier opening has told about.
    pub(super) fn newly_unreadable(&self) -> Vec<u64> {
        let told = |line: &u64| {
            self.records.iter().any(|record| {
                matches!(record, Record::Repaired { unreadable, .. } if unreadable.contains(line))
            })
        };
        self.unreadable.iter().copied().filter(|line| !told(line)).collect()
    }
}

/// Reads a session file to its end.
///
/// A file that ends within its first line holds nothing: it was never begun.
pub(super) fn read(mut source: impl BufRead, path: &Path) -> Result<Reading, StoreError> {
    let failed = |source| StoreError::Io { action: "reading", path: path.to_owned(), source };
    let mut reading = Reading::default();
    let mut line = Vec::new();
    let first = (&mut source).take(LONGEST_OPENING).read_until(b'\n', &mut line).map_err(failed)?;
    if line.pop_if(|byte| *byte == b'\n').is_none() {
        return unbegun(&line, path);
    }
    reading.records.push(opening(&line, path)?);
    let mut whole = u64::try_from(first).unwrap_or(u64::MAX);
    for number in 2_u64.. {
        line.clear();
        let length = source.read_until(b'\n', &mut line).map_err(failed)?;
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        if line.pop_if(|byte| *byte == b'\n').is_none() {
            if !line.is_empty() {
                reading.end = last(&line, whole, &mut reading.records);
            }
            break;
        }
        whole += length;
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(record) => reading.records.push(record),
            Err(_) => {
                reading.unreadable.push(number);
                reading.records.extend(in_place_of(&line));
            }
        }
    }
    Ok(reading)
}

/// Reads the beginning of a session file: its first record, and the first thing
/// that the user said if it comes within the next few lines.
pub(super) fn read_beginning(
    mut source: impl BufRead,
    path: &Path,
) -> Result<Option<(Record, Option<String>)>, StoreError> {
    const LINES: usize = 8;
    let failed = |source| StoreError::Io { action: "reading", path: path.to_owned(), source };
    let mut line = Vec::new();
    (&mut source).take(LONGEST_OPENING).read_until(b'\n', &mut line).map_err(failed)?;
    if line.pop_if(|byte| *byte == b'\n').is_none() {
        return unbegun(&line, path).map(|_| None);
    }
    let first = opening(&line, path)?;
    for _ in 0..LINES {
        line.clear();
        if source.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        if let Ok(Record::User { text, .. }) = serde_json::from_slice(&line) {
            return Ok(Some((first, Some(text))));
        }
    }
    Ok(Some((first, None)))
}

/// A file without a whole line: one of ours that a crash cut, or another program's.
fn unbegun(bytes: &[u8], path: &Path) -> Result<Reading, StoreError> {
    // A file system that lost what was written may have left zeros in its place.
    let zeros = bytes.iter().all(|byte| *byte == 0);
    let ours = bytes.starts_with(OPENING) || OPENING.starts_with(bytes) || zeros;
    let cut = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if !ours || cut >= LONGEST_OPENING {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    if let Ok(record) = opening(bytes, path) {
        return Ok(Reading { records: vec![record], end: End::Unbroken, ..Reading::default() });
    }
    let end = if cut == 0 { End::Whole } else { End::Torn { keep: 0, cut } };
    Ok(Reading { end, ..Reading::default() })
}

/// What is told even by a first line whose other fields have changed.
#[derive(Deserialize)]
struct Opening {
    record: String,
    version: u32,
}

fn opening(line: &[u8], path: &Path) -> Result<Record, StoreError> {
    let path = || path.to_owned();
    match serde_json::from_slice::<Opening>(line) {
        Ok(Opening { record, version }) if record == "session" => {
            if version > FORMAT_VERSION {
                return Err(StoreError::Newer { path: path(), version });
            }
        }
        _ if line.starts_with(OPENING) => {
            return Err(StoreError::Corrupt { path: path(), line: 1 });
        }
        _ => return Err(StoreError::Foreign { path: path() }),
    }
    serde_json::from_slice(line).map_err(|_| StoreError::Corrupt { path: path(), line: 1 })
}

/// The last line, which has no line break. A record cannot be the beginning of
/// another one, so one that can be read is whole.
fn last(line: &[u8], keep: u64, records: &mut Vec<Record>) -> End {
    match serde_json::from_slice(line) {
        Ok(record) => {
            records.push(record);
            End::Unbroken
        }
        Err(_) => End::Torn { keep, cut: u64::try_from(line.len()).unwrap_or(u64::MAX) },
    }
}

/// What stands for a record that cannot be read, so that the messages around it
/// still make sense to a model.
fn in_place_of(line: &[u8]) -> Option<Record> {
    let user = line.starts_with(USER);
    user.then(|| Record::User { text: LOST.to_owned(), images: Vec::new() })
}

/// A file as it is read: in pieces that stay in the processor's cache.
pub(super) fn buffered(file: &std::fs::File) -> io::BufReader<&std::fs::File> {
    io::BufReader::with_capacity(256 * 1024, file)
}
