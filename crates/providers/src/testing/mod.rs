//! Fakes that a test drives by script (feature `test-support`).

mod scripted;
#[cfg(feature = "http")]
mod transport;

pub use scripted::{ScriptedAttempt, ScriptedProvider};
#[cfg(feature = "http")]
pub use transport::{ScriptedResponse, ScriptedTransport};
