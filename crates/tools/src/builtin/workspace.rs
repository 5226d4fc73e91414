//! The folder a session works in: one capability, opened once.
//!
//! Every access to a file goes through the [`Dir`] that [`Workspace::open`]
//! opens, which the system itself keeps inside the root. It refuses absolute
//! paths and links, even those that point back inside, so paths are resolved
//! here first, link by link.

use std::{
    fmt, io,
    path::{Component, Path, PathBuf},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, FileTypeExt as _, Metadata, MetadataExt as _},
};
use turnbuckle_errors::ErrorCode;

use crate::ToolError;

/// As many links as Linux follows before it gives up.
const MAX_LINKS: usize = 40;
/// The longest path that Linux takes, in bytes, without its closing NUL.
const MAX_PATH: usize = 4095;
/// The longest name that common file systems take, in bytes.
const MAX_NAME: usize = 255;

/// The folder that the built-in tools work in, and cannot leave.
///
/// Cheap to clone: clones share one open folder, so a workspace that is renamed
/// while a session runs stays the same workspace for its files.
#[derive(Clone)]
pub struct Workspace {
    dir: Arc<Dir>,
    path: PathBuf,
    given: PathBuf,
    in_place: Arc<RwLock<()>>,
}

impl Workspace {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    ///
    /// [`WorkspaceError`] if there is nothing, something else than a folder, or
    /// a folder that may not be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        let path = path.as_ref();
        let refused = |error| WorkspaceError::new(path, error);
        let real = path.canonicalize().map_err(refused)?;
        if !real.is_dir() {
            return Err(WorkspaceError::NotADirectory { path: path.to_path_buf() });
        }
        let dir = Dir::open_ambient_dir(&real, ambient_authority()).map_err(refused)?;
        // A folder that can be opened but not listed fails later, far from its cause.
        dir.entries().map_err(refused)?;
        let given = std::path::absolute(path).map_err(refused)?;
        Ok(Self { dir: Arc::new(dir), path: real, given, in_place: Arc::default() })
    }

    /// The canonical path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Held while a file is read whose content must not change half-way.
    pub(crate) fn steady(&self) -> RwLockReadGuard<'_, ()> {
        self.in_place.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held while a file is written in place, and not replaced in one step.
    pub(crate) fn unsteady(&self) -> RwLockWriteGuard<'_, ()> {
        self.in_place.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the one place that `path` means, following links inside the root.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` for a path that no file can have,
    /// `PATH_OUTSIDE_WORKSPACE`, `TOOL_FAILED` where the system refuses.
    pub(crate) fn resolve(&self, path: &str) -> Result<Place, ToolError> {
        check_shape(path)?;
        let mut walk = Walk { workspace: self, path, done: Vec::new(), todo: Vec::new(), links: 0 };
        walk.push(Path::new(path))?;
        walk.finish()
    }

    /// The part of an absolute path below the root, if it leads there.
    fn below(&self, absolute: &Path) -> Option<PathBuf> {
        for root in [&self.path, &self.given] {
            if let Ok(rest) = absolute.strip_prefix(root) {
                return Some(rest.to_path_buf());
            }
        }
        // Another spelling of the root, by a link above it: the longest part
        // that exists decides.
        let (ancestor, real) = absolute
            .ancestors()
            .find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)))?;
        let below = real.strip_prefix(&self.path).ok()?;
        Some(below.join(absolute.strip_prefix(ancestor).ok()?))
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Why a folder cannot be a workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// Nothing is there.
    #[error("the workspace `{}` does not exist; create the folder or name another", path.display())]
    Missing {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// A file or something else is there.
    #[error("the workspace `{}` is not a folder; name the folder that holds it", path.display())]
    NotADirectory {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// The folder cannot be read.
    #[error(
        "the workspace `{}` cannot be read; give this user read and search permission on it, or name another folder",
        path.display()
    )]
    Unreadable {
        /// The path that was asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl WorkspaceError {
    fn new(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            io::ErrorKind::NotADirectory => Self::NotADirectory { path },
            _ => Self::Unreadable { path, source },
        }
    }
}

/// One place in the workspace: where a path leads once its links are followed.
#[derive(Debug)]
pub(crate) struct Place {
    /// The canonical path within the root, with `/` between names; `.` is the root.
    pub(crate) path: String,
    /// What is there; `None` if nothing is.
    pub(crate) metadata: Option<Metadata>,
}

impl Place {
    /// The folder it is in, and its name there.
    pub(crate) fn split(&self) -> (&str, &str) {
        self.path.rsplit_once('/').unwrap_or((".", &self.path))
    }

    /// Whether a folder is there.
    pub(crate) fn is_dir(&self) -> bool {
        self.metadata.as_ref().is_some_and(Metadata::is_dir)
    }

    /// Refuses everything but a regular file. A place where nothing is passes.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` that says what is there.
    pub(crate) fn require_file(&self) -> Result<(), ToolError> {
        self.metadata.as_ref().map_or(Ok(()), |metadata| require_file(&self.path, metadata))
    }
}

/// Refuses everything but a regular file.
pub(crate) fn require_file(path: &str, metadata: &Metadata) -> Result<(), ToolError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_dir() {
        "a directory; name a file in it"
    } else if kind.is_fifo() {
        "a named pipe (FIFO), which would wait for ever; name a regular file"
    } else if kind.is_socket() {
        "a socket; name a regular file"
    } else {
        "a device; name a regular file"
    };
    Err(ToolError::new(ErrorCode::InvalidArgument, format!("`{path}` is {what}")))
}

/// A path on its way to its place.
struct Walk<'a> {
    workspace: &'a Workspace,
    path: &'a str,
    done: Vec<String>,
    /// The names still to visit, the next one last.
    todo: Vec<String>,
    links: usize,
}

impl Walk<'_> {
    fn finish(mut self) -> Result<Place, ToolError> {
        while let Some(name) = self.todo.pop() {
            if name == ".." {
                self.climb()?;
                continue;
            }
            self.done.push(name);
            let here = self.here();
            match self.look(&here)? {
                Some(found) if found.is_symlink() => self.follow(&here)?,
                Some(found) => self.spell_as_listed(&found),
                None => {}
            }
        }
        let path = self.here();
        let metadata = self.look(&path)?;
        Ok(Place { path, metadata })
    }

    fn here(&self) -> String {
        if self.done.is_empty() { ".".to_owned() } else { self.done.join("/") }
    }

    /// Where case does not tell names apart, a file has the one name that its
    /// folder lists, so that it is one file to the ledger and the guards.
    fn spell_as_listed(&mut self, found: &Metadata) {
        let Some(name) = self.done.pop() else { return };
        let (folder, other) = (self.here(), in_other_case(&name));
        let dir = &self.workspace.dir;
        let one_file = |other: Metadata| (other.dev(), other.ino()) == (found.dev(), found.ino());
        let same = other != name
            && dir.symlink_metadata(Path::new(&folder).join(other)).is_ok_and(one_file);
        let listed = if same { dir.read_dir(&folder).ok() } else { None };
        let names = listed.into_iter().flatten();
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        self.done.push(as_listed(names, name));
    }

    /// Goes one folder up; above the root the path may still come back.
    fn climb(&mut self) -> Result<(), ToolError> {
        if self.done.pop().is_some() {
            return Ok(());
        }
        let mut above = self.workspace.path.clone();
        above.pop();
        above.extend(std::mem::take(&mut self.todo).into_iter().rev());
        self.count()?;
        self.push(&above)
    }

    fn follow(&mut self, here: &str) -> Result<(), ToolError> {
        self.count()?;
        let target =
            self.workspace.dir.read_link_contents(here).map_err(|error| self.refused(&error))?;
        self.done.pop();
        self.push(&target)
    }

    fn push(&mut self, path: &Path) -> Result<(), ToolError> {
        let path = if path.is_absolute() {
            self.done.clear();
            self.workspace.below(path).ok_or_else(|| self.outside())?
        } else {
            path.to_path_buf()
        };
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => {
                    let name = name.to_str().ok_or_else(|| self.not_text())?;
                    self.todo.push(name.to_owned());
                }
                Component::ParentDir => self.todo.push("..".to_owned()),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        Ok(())
    }

    fn look(&self, here: &str) -> Result<Option<Metadata>, ToolError> {
        match self.workspace.dir.symlink_metadata(here) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.refused(&error)),
        }
    }

    fn count(&mut self) -> Result<(), ToolError> {
        self.links += 1;
        if self.links <= MAX_LINKS {
            return Ok(());
        }
        Err(invalid(format!(
            "`{}` leads through more than {MAX_LINKS} links, probably in a circle; name the file itself",
            self.path
        )))
    }

    fn refused(&self, error: &io::Error) -> ToolError {
        let path = self.path;
        match error.kind() {
            io::ErrorKind::NotADirectory => invalid(format!(
                "`{path}` goes through a file as if it were a directory; correct the path"
            )),
            _ => ToolError::new(
                ErrorCode::ToolFailed,
                format!("the system refuses to look at `{path}`: {error}"),
            ),
        }
    }

    fn outside(&self) -> ToolError {
        ToolError::new(
            ErrorCode::PathOutsideWorkspace,
            format!(
                "`{}` leads out of the workspace `{}`; use a path inside it",
                self.path,
                self.workspace.path.display()
            ),
        )
    }

    fn not_text(&self) -> ToolError {
        invalid(format!(
            "`{}` is a link to a name that is not UTF-8; rename the file it points to",
            self.path
        ))
    }
}

/// A name that is another one only where case tells names apart.
fn in_other_case(name: &str) -> String {
    let upper = name.to_uppercase();
    if upper == name { name.to_lowercase() } else { upper }
}

/// The name among those of a folder: itself, or the one that differs in case.
fn as_listed(names: impl Iterator<Item = String>, name: String) -> String {
    let folded = name.to_lowercase();
    let mut alike = None;
    for listed in names.filter(|listed| listed.to_lowercase() == folded) {
        if listed == name {
            return name;
        }
        alike.get_or_insert(listed);
    }
    alike.unwrap_or(name)
}

fn check_shape(path: &str) -> Result<(), ToolError> {
    if path.is_empty() {
        return Err(invalid("`path` is empty; name a file in the workspace"));
    }
    if path.contains('\0') {
        return Err(invalid("`path` holds a NUL character, which no file name can; remove it"));
    }
    if path.len() > MAX_PATH {
        return Err(invalid(format!(
            "`path` is {} bytes long, and at most {MAX_PATH} are possible; shorten it",
            path.len()
        )));
    }
    match path.split('/').find(|name| name.len() > MAX_NAME) {
        None => Ok(()),
        Some(name) => Err(invalid(format!(
            "`path` holds a name of {} bytes, and at most {MAX_NAME} are possible; shorten it",
            name.len()
        ))),
    }
}

fn invalid(text: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidArgument, text)
}

#[cfg(test)]
mod tests;
