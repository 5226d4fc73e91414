//! Applies a planned edit to the live file.

use turnbuckle_errors::ErrorCode;

use super::{
    explain::fresh_excerpt,
    plan::{Change, Plan, line_of, plan},
};
use crate::{
    ToolError, ToolOutput,
    builtin::{
        Shared, Stop,
        fs::{self, StoreError},
        ledger::Seen,
        text::{binary, diff, missing, not_text},
        workspace::Place,
    },
};

/// How many line numbers a result lists.
const LISTED: usize = 10;

/// Edits the file at `place`, judged on its live bytes.
///
/// # Errors
///
/// Those of the plan; `EDIT_STALE` where the file is not what the session saw
/// and does not match; `TOOL_BINARY_CONTENT`; `TOOL_FAILED`.
pub(crate) fn apply(
    shared: &Shared,
    place: &Place,
    change: &Change<'_>,
    stop: &Stop,
) -> Result<ToolOutput, ToolError> {
    let path = &place.path;
    if place.metadata.is_none() {
        return Err(missing(&shared.workspace, path, "; to create a file use Write"));
    }
    place.require_file()?;
    let (bytes, metadata) = fs::load(&shared.workspace, path)?;
    let text = text_of(path, &bytes)?;
    let seen = shared.ledger.compare(path, &bytes);
    let plan = plan(text, change).map_err(|error| in_view_of(&seen, path, text, change, error))?;
    let place = Place { path: path.clone(), metadata: Some(metadata) };
    let stored = fs::store(&shared.workspace, &place, plan.text.as_bytes(), stop);
    let remark = match stored {
        Ok(stored) => stored.remark(),
        Err(StoreError::Failed(error)) => return Err(error),
        Err(StoreError::Changed) => return Err(raced(shared, path, change)),
    };
    // What the session has not seen stays unseen, so that a later Write is refused.
    if seen == Seen::Same {
        shared.ledger.record(path, plan.text.as_bytes());
    }
    let result = format!("edited `{path}`: {}{}{remark}", summary(&plan), unseen(&seen));
    Ok(ToolOutput::text(result).with_diff(diff(path, text, &plan.text)))
}

fn text_of<'a>(path: &str, bytes: &'a [u8]) -> Result<&'a str, ToolError> {
    if let Some(what) = not_text(bytes) {
        return Err(binary(path, what));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = line_of(&String::from_utf8_lossy(valid), valid.len());
        binary(path, &format!("in an old encoding (first seen at line {line})"))
    })
}

/// A mismatch is told as staleness where the session does not know the file.
fn in_view_of(
    seen: &Seen,
    path: &str,
    text: &str,
    change: &Change<'_>,
    error: ToolError,
) -> ToolError {
    let why = match seen {
        Seen::Changed(_) => "changed since you saw it",
        Seen::Never => "was not read in this session",
        Seen::Same => return error,
    };
    if error.code == ErrorCode::EditNoMatch { stale(path, why, text, change) } else { error }
}

/// The error for a file that another program changed between our read and write.
fn raced(shared: &Shared, path: &str, change: &Change<'_>) -> ToolError {
    let live = fs::load(&shared.workspace, path);
    let live = live.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned());
    stale(path, "was changed by another program just now", &live.unwrap_or_default(), change)
}

fn stale(path: &str, why: &str, text: &str, change: &Change<'_>) -> ToolError {
    let flat = text.replace("\r\n", "\n");
    let excerpt = fresh_excerpt(&flat, &change.old.replace("\r\n", "\n"));
    let excerpt = if excerpt.is_empty() { "(it is empty)\n".to_owned() } else { excerpt };
    ToolError::new(
        ErrorCode::EditStale,
        format!(
            "`{path}` {why}, and the Edit does not fit it; nothing was changed. It now has\n\
             {excerpt}Read it again, then make the Edit anew from what is there."
        ),
    )
}

fn summary(plan: &Plan) -> String {
    let lines: Vec<String> = plan.lines.iter().take(LISTED).map(ToString::to_string).collect();
    let more = if plan.lines.len() > LISTED { ", …" } else { "" };
    match plan.lines.len() {
        1 => format!("replaced 1 place, at line {}", lines.join("")),
        count => format!("replaced {count} places, at lines {}{more}", lines.join(", ")),
    }
}

const fn unseen(seen: &Seen) -> &'static str {
    match seen {
        Seen::Same => "",
        Seen::Changed(_) => "; the file had changed since you saw it, Read it before the next Edit",
        Seen::Never => "; you had not read the file in this session",
    }
}
