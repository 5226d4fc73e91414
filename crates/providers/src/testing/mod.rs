//! Fakes that a test drives by script (feature `test-support`).

mod scripted;

pub use scripted::{ScriptedAttempt, ScriptedProvider};
