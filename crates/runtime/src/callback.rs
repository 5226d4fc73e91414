//! Calls into the host's code, whose faults must not become the turn's.
//!
//! A callback that panics is caught here and told to the log. One that blocks
//! the thread cannot be: it holds up its own prompt, and whatever else the
//! executor runs on that thread, until it returns.

use std::{
    borrow::Cow,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use futures_util::FutureExt as _;
use jiff::Timestamp;
use turnbuckle_errors::{ErrorCode, Failure, Opaque, Origin, Redact};

use crate::{SystemWorld, World};

/// What a callback gives; `None` if it panicked.
pub(crate) fn contained<T>(callback: &'static str, call: impl FnOnce() -> T) -> Option<T> {
    // The turn keeps nothing that the callback could have left half done.
    let called = catch_unwind(AssertUnwindSafe(call));
    called.map_err(|_| tracing::error!(callback, "a callback of the host panicked")).ok()
}

/// The same for work that waits: what it gives; `None` if it panicked.
pub(crate) async fn contained_work<T>(
    callback: &'static str,
    work: impl Future<Output = T>,
) -> Option<T> {
    let worked = AssertUnwindSafe(work).catch_unwind().await;
    worked.map_err(|_| tracing::error!(callback, "a callback of the host panicked")).ok()
}

/// The failure of a prompt for which such a callback was needed.
pub(crate) fn broke_down(message: &'static str) -> Failure {
    Failure::new(ErrorCode::Internal, message).with_origin(Origin::Host)
}

/// A host's world; where it panics, the real one stands in.
pub(crate) struct Sturdy(pub(crate) Arc<dyn World>);

impl World for Sturdy {
    fn now(&self) -> Timestamp {
        contained("World::now", || self.0.now()).unwrap_or_else(|| SystemWorld.now())
    }

    fn new_id(&self) -> String {
        contained("World::new_id", || self.0.new_id()).unwrap_or_else(|| SystemWorld.new_id())
    }

    /// From 0 to 1, whatever the host's world says.
    fn jitter(&self) -> f64 {
        let sample = contained("World::jitter", || self.0.jitter()).unwrap_or_default();
        if sample.is_nan() { 0.0 } else { sample.clamp(0.0, 1.0) }
    }
}

/// A host's redactor; where it panics, the text is withheld.
pub(crate) struct SturdyRedact(pub(crate) Arc<dyn Redact>);

impl Redact for SturdyRedact {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let redacted = contained("Redact::redact", || self.0.redact(text));
        redacted.unwrap_or_else(|| Opaque.redact(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken;

    impl World for Broken {
        fn now(&self) -> Timestamp {
            panic!("no clock")
        }

        fn new_id(&self) -> String {
            panic!("no ids")
        }

        fn jitter(&self) -> f64 {
            panic!("no dice")
        }
    }

    struct Loaded(f64);

    impl World for Loaded {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn new_id(&self) -> String {
            "id".into()
        }

        fn jitter(&self) -> f64 {
            self.0
        }
    }

    #[test]
    fn where_a_world_panics_the_real_one_stands_in() {
        let world = Sturdy(Arc::new(Broken));
        assert!(world.now() > Timestamp::UNIX_EPOCH);
        assert_ne!(world.new_id(), world.new_id());
        assert_eq!(world.jitter().to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn chance_stays_within_its_bounds() {
        for (said, taken) in
            [(f64::NAN, 0.0), (-1.0, 0.0), (7.0, 1.0), (f64::INFINITY, 1.0), (0.25, 0.25)]
        {
            let jitter = Sturdy(Arc::new(Loaded(said))).jitter();
            assert_eq!(jitter.to_bits(), f64::to_bits(taken), "{said}");
        }
    }
}
