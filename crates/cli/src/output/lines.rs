//! For programs: one object at the end, or one event a line.

use std::io::{self, Write as _};

use serde::Serialize;
use turnbuckle_runtime::{Event, PromptOutcome};

use super::Output;

/// `--output ndjson`.
pub(crate) struct Ndjson;

impl Output for Ndjson {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        line(event)
    }

    fn end(&mut self, _outcome: &PromptOutcome) -> io::Result<()> {
        Ok(())
    }
}

/// `--output json`.
pub(crate) struct Summary;

impl Output for Summary {
    fn event(&mut self, _event: &Event) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, outcome: &PromptOutcome) -> io::Result<()> {
        line(outcome)
    }
}

/// One object on one line, handed over at once.
fn line(object: &impl Serialize) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, object)?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}
