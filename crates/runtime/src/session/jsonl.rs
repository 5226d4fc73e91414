//! A journal as a file: one JSON record a line, appended, never rewritten.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

use super::{FORMAT_VERSION, Record, SessionStore, StoreError};

/// Keeps the journal in a file of its own, readable by its owner alone (`0600`
/// where the system has modes), with one writer (an OS lock).
#[derive(Debug)]
pub struct JsonlStore {
    file: Arc<File>,
    path: PathBuf,
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
        fs::create_dir_all(folder).map_err(io_error("creating", folder))?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(io_error("creating", &path))?;
        Self::locked(file, path)
    }

    /// Opens the journal of session `id` in `folder` and reads it.
    ///
    /// A torn last line, which a crash leaves behind, is cut off.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Locked`], [`StoreError::Corrupt`]
    /// for a file that is no journal or of a newer version, [`StoreError::Io`].
    pub fn open(folder: &Path, id: &str) -> Result<(Self, Vec<Record>), StoreError> {
        let path = path_of(folder, id)?;
        let file =
            OpenOptions::new().read(true).append(true).open(&path).map_err(
                |source| match source.kind() {
                    io::ErrorKind::NotFound => StoreError::NotFound(id.to_owned()),
                    _ => StoreError::Io { action: "opening", path: path.clone(), source },
                },
            )?;
        let store = Self::locked(file, path)?;
        let records = store.read()?;
        Ok((store, records))
    }

    /// Where the journal is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn locked(file: File, path: PathBuf) -> Result<Self, StoreError> {
        match file.try_lock() {
            Ok(()) => Ok(Self { file: Arc::new(file), path }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked),
            Err(TryLockError::Error(source)) => {
                Err(StoreError::Io { action: "locking", path, source })
            }
        }
    }

    fn read(&self) -> Result<Vec<Record>, StoreError> {
        let mut file = &*self.file;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(io_error("reading", &self.path))?;
        file.read_to_end(&mut bytes).map_err(io_error("reading", &self.path))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
        let mut records = Vec::new();
        for (index, line) in lines.filter(|line| !line.is_empty()).enumerate() {
            let record = serde_json::from_slice(line)
                .map_err(|_| StoreError::Corrupt { path: self.path.clone(), line: index + 1 })?;
            records.push(record);
        }
        match records.first() {
            Some(Record::Session { version, .. }) if *version <= FORMAT_VERSION => {}
            _ => return Err(StoreError::Corrupt { path: self.path.clone(), line: 1 }),
        }
        if whole < bytes.len() {
            let keep = u64::try_from(whole).unwrap_or(u64::MAX);
            self.file.set_len(keep).map_err(io_error("mending", &self.path))?;
        }
        Ok(records)
    }
}

#[async_trait]
impl SessionStore for JsonlStore {
    async fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        let mut line = serde_json::to_vec(record).map_err(|error| StoreError::Io {
            action: "encoding for",
            path: self.path.clone(),
            source: error.into(),
        })?;
        line.push(b'\n');
        // One write a record, so that a crash tears at most the last line.
        (&*self.file).write_all(&line).map_err(io_error("writing", &self.path))
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        let file = Arc::clone(&self.file);
        let synced = tokio::task::spawn_blocking(move || file.sync_data()).await;
        synced.map_err(io::Error::other).flatten().map_err(io_error("syncing", &self.path))
    }
}

/// The file of a session; an id that could name another folder is refused.
fn path_of(folder: &Path, id: &str) -> Result<PathBuf, StoreError> {
    let plain = !id.is_empty()
        && id.len() <= 128
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if plain {
        Ok(folder.join(format!("{id}.jsonl")))
    } else {
        Err(StoreError::NotFound(id.to_owned()))
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Record {
        Record::Session { version: FORMAT_VERSION, session_id: "s1".into(), created: "now".into() }
    }

    fn user(text: &str) -> Record {
        Record::User { text: text.into() }
    }

    async fn written(folder: &Path, records: &[Record]) -> PathBuf {
        let mut store = JsonlStore::create(folder, "s1").unwrap();
        for record in records {
            store.append(record).await.unwrap();
        }
        store.sync().await.unwrap();
        store.path().to_owned()
    }

    #[tokio::test]
    async fn what_was_appended_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let records = [session(), user("two\nlines é"), Record::StepEnd];
        written(folder.path(), &records).await;
        let (mut store, read) = JsonlStore::open(folder.path(), "s1").unwrap();
        assert_eq!(read, records);
        store.append(&user("more")).await.unwrap();
        drop(store);
        assert_eq!(JsonlStore::open(folder.path(), "s1").unwrap().1.len(), 4);
    }

    #[tokio::test]
    async fn a_torn_last_line_is_cut_at_every_offset() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), &[session(), user("é")]).await;
        let whole = fs::read(&path).unwrap();
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for length in first..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let (mut store, read) = JsonlStore::open(folder.path(), "s1").unwrap();
            assert_eq!(read, [session()]);
            store.append(&user("next")).await.unwrap();
            drop(store);
            assert_eq!(JsonlStore::open(folder.path(), "s1").unwrap().1, [session(), user("next")]);
        }
    }

    #[tokio::test]
    async fn a_second_writer_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = JsonlStore::create(folder.path(), "s1").unwrap();
        store.append(&session()).await.unwrap();
        assert!(matches!(JsonlStore::open(folder.path(), "s1"), Err(StoreError::Locked)));
    }

    #[tokio::test]
    async fn a_file_of_another_kind_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s1.jsonl");
        for text in [
            "hello\n",
            "{\"record\":\"user\",\"text\":\"x\"}\n",
            "{\"record\":\"session\",\"version\":99,\"sessionId\":\"s\",\"created\":\"\"}\n",
        ] {
            fs::write(&path, text).unwrap();
            assert!(matches!(
                JsonlStore::open(folder.path(), "s1"),
                Err(StoreError::Corrupt { line: 1, .. })
            ));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn an_id_cannot_leave_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        for id in ["", "..", "a/b", "../x", "a b", &"x".repeat(200)] {
            assert!(
                matches!(JsonlStore::open(folder.path(), id), Err(StoreError::NotFound(_))),
                "{id}"
            );
            assert!(
                matches!(JsonlStore::create(folder.path(), id), Err(StoreError::NotFound(_))),
                "{id}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_readable_by_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let store = JsonlStore::create(folder.path(), "s1").unwrap();
        assert_eq!(fs::metadata(store.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
