//! What `run` prints: text for people, one object, or one event a line.

mod canvas;
mod lines;
mod text;
mod writer;

use std::io;

pub(crate) use canvas::Canvas;
pub(crate) use lines::{Ndjson, Summary};
pub(crate) use text::{Text, describe_call, seconds};
use turnbuckle_runtime::{Event, PromptOutcome};
pub(crate) use writer::Writer;

use crate::args::Format;

/// Shows a run as it goes. An `io::Error` means that nobody reads any more.
pub(crate) trait Output: Send {
    /// Something happened.
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// It is over.
    fn end(&mut self, outcome: &PromptOutcome) -> io::Result<()>;
}

impl Output for Box<dyn Output> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        (**self).event(event)
    }

    fn end(&mut self, outcome: &PromptOutcome) -> io::Result<()> {
        (**self).end(outcome)
    }
}

/// The output for a format.
pub(crate) fn output(format: Format) -> Box<dyn Output> {
    match format {
        Format::Text => Box::new(Text::new()),
        Format::Json => Box::new(Summary),
        Format::Ndjson => Box::new(Ndjson),
    }
}

/// Text that cannot steer the terminal: control characters but for line breaks
/// and tabs are left out, and so are the invisible marks that reorder text.
pub(crate) fn printable(text: &str) -> String {
    let reorders = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || reorders(*c))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_hide_or_reorder_text_is_left_out() {
        assert_eq!(printable("a\u{202e}b\u{2066}c\u{1b}[1md\te\nf\u{61c}"), "abc[1md\te\nf");
        // Joined emoji and other scripts stay whole.
        let innocent = "\u{1f468}\u{200d}\u{1f469} 漢字 שלום";
        assert_eq!(printable(innocent), innocent);
    }
}
