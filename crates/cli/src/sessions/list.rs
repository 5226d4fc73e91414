//! `turnbuckle sessions list`.

use std::path::Path;

use jiff::Timestamp;
use serde_json::json;
use turnbuckle_errors::Failure;
use turnbuckle_runtime::{SessionFolder, SessionInfo};

use super::{print, unusable};
use crate::{args::ListSessionsArgs, output::printable, refusal::invalid};

pub(super) fn list(folder: &SessionFolder, args: &ListSessionsArgs) -> Result<(), Failure> {
    let mut sessions = folder.list().map_err(|error| unusable(&error))?;
    if let Some(workspace) = &args.workspace {
        let workspace = std::fs::canonicalize(workspace).map_err(|error| {
            invalid(&format!("the workspace {} cannot be used: {error}", workspace.display()))
        })?;
        sessions.retain(|info| is_in(info, &workspace));
    }
    let line = if args.json { as_json } else { as_text };
    if sessions.is_empty() && !args.json {
        anstream::eprintln!("there is no session yet; each `turnbuckle run` keeps one");
    }
    print(&sessions.iter().map(line).collect::<String>())
}

/// The sessions of a workspace, for people.
pub(crate) fn list_here(folder: &SessionFolder, workspace: &Path) -> Result<String, Failure> {
    let sessions = folder.list().map_err(|error| unusable(&error))?;
    Ok(sessions.iter().filter(|info| is_in(info, workspace)).map(as_text).collect())
}

fn is_in(info: &SessionInfo, workspace: &Path) -> bool {
    let workspace = workspace.to_string_lossy();
    info.about.as_ref().is_ok_and(|about| about.workspace.as_deref() == Some(&*workspace))
}

fn as_text(info: &SessionInfo) -> String {
    let title = match &info.about {
        Ok(about) => about.title.clone().unwrap_or_else(|| "(nothing was said)".to_owned()),
        Err(problem) => format!("({})", problem.message),
    };
    let used = used(info).map_or_else(|| "?".to_owned(), |at| minute(&at));
    let kib = info.bytes.div_ceil(1024);
    format!("{}  {used}  {kib:>6} KiB  {}\n", info.id, printable(&title))
}

fn as_json(info: &SessionInfo) -> String {
    let about = info.about.as_ref().ok();
    let line = json!({
        "id": info.id,
        "used": used(info),
        "bytes": info.bytes,
        "created": about.map(|about| &about.created),
        "workspace": about.and_then(|about| about.workspace.as_ref()),
        "forkedFrom": about.and_then(|about| about.forked_from.as_ref()),
        "title": about.and_then(|about| about.title.as_ref()),
        "problem": info.about.as_ref().err().map(|problem| &problem.message),
    });
    format!("{line}\n")
}

/// When it was last used, in RFC 3339.
fn used(info: &SessionInfo) -> Option<String> {
    let at = Timestamp::try_from(info.modified).ok()?;
    Some(at.to_string())
}

/// `2026-01-02 03:04Z` for `2026-01-02T03:04:05.6Z`.
fn minute(at: &str) -> String {
    let minutes: String = at.chars().take(16).collect();
    format!("{}Z", minutes.replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_to_the_minute() {
        assert_eq!(minute("2026-01-02T03:04:05.678Z"), "2026-01-02 03:04Z");
    }
}
