//! How much of each case is measured, and what it may cost.

use super::case::{Case, Dialect, Shape};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(super) enum Amount {
    Full,
    /// A tenth, to try something out.
    Quick,
}

/// A case, and what is asked of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub(super) case: Case,
    /// The most that our CPU time may be of the yardstick's; without it the ratio
    /// is only shown.
    pub(super) ratio: Option<f64>,
    /// Whether it is twice the case before it, and must cost less than
    /// [`LINEAR`] times as much.
    pub(super) doubled: bool,
    /// The most KiB of memory above the answer.
    pub(super) memory: Option<u64>,
}

/// The most that twice as much may cost.
pub(super) const LINEAR: f64 = 2.3;

/// How much more than its answer a reader may hold.
const MEMORY_KIB: u64 = 10 * 1024;

/// How much a stream that waits may hold.
const REST_KIB: u64 = 64;

/// Everything that is measured, in the order in which it is.
pub(super) fn planned(amount: Amount) -> Vec<Planned> {
    let part = |full: usize| match amount {
        Amount::Full => full,
        Amount::Quick => full / 10,
    };
    let plain = |dialect, shape, full| Planned {
        case: Case { dialect, shape, size: part(full) },
        ratio: None,
        doubled: false,
        memory: None,
    };
    let mut all = Vec::new();
    for dialect in Dialect::ALL {
        let ratio = match dialect {
            Dialect::Chat | Dialect::Anthropic => 1.0,
            Dialect::Responses | Dialect::Gemini => 1.2,
        };
        let long = plain(dialect, Shape::Long, 300_000);
        all.push(Planned { ratio: Some(ratio), memory: Some(MEMORY_KIB), ..long });
        all.push(plain(dialect, Shape::Apart, 300_000));
        for (shape, size) in [(Shape::Big, 8_000_000), (Shape::Fragments, 50_000)] {
            all.push(plain(dialect, shape, size));
            all.push(Planned { doubled: true, ..plain(dialect, shape, 2 * size) });
        }
        all.push(plain(dialect, Shape::First, 200));
        all.push(Planned { ratio: Some(1.5), ..plain(dialect, Shape::Rounds, 300) });
    }
    all.push(plain(Dialect::Chat, Shape::Paced, 1000));
    for dialect in Dialect::ALL {
        let size = part(1000);
        all.push(Planned {
            memory: Some(REST_KIB * size as u64),
            ..plain(dialect, Shape::Rest, 1000)
        });
    }
    all
}
