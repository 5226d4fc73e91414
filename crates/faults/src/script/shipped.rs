//! The scripts that come with the crate.

/// A script that comes with the crate.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShippedScript {
    /// Its name, for [`Script::named`].
    pub name: &'static str,
    /// What it plays, in one sentence.
    pub sentence: &'static str,
    /// Its TOML.
    pub source: &'static str,
}

pub(super) static SHIPPED: &[ShippedScript] = &[
    ShippedScript {
        name: "demo",
        sentence: "Reads and edits a file, is rate-limited once, cut once, then answers.",
        source: include_str!("../../scripts/demo.toml"),
    },
    ShippedScript {
        name: "cut_once",
        sentence: "Is cut in the middle of its first answer, then answers.",
        source: include_str!("../../scripts/cut_once.toml"),
    },
    ShippedScript {
        name: "rate_limited_twice",
        sentence: "Is rate-limited twice, then answers.",
        source: include_str!("../../scripts/rate_limited_twice.toml"),
    },
    ShippedScript {
        name: "edit_fails_twice",
        sentence: "Writes a file, then asks twice for an edit whose old text is not in it.",
        source: include_str!("../../scripts/edit_fails_twice.toml"),
    },
    ShippedScript {
        name: "commands_run_away",
        sentence: "Runs commands that flood, hang, stay behind and ignore signals, then answers.",
        source: include_str!("../../scripts/commands_run_away.toml"),
    },
];
