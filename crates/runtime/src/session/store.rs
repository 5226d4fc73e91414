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
    /// A session file whose first line is damaged.
    #[error("line {line} of {path} cannot be read")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The file was not written by this program.
    #[error("{path} is no session file")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer version of this program.
    #[error("{path} is of version {version}, which is newer than this program knows")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        version: u32,
    },
    /// Several sessions have an id that begins like this.
    #[error("{count} sessions have an id that begins with `{prefix}`")]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// How many there are.
        count: usize,
    },
    /// The session has no message of this number.
    #[error("the session has no message {message}; its last one is {last}")]
    NoMessage {
        /// What was asked for, from 1.
        message: usize,
        /// The number of its last message; 0 if it has none.
        last: usize,
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
        use ErrorCode::{InvalidArgument, SessionCorrupt, SessionLocked, SessionNotFound};
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX).into();
        let (code, message) = match self {
            Self::NotFound(_) => (SessionNotFound, "there is no session of this id".into()),
            Self::Locked => (
                SessionLocked,
                "the session is open in another process: end that one, or fork the session".into(),
            ),
            Self::Corrupt { .. } => (
                SessionCorrupt,
                "the first line of the session file is damaged: put it back from a copy".into(),
            ),
            Self::Foreign { .. } => (
                SessionCorrupt,
                "the file was not written by this program: move it out of the session folder"
                    .into(),
            ),
            Self::Newer { version, .. } => (
                SessionCorrupt,
                SafeText::compose(&[
                    "the session file is of format version ".into(),
                    u64::from(*version).into(),
                    ", which a newer version of this program wrote: update it".into(),
                ]),
            ),
            Self::Ambiguous { count, .. } => (
                InvalidArgument,
                SafeText::compose(&[
                    number(*count),
                    " sessions have an id that begins like this: give more of it".into(),
                ]),
            ),
            Self::NoMessage { message, last } => (
                InvalidArgument,
                SafeText::compose(&[
                    "the session has no message ".into(),
                    number(*message),
                    "; its last one is ".into(),
                    number(*last),
                ]),
            ),
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
        io::ErrorKind::FileTooLarge => "the file has reached the size that the system allows",
        _ => "the system reports an error",
    };
    let message = SafeText::compose(&["the session file cannot be used: ".into(), why.into()]);
    Failure::new(ErrorCode::Internal, message).with_origin(Origin::Host)
}
