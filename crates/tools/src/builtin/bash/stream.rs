//! One stream of a command, bounded while it flows.
//!
//! A flood must cost no more than copying it: bytes are kept or dropped in large
//! pieces, and only what is kept in the end is made into text, once.

use memchr::{memchr_iter, memchr2, memrchr2};

use super::output::{HeadTail, Size};
use crate::builtin::text::{LINE_CHARS, cut_line};

/// The most that is kept of one line before its escapes are gone, in bytes.
const LINE_BYTES: usize = LINE_CHARS * 8;
/// How much is kept or dropped at once, in bytes: more than a result can show,
/// even if most of it is colours.
const SEGMENT: usize = 256 * 1024;

/// Collects one stream: its first segment and its last two.
#[derive(Debug, Default)]
pub(super) struct Collector {
    head: Option<Segment>,
    older: Segment,
    newer: Segment,
    /// How long the line in progress is; at most [`LINE_BYTES`] of it are kept.
    line_bytes: usize,
    dropped: Size,
    /// Whether what was dropped ends in a CR, whose LF may follow.
    dropped_return: bool,
}

/// A stretch of whole lines; the last one of the newest may be in progress.
#[derive(Debug, Default)]
struct Segment {
    bytes: Vec<u8>,
    /// The lines that were cut.
    cuts: Vec<Cut>,
}

/// A line of which only the begin was kept.
#[derive(Debug)]
struct Cut {
    /// Where what was kept of it ends in the segment.
    at: usize,
    /// How many bytes of it are missing.
    more: usize,
}

/// What ends a line. A lone CR rewrites a line on a terminal; here each version
/// is a line.
const fn is_break(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

impl Collector {
    /// Takes the next bytes, cut anywhere.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // No line that lies within such a chunk is too long.
        for chunk in bytes.chunks(LINE_BYTES) {
            let first = memchr2(b'\n', b'\r', chunk);
            let last = memrchr2(b'\n', b'\r', chunk);
            match first.zip(last) {
                None => self.extend_line(chunk),
                Some((first, last)) => {
                    let (lines, begun) = chunk.split_at(last + 1);
                    let (end, lines) = lines.split_at(first);
                    self.extend_line(end);
                    self.end_line();
                    self.newer.bytes.extend_from_slice(lines);
                    self.extend_line(begun);
                }
            }
            if self.newer.bytes.len() >= SEGMENT {
                self.turn_over();
            }
        }
    }

    /// The whole, once the stream has ended.
    pub(super) fn finish(mut self) -> HeadTail {
        self.end_line();
        let mut text = Text::default();
        if let Some(head) = &self.head {
            text.add(head);
        }
        if self.dropped != Size::default() {
            text.gap(self.dropped, self.dropped_return);
        }
        text.add(&self.older);
        text.add(&self.newer);
        text.lines
    }

    fn extend_line(&mut self, content: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.line_bytes);
        self.newer.bytes.extend_from_slice(content.get(..room).unwrap_or(content));
        self.line_bytes += content.len();
    }

    fn end_line(&mut self) {
        let more = self.line_bytes.saturating_sub(LINE_BYTES);
        if more > 0 {
            self.newer.cuts.push(Cut { at: self.newer.bytes.len(), more });
        }
        self.line_bytes = 0;
    }

    /// Begins a new segment with the line in progress.
    fn turn_over(&mut self) {
        let begun = self.line_bytes.min(LINE_BYTES);
        let whole = self.newer.bytes.len().saturating_sub(begun);
        let begun = self.newer.bytes.get(whole..).unwrap_or_default();
        let mut next =
            if self.head.is_some() { std::mem::take(&mut self.older) } else { Segment::default() };
        if !next.bytes.is_empty() {
            self.dropped = self.dropped.plus(next.size());
            self.dropped_return = next.bytes.ends_with(b"\r");
        }
        next.bytes.clear();
        next.cuts.clear();
        next.bytes.extend_from_slice(begun);
        let mut full = std::mem::replace(&mut self.newer, next);
        full.bytes.truncate(whole);
        match &mut self.head {
            None => self.head = Some(full),
            Some(_) => self.older = full,
        }
    }
}

impl Segment {
    fn size(&self) -> Size {
        let more: usize = self.cuts.iter().map(|cut| cut.more).sum();
        let lines = memchr_iter(b'\n', &self.bytes).count();
        Size { bytes: self.bytes.len() + more, lines }
    }
}

/// Makes text of segments.
#[derive(Debug, Default)]
struct Text {
    lines: HeadTail,
    after_return: bool,
    /// What belongs to no line by itself; the next line takes it.
    between: Size,
}

impl Text {
    fn add(&mut self, segment: &Segment) {
        let mut begin = 0;
        let mut cuts = segment.cuts.iter().peekable();
        for piece in segment.bytes.split_inclusive(is_break) {
            let content = piece.strip_suffix(b"\n").or_else(|| piece.strip_suffix(b"\r"));
            let content = content.unwrap_or(piece);
            let end = begin + content.len();
            let more = cuts.next_if(|cut| cut.at == end).map_or(0, |cut| cut.more);
            begin += piece.len();
            let lines = usize::from(piece.ends_with(b"\n"));
            let raw = self.between.plus(Size { bytes: piece.len() + more, lines });
            // CR LF is one line break, and so are several CR.
            let lone_return = piece == b"\r";
            if lone_return || (piece == b"\n" && self.after_return) {
                self.between = raw;
            } else {
                self.between = Size::default();
                self.lines.push(plain(content, more), raw);
            }
            if !lone_return {
                self.after_return = piece.ends_with(b"\r");
            }
        }
    }

    fn gap(&mut self, missing: Size, after_return: bool) {
        self.lines.gap(missing.plus(std::mem::take(&mut self.between)));
        self.after_return = after_return;
    }
}

/// A line as plain text; `more` bytes of it are missing.
fn plain(mut line: &[u8], more: usize) -> String {
    if more > 0
        && let Err(error) = std::str::from_utf8(line)
        && error.error_len().is_none()
    {
        line = line.get(..error.valid_up_to()).unwrap_or(line);
    }
    let text = String::from_utf8_lossy(line);
    let plain = anstream::adapter::strip_str(&text).to_string();
    let mut shown = cut_line(&plain).into_owned();
    if more > 0 {
        shown.push_str(&format!(" … ({more} more bytes of this line)"));
    }
    shown
}

#[cfg(test)]
mod tests;
