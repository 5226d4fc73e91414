//! Read: a window of a text file, with line numbers.

use std::io;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use turnbuckle_errors::ErrorCode;

use super::{
    Shared, Stop, arguments, fs,
    ledger::KEPT_TEXT,
    question,
    text::{LINE_CHARS, binary, cut_line, missing, not_text},
};
use crate::{Effect, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

/// The most lines one call returns.
const MAX_LINES: u64 = 2000;
/// The most bytes one call returns.
const MAX_BYTES: usize = 48 * 1024;
/// Room kept for the remarks at the end, in bytes.
const REMARKS: usize = 512;
/// How much is read at once, in bytes.
const CHUNK: usize = 64 * 1024;

const DESCRIPTION: &str = "\
Reads a text file of the workspace. Each line comes back as its number, a tab and the line, \
as `cat -n` writes it; the number and the tab are not part of the file. One call returns at most \
2000 lines or 48 KiB, and says how to get the rest; lines over 2000 characters are cut. \
Read a file before you change it. After an Edit that did not match, Read the place once \
and make the Edit anew from what is there now.";

/// The arguments of Read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    /// The file: relative to the workspace, or absolute inside it.
    path: String,
    /// The first line to return, counted from 1. Default: 1.
    #[serde(default)]
    #[schemars(with = "u64")]
    offset: Option<u64>,
    /// How many lines to return. Default and maximum: 2000.
    #[serde(default)]
    #[schemars(with = "u64", range(min = 1))]
    limit: Option<u64>,
}

/// Reads text files.
pub(crate) struct Read {
    spec: ToolSpec,
    shared: Shared,
}

impl Read {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { spec: arguments::spec::<ReadArguments>("Read", DESCRIPTION), shared }
    }
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Read
    }

    fn describe(&self, input: &Value) -> String {
        format!("read the file {}", question::path(input))
    }

    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments: ReadArguments = arguments::parse(&self.spec, input)?;
        if arguments.limit == Some(0) {
            let text = "Read: `limit` must be at least 1; leave it out to get as much as fits";
            return Err(ToolError::new(ErrorCode::InvalidArgument, text));
        }
        self.shared.look(context, move |shared, stop| read(shared, &arguments, stop)).await
    }
}

fn read(shared: &Shared, wanted: &ReadArguments, stop: &Stop) -> Result<ToolOutput, ToolError> {
    let output = shared.outputs.holding(&wanted.path);
    let workspace = output.as_ref().unwrap_or(&shared.workspace);
    let place = workspace.resolve(&wanted.path)?;
    if place.metadata.is_none() {
        return Err(missing(workspace, &place.path, "; check the path"));
    }
    place.require_file()?;
    let (mut file, _) = fs::open(workspace, &place.path)?;
    let mut window = Window::new(wanted.offset.unwrap_or(1), wanted.limit.unwrap_or(MAX_LINES));
    let mut hasher = blake3::Hasher::new();
    let mut kept = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        stop.check()?;
        let bytes = fill(&mut file, &mut chunk)
            .map_err(|error| fs::refused(&format!("cannot read `{}`", place.path), &error))?;
        if bytes.is_empty() {
            break;
        }
        // Magic numbers are at the front; a NUL tells anywhere.
        let what =
            if window.started { bytes.contains(&0).then_some("binary") } else { not_text(bytes) };
        if let Some(what) = what {
            return Err(binary(&place.path, what));
        }
        hasher.update(bytes);
        if kept.len() <= KEPT_TEXT {
            kept.extend_from_slice(bytes);
        }
        window.push(bytes);
    }
    let text = window.finish(&place.path)?;
    // An output of a command is no file of the workspace.
    if output.is_none() {
        shared.ledger.record_hash(&place.path, hasher.finalize(), Some(&kept));
    }
    Ok(ToolOutput::text(text))
}

/// Reads until the chunk is full or the file ends.
fn fill<'a>(file: &mut impl io::Read, chunk: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut filled = 0;
    while let Some(free) = chunk.get_mut(filled..).filter(|free| !free.is_empty()) {
        match file.read(free) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(chunk.get(..filled).unwrap_or_default())
}

/// Picks the wanted lines out of a file that streams by, in bounded memory.
struct Window {
    first: u64,
    limit: u64,
    started: bool,
    /// Whole lines seen so far.
    lines: u64,
    /// The line in progress, as far as it can be shown, and how long it is.
    line: Vec<u8>,
    line_bytes: usize,
    shown: u64,
    text: String,
    full: bool,
    replaced: bool,
}

impl Window {
    /// As many bytes as the longest shown line can have, and one character more.
    const LINE_BYTES: usize = (LINE_CHARS + 1) * 4;

    fn new(first: u64, limit: u64) -> Self {
        Self {
            first: first.max(1),
            limit: limit.min(MAX_LINES),
            started: false,
            lines: 0,
            line: Vec::new(),
            line_bytes: 0,
            shown: 0,
            text: String::new(),
            full: false,
            replaced: false,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let bom = if self.started { None } else { bytes.strip_prefix(b"\xef\xbb\xbf") };
        self.started = true;
        for piece in bom.unwrap_or(bytes).split_inclusive(|byte| *byte == b'\n') {
            let (content, ended) = match piece.split_last() {
                Some((b'\n', content)) => (content, true),
                _ => (piece, false),
            };
            let room = Self::LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(content.get(..room).unwrap_or(content));
            self.line_bytes += content.len();
            if ended {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        self.lines += 1;
        let mut line = std::mem::take(&mut self.line);
        let whole = std::mem::take(&mut self.line_bytes);
        let number = self.lines;
        if self.full || number < self.first {
            return;
        }
        if self.shown == self.limit {
            self.full = true;
            return;
        }
        let shown = if line.len() < whole {
            drop_part_of_character(&mut line);
            let text = self.decode(&line);
            let head: String = text.chars().take(LINE_CHARS).collect();
            format!("{head} … (a line of {whole} bytes, cut)")
        } else {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            cut_line(&self.decode(&line)).into_owned()
        };
        let entry = format!("{number:>6}\t{shown}\n");
        if self.text.len() + entry.len() > MAX_BYTES - REMARKS {
            self.full = true;
            return;
        }
        self.text.push_str(&entry);
        self.shown += 1;
    }

    fn decode(&mut self, line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        self.replaced |= matches!(text, std::borrow::Cow::Owned(_));
        text.into_owned()
    }

    fn finish(mut self, path: &str) -> Result<String, ToolError> {
        if self.line_bytes > 0 {
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
        let last = self.first + self.shown - 1;
        if last < self.lines {
            let (first, lines, next) = (self.first, self.lines, last + 1);
            self.text.push_str(&format!(
                "(lines {first} to {last} of {lines}; to go on, Read with offset {next})\n"
            ));
        }
        if self.replaced {
            self.text.push_str("(the file is not all UTF-8: � stands for bytes that are not)\n");
        }
        Ok(self.text)
    }
}

/// Drops the first bytes of a character that was cut.
fn drop_part_of_character(bytes: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
}

#[cfg(test)]
mod tests;
