//! The turn: ask a model, stream its answer, run its tools, commit, ask again —
//! and recover within a budget when the provider fails.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
//! use std::sync::Arc;
//! use turnbuckle_errors::{ErrorCode, Failure};
//! use turnbuckle_providers::testing::{ScriptedAttempt, ScriptedProvider};
//! use turnbuckle_runtime::{MemoryStore, Runtime};
//!
//! // A provider that drops its first answer in the middle.
//! let cut = Failure::new(ErrorCode::StreamFailed, "connection reset");
//! let provider = ScriptedProvider::new([
//!     ScriptedAttempt::cut(["Hel"], cut),
//!     ScriptedAttempt::answer(["Hello"]),
//! ]);
//! let runtime = Runtime::builder(Arc::new(provider), "a-model").build();
//! let mut session = runtime.session(MemoryStore::new());
//! let outcome = session.prompt("Say hello").outcome().await;
//! assert_eq!((outcome.text.as_str(), outcome.attempts), ("Hello", 2));
//! # });
//! ```
//!
//! Start reading at `turn.rs`, then `step.rs`, then `recovery/decide.rs`.

mod agent;
mod attempt;
mod batch;
mod builder;
mod callback;
mod cancel;
pub mod compaction;
mod emit;
mod event;
mod inbox;
mod observer;
mod outcome;
mod prompt;
pub mod recovery;
mod remote;
mod retry;
mod session;
mod step;
mod transcript;
mod turn;
mod world;

pub use agent::Agent;
pub use builder::{Builder, Runtime};
pub use event::{DeltaKind, Event, EventKind, MessageFinish, ShownCall, ShownMessage, refused_run};
pub use inbox::{NotRunning, Said};
pub use observer::{ON_RETRY_LIMIT, PlannedRetry, RetryVerdict, TurnObserver};
pub use outcome::{Outcome, PromptOutcome, PromptTiming, RetrySummary, ToolCallSummary};
pub use prompt::{Prompt, Session};
pub use recovery::RecoveryPolicy;
pub use remote::Remote;
pub use session::{
    About, CallMade, CallResult, Conversation, Entry, ForkedFrom, Journal, JsonlStore, MemoryStore,
    Problem, Record, Repairs, SessionFolder, SessionInfo, SessionStore, StoreError,
};
pub use transcript::{Transcript, Unpaired};
pub use world::{SystemWorld, World};
