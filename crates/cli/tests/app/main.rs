//! The app as others drive it: the real binary, real sockets, real files.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a stage for tests, which fail by panicking"
)]

mod bad_input;
mod chat;
mod classify;
mod contract;
mod demo;
mod documents;
mod faults;
mod hosts;
mod interrupts;
mod providers;
mod sessions;
mod shipped;
mod stage;
mod tools;
