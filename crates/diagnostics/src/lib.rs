//! What people may see of a turn: secrets masked, time accounted for.

mod field;
mod redact;
mod timing;

pub use field::{SafeField, record};
#[cfg(feature = "measure")]
pub use redact::PlainPass;
pub use redact::{MASK, Redactor, SafeUrl, Secret, StreamRedactor};
pub use secrecy::{ExposeSecret, SecretString};
pub use timing::AttemptTiming;
