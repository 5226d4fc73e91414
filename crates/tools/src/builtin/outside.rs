//! Places outside the workspace: found before anybody is asked, opened as a
//! capability of their own, and used only by a call that was permitted.

use std::{
    collections::VecDeque,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use turnbuckle_errors::ErrorCode;

use super::{Shared, ledger::Ledger, question, workspace::Workspace};
use crate::{Outside, ToolContext, ToolError, ToolOutput, Touched};

/// How many folders outside are held open; the oldest leaves first.
const HELD: usize = 32;

/// The folders outside the workspace that calls asked for.
///
/// A folder is opened before the question and the same handle is used after the
/// answer, so that what is permitted is what was shown.
#[derive(Debug, Default)]
pub(super) struct Folders(Mutex<VecDeque<Folder>>);

#[derive(Debug, Clone)]
struct Folder {
    workspace: Workspace,
    /// What the session saw of its files: paths within a folder are not unique.
    ledger: Arc<Ledger>,
}

impl Folders {
    fn open(&self, path: &Path) -> Option<Folder> {
        let mut folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = folders.iter().find(|folder| folder.workspace.path() == path) {
            return Some(folder.clone());
        }
        // What is opened is the place itself, and no link that was put there since.
        let workspace = Workspace::open(path).ok().filter(|opened| opened.path() == path)?;
        let folder = Folder { workspace, ledger: Arc::default() };
        if folders.len() == HELD {
            folders.pop_front();
        }
        folders.push_back(folder.clone());
        Some(folder)
    }
}

impl Shared {
    /// The place outside the workspace that the `path` of these arguments names,
    /// if it does.
    pub(super) async fn outside(&self, input: &Value) -> Option<Outside> {
        let path = question::text(input, "path")?.to_owned();
        let shared = self.clone();
        let look = tokio::task::spawn_blocking(move || {
            let (path, folder) = shared.leads_outside(&path)?;
            shared.folders.open(&folder)?;
            Some((path, folder))
        });
        let (path, folder) = look.await.ok().flatten()?;
        let mut input = input.clone();
        *input.get_mut("path")? = path.to_str()?.into();
        Some(Outside { path, folder, input })
    }

    fn leads_outside(&self, path: &str) -> Option<(PathBuf, PathBuf)> {
        if self.outputs.holding(path).is_some() {
            return None;
        }
        match self.workspace.resolve(path) {
            Err(error) if error.code == ErrorCode::PathOutsideWorkspace => {
                real(&self.workspace.path().join(path))
            }
            _ => None,
        }
    }

    /// What a call works with: for one that was permitted to go outside that
    /// folder in place of the workspace.
    pub(super) fn at(&self, context: &ToolContext) -> Self {
        match context.outside().and_then(|folder| self.folders.open(folder)) {
            Some(Folder { workspace, ledger }) => Self { workspace, ledger, ..self.clone() },
            // Without that folder the workspace refuses the path.
            None => self.clone(),
        }
    }
}

/// Where a path leads with all links followed, and the folder there is on the
/// way; `None` for a path that leads nowhere.
fn real(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let (there, real) =
        path.ancestors().find_map(|there| Some((there, there.canonicalize().ok()?)))?;
    let rest = path.strip_prefix(there).ok()?;
    if !rest.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let folder = if real.is_dir() { real.clone() } else { real.parent()?.to_path_buf() };
    // Joining nothing would end the path in a slash.
    let path = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
    Some((path, folder))
}

/// Names what a call touched outside the workspace in full, for the guards.
pub(super) fn in_full(
    result: Result<ToolOutput, ToolError>,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let Some(folder) = context.outside() else { return result };
    let full = |path: String| folder.join(path).to_string_lossy().into_owned();
    let name = |touched: Option<Touched>| match touched {
        Some(Touched::Edit(path)) => Some(Touched::Edit(full(path))),
        Some(Touched::Write(path)) => Some(Touched::Write(full(path))),
        other => other,
    };
    match result {
        Ok(mut output) => {
            output.touched = name(output.touched);
            Ok(output)
        }
        Err(mut error) => {
            error.touched = name(error.touched);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
