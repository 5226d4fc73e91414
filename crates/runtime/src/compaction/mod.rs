//! A conversation that outgrows its model is made smaller, once a step.
//!
//! The older part gives way to a *digest*: a text that a [`Compactor`] makes of it.
//! Where the cut goes is not the compactor's to choose: it falls between a message
//! with its tool results and the next one, and what the user said last stays
//! word for word. The journal keeps everything; it gets one more record, from
//! which the smaller history is rebuilt.
//!
//! ```
//! use async_trait::async_trait;
//! use turnbuckle_errors::Failure;
//! use turnbuckle_runtime::compaction::{CompactionTask, Compactor};
//!
//! /// Says how much was left out, and nothing of it.
//! struct Counting;
//!
//! #[async_trait]
//! impl Compactor for Counting {
//!     async fn digest(&self, task: CompactionTask<'_>) -> Result<String, Failure> {
//!         Ok(format!("{} messages were left out", task.older.len()))
//!     }
//! }
//! ```

mod cut;
mod meter;
mod model;
mod policy;
mod run;
mod summary;
mod tail;

use async_trait::async_trait;
pub use cut::Cut;
pub(crate) use meter::Meter;
pub use model::CompactionModel;
pub use policy::CompactionPolicy;
pub(crate) use run::{Compacted, explained};
use serde::Serialize;
pub use summary::SummaryCompactor;
pub use tail::TailCompactor;
use turnbuckle_errors::Failure;
use turnbuckle_providers::Message;

/// Makes a digest of the older part of a conversation.
#[async_trait]
pub trait Compactor: Send + Sync {
    /// The text that takes the place of `task.older`. It is content.
    ///
    /// The future is dropped when the prompt is cancelled. A panic counts as a
    /// failure.
    ///
    /// # Errors
    ///
    /// Any failure leaves the history as it is; so does a blank text, and one that
    /// is no shorter than what it replaces. The step then ends with the
    /// [`CONTEXT_TOO_LARGE`](turnbuckle_errors::ErrorCode::ContextTooLarge) that it
    /// had, which names this as its cause.
    async fn digest(&self, task: CompactionTask<'_>) -> Result<String, Failure>;
}

/// What a compactor gets.
#[derive(Debug)]
#[non_exhaustive]
pub struct CompactionTask<'a> {
    /// What is to be replaced, oldest first. An earlier digest is a user message
    /// in it, and so are messages of the user that stay all the same.
    pub older: &'a [&'a Message],
    /// What stays as it is, after the digest.
    pub recent: &'a [&'a Message],
    /// How many tokens the digest should not exceed.
    pub target_tokens: u64,
    /// How many bytes of text one request can hold, by estimate.
    pub room_bytes: u64,
    /// One request to the session's model.
    pub model: CompactionModel<'a>,
}

/// Why a history is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CompactionReason {
    /// The next request would come close to the model's context, by estimate.
    Boundary,
    /// The provider has refused the request as too large.
    Overflow,
}
