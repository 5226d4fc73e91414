#![doc = include_str!("../README.md")]

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
