//! Whole turns against a scripted provider under virtual time, compared as
//! snapshots of what the host sees and what the next request would hold.

mod cancel;
mod recovery;
mod scene;
mod tools;
