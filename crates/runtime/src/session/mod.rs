//! The journal of a session: what is written, where, and how it is read back.
//!
//! `docs/SESSIONS.md` documents the format, when what is synced, and what is
//! done about a file that a crash or a disk has damaged.

mod closing;
mod export;
mod folder;
mod history;
mod journal;
mod jsonl;
mod memory;
mod reading;
mod record;
mod store;
mod visible;

pub(crate) use closing::closing;
pub use folder::{About, Problem, SessionFolder, SessionInfo};
pub(crate) use history::{before, call_ids, extend, last_answer, rebuild};
pub use journal::{Journal, Repairs};
pub use jsonl::JsonlStore;
pub use memory::MemoryStore;
pub(crate) use record::FORMAT_VERSION;
pub use record::{ForkedFrom, Record};
pub use store::{SessionStore, StoreError};
pub use visible::{CallMade, CallResult, Conversation, Entry};
