//! How long an attempt may wait.

use std::time::Duration;

/// How long an attempt waits for what. There is no total limit on an answer.
///
/// An expired clock is `TIMEOUT`, names itself, and closes the connection.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle_providers::Clocks;
///
/// let clocks = Clocks { byte_idle: Duration::from_secs(60), ..Clocks::default() };
/// assert_eq!(clocks.connect, Duration::from_secs(20));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// From dialling to a connection. Default 20 s.
    pub connect: Duration,
    /// From handing the request to the transport (connecting included) to the
    /// first event that is no comment. Default 300 s: models that think before
    /// they speak, and queues of busy servers.
    pub first_event: Duration,
    /// Between two bytes of the answer; comments count as bytes. Default 300 s.
    pub byte_idle: Duration,
    /// Between two deltas of the answer. Default 900 s: it ends a stream that
    /// holds nothing but keep-alives.
    pub progress_idle: Duration,
    /// After the finish reason, for token counts and the terminal event; nothing
    /// extends it, and when it is over the message is complete. Default 2 s.
    pub finish_grace: Duration,
    /// For the body of an answer whose status is outside 2xx, of which at most
    /// 64 KiB are read; after it the body is taken as far as it came. Default 10 s.
    pub error_body: Duration,
}

impl Default for Clocks {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            first_event: Duration::from_secs(300),
            byte_idle: Duration::from_secs(300),
            progress_idle: Duration::from_secs(900),
            finish_grace: Duration::from_secs(2),
            error_body: Duration::from_secs(10),
        }
    }
}
