//! Where the time of one attempt went.
//!
//! Pure: marks are durations since the attempt began, taken from whatever clock
//! the caller has, so that tests can use virtual time.

use std::time::Duration;

use turnbuckle_errors::Details;

/// The time line of one attempt, from sending the request to its end.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle_diagnostics::AttemptTiming;
///
/// let mut timing = AttemptTiming::default();
/// timing.headers(Duration::from_millis(300));
/// timing.bytes(100, Duration::from_millis(350));
/// timing.ended(Duration::from_millis(900));
/// assert_eq!(timing.provider_wait(), Duration::from_millis(300));
/// assert_eq!(timing.stream(), Duration::from_millis(600));
/// assert_eq!(timing.idle(), Duration::from_millis(550));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttemptTiming {
    headers: Option<Duration>,
    last_byte: Option<Duration>,
    ended: Duration,
    bytes: u64,
    events: u64,
}

impl AttemptTiming {
    /// The response head came.
    pub fn headers(&mut self, at: Duration) {
        self.headers.get_or_insert(at);
        self.ended = at;
    }

    /// `count` bytes of the body came.
    pub fn bytes(&mut self, count: usize, at: Duration) {
        self.bytes = self.bytes.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        self.last_byte = Some(at);
        self.ended = at;
    }

    /// One event of the stream was decoded.
    pub fn event(&mut self) {
        self.events = self.events.saturating_add(1);
    }

    /// The attempt ended, well or not.
    pub fn ended(&mut self, at: Duration) {
        self.ended = at;
    }

    /// From sending the request to the response head, or to the end without one.
    #[must_use]
    pub fn provider_wait(&self) -> Duration {
        self.headers.unwrap_or(self.ended)
    }

    /// From the response head to the end.
    #[must_use]
    pub fn stream(&self) -> Duration {
        self.headers.map_or(Duration::ZERO, |headers| self.ended.saturating_sub(headers))
    }

    /// From the last byte, or else the head, to the end.
    #[must_use]
    pub fn idle(&self) -> Duration {
        let last = self.last_byte.or(self.headers).unwrap_or_default();
        self.ended.saturating_sub(last)
    }

    /// Writes all of it into the details of a failure.
    pub fn describe(&self, details: &mut Details) {
        details.provider_wait_ms = Some(millis(self.provider_wait()));
        details.idle_ms = Some(millis(self.idle()));
        if self.headers.is_some() {
            details.stream_ms = Some(millis(self.stream()));
        }
        details.bytes_received = Some(self.bytes);
        details.events_received = Some(self.events);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use turnbuckle_errors::{ErrorCode, Failure};

    use super::*;

    #[test]
    fn an_attempt_without_a_head_has_waited_and_never_streamed() {
        let mut timing = AttemptTiming::default();
        timing.ended(Duration::from_millis(70));
        let failure =
            Failure::new(ErrorCode::NetworkError, "x").with_details(|d| timing.describe(d));
        let details = failure.details();
        assert_eq!(details.provider_wait_ms, Some(70));
        assert_eq!(details.stream_ms, None);
        assert_eq!(details.idle_ms, Some(70));
        assert_eq!(details.bytes_received, Some(0));
    }

    #[test]
    fn wait_and_stream_add_up_to_the_whole() {
        let mut timing = AttemptTiming::default();
        timing.headers(Duration::from_millis(10));
        timing.bytes(5, Duration::from_millis(15));
        timing.bytes(7, Duration::from_millis(20));
        timing.event();
        timing.ended(Duration::from_millis(33));
        assert_eq!(timing.provider_wait() + timing.stream(), Duration::from_millis(33));
        assert_eq!(timing.idle(), Duration::from_millis(13));
        let failure =
            Failure::new(ErrorCode::StreamFailed, "x").with_details(|d| timing.describe(d));
        assert_eq!(failure.details().bytes_received, Some(12));
        assert_eq!(failure.details().events_received, Some(1));
    }
}
