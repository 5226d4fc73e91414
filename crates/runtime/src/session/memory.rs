//! A journal in memory, for tests and for hosts that keep nothing.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::{Record, SessionStore, StoreError};

/// Keeps the journal in memory. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    records: Arc<Mutex<Vec<Record>>>,
}

impl MemoryStore {
    /// An empty journal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A journal that holds these records already, for
    /// [`Runtime::resume_from`](crate::Runtime::resume_from).
    #[must_use]
    pub fn with(records: Vec<Record>) -> Self {
        Self { records: Arc::new(Mutex::new(records)) }
    }

    /// The records so far.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(record.clone());
        Ok(())
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
