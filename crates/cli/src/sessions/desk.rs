//! Where sessions are begun and gone on with: settings, a workspace, and the
//! folder of sessions.

use std::{path::PathBuf, sync::Arc};

use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_runtime::{Session, SessionFolder, StoreError};
use turnbuckle_tools::{Approver, builtin::Workspace};

use super::{folder, tell_repairs, unusable};
use crate::{
    refusal::{invalid, refused},
    run,
    settings::Settings,
};

pub(crate) struct Desk {
    settings: Settings,
    approver: Arc<dyn Approver>,
    pub(crate) folder: SessionFolder,
    /// Without links and relative parts, as sessions note it.
    pub(crate) workspace: PathBuf,
}

impl Desk {
    pub(crate) fn new(settings: Settings, approver: Arc<dyn Approver>) -> Result<Self, Failure> {
        Workspace::open(&settings.workspace).map_err(|error| invalid(&error.to_string()))?;
        let workspace = std::fs::canonicalize(&settings.workspace)
            .map_err(|error| invalid(&format!("the workspace cannot be used: {error}")))?;
        Ok(Self { settings, approver, folder: folder()?, workspace })
    }

    /// The session that the settings ask for: a named one, the newest here, or a
    /// new one.
    pub(crate) fn session(&self) -> Result<Session, Failure> {
        match &self.settings.session {
            Some(given) => self.resume(given),
            None if self.settings.go_on => {
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

    /// A new session. Each has a runtime of its own: what is allowed for a session
    /// is allowed for no other.
    pub(crate) fn begin(&self) -> Result<Session, Failure> {
        let runtime = run::runtime(&self.settings, Arc::clone(&self.approver))?;
        let session = runtime.session_in(self.folder.path());
        let session = session.map_err(|error| unusable(&error))?;
        Ok(session.in_workspace(&self.workspace))
    }

    /// Goes on with the session whose id begins so.
    pub(crate) fn resume(&self, given: &str) -> Result<Session, Failure> {
        let runtime = run::runtime(&self.settings, Arc::clone(&self.approver))?;
        let open = |id: String| {
            let session = runtime.resume(self.folder.path(), &id)?;
            // One that a crash ended before its first record has none yet.
            Ok::<_, StoreError>(session.in_workspace(&self.workspace))
        };
        let session = self.folder.find(given).and_then(open).map_err(|error| unusable(&error))?;
        tell_repairs(session.repairs());
        Ok(session)
    }
}
