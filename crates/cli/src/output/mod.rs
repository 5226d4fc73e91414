//! What `run` prints: text for people, one object, or one event a line.

mod canvas;
mod lines;
mod text;

use std::io;

pub(crate) use canvas::Canvas;
pub(crate) use lines::{Ndjson, Summary};
pub(crate) use text::{Text, describe_call, seconds};
use turnbuckle_runtime::{Event, PromptOutcome};

use crate::args::Format;

/// Shows a run as it goes. An `io::Error` means that nobody reads any more.
pub(crate) trait Output {
    /// Something happened.
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// It is over.
    fn end(&mut self, outcome: &PromptOutcome) -> io::Result<()>;
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
/// and tabs are left out.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
}
