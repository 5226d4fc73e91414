//! Text on a terminal that can be taken back.

use std::io::{self, Write};

use unicode_width::UnicodeWidthChar as _;

use super::printable;

/// Prints text and remembers how many rows it took, so that it can be erased.
#[derive(Debug)]
pub(crate) struct Canvas<W> {
    out: W,
    width: usize,
    height: usize,
    rows: usize,
    column: usize,
}

impl<W: Write> Canvas<W> {
    /// A canvas on a terminal of this size, in character cells.
    pub(crate) const fn new(out: W, width: usize, height: usize) -> Self {
        Self { out, width, height, rows: 0, column: 0 }
    }

    /// Whether something stands that could be erased.
    pub(crate) const fn is_blank(&self) -> bool {
        self.rows == 0 && self.column == 0
    }

    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        let text = printable(text);
        for c in text.chars() {
            self.advance(c);
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Takes everything back. What has scrolled off the screen stays there.
    pub(crate) fn erase(&mut self) -> io::Result<()> {
        let up = self.rows.min(self.height.saturating_sub(1));
        if up > 0 {
            write!(self.out, "\x1b[{up}A")?;
        }
        write!(self.out, "\r\x1b[J")?;
        self.keep();
        self.out.flush()
    }

    /// What stands stays; a new text begins.
    pub(crate) const fn keep(&mut self) {
        self.rows = 0;
        self.column = 0;
    }

    fn advance(&mut self, c: char) {
        match c {
            '\n' => {
                self.rows += 1;
                self.column = 0;
            }
            '\t' => self.column = (self.column / 8 * 8 + 8).min(self.width.saturating_sub(1)),
            c => {
                let cells = c.width().unwrap_or(0);
                if self.column + cells > self.width {
                    self.rows += 1;
                    self.column = 0;
                }
                self.column += cells;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, erased_by: &str) {
        let mut canvas = Canvas::new(Vec::new(), 10, 5);
        canvas.print(text).unwrap();
        canvas.out.clear();
        canvas.erase().unwrap();
        assert_eq!(String::from_utf8(canvas.out).unwrap(), erased_by, "{text:?}");
    }

    #[test]
    fn as_many_rows_are_taken_back_as_the_text_took() {
        check("short", "\r\x1b[J");
        check("0123456789", "\r\x1b[J");
        check("0123456789a", "\x1b[1A\r\x1b[J");
        check("one\ntwo\n", "\x1b[2A\r\x1b[J");
        check("漢字漢字漢x", "\x1b[1A\r\x1b[J");
        check("a\tb\tc", "\r\x1b[J");
        check("a\tb\tcd", "\x1b[1A\r\x1b[J");
        check("1\n2\n3\n4\n5\n6\n7\n", "\x1b[4A\r\x1b[J");
    }

    #[test]
    fn a_model_cannot_steer_the_terminal() {
        let mut canvas = Canvas::new(Vec::new(), 80, 25);
        canvas.print("a\x1b[2Jb\r\u{7}c\u{9b}1m").unwrap();
        assert_eq!(canvas.out, b"a[2Jbc1m");
    }
}
