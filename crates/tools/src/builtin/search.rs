//! The walk that Glob and Grep share: which files there are to look at.
//!
//! Folders are listed by `ignore`, which takes ordinary paths and follows no
//! links; each file that is found is looked at or opened through the capability
//! of the workspace, so that what was swapped since then leads nowhere.

use std::{
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use ignore::{DirEntry, WalkBuilder, WalkState};
use turnbuckle_errors::ErrorCode;

use super::{
    Shared, Stop,
    text::missing,
    workspace::{Place, Workspace},
};
use crate::ToolError;

/// The most lines one call returns.
pub(crate) const MAX_LINES: u64 = 2000;
/// The most bytes one call returns, remarks included.
pub(crate) const MAX_BYTES: usize = 48 * 1024;
/// Room kept for the remarks at the end, in bytes.
pub(crate) const REMARKS: usize = 2 * 1024;
/// The longest pattern, in bytes.
pub(crate) const MAX_PATTERN: usize = 4096;
/// How much of an argument is quoted, in characters.
const QUOTED: usize = 200;

/// What one thread of a walk does with a file.
pub(crate) type Visit<'s> = Box<dyn FnMut(&str, bool) + Send + 's>;

/// Where a search starts.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) workspace: Workspace,
    pub(crate) place: Place,
}

impl Scope {
    /// The folder or file that `path` names; the whole workspace without one.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`, `PATH_OUTSIDE_WORKSPACE`, and `TOOL_FAILED` if
    /// nothing is there.
    pub(crate) fn find(shared: &Shared, path: Option<&str>) -> Result<Self, ToolError> {
        let path = path.unwrap_or(".");
        let workspace = shared.outputs.holding(path).unwrap_or_else(|| shared.workspace.clone());
        let place = workspace.resolve(path)?;
        if place.metadata.is_none() {
            return Err(missing(&workspace, &place.path, "; check `path`"));
        }
        if !place.is_dir() {
            place.require_file()?;
        }
        Ok(Self { workspace, place })
    }

    /// Visits every file below, in no order, on several threads: its path within
    /// the workspace, and whether it is a link.
    pub(crate) fn walk<'s>(
        &'s self,
        names: Names,
        depth: Option<usize>,
        stop: &'s Stop,
        left: &'s Left,
        mut visitor: impl FnMut() -> Visit<'s>,
    ) {
        let root = self.workspace.path();
        let git = names.git || self.place.path.split('/').any(|name| name == ".git");
        let mut walk = WalkBuilder::new(self.ambient());
        walk.follow_links(false).require_git(false).hidden(!names.hidden).max_depth(depth);
        walk.filter_entry(move |entry| git || entry.depth() == 0 || entry.file_name() != ".git");
        walk.build_parallel().run(|| {
            let mut visit = visitor();
            Box::new(move |entry| {
                if stop.check().is_err() {
                    return WalkState::Quit;
                }
                match entry.as_ref().map(|entry| Entry::of(entry, root)) {
                    Err(_) => left.unreadable.add(),
                    Ok(Entry::Other) => {}
                    Ok(Entry::Unnameable) => left.unnameable.add(),
                    Ok(Entry::File { path, link }) => visit(path, link),
                }
                WalkState::Continue
            })
        });
    }

    fn ambient(&self) -> PathBuf {
        let root = self.workspace.path();
        if self.place.path == "." { root.to_path_buf() } else { root.join(&self.place.path) }
    }

    /// A path within the workspace as one below the start.
    pub(crate) fn below<'a>(&self, path: &'a str) -> &'a str {
        let below = path.strip_prefix(&self.place.path).and_then(|rest| rest.strip_prefix('/'));
        below.unwrap_or(path)
    }
}

/// What an entry of a folder is to a search.
enum Entry<'a> {
    File {
        path: &'a str,
        link: bool,
    },
    /// A file whose name is not UTF-8, so that no tool can be told it.
    Unnameable,
    /// Folders, pipes, sockets, devices.
    Other,
}

impl<'a> Entry<'a> {
    fn of(entry: &'a DirEntry, root: &Path) -> Self {
        let Some(kind) = entry.file_type().filter(|kind| kind.is_file() || kind.is_symlink())
        else {
            return Self::Other;
        };
        match entry.path().strip_prefix(root).ok().and_then(Path::to_str) {
            Some(path) => Self::File { path, link: kind.is_symlink() },
            None => Self::Unnameable,
        }
    }
}

/// Which names a search looks at although they are usually left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Names that begin with a dot.
    pub(crate) hidden: bool,
    /// The folder `.git`.
    pub(crate) git: bool,
}

impl Names {
    /// What a pattern names itself.
    pub(crate) fn in_pattern(pattern: &str) -> Self {
        let names = || pattern.split('/').filter(|name| *name != "." && *name != "..");
        Self {
            hidden: names().any(|name| name.starts_with('.')),
            git: names().any(|name| name == ".git"),
        }
    }
}

/// How many files were left out for which reason.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) unreadable: Counter,
    pub(crate) unnameable: Counter,
}

impl Left {
    /// Remarks for the end of a result, each on its line.
    pub(crate) fn remarks(&self) -> String {
        let mut remarks = String::new();
        for (count, what) in [
            (self.unreadable.get(), "could not be read"),
            (self.unnameable.get(), "left out: a name that is not UTF-8"),
        ] {
            if count > 0 {
                remarks.push_str(&format!("({}: {what})\n", counted(count, "file or folder")));
            }
        }
        remarks
    }
}

/// A count that several threads share.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicUsize);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Refuses a pattern that is empty, too long, or holds a NUL.
pub(crate) fn check_pattern(tool: &str, name: &str, pattern: &str) -> Result<(), ToolError> {
    let why = if pattern.is_empty() {
        "is empty; say what to look for".to_owned()
    } else if pattern.len() > MAX_PATTERN {
        format!(
            "is {} bytes long, and at most {MAX_PATTERN} are possible; shorten it",
            pattern.len()
        )
    } else if pattern.contains('\0') {
        "holds a NUL character, which no text file has; remove it".to_owned()
    } else {
        return Ok(());
    };
    Err(ToolError::new(ErrorCode::InvalidArgument, format!("{tool}: `{name}` {why}")))
}

/// How many results are wanted: as many as the model asked for, within the bound.
pub(crate) fn wanted(tool: &str, name: &str, limit: Option<u64>) -> Result<u64, ToolError> {
    match limit {
        Some(0) => {
            let text =
                format!("{tool}: `{name}` must be at least 1; leave it out to get as much as fits");
            Err(ToolError::new(ErrorCode::InvalidArgument, text))
        }
        limit => Ok(limit.unwrap_or(MAX_LINES).min(MAX_LINES)),
    }
}

/// A path on one line of a result, with what would break the line spelled out.
pub(crate) fn on_one_line(path: &str) -> String {
    let spelled = |c: char| {
        let plain = (!c.is_control()).then_some(c);
        plain.into_iter().chain(c.is_control().then(|| c.escape_default()).into_iter().flatten())
    };
    path.chars().flat_map(spelled).collect()
}

/// The beginning of an argument, for a remark.
pub(crate) fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(QUOTED).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("`{}{more}`", on_one_line(&shown))
}

/// A count with its noun: `1 file`, `2 files`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    match (count, what) {
        (1, what) => format!("1 {what}"),
        (count, "file or folder") => format!("{count} files or folders"),
        (count, what) => format!("{count} {what}s"),
    }
}

/// Whether a path as the model wrote it is absolute.
pub(crate) fn is_absolute(path: &str) -> bool {
    Path::new(path).components().next() == Some(Component::RootDir)
}
