//! The output of a command as a model reads it: the head and the tail of each
//! stream in whole lines, within the bounds.

use std::collections::VecDeque;

/// The most that is kept of both streams together, in bytes.
const MAX_BYTES: usize = 96 * 1024;
/// The most lines that are kept of both streams together.
const MAX_LINES: usize = 4000;

/// The first and the last lines of a stream.
#[derive(Debug, Default)]
pub(super) struct HeadTail {
    head: Vec<Line>,
    tail: VecDeque<Line>,
    head_size: Size,
    tail_size: Size,
    omitted: Size,
    /// Where the whole stream is, if it was kept.
    whole: Option<String>,
}

/// A line as text, and how much of the stream it was.
#[derive(Debug)]
struct Line {
    text: String,
    raw: Size,
}

/// How much text there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: usize,
    pub(super) lines: usize,
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

    pub(super) const fn plus(self, other: Self) -> Self {
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
    /// Takes the next line, and how much of the stream it was.
    pub(super) fn push(&mut self, text: String, raw: Size) {
        let size = Size::of(&text);
        let room = self.tail.is_empty() && self.omitted == Size::default();
        if room && self.head_size.plus(size).fits(Size::ALL.half()) {
            self.head_size = self.head_size.plus(size);
            self.head.push(Line { text, raw });
            return;
        }
        self.tail_size = self.tail_size.plus(size);
        self.tail.push_back(Line { text, raw });
        while !self.tail_size.fits(Size::ALL.half()) && self.omit_from_tail() {}
    }

    /// Notes that output is missing between the last line and the next.
    pub(super) fn gap(&mut self, missing: Size) {
        while self.omit_from_tail() {}
        self.omitted = self.omitted.plus(missing);
    }

    /// Whether something of the stream is not shown.
    pub(super) fn leaves_out(&self) -> bool {
        self.omitted != Size::default()
    }

    /// Says where the whole stream is.
    pub(super) fn tell_whole(&mut self, place: Option<String>) {
        self.whole = place;
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
        self.head_size = self.head_size.minus(Size::of(&line.text));
        self.omitted = self.omitted.plus(line.raw);
        true
    }

    fn omit_from_tail(&mut self) -> bool {
        let Some(line) = self.tail.pop_front() else { return false };
        self.tail_size = self.tail_size.minus(Size::of(&line.text));
        self.omitted = self.omitted.plus(line.raw);
        true
    }

    fn render(&self, text: &mut String) {
        for line in &self.head {
            text.push_str(&line.text);
            text.push('\n');
        }
        if self.leaves_out() {
            let Size { bytes, lines } = self.omitted;
            text.push_str(&format!("… ({lines} lines, {bytes} bytes left out here) …\n"));
        }
        for line in &self.tail {
            text.push_str(&line.text);
            text.push('\n');
        }
    }
}

/// Cuts both streams to the bounds, which they share.
pub(super) fn fit(stdout: &mut HeadTail, stderr: &mut HeadTail) {
    let half = Size::ALL.half();
    // What one stream does not need the other may use.
    let (out, err) = (stdout.size(), stderr.size());
    stdout.shrink(Size::ALL.minus(err).max(half));
    stderr.shrink(Size::ALL.minus(out).max(half));
}

/// Both streams as one text, saying what was cut and where it is.
pub(super) fn render(stdout: &HeadTail, stderr: &HeadTail) -> String {
    let streams = [("stdout", stdout), ("stderr", stderr)];
    let mut text = String::new();
    for (name, stream) in streams {
        if stream.size() != Size::default() || stream.leaves_out() {
            text.push_str(&format!("[{name}]\n"));
            stream.render(&mut text);
        }
    }
    if text.is_empty() {
        text.push_str("(no output)\n");
    }
    for (name, stream) in streams.into_iter().filter(|(_, stream)| stream.leaves_out()) {
        text.push_str(&match &stream.whole {
            Some(place) => format!("(of {name} {place}; Read it with an offset)\n"),
            None => format!(
                "(to see what was left out of {name}, send it to a file in the workspace and Read it)\n"
            ),
        });
    }
    text
}

#[cfg(test)]
mod tests;
