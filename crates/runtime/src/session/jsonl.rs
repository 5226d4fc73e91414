//! A journal as a file: one JSON record a line, appended, never rewritten.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use serde::Serialize as _;

use super::{
    Journal, Record, Repairs, SessionStore, StoreError,
    closing::closing,
    reading::{self, End, Reading},
};

/// How often a lock is tried, and the pause between: a third of a second in all.
const LOCK_TRIES: u32 = 16;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Keeps the journal in a file of its own, readable by its owner alone (`0600`
/// where the system has modes), with one writer (an OS lock).
///
/// A record is one write of one line; [`SessionStore::sync`] is `fdatasync`, and
/// after the first record also a sync of the folder. A journal in which nothing
/// was ever written is removed when it is dropped.
#[derive(Debug)]
pub struct JsonlStore {
    file: Arc<File>,
    path: PathBuf,
    /// Whether the file is new, and its name not durable yet.
    new: bool,
    empty: bool,
}

impl JsonlStore {
    /// Begins a new journal for session `id` in `folder`, which is made if needed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if the folder or the file cannot be made, or the file
    /// exists; [`StoreError::Locked`] if another process holds it.
    pub fn create(folder: &Path, id: &str) -> Result<Self, StoreError> {
        let path = path_of(folder, id)?;
        make_folder(folder)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(io_error("creating", &path))?;
        lock(&file, &path)?;
        Ok(Self { file: Arc::new(file), path, new: true, empty: true })
    }

    /// Opens the journal of session `id` in `folder`, reads it, and mends it:
    ///
    /// - a torn last line, which a crash leaves behind, is cut off;
    /// - a line that cannot be read stays where it is, and is passed over;
    /// - a prompt that a crash interrupted is closed: its calls without a result
    ///   get one that says so.
    ///
    /// What was mended is recorded, and told by [`Journal::repairs`]. A file that
    /// another process holds is tried again for a third of a second.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Locked`], [`StoreError::Foreign`] for
    /// a file of another program, [`StoreError::Newer`] for one of a newer version,
    /// [`StoreError::Corrupt`] for one without a readable first line, and
    /// [`StoreError::Io`]. The file is left as it was.
    pub fn open(folder: &Path, id: &str) -> Result<(Self, Journal), StoreError> {
        let path = path_of(folder, id)?;
        let file = open_file(OpenOptions::new().read(true).append(true), &path, id)?;
        lock(&file, &path)?;
        still_there(&file, &path, id)?;
        let reading = reading::read(reading::buffered(&file), &path)?;
        let mut store = Self { file: Arc::new(file), path, new: false, empty: false };
        let journal = store.mend(reading)?;
        Ok((store, journal))
    }

    /// Reads the journal of session `id` in `folder`, also while another process
    /// writes it. Nothing is mended.
    ///
    /// # Errors
    ///
    /// Those of [`JsonlStore::open`] but [`StoreError::Locked`].
    pub fn read(folder: &Path, id: &str) -> Result<Journal, StoreError> {
        let path = path_of(folder, id)?;
        let file = open_file(OpenOptions::new().read(true), &path, id)?;
        let reading = reading::read(reading::buffered(&file), &path)?;
        let cut_bytes = match reading.end {
            End::Torn { cut, .. } => cut,
            End::Whole | End::Unbroken => 0,
        };
        let repairs = Repairs { cut_bytes, unreadable: reading.unreadable, interrupted: false };
        Ok(Journal { records: reading.records, repairs })
    }

    /// Where the journal is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Brings the file into a state in which it can go on.
    fn mend(&mut self, reading: Reading) -> Result<Journal, StoreError> {
        let unreadable = reading.newly_unreadable();
        let mut records = reading.records;
        let mut cut_bytes = 0;
        match reading.end {
            End::Whole => {}
            End::Unbroken => {
                (&*self.file).write_all(b"\n").map_err(io_error("mending", &self.path))?;
            }
            End::Torn { keep, cut } => {
                self.file.set_len(keep).map_err(io_error("mending", &self.path))?;
                cut_bytes = cut;
            }
        }
        if records.is_empty() {
            (self.empty, self.new) = (true, true);
            let repairs = Repairs { cut_bytes, ..Repairs::default() };
            return Ok(Journal { records, repairs });
        }
        let mut added = Vec::new();
        if cut_bytes > 0 || !unreadable.is_empty() {
            added.push(Record::Repaired { cut_bytes, unreadable: unreadable.clone() });
        }
        let closing = closing(&records);
        let interrupted = !closing.is_empty();
        added.extend(closing);
        for record in &added {
            self.write(record)?;
        }
        if !added.is_empty() || reading.end != End::Whole {
            self.file.sync_data().map_err(io_error("syncing", &self.path))?;
        }
        records.extend(added);
        Ok(Journal { records, repairs: Repairs { cut_bytes, unreadable, interrupted } })
    }

    /// One write a record, so that a crash tears at most the last line.
    fn write(&mut self, record: &Record) -> Result<(), StoreError> {
        let line = line(record, jiff::Timestamp::now().as_millisecond());
        let line = line.map_err(|error| StoreError::Io {
            action: "encoding for",
            path: self.path.clone(),
            source: error.into(),
        })?;
        self.empty = false;
        (&*self.file).write_all(&line).map_err(io_error("writing", &self.path))
    }
}

#[async_trait]
impl SessionStore for JsonlStore {
    async fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.write(record)
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        let file = Arc::clone(&self.file);
        let folder = self.path.parent().filter(|_| self.new).map(Path::to_owned);
        let synced = tokio::task::spawn_blocking(move || {
            file.sync_data()?;
            folder.map_or(Ok(()), |folder| sync_folder(&folder))
        });
        let synced = synced.await.map_err(io::Error::other).flatten();
        synced.map_err(io_error("syncing", &self.path))?;
        self.new = false;
        Ok(())
    }
}

impl Drop for JsonlStore {
    fn drop(&mut self) {
        // A child that is just being started shares the file, and would keep the lock.
        let _ = self.file.unlock();
        if self.empty {
            // At worst an empty file stays, which is passed over.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A record as a line, with the time at which it was written.
pub(super) fn line(record: &Record, at_ms: i64) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = Vec::with_capacity(256);
    record.serialize(&mut serde_json::Serializer::new(&mut line))?;
    // Every record is an object that has a field at least.
    line.pop();
    // A vector takes every write.
    let _ = writeln!(line, ",\"at\":{at_ms}}}");
    Ok(line)
}

/// The file of a session; an id that could name another folder is refused.
pub(super) fn path_of(folder: &Path, id: &str) -> Result<PathBuf, StoreError> {
    if is_plain(id) {
        Ok(folder.join(format!("{id}.jsonl")))
    } else {
        Err(StoreError::NotFound(id.to_owned()))
    }
}

pub(super) fn is_plain(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 128
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// Opens a file that is there. A folder or a device is none of ours, and a pipe would
/// be waited for.
pub(super) fn open_file(options: &OpenOptions, path: &Path, id: &str) -> Result<File, StoreError> {
    let metadata = fs::metadata(path).map_err(missing("opening", path, id))?;
    if !metadata.is_file() {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    options.open(path).map_err(missing("opening", path, id))
}

/// Makes the folder of sessions, for its owner alone.
fn make_folder(folder: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(io_error("creating", folder))
}

/// Makes the names in a folder durable, where the system has a way to.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Takes the lock of the only writer.
///
/// A process that was killed while it started a child can leave the lock with that
/// child until its program is loaded: what is locked is tried again for a moment.
#[expect(
    clippy::disallowed_methods,
    reason = "opening a file blocks as well, and rarely this long"
)]
pub(super) fn lock(file: &File, path: &Path) -> Result<(), StoreError> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(source)) => {
                return Err(StoreError::Io { action: "locking", path: path.to_owned(), source });
            }
        }
    }
    Err(StoreError::Locked)
}

/// Another process may have removed the file before it could be locked; what is
/// written then would be lost.
pub(super) fn still_there(file: &File, path: &Path, id: &str) -> Result<(), StoreError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let named = fs::metadata(path).map_err(missing("opening", path, id))?;
        let held = file.metadata().map_err(io_error("opening", path))?;
        if place(named) != place(held) {
            return Err(StoreError::NotFound(id.to_owned()));
        }
    }
    #[cfg(not(unix))]
    let _ = (file, path, id);
    Ok(())
}

pub(super) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path, source }
}

/// The same, where a file that is not there is no session.
pub(super) fn missing(
    action: &'static str,
    path: &Path,
    id: &str,
) -> impl FnOnce(io::Error) -> StoreError {
    let (path, id) = (path.to_owned(), id.to_owned());
    move |source| match source.kind() {
        io::ErrorKind::NotFound => StoreError::NotFound(id),
        _ => StoreError::Io { action, path, source },
    }
}

#[cfg(test)]
mod tests;
