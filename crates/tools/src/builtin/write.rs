//! Write: a whole file, new or rewritten.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use turnbuckle_errors::ErrorCode;

use super::{
    Shared, Stop, arguments,
    encoding::{Encoding, NotText, decode},
    fs::{self, StoreError, Stored},
    ledger::Seen,
    question::{self, size},
    text::{bounded_diff, diff, without_nul},
    workspace::Place,
};
use crate::{Effect, Outside, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Touched};

/// The diff in an error that says that the file changed, in bytes.
const SHORT_DIFF: usize = 2 * 1024;

const DESCRIPTION: &str = "\
Writes a whole file of the workspace: creates it (with its folders), or replaces all of its \
content. Use it for a new file or a coherent rewrite of a whole file; for one small unique \
replacement use Edit. Read an existing file first: a file that changed since you saw it is not \
overwritten (EDIT_STALE). The mode of the file, links to it, its encoding, its byte-order mark and \
its CRLF line endings are kept. Content must be there, and may be empty. Never ask for two changes of one file at once. No hand-edited diffs, no shell \
patches.";

/// The arguments of Write.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    /// The file: relative to the workspace, or absolute inside it.
    path: String,
    /// The whole new content of the file, exactly.
    content: String,
}

/// Writes whole files.
pub(crate) struct Write {
    spec: ToolSpec,
    shared: Shared,
}

impl Write {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { spec: arguments::spec::<WriteArguments>("Write", DESCRIPTION), shared }
    }
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Mutate
    }

    fn describe(&self, input: &Value) -> String {
        let path = question::path(input);
        let content = question::text(input, "content").unwrap_or_default();
        let begin = question::begin("+ ", content);
        let colon = if begin.is_empty() { "" } else { ":" };
        let size = size(content);
        format!("write the file {path}, as a new one or over the one there ({size}){colon}{begin}")
    }

    async fn outside(&self, input: &Value) -> Option<Outside> {
        self.shared.outside(input).await
    }

    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments: WriteArguments = arguments::parse(&self.spec, input)?;
        self.shared
            .change(context, move |shared, stop| {
                let place = shared.workspace.resolve(&arguments.path)?;
                let touched = Touched::Write(place.path.clone());
                match write(shared, &place, arguments.content, stop) {
                    Ok(output) => Ok(output.with_touched(touched)),
                    Err(error) => Err(error.with_touched(touched)),
                }
            })
            .await
    }
}

fn write(
    shared: &Shared,
    place: &Place,
    content: String,
    stop: &Stop,
) -> Result<ToolOutput, ToolError> {
    place.require_file()?;
    if content.len() as u64 > fs::LARGEST {
        let text = format!("Write: `content` is over {} MiB; write less", fs::LARGEST >> 20);
        return Err(ToolError::new(ErrorCode::InvalidArgument, text));
    }
    without_nul("Write", "content", &content)?;
    if place.metadata.is_none() {
        return create(shared, place, &content, stop);
    }
    let (old, metadata) = fs::load(&shared.workspace, &place.path)?;
    // What was loaded is what the last look before the change compares with.
    let place = Place { path: place.path.clone(), metadata: Some(metadata) };
    overwrite(shared, &place, &old, content, stop)
}

fn create(
    shared: &Shared,
    place: &Place,
    content: &str,
    stop: &Stop,
) -> Result<ToolOutput, ToolError> {
    let path = &place.path;
    let gone = if shared.ledger.knows(path) { "; it was gone since you saw it" } else { "" };
    store(shared, place, content.as_bytes(), stop)?;
    let text = format!("created `{path}` ({}{gone})", size(content));
    Ok(ToolOutput::text(text).with_diff(diff(path, "", content)))
}

fn overwrite(
    shared: &Shared,
    place: &Place,
    old: &[u8],
    content: String,
    stop: &Stop,
) -> Result<ToolOutput, ToolError> {
    let path = &place.path;
    let (before, encoding) = match decode(old) {
        Ok(decoded) => decoded,
        // It is replaced as a whole, in what it mostly is.
        Err(NotText::BrokenUtf8(_)) => (String::from_utf8_lossy(old), Encoding::Utf8),
        Err(what) => return Err(what.refusal(path)),
    };
    let (content, kept) = keep_conventions(&before, encoding, content);
    let bytes = encoding.encode(path, &content)?;
    let seen = shared.ledger.compare(path, old);
    if old == &*bytes {
        shared.ledger.record(path, &[old]);
        return Ok(ToolOutput::text(format!("`{path}` has exactly this content already")));
    }
    if let Seen::Changed(known) = &seen {
        return Err(stale(path, known.as_deref(), &before, &content));
    }
    let stored = store(shared, place, &bytes, stop)?;
    let unseen = if seen == Seen::Never { "; you had not read it before" } else { "" };
    let (was, size) = (size(&before), size(&content));
    let remark = stored.remark();
    let text = match content.is_empty() {
        true => format!("emptied `{path}` (it had {was}{unseen}{remark})"),
        false => format!("overwrote `{path}` ({size}, before {was}{kept}{unseen}{remark})"),
    };
    Ok(ToolOutput::text(text).with_diff(diff(path, &before, &content)))
}

fn store(shared: &Shared, place: &Place, bytes: &[u8], stop: &Stop) -> Result<Stored, ToolError> {
    let stored = fs::store(&shared.workspace, place, &[bytes], stop).map_err(|error| match error {
        StoreError::Failed(error) => error,
        StoreError::Changed => ToolError::new(
            ErrorCode::EditStale,
            format!(
                "`{}` was changed by another program just now and was not written; Read it again",
                place.path
            ),
        ),
    })?;
    shared.ledger.record(&place.path, &[bytes]);
    Ok(stored)
}

/// Gives new content the marks of the old file that Read does not show.
fn keep_conventions(old: &str, encoding: Encoding, mut content: String) -> (String, String) {
    let mut kept = Vec::new();
    let breaks = memchr::memchr_iter(b'\n', old.as_bytes()).count();
    let pairs = old.matches("\r\n").count();
    if pairs > 0 && pairs == breaks && content.contains('\n') && !content.contains("\r\n") {
        content = content.replace('\n', "\r\n");
        kept.push("CRLF line endings");
    }
    if old.starts_with('\u{feff}') && !content.is_empty() && !content.starts_with('\u{feff}') {
        content.insert(0, '\u{feff}');
        kept.push("byte-order mark");
    }
    if encoding != Encoding::Utf8 {
        kept.push(encoding.name());
    }
    let kept =
        if kept.is_empty() { String::new() } else { format!("; its {} kept", kept.join(" and ")) };
    (content, kept)
}

fn stale(path: &str, known: Option<&[u8]>, live: &str, content: &str) -> ToolError {
    let change = match known {
        Some(known) => {
            let known =
                decode(known).map_or_else(|_| String::from_utf8_lossy(known), |(text, _)| text);
            bounded_diff("as you saw it", "as it is now", &known, live, SHORT_DIFF)
        }
        None => bounded_diff("as it is now", "as you would write it", live, content, SHORT_DIFF),
    };
    ToolError::new(
        ErrorCode::EditStale,
        format!(
            "`{path}` changed since you saw it and was not written; Read it again, then write \
             with its changes in mind:\n{change}"
        ),
    )
}

#[cfg(test)]
mod tests;
