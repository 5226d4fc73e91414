//! Where journals are kept.

use std::{io, path::PathBuf};

use async_trait::async_trait;
use turnbuckle_errors::{ErrorCode, Failure, Origin, SafeText};

use super::Record;

/// Keeps the journal of one session.
#[async_trait]
pub trait SessionStore: Send {
    /// Appends a record; it is handed to the system when this returns.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; the session is closed then, since what follows would have
    /// a hole before it.
    async fn append(&mut self, record: &Record) -> Result<(), StoreError>;

    /// Makes everything appended so far survive a crash of the machine.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; the session is closed then.
    async fn sync(&mut self) -> Result<(), StoreError>;
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such session.
    #[error("there is no session `{0}`")]
    NotFound(String),
    /// Another process writes it.
    #[error("the session is open in another process")]
    Locked,
    /// The file is no journal, or of a newer version.
    #[error("line {line} of {path} is not a session record")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// Reading or writing failed.
    #[error("{action} {path}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

impl StoreError {
    /// The same as a failure. Paths stay out of it: they may name a person.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let (code, message) = match self {
            Self::NotFound(_) => (ErrorCode::SessionNotFound, "there is no session of this id"),
            Self::Locked => (ErrorCode::SessionLocked, "the session is open in another process"),
            Self::Corrupt { .. } => {
                (ErrorCode::SessionCorrupt, "the session file holds something else than a session")
            }
            Self::Io { source, .. } => return io_failure(source),
        };
        Failure::new(code, message)
    }
}

fn io_failure(source: &io::Error) -> Failure {
    let why = match source.kind() {
        io::ErrorKind::StorageFull => "the disk is full",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        io::ErrorKind::NotFound => "the folder is missing",
        _ => "the system reports an error",
    };
    let message = SafeText::compose(&["the session file cannot be written: ".into(), why.into()]);
    Failure::new(ErrorCode::Internal, message).with_origin(Origin::Host)
}
