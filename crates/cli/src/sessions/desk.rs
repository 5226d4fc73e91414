//! Where sessions are begun and gone on with: a runtime, a workspace, and the
//! folder of sessions.

use std::path::PathBuf;

use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_runtime::{Runtime, Session, SessionFolder, StoreError};

use super::{folder, tell_repairs, unusable};
use crate::{
    refusal::{invalid, refused},
    settings::Settings,
};

pub(crate) struct Desk {
    runtime: Runtime,
    pub(crate) folder: SessionFolder,
    /// Without links and relative parts, as sessions note it.
    pub(crate) workspace: PathBuf,
}

impl Desk {
    pub(crate) fn new(runtime: Runtime, settings: &Settings) -> Result<Self, Failure> {
        let workspace = std::fs::canonicalize(&settings.workspace)
            .map_err(|error| invalid(&format!("the workspace cannot be used: {error}")))?;
        Ok(Self { runtime, folder: folder()?, workspace })
    }

    /// The session that the settings ask for: a named one, the newest here, or a
    /// new one.
    pub(crate) fn session(&self, settings: &Settings) -> Result<Session, Failure> {
        match &settings.session {
            Some(given) => self.resume(given),
            None if settings.go_on => {
                let newest = self.folder.newest(&self.workspace);
                let newest = newest.map_err(|error| unusable(&error))?.ok_or_else(|| {
                    refused(
                        ErrorCode::SessionNotFound,
                        "there is no session in this workspace yet; leave out --continue",
                    )
                })?;
                self.resume(&newest)
            }
            None => self.begin(),
        }
    }

    pub(crate) fn begin(&self) -> Result<Session, Failure> {
        let session = self.runtime.session_in(self.folder.path());
        let session = session.map_err(|error| unusable(&error))?;
        Ok(session.in_workspace(&self.workspace))
    }

    /// Goes on with the session whose id begins so.
    pub(crate) fn resume(&self, given: &str) -> Result<Session, Failure> {
        let open = |id: String| {
            let session = self.runtime.resume(self.folder.path(), &id)?;
            // One that a crash ended before its first record has none yet.
            Ok::<_, StoreError>(session.in_workspace(&self.workspace))
        };
        let session = self.folder.find(given).and_then(open).map_err(|error| unusable(&error))?;
        tell_repairs(session.repairs());
        Ok(session)
    }
}
