//! The output of a command, bounded while it streams: the head and the tail of
//! each stream in whole lines, as plain text.

use std::collections::VecDeque;

use crate::builtin::text::{LINE_CHARS, cut_line};

/// The most that is kept of both streams together, in bytes.
const MAX_BYTES: usize = 96 * 1024;
/// The most lines that are kept of both streams together.
const MAX_LINES: usize = 4000;
/// The most that is kept of one line before its escapes are gone, in bytes.
const LINE_BYTES: usize = LINE_CHARS * 8;

/// Collects one stream.
#[derive(Debug, Default)]
pub(super) struct Collector {
    line: Vec<u8>,
    /// How long the line is, of which `line` is the kept part.
    line_bytes: usize,
    after_return: bool,
    kept: HeadTail,
}

impl Collector {
    /// Takes the next bytes, cut anywhere.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            match piece.split_last() {
                // CR LF is one line break, wherever the chunks are cut.
                Some((b'\n', [])) if self.after_return => self.after_return = false,
                Some((b'\n', content)) => {
                    self.extend(content);
                    self.end_line();
                    self.after_return = false;
                }
                // A lone CR rewrites a line on a terminal; here each version is a line.
                Some((b'\r', content)) => {
                    self.extend(content);
                    if self.line_bytes > 0 {
                        self.end_line();
                        self.after_return = true;
                    }
                }
                _ => {
                    self.extend(piece);
                    self.after_return = false;
                }
            }
        }
    }

    /// The whole, once the stream has ended.
    pub(super) fn finish(mut self) -> HeadTail {
        if self.line_bytes > 0 {
            self.end_line();
        }
        self.kept
    }

    fn extend(&mut self, content: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.line.len());
        self.line.extend_from_slice(content.get(..room).unwrap_or(content));
        self.line_bytes += content.len();
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        let whole = std::mem::take(&mut self.line_bytes);
        let more = whole - line.len();
        if more > 0
            && let Err(error) = std::str::from_utf8(&line)
            && error.error_len().is_none()
        {
            line.truncate(error.valid_up_to());
        }
        let text = String::from_utf8_lossy(&line);
        let plain = anstream::adapter::strip_str(&text).to_string();
        let mut shown = cut_line(&plain).into_owned();
        if more > 0 {
            shown.push_str(&format!(" … ({more} more bytes of this line)"));
        }
        self.kept.push(shown);
    }
}

/// The first and the last lines of a stream.
#[derive(Debug, Default)]
pub(super) struct HeadTail {
    head: Vec<String>,
    tail: VecDeque<String>,
    head_size: Size,
    tail_size: Size,
    omitted: Size,
}

/// How much text there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    bytes: usize,
    lines: usize,
}

impl Size {
    const ALL: Self = Self { bytes: MAX_BYTES, lines: MAX_LINES };

    const fn of(line: &str) -> Self {
        Self { bytes: line.len() + 1, lines: 1 }
    }

    const fn fits(self, limit: Self) -> bool {
        self.bytes <= limit.bytes && self.lines <= limit.lines
    }

    const fn half(self) -> Self {
        Self { bytes: self.bytes / 2, lines: self.lines / 2 }
    }

    const fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, lines: self.lines + other.lines }
    }

    const fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            lines: self.lines.saturating_sub(other.lines),
        }
    }

    fn max(self, other: Self) -> Self {
        Self { bytes: self.bytes.max(other.bytes), lines: self.lines.max(other.lines) }
    }
}

impl HeadTail {
    fn push(&mut self, line: String) {
        let size = Size::of(&line);
        if self.tail.is_empty() && self.head_size.plus(size).fits(Size::ALL.half()) {
            self.head_size = self.head_size.plus(size);
            self.head.push(line);
            return;
        }
        self.tail_size = self.tail_size.plus(size);
        self.tail.push_back(line);
        while !self.tail_size.fits(Size::ALL.half()) && self.omit_from_tail() {}
    }

    fn size(&self) -> Size {
        self.head_size.plus(self.tail_size)
    }

    /// Drops lines from the middle until the rest fits.
    fn shrink(&mut self, limit: Size) {
        while !self.size().fits(limit) {
            let from_head = !self.head_size.fits(limit.half());
            let omitted = if from_head { self.omit_from_head() } else { self.omit_from_tail() };
            if !omitted && !self.omit_from_head() {
                return;
            }
        }
    }

    fn omit_from_head(&mut self) -> bool {
        let Some(line) = self.head.pop() else { return false };
        self.head_size = self.head_size.minus(Size::of(&line));
        self.omitted = self.omitted.plus(Size::of(&line));
        true
    }

    fn omit_from_tail(&mut self) -> bool {
        let Some(line) = self.tail.pop_front() else { return false };
        self.tail_size = self.tail_size.minus(Size::of(&line));
        self.omitted = self.omitted.plus(Size::of(&line));
        true
    }

    fn render(&self, text: &mut String) {
        for line in &self.head {
            text.push_str(line);
            text.push('\n');
        }
        if self.omitted.lines > 0 {
            let Size { bytes, lines } = self.omitted;
            text.push_str(&format!("… ({lines} lines, {bytes} bytes left out here) …\n"));
        }
        for line in &self.tail {
            text.push_str(line);
            text.push('\n');
        }
    }
}

/// Both streams as one text within the bounds, saying what was cut.
pub(super) fn render(mut stdout: HeadTail, mut stderr: HeadTail) -> String {
    let half = Size::ALL.half();
    // What one stream does not need the other may use.
    let (out, err) = (stdout.size(), stderr.size());
    stdout.shrink(Size::ALL.minus(err).max(half));
    stderr.shrink(Size::ALL.minus(out).max(half));
    let mut text = String::new();
    for (name, stream) in [("stdout", &stdout), ("stderr", &stderr)] {
        if stream.size() != Size::default() || stream.omitted.lines > 0 {
            text.push_str(&format!("[{name}]\n"));
            stream.render(&mut text);
        }
    }
    if text.is_empty() {
        text.push_str("(no output)\n");
    }
    if stdout.omitted.plus(stderr.omitted).lines > 0 {
        text.push_str(
            "(to see what was left out, send the output to a file in the workspace and Read it)\n",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both streams rendered, with stdout pushed in chunks of `chunk` bytes.
    fn rendered(stdout: &[u8], stderr: &[u8], chunk: usize) -> String {
        let (mut out, mut err) = (Collector::default(), Collector::default());
        stdout.chunks(chunk).for_each(|chunk| out.push(chunk));
        err.push(stderr);
        render(out.finish(), err.finish())
    }

    #[test]
    fn both_streams_are_named_and_nothing_is_said_to_be_nothing() {
        assert_eq!(rendered(b"out\n", b"err", 1), "[stdout]\nout\n[stderr]\nerr\n");
        assert_eq!(rendered(b"", b"", 1), "(no output)\n");
    }

    #[test]
    fn any_chunking_gives_the_same_text() {
        let bytes = "gr\u{fc}n \x1b[1;31mred\x1b[0m\r\n10%\r20%\r\n\n\u{1f600}end".as_bytes();
        let whole = rendered(bytes, b"", bytes.len());
        assert_eq!(whole, "[stdout]\ngr\u{fc}n red\n10%\n20%\n\n\u{1f600}end\n");
        for chunk in 1..bytes.len() {
            assert_eq!(rendered(bytes, b"", chunk), whole, "chunks of {chunk}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_lossily() {
        assert_eq!(rendered(b"a\xff\xfeb\n", b"", 1), "[stdout]\na\u{fffd}\u{fffd}b\n");
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let line = "\u{1f600}".repeat(50_000);
        let text = rendered(line.as_bytes(), b"", 7);
        assert!(!text.contains('\u{fffd}'), "a character was cut");
        assert_eq!(text.matches('\u{1f600}').count(), LINE_CHARS);
        assert!(text.contains("more characters of this line"), "{}", text.len());
        assert!(text.contains("more bytes of this line"), "{}", text.len());
    }

    #[test]
    fn head_and_tail_stay_and_the_middle_is_counted() {
        let lines: String = (1..=10_000).map(|number| format!("{number}\n")).collect();
        let text = rendered(lines.as_bytes(), b"", 4096);
        assert!(text.starts_with("[stdout]\n1\n2\n"), "the head is there");
        assert!(text.contains("\n2000\n… (6000 lines, 30000 bytes left out here) …\n8001\n"));
        assert!(text.contains("\n10000\n(to see what was left out"), "the tail is there");
    }

    #[test]
    fn both_streams_together_stay_within_the_bounds() {
        let line = format!("{}\n", "x".repeat(99));
        let (large, small) = (line.repeat(5000), line.repeat(10));
        let both = rendered(large.as_bytes(), large.as_bytes(), 4096);
        assert!(both.len() < MAX_BYTES + 512 && both.len() > MAX_BYTES - 512, "{}", both.len());
        let one = rendered(large.as_bytes(), small.as_bytes(), 4096);
        assert!(one.len() < MAX_BYTES + 512 && one.len() > MAX_BYTES - 512, "{}", one.len());
        assert_eq!(one.split("[stderr]").nth(1).unwrap().matches(&line).count(), 10);
    }

    #[test]
    fn memory_stays_bounded_while_a_stream_floods() {
        let mut collector = Collector::default();
        for _ in 0..1000 {
            collector.push(&[b'x'; 4096]);
        }
        assert!(collector.line.len() <= LINE_BYTES);
        for _ in 0..200_000 {
            collector.push(b"line\n");
        }
        assert!(collector.kept.size().fits(Size::ALL));
    }
}
