//! What can go wrong in a model turn, said once and precisely.
//!
//! Three questions have three owners. *What happened?* is answered by
//! [`classify`] from [`Facts`], a pure function over plain data, so a host
//! without HTTP can use it too. *What may be done about it?* is one exhaustive
//! table, [`ErrorCode::recovery`]. *Whether we still may* is the business of
//! whoever owns attempts, and not of this crate.
//!
//! ```
//! use turnbuckle_errors::{classify, ErrorCode, Fact, Facts, Phase, Transport};
//!
//! let facts = Facts::new(Phase::Stream)
//!     .with(Fact::Transport(Transport::Reset))
//!     .with(Fact::Message("terminated".into()));
//! let verdict = classify(&facts);
//! assert_eq!(verdict.code, ErrorCode::StreamFailed);
//! assert!(verdict.retriable);
//! assert_eq!(verdict.rule, "transport.reset");
//! ```
//!
//! Text from outside enters a [`Failure`] only as [`SafeText`], which is made
//! through the port [`Redact`]: redacted, bounded, without control characters.

mod chain;
mod classify;
mod code;
#[cfg(any(test, feature = "test-support"))]
pub mod conformance;
mod facts;
mod failure;
mod phase;
mod recovery;
mod safe_text;
mod server_delay;

pub use chain::{MAX_CAUSES, render_chain};
pub use classify::{Classification, Explanation, Weighed, classify, explain};
pub use code::{Actor, CodeInfo, ErrorCode, Family};
pub use facts::{
    BadReport, BodyShape, Clock, ErrorBody, Fact, Facts, Http2Reason, InBandError, Protocol,
    REPORT_FIELDS, StatusFact, Transport,
};
pub use failure::{Details, Failure, Usage};
pub use phase::{Delivered, Origin, Phase};
pub use recovery::Recovery;
pub use safe_text::{MAX_SAFE_TEXT_CHARS, Opaque, Redact, SafePart, SafeText, SafeToken};
pub use server_delay::{delay_from_body, delay_from_headers, delay_from_wording};
