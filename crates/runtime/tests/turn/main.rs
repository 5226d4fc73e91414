//! Whole turns against a scripted provider under virtual time, compared as
//! snapshots of what the host sees and what the next request would hold.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a stage for tests, which fail by panicking"
)]

mod bounds;
mod cancel;
mod compaction;
mod faults;
mod full_journal;
mod hosts;
mod leftovers;
mod observer;
mod progress;
mod recovery;
mod retries;
mod scene;
mod sessions;
mod silence;
mod tools;
mod watched;
