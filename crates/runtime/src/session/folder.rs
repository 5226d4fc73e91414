//! The sessions that are kept in one folder.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use jiff::Timestamp;

use super::{
    FORMAT_VERSION, ForkedFrom, Journal, JsonlStore, Record, StoreError, closing, jsonl, reading,
    visible,
};

/// The longest beginning of a message that a list shows, in characters.
const TITLE: usize = 80;

/// A folder in which each session has a file.
///
/// Only [`SessionFolder::remove`] needs the session's lock: listing, reading and
/// forking work beside the process that writes it.
#[derive(Debug, Clone)]
pub struct SessionFolder {
    path: PathBuf,
}

/// What a list tells of a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id.
    pub id: String,
    /// When it was last written to.
    pub modified: SystemTime,
    /// The size of its file in bytes.
    pub bytes: u64,
    /// What its first lines say; or why they cannot be read.
    pub about: Result<About, Problem>,
}

/// What the first lines of a session say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct About {
    /// When it began, in RFC 3339.
    pub created: String,
    /// The folder that its tools work in, where it is known.
    pub workspace: Option<String>,
    /// Where its first messages come from, if it is a fork.
    pub forked_from: Option<ForkedFrom>,
    /// The beginning of the first thing that the user said, on one line.
    pub title: Option<String>,
}

/// Why a file in the folder is no session that can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// In a few words.
    pub message: String,
}

impl SessionFolder {
    /// The sessions in `path`. Nothing is read or made yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The sessions, the last used first. A file that is no session is listed with
    /// its problem. Only the first lines of each file are read.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if the folder cannot be read; one that does not exist
    /// holds no session.
    pub fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        let mut sessions = Vec::new();
        for id in self.ids()? {
            // One that another process removes just now is not listed.
            if let Some(info) = self.info(id)? {
                sessions.push(info);
            }
        }
        sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| b.id.cmp(&a.id)));
        Ok(sessions)
    }

    /// The id of the session that was last used in `workspace`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if the folder cannot be read.
    pub fn newest(&self, workspace: &Path) -> Result<Option<String>, StoreError> {
        let workspace = workspace.to_string_lossy();
        let here = |info: &SessionInfo| {
            let about = info.about.as_ref();
            about.is_ok_and(|about| about.workspace.as_deref() == Some(&*workspace))
        };
        Ok(self.list()?.into_iter().find(here).map(|info| info.id))
    }

    /// The id that begins with `prefix`.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if none does, [`StoreError::Ambiguous`] if several do
    /// and none is it exactly, [`StoreError::Io`] if the folder cannot be read.
    pub fn find(&self, prefix: &str) -> Result<String, StoreError> {
        if !jsonl::is_plain(prefix) {
            return Err(StoreError::NotFound(prefix.to_owned()));
        }
        let mut found: Vec<String> =
            self.ids()?.into_iter().filter(|id| id.starts_with(prefix)).collect();
        if found.iter().any(|id| id == prefix) {
            return Ok(prefix.to_owned());
        }
        match (found.pop(), found.len()) {
            (None, _) => Err(StoreError::NotFound(prefix.to_owned())),
            (Some(id), 0) => Ok(id),
            (Some(_), more) => {
                Err(StoreError::Ambiguous { prefix: prefix.to_owned(), count: more + 1 })
            }
        }
    }

    /// Reads session `id`, also while another process writes it.
    ///
    /// # Errors
    ///
    /// Those of [`JsonlStore::read`].
    pub fn read(&self, id: &str) -> Result<Journal, StoreError> {
        JsonlStore::read(&self.path, id)
    }

    /// Begins session `new_id` with the first `messages` messages of session `id`
    /// (all of them for `None`) and the results of their calls. The other session
    /// stays as it is.
    ///
    /// The new file is there whole, or not at all.
    ///
    /// # Errors
    ///
    /// Those of [`JsonlStore::read`] for `id`; [`StoreError::NoMessage`] if it has
    /// fewer messages; [`StoreError::Io`] if the new file cannot be written.
    pub fn fork(
        &self,
        id: &str,
        messages: Option<usize>,
        new_id: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let journal = self.read(id)?;
        let last = visible::Conversation::of(&journal.records).last_message();
        let message = messages.unwrap_or(last);
        let taken = visible::up_to(&journal.records, message)
            .ok_or(StoreError::NoMessage { message, last })?;
        let workspace = match journal.records.first() {
            Some(Record::Session { workspace, .. }) => workspace.clone(),
            _ => None,
        };
        let forked_from = ForkedFrom { session_id: id.to_owned(), message };
        let mut records = vec![Record::Session {
            version: FORMAT_VERSION,
            session_id: new_id.to_owned(),
            created: now.to_string(),
            workspace,
            forked_from: Some(forked_from),
        }];
        // Line numbers mean nothing in another file.
        let told = |record: &&Record| {
            !matches!(record, Record::Session { .. } | Record::Repaired { .. } | Record::Unknown)
        };
        records.extend(taken.iter().filter(told).cloned());
        records.extend(closing(&records));
        self.write_whole(new_id, &records, now)
    }

    /// Removes session `id`.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`]; [`StoreError::Locked`] while another process writes
    /// it; [`StoreError::Io`].
    pub fn remove(&self, id: &str) -> Result<(), StoreError> {
        let path = jsonl::path_of(&self.path, id)?;
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let file = file.map_err(jsonl::missing("opening", &path, id))?;
        jsonl::lock(&file, &path)?;
        fs::remove_file(&path).map_err(jsonl::missing("removing", &path, id))?;
        jsonl::sync_folder(&self.path).map_err(jsonl::io_error("syncing", &self.path))
    }

    fn ids(&self) -> Result<Vec<String>, StoreError> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(jsonl::io_error("reading", &self.path))?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(jsonl::io_error("reading", &self.path))?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
            ids.extend(id.filter(|id| jsonl::is_plain(id)).map(str::to_owned));
        }
        Ok(ids)
    }

    fn info(&self, id: String) -> Result<Option<SessionInfo>, StoreError> {
        let path = jsonl::path_of(&self.path, &id)?;
        // Not followed: what a link leads to may be missing.
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(jsonl::io_error("reading", &path)(error)),
        };
        let file = jsonl::open_file(OpenOptions::new().read(true), &path, &id);
        let read = file.and_then(|file| {
            let metadata = file.metadata().map_err(jsonl::io_error("reading", &path))?;
            Ok((reading::read_beginning(io::BufReader::new(file), &path)?, metadata))
        });
        let (about, metadata) = match read {
            // Nothing was ever said in it, or it is gone.
            Ok((None, _)) | Err(StoreError::NotFound(_)) => return Ok(None),
            Ok((Some((first, said)), metadata)) => (Ok(about(first, said)), metadata),
            // One that cannot be read hides no other.
            Err(error) => {
                (Err(Problem { message: error.failure().message().to_string() }), metadata)
            }
        };
        let modified = metadata.modified().map_err(jsonl::io_error("reading", &path))?;
        Ok(Some(SessionInfo { id, modified, bytes: metadata.len(), about }))
    }

    /// Writes a file beside its place, makes it durable, and puts it there.
    fn write_whole(&self, id: &str, records: &[Record], now: Timestamp) -> Result<(), StoreError> {
        let path = jsonl::path_of(&self.path, id)?;
        let part = path.with_extension("part");
        let mut lines = Vec::new();
        for record in records {
            lines.extend(
                jsonl::line(record, now.as_millisecond())
                    .map_err(|error| jsonl::io_error("encoding for", &path)(error.into()))?,
            );
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(&part).and_then(|mut file| {
            file.write_all(&lines)?;
            file.sync_all()?;
            // Unlike a rename, a link never replaces a session that is there.
            fs::hard_link(&part, &path)?;
            jsonl::sync_folder(&self.path)
        });
        // What is left of it after a failure is no session.
        let _ = fs::remove_file(&part);
        written.map_err(jsonl::io_error("writing", &path))
    }
}

fn about(first: Record, said: Option<String>) -> About {
    let title = said.map(|text| {
        let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = words.char_indices().nth(TITLE) {
            words.truncate(end);
            words.push('…');
        }
        words
    });
    match first {
        Record::Session { created, workspace, forked_from, .. } => {
            About { created, workspace, forked_from, title }
        }
        _ => About { title, ..About::default() },
    }
}

#[cfg(test)]
mod tests;
