#![doc = include_str!("../README.md")]

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
