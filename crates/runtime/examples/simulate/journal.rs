//! The journal of a run: it is written to the stage, until the machine stops.

use std::{io, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use turnbuckle_runtime::{Record, SessionStore, StoreError};

use crate::{
    sabotage::Sabotage,
    script::{Crash, Loss},
    stage::Stage,
};

/// Keeps the records on the stage.
pub(crate) struct Journal(pub(crate) Arc<Stage>);

/// Whether the write happened, or how it did not.
enum Written {
    Yes,
    /// The process is dead: nothing ever returns to it.
    Never,
    Full,
}

impl Journal {
    fn write(&self, record: Option<&Record>) -> Written {
        let mut state = self.0.lock();
        if state.dead {
            return Written::Never;
        }
        match state.crash.filter(|crash| state.writes >= crash.after) {
            Some(Crash { loss: Loss::Full, .. }) => {
                state.refused = true;
                return Written::Full;
            }
            Some(crash) => {
                state.dead = true;
                if crash.loss == Loss::Lost {
                    let synced = state.synced;
                    state.records.truncate(synced);
                }
                return Written::Never;
            }
            None => {}
        }
        state.writes += 1;
        match record {
            Some(Record::Assistant { .. }) if state.sabotage == Some(Sabotage::ForgetAnswer) => {}
            Some(Record::ToolStart { .. }) if state.sabotage == Some(Sabotage::ForgetStart) => {}
            Some(record) => state.records.push(record.clone()),
            None => state.synced = state.records.len(),
        }
        Written::Yes
    }

    async fn result(written: Written) -> Result<(), StoreError> {
        match written {
            Written::Yes => Ok(()),
            Written::Never => std::future::pending().await,
            Written::Full => Err(StoreError::Io {
                action: "write",
                path: PathBuf::from("journal"),
                source: io::ErrorKind::StorageFull.into(),
            }),
        }
    }
}

#[async_trait]
impl SessionStore for Journal {
    async fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        let written = self.write(Some(record));
        Self::result(written).await
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        let written = self.write(None);
        Self::result(written).await
    }
}
