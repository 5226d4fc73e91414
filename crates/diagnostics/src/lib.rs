//! What people may see of a turn: secrets masked, time accounted for.

mod redact;
mod timing;

#[cfg(feature = "measure")]
pub use redact::PlainPass;
pub use redact::{MASK, Redactor, SafeUrl, Secret, StreamRedactor};
pub use secrecy::{ExposeSecret, SecretString};
pub use timing::AttemptTiming;
