//! Without a model: the older part is left out.

use async_trait::async_trait;
use turnbuckle_errors::Failure;

use super::{CompactionTask, Compactor};

/// Leaves the older part out and says so. It asks no model: for hosts to whom a
/// summary costs too much, or whose model summarises badly.
#[derive(Debug, Clone, Copy, Default)]
pub struct TailCompactor;

#[async_trait]
impl Compactor for TailCompactor {
    async fn digest(&self, task: CompactionTask<'_>) -> Result<String, Failure> {
        let count = task.older.len();
        Ok(format!("({count} older messages are left out. Ask again for what you need of them.)"))
    }
}
