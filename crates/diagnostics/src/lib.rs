#![doc = include_str!("../README.md")]

mod field;
mod redact;
mod timing;

pub use field::{SafeField, record};
#[cfg(feature = "measure")]
pub use redact::PlainPass;
pub use redact::{MASK, Redactor, SafeUrl, Secret, StreamRedactor};
pub use secrecy::{ExposeSecret, SecretString};
pub use timing::AttemptTiming;
