//! Applies a planned edit to the live file.

use turnbuckle_errors::ErrorCode;

use super::{
    explain::fresh_excerpt,
    plan::{Change, Plan, plan},
};
use crate::{
    ToolError, ToolOutput,
    builtin::{
        Shared, Stop,
        encoding::{Encoding, decode},
        fs::{self, StoreError},
        ledger::Seen,
        text::{DIFF_INPUT, diff, missing, without_nul},
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
        let advice = match shared.ledger.knows(path) {
            true => "; it was removed or renamed since you saw it",
            false => "; to create a file use Write",
        };
        return Err(missing(&shared.workspace, path, advice));
    }
    without_nul("Edit", "old_string", change.old)?;
    without_nul("Edit", "new_string", change.new)?;
    place.require_file()?;
    let (bytes, metadata) = fs::load(&shared.workspace, path)?;
    let (text, encoding) = decode(&bytes).map_err(|what| what.refusal(path))?;
    let seen = shared.ledger.compare(path, &bytes);
    let plan =
        plan(&text, change).map_err(|error| in_view_of(&seen, path, &text, change, error))?;
    let encoded;
    let new: Vec<&[u8]> = match encoding {
        Encoding::Utf8 => plan.pieces().into_iter().map(str::as_bytes).collect(),
        encoding => {
            let text = plan.text();
            encoded = encoding.encode(path, &text)?.into_owned();
            vec![&encoded]
        }
    };
    let place = Place { path: path.clone(), metadata: Some(metadata) };
    let remark = match fs::store(&shared.workspace, &place, &new, stop) {
        Ok(stored) => stored.remark(),
        Err(StoreError::Failed(error)) => return Err(error),
        Err(StoreError::Changed) => return Err(raced(shared, path, change)),
    };
    // What the session has not seen stays unseen, so that a later Write is refused.
    if seen == Seen::Same {
        shared.ledger.record(path, &new);
    }
    let kept = match encoding {
        Encoding::Utf8 => String::new(),
        encoding => format!("; its {} kept", encoding.name()),
    };
    let result = format!("edited `{path}`: {}{kept}{}{remark}", summary(&plan), unseen(&seen));
    // A file that is too large to compare is not copied for that either.
    let after = if text.len() > DIFF_INPUT { String::new() } else { plan.text() };
    Ok(ToolOutput::text(result).with_diff(diff(path, &text, &after)))
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
    let live = fs::load(&shared.workspace, path).map(|(bytes, _)| bytes).unwrap_or_default();
    let live = decode(&live).map_or_else(|_| String::from_utf8_lossy(&live), |(text, _)| text);
    stale(path, "was changed by another program just now", &live, change)
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

fn summary(plan: &Plan<'_>) -> String {
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
