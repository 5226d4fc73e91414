//! The wanted lines of a file that streams by, in bounded memory.

use std::borrow::Cow;

use turnbuckle_errors::ErrorCode;

use crate::{
    ToolError,
    builtin::{
        encoding::{Encoding, NotText},
        text::{LINE_CHARS, cut_line},
    },
};

/// The most lines one call returns.
const MAX_LINES: u64 = 2000;
/// The most bytes one call returns.
pub(super) const MAX_BYTES: usize = 48 * 1024;
/// Room kept for the remarks at the end, in bytes.
const REMARKS: usize = 768;
/// As many bytes as the longest shown line can have, and one character more.
const LINE_BYTES: usize = (LINE_CHARS + 1) * 4;

/// Picks lines out of bytes. They are decoded at the end, when the encoding is
/// known.
pub(super) struct Window {
    first: u64,
    limit: u64,
    started: bool,
    /// Whole lines seen so far.
    lines: u64,
    /// The line in progress.
    line: Line,
    picked: Vec<Line>,
    picked_bytes: usize,
}

/// A line, as far as it can be shown.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// How long it is in the file, its end left out.
    whole: usize,
}

impl Window {
    pub(super) fn new(first: Option<u64>, limit: Option<u64>) -> Self {
        Self {
            first: first.unwrap_or(1).max(1),
            limit: limit.unwrap_or(MAX_LINES).min(MAX_LINES),
            started: false,
            lines: 0,
            line: Line::default(),
            picked: Vec::new(),
            picked_bytes: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mark = if self.started { None } else { bytes.strip_prefix(b"\xef\xbb\xbf") };
        self.started = true;
        for piece in mark.unwrap_or(bytes).split_inclusive(|byte| *byte == b'\n') {
            let (content, ended) = match piece.split_last() {
                Some((b'\n', content)) => (content, true),
                _ => (piece, false),
            };
            let room = LINE_BYTES.saturating_sub(self.line.bytes.len());
            self.line.bytes.extend_from_slice(content.get(..room).unwrap_or(content));
            self.line.whole += content.len();
            if ended {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        self.lines += 1;
        let line = std::mem::take(&mut self.line);
        let wanted = self.lines >= self.first && (self.picked.len() as u64) < self.limit;
        // In every encoding a text is at least half as long as its bytes.
        if wanted && self.picked_bytes <= 2 * MAX_BYTES {
            self.picked_bytes += line.bytes.len();
            self.picked.push(line);
        }
    }

    /// The result for the model, in the encoding that the bytes turned out to have.
    pub(super) fn finish(
        mut self,
        path: &str,
        encoding: Result<Encoding, NotText>,
    ) -> Result<String, ToolError> {
        if encoding == Err(NotText::Binary) {
            return Err(NotText::Binary.refusal(path));
        }
        let unended = self.line.whole > 0;
        if unended {
            self.end_line();
        }
        if self.lines == 0 {
            return Ok(format!("(`{path}` is empty)\n"));
        }
        if self.first > self.lines {
            let text = format!(
                "Read: `offset` is {}, but `{path}` ends at line {}; use a smaller offset",
                self.first, self.lines
            );
            return Err(ToolError::new(ErrorCode::InvalidArgument, text));
        }
        let mut text = String::new();
        let mut next = self.first;
        for line in &self.picked {
            let entry = format!("{next:>6}\t{}\n", line.show(encoding));
            if text.len() + entry.len() > MAX_BYTES - REMARKS {
                break;
            }
            text.push_str(&entry);
            next += 1;
        }
        if next <= self.lines {
            let (first, last, lines) = (self.first, next - 1, self.lines);
            text.push_str(&format!(
                "(lines {first} to {last} of {lines}; to go on, Read with offset {next})\n"
            ));
        } else if unended {
            text.push_str("(no line break at the end of the file)\n");
        }
        text.push_str(&remark(encoding));
        Ok(text)
    }
}

impl Line {
    fn show(&self, encoding: Result<Encoding, NotText>) -> String {
        let old = match encoding {
            Ok(Encoding::Old(encoding)) => Some(encoding),
            _ => None,
        };
        let decode = |bytes| match old {
            Some(encoding) => encoding.decode_without_bom_handling(bytes).0,
            None => String::from_utf8_lossy(bytes),
        };
        if self.bytes.len() < self.whole {
            // A character that was cut lies behind what is shown.
            let head: String = decode(&self.bytes).chars().take(LINE_CHARS).collect();
            return format!("{head} … (a line of {} bytes, cut)", self.whole);
        }
        let text: Cow<'_, str> = decode(self.bytes.strip_suffix(b"\r").unwrap_or(&self.bytes));
        cut_line(&text).into_owned()
    }
}

/// What is to be said of an encoding.
fn remark(encoding: Result<Encoding, NotText>) -> String {
    match encoding {
        Ok(Encoding::Utf8) => String::new(),
        Ok(encoding @ Encoding::Old(_)) => format!(
            "(the file is not UTF-8 and was read as {}, as which its bytes look; changes are written \
             in it)\n",
            encoding.name()
        ),
        Ok(encoding) => {
            format!("(the file is in {}; changes are written in it)\n", encoding.name())
        }
        Err(what) => format!(
            "(the file is {what}: \u{fffd} stands for what is not text; it cannot be changed by Edit)\n"
        ),
    }
}
