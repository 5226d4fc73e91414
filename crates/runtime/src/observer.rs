//! For hosts that want to watch without reading the event stream.

use crate::Event;

/// Watches running prompts, for logs and metrics.
///
/// Called inside the turn: be quick, and never block.
pub trait TurnObserver: Send + Sync {
    /// Told of every event, before the host reads it.
    fn on_event(&self, event: &Event) {
        let _ = event;
    }
}
