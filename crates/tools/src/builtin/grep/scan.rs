//! The search of one file, in bounded memory.

use std::{
    fs::File,
    io::{self, Read},
};

use grep_matcher::LineTerminator;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};

use super::{Mode, hits::KEPT_BYTES};
use crate::builtin::{Stop, text::cut_line};

/// The longest line that is searched, in bytes: what one thread may hold.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// What a file holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scan {
    Binary,
    Text {
        /// The numbers and the texts of the first lines that match.
        lines: Vec<(u64, String)>,
        /// How many lines match; 1 where only whether they do was asked.
        count: usize,
    },
}

/// Searches files one after the other, reusing its buffers.
pub(super) struct Scanner<'a> {
    matcher: &'a RegexMatcher,
    searcher: Searcher,
    mode: Mode,
    limit: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(matcher: &'a RegexMatcher, mode: Mode, limit: usize) -> Self {
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(LONGEST_LINE))
            .line_number(mode == Mode::Content)
            .line_terminator(LineTerminator::crlf())
            .build();
        Self { matcher, searcher, mode, limit }
    }

    /// # Errors
    ///
    /// What the system says, a line that is too long, and cancellation.
    pub(super) fn scan(&mut self, file: File, stop: &Stop) -> io::Result<Scan> {
        let mut found = Found { mode: self.mode, limit: self.limit, ..Found::default() };
        self.searcher.search_reader(self.matcher, Stoppable { file, stop }, &mut found)?;
        Ok(match found.binary {
            true => Scan::Binary,
            false => Scan::Text { lines: found.lines, count: found.count },
        })
    }
}

/// A file that ends in an error once nobody waits for it.
struct Stoppable<'a> {
    file: File,
    stop: &'a Stop,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stop.check().map_err(|_| io::Error::other("cancelled"))?;
        self.file.read(buffer)
    }
}

#[derive(Default)]
struct Found {
    mode: Mode,
    limit: usize,
    lines: Vec<(u64, String)>,
    bytes: usize,
    count: usize,
    binary: bool,
}

impl Sink for Found {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        if self.mode == Mode::Content && self.count <= self.limit && self.bytes <= KEPT_BYTES {
            let text = String::from_utf8_lossy(found.bytes());
            let text = cut_line(text.trim_end_matches(['\n', '\r'])).into_owned();
            self.bytes += text.len();
            self.lines.push((found.line_number().unwrap_or_default(), text));
        }
        Ok(self.mode != Mode::FilesWithMatches)
    }

    fn finish(&mut self, _searcher: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}
