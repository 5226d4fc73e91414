//! Read: a window of a text file, with line numbers.

mod window;

use std::io;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use turnbuckle_errors::ErrorCode;

use self::window::Window;
use super::{
    Shared, Stop, arguments,
    encoding::{Encoding, NotText, Survey, not_text},
    fs,
    ledger::KEPT_TEXT,
    question,
    text::missing,
};
use crate::{Effect, Outside, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

/// How much is read at once, in bytes.
const CHUNK: usize = 64 * 1024;

const DESCRIPTION: &str = "\
Reads a text file of the workspace. Each line comes back as its number, a tab and the line, \
as `cat -n` writes it; the number and the tab are not part of the file. One call returns at most \
2000 lines or 48 KiB, and says how to get the rest; lines over 2000 characters are cut. UTF-8, \
UTF-16 and old encodings are read, binary files are not. \
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

    async fn outside(&self, input: &Value) -> Option<Outside> {
        self.shared.outside(input).await
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
    let mark = shared.ledger.mark();
    let _whole = workspace.steady();
    let (mut file, _) = fs::open(workspace, &place.path)?;
    let mut window = Window::new(wanted.offset, wanted.limit);
    let mut text = Text::default();
    let mut hasher = blake3::Hasher::new();
    let mut kept = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        stop.check()?;
        let bytes = fill(&mut file, &mut chunk)
            .map_err(|error| fs::refused(&format!("cannot read `{}`", place.path), &error))?;
        let last = bytes.len() < CHUNK;
        text.push(bytes, last, &mut window).map_err(|what| what.refusal(&place.path))?;
        hasher.update(bytes);
        if kept.len() <= KEPT_TEXT {
            kept.extend_from_slice(bytes);
        }
        if last {
            break;
        }
    }
    let text = window.finish(&place.path, text.finish())?;
    // An output of a command is no file of the workspace.
    if output.is_none() {
        shared.ledger.record_read(&place.path, hasher.finalize(), &kept, mark);
    }
    Ok(ToolOutput::text(text))
}

/// Text on its way from the bytes of a file to its lines.
#[derive(Default)]
struct Text {
    started: bool,
    /// For UTF-16, which has no lines of bytes.
    wide: Option<(Encoding, encoding_rs::Decoder)>,
    broken: bool,
    survey: Survey,
}

impl Text {
    fn push(&mut self, bytes: &[u8], last: bool, window: &mut Window) -> Result<(), NotText> {
        if !self.started {
            self.started = true;
            self.wide = Encoding::of_mark(bytes).and_then(|mark| Some((mark, mark.decoder()?)));
            if self.wide.is_none() {
                // Magic numbers are at the front; a NUL tells anywhere.
                not_text(bytes)?;
            }
        }
        let Some((_, decoder)) = &mut self.wide else {
            if memchr::memchr(0, bytes).is_some() {
                return Err(NotText::Binary);
            }
            self.survey.push(bytes);
            window.push(bytes);
            return Ok(());
        };
        let room = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or_default();
        let mut text = String::with_capacity(room);
        let (_, _, broken) = decoder.decode_to_string(bytes, &mut text, last);
        self.broken |= broken;
        if text.contains('\0') {
            return Err(NotText::Binary);
        }
        window.push(text.as_bytes());
        Ok(())
    }

    /// The encoding, or why there is none.
    fn finish(self) -> Result<Encoding, NotText> {
        match self.wide {
            Some(_) if self.broken => Err(NotText::BrokenUtf16),
            Some((encoding, _)) => Ok(encoding),
            None => self.survey.finish(),
        }
    }
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

#[cfg(test)]
mod tests;
