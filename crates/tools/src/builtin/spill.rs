//! Output that is too long to show, kept in files that Read can open.
//!
//! They are outside the workspace, so that no search and no commit finds them,
//! in a folder that only this user can open and that goes with the session.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use cap_std::fs::OpenOptions;
use tokio::io::AsyncWriteExt as _;

use super::{bash::Mark, workspace::Workspace};

/// The most that is kept of one stream, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;
/// What is held until a file is made, in bytes: no more than a result may show.
const HELD: usize = 96 * 1024;
/// How many files a session keeps; the oldest leaves first.
const KEPT_FILES: u64 = 8;

/// The long outputs of one session. The folder is made for the first of them.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    folder: Mutex<Option<Folder>>,
}

/// The folder; dropping it removes it with all that is in it.
#[derive(Debug)]
struct Folder {
    workspace: Workspace,
    files: u64,
}

impl Outputs {
    /// The folder, as a workspace for Read, if this path lies in it.
    pub(crate) fn holding(&self, path: &str) -> Option<Workspace> {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let workspace = &folder.as_ref()?.workspace;
        Path::new(path).starts_with(workspace.path()).then(|| workspace.clone())
    }

    /// The path of the folder, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// Where the folder cannot be made.
    pub(crate) fn folder(&self) -> io::Result<PathBuf> {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Folder::of(&mut folder)?.workspace.path().to_path_buf())
    }

    fn create(&self) -> io::Result<(std::fs::File, PathBuf)> {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = Folder::of(&mut folder)?;
        folder.files += 1;
        let name = |number| format!("output-{number}.txt");
        if let Some(old) = folder.files.checked_sub(KEPT_FILES) {
            // One that is gone already is what we want.
            let _ = folder.workspace.dir().remove_file(name(old));
        }
        let name = name(folder.files);
        let options = OpenOptions::new().write(true).create_new(true).clone();
        let file = folder.workspace.dir().open_with(&name, &options)?;
        Ok((file.into_std(), folder.workspace.path().join(name)))
    }
}

impl Folder {
    fn of(folder: &mut Option<Self>) -> io::Result<&mut Self> {
        match folder {
            Some(folder) => Ok(folder),
            None => Ok(folder.insert(Self::create()?)),
        }
    }

    fn create() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("turnbuckle-{}", Mark::new()?));
        DirBuilder::new().mode(0o700).create(&path)?;
        let workspace = Workspace::open(&path).map_err(io::Error::other)?;
        Ok(Self { workspace, files: 0 })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system, which clears this place.
        let _ = std::fs::remove_dir_all(self.workspace.path());
    }
}

/// Keeps one stream while it flows.
#[derive(Debug)]
pub(crate) struct Spill {
    outputs: Arc<Outputs>,
    held: Vec<u8>,
    file: Option<(tokio::fs::File, PathBuf)>,
    /// How much there was, of which at most [`LARGEST`] is kept.
    bytes: usize,
    failed: bool,
}

impl Spill {
    pub(crate) fn new(outputs: Arc<Outputs>) -> Self {
        Self { outputs, held: Vec::new(), file: None, bytes: 0, failed: false }
    }

    /// Takes the next bytes. A failure is told by [`Spill::keep`].
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        let room = LARGEST.saturating_sub(self.bytes);
        self.bytes = self.bytes.saturating_add(bytes.len());
        let bytes = bytes.get(..room).unwrap_or(bytes);
        if self.failed || bytes.is_empty() {
            return;
        }
        if self.file.is_none() && self.held.len() + bytes.len() <= HELD {
            self.held.extend_from_slice(bytes);
            return;
        }
        // If this is dropped half-way, a part is missing.
        self.failed = true;
        self.failed = self.write(bytes).await.is_err();
    }

    /// Says where the whole stream can be read; `None` where it could not be kept.
    pub(crate) async fn keep(mut self) -> Option<String> {
        if self.failed || self.write(&[]).await.is_err() {
            return None;
        }
        let (mut file, path) = self.file?;
        file.flush().await.ok()?;
        let path = path.display();
        Some(match self.bytes.checked_sub(LARGEST) {
            None | Some(0) => format!("`{path}` has all of it"),
            Some(_) => format!("`{path}` has its first {} MiB", LARGEST >> 20),
        })
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            let outputs = Arc::clone(&self.outputs);
            let made = tokio::task::spawn_blocking(move || outputs.create()).await;
            let (file, path) = made.map_err(io::Error::other)??;
            self.file = Some((tokio::fs::File::from_std(file), path));
        }
        let Some((file, _)) = &mut self.file else { return Ok(()) };
        file.write_all(&std::mem::take(&mut self.held)).await?;
        file.write_all(bytes).await
    }
}

#[cfg(test)]
mod tests;
