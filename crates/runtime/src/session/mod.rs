//! The journal of a session: what is written, where, and how it is read back.

mod history;
mod jsonl;
mod memory;
mod record;
mod store;

pub(crate) use history::rebuild;
pub use jsonl::JsonlStore;
pub use memory::MemoryStore;
pub(crate) use record::FORMAT_VERSION;
pub use record::Record;
pub use store::{SessionStore, StoreError};
