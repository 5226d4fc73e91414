//! What a host sees of a command while it runs: its output as plain text, as it
//! comes, both streams mixed.

use anstream::adapter::StripBytes;

use crate::ToolContext;

/// The most of one read that is shown, in bytes: a screen. More at once is a flood,
/// of which the end is enough.
const SHOWN: usize = 4 * 1024;

/// Shows one stream.
#[derive(Debug)]
pub(super) struct Live<'a> {
    context: &'a ToolContext,
    /// Escapes may be cut anywhere.
    escapes: StripBytes,
    /// The begin of a character whose end has not come.
    begun: Vec<u8>,
}

impl<'a> Live<'a> {
    pub(super) fn new(context: &'a ToolContext) -> Self {
        Self { context, escapes: StripBytes::new(), begun: Vec::new() }
    }

    /// Takes the next bytes, cut anywhere.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if !self.context.is_watched() {
            return;
        }
        let mut bytes = bytes;
        let (flood, end) = bytes.split_at(bytes.len().saturating_sub(SHOWN));
        if !flood.is_empty() {
            // From the begin of a line on, where no escape and no character is cut.
            let line = memchr::memchr(b'\n', end).map_or(0, |at| at + 1);
            bytes = end.get(line..).unwrap_or_default();
            self.context.skip_progress(self.begun.len() + flood.len() + line);
            (self.escapes, self.begun) = (StripBytes::new(), Vec::new());
        }
        let mut plain = std::mem::take(&mut self.begun);
        for piece in self.escapes.strip_next(bytes) {
            plain.extend_from_slice(piece);
        }
        let whole = plain.len() - begun(&plain);
        self.begun = plain.split_off(whole);
        self.context.progress(&String::from_utf8_lossy(&plain));
    }

    /// Shows what is left, once the stream has ended.
    pub(super) fn end(self) {
        self.context.progress(&String::from_utf8_lossy(&self.begun));
    }
}

/// How many bytes at the end are the begin of a character.
fn begun(bytes: &[u8]) -> usize {
    let is_begin = |count: &usize| {
        let tail = bytes.get(bytes.len() - count..).unwrap_or_default();
        std::str::from_utf8(tail)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=bytes.len().min(3)).find(is_begin).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Progress;

    #[test]
    fn any_cut_shows_the_same_plain_text() {
        let output = "a\u{1b}[31mred\u{1b}[0m ä \u{1f600}\u{1b}]0;title\u{7}\n".as_bytes();
        for cut in 0..=output.len() {
            let progress = Progress::new(|| {});
            let context = ToolContext::default().with_progress(progress.clone());
            let mut live = Live::new(&context);
            let (first, second) = output.split_at(cut);
            live.push(first);
            live.push(second);
            live.end();
            let shown = progress.take().map(|update| update.text);
            assert_eq!(shown.as_deref(), Some("ared ä \u{1f600}\n"), "cut at {cut}");
        }
    }

    #[test]
    fn of_a_flood_the_end_is_shown_and_the_rest_is_counted() {
        let progress = Progress::new(|| {});
        let context = ToolContext::default().with_progress(progress.clone());
        let mut live = Live::new(&context);
        let flood = "\u{1b}[31mline\u{1b}[0m\n".repeat(SHOWN);
        live.push(flood.as_bytes());
        let update = progress.take().unwrap();
        let lines = update.text.lines().count();
        assert_eq!(update.text, "line\n".repeat(lines));
        let shown = lines * (flood.len() / SHOWN);
        assert!(shown > SHOWN / 2 && shown <= SHOWN, "{shown}");
        assert_eq!(update.skipped as usize, flood.len() - shown);
        live.push(b"calm\n");
        assert_eq!(progress.take().unwrap().text, "calm\n");
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hold_up_what_follows() {
        let progress = Progress::new(|| {});
        let context = ToolContext::default().with_progress(progress.clone());
        let mut live = Live::new(&context);
        live.push(b"\xff ok\n\xe2\x82");
        let update = progress.take().unwrap();
        assert!(update.text.ends_with(" ok\n"), "{update:?}");
        live.end();
        assert_eq!(progress.take().unwrap().text, "\u{fffd}");
    }
}
