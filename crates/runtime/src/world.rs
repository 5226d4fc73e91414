//! What a pure function cannot know: the date, fresh ids, chance.

use jiff::Timestamp;

/// Where the runtime takes the date, fresh ids and chance from.
///
/// Tests put a fixed one in its place, so that whole event sequences can be
/// compared.
pub trait World: Send + Sync {
    /// The date, for time stamps; waits are measured by tokio's clock.
    fn now(&self) -> Timestamp;

    /// A fresh id, unique for ever.
    fn new_id(&self) -> String;

    /// A sample from 0 to 1, to spread retries.
    fn jitter(&self) -> f64;
}

/// The real one: the system's date, time-ordered UUIDs, a random sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemWorld;

impl World for SystemWorld {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn new_id(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }

    fn jitter(&self) -> f64 {
        fastrand::f64()
    }
}
