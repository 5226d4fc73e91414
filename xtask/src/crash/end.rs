//! The ways in which a process, or its store, comes to an end.

use fastrand::Rng;

/// The events of the whole turn: ends are spread over so many.
const EVENTS: usize = 325;

/// The tool calls of the whole turn.
const CALLS: usize = 22;

/// The size of the session file of the whole turn in bytes, roughly.
const BYTES: u64 = 10_200;

/// A way to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// SIGKILL.
    Killed,
    /// The system ends the process in the middle of a write, at a given byte.
    Torn,
    /// The store is full: a write comes back short, the next one fails.
    Full,
    /// The machine ends: what was written after the last sync is gone, in part, or
    /// zeros.
    Forgot,
    /// The file system becomes read-only.
    ReadOnly,
    /// A sync fails.
    Unsynced,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Killed => "SIGKILL",
            Self::Torn => "killed in a write",
            Self::Full => "store full, short write",
            Self::Forgot => "store forgets since its sync",
            Self::ReadOnly => "store read-only",
            Self::Unsynced => "sync fails",
        }
    }
}

/// A way to end, and the moment.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    /// After so many events, and so many microseconds more.
    Killed {
        events: usize,
        then_us: u64,
    },
    /// After the start of so many tool calls, and so many microseconds more, in which
    /// the program of the tool starts, runs, and ends.
    KilledInTool {
        calls: usize,
        then_us: u64,
    },
    /// When the file would grow beyond so many bytes.
    Torn {
        bytes: u64,
    },
    Full {
        bytes: u64,
    },
    /// After so many events; what is left of the unsynced bytes is chosen by `seed`.
    Forgot {
        events: usize,
        seed: u64,
    },
    /// At the append of this number.
    ReadOnly {
        appends: u64,
    },
    /// At the sync of this number.
    Unsynced {
        syncs: u64,
    },
}

impl End {
    /// Chooses one. A session that goes on is shorter than a whole one, so that
    /// `part` of it is spread over that.
    pub(super) fn choose(rng: &mut Rng, part: f64) -> Self {
        let events = |rng: &mut Rng| rng.usize(0..portion(EVENTS, part));
        match rng.u32(0..100) {
            0..35 => Self::Killed { events: events(rng), then_us: rng.u64(0..15_000) },
            35..50 => Self::KilledInTool {
                calls: 1 + rng.usize(0..portion(CALLS, part)),
                then_us: rng.u64(0..8_000),
            },
            50..70 if cfg!(target_os = "linux") => Self::Torn { bytes: rng.u64(1..BYTES) },
            70..80 if cfg!(target_os = "linux") => Self::Full { bytes: rng.u64(400..BYTES) },
            80..92 => Self::Forgot { events: events(rng), seed: rng.u64(..) },
            92..96 => Self::ReadOnly { appends: rng.u64(0..40) },
            96..100 => Self::Unsynced { syncs: rng.u64(0..15) },
            _ => Self::Killed { events: events(rng), then_us: 0 },
        }
    }

    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Killed { .. } | Self::KilledInTool { .. } => Kind::Killed,
            Self::Torn { .. } => Kind::Torn,
            Self::Full { .. } => Kind::Full,
            Self::Forgot { .. } => Kind::Forgot,
            Self::ReadOnly { .. } => Kind::ReadOnly,
            Self::Unsynced { .. } => Kind::Unsynced,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few hundred, and a part of it"
)]
fn portion(whole: usize, part: f64) -> usize {
    ((whole as f64 * part) as usize).max(1)
}
