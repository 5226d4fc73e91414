//! The scripts that come with the crate.

/// A script that comes with the crate.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShippedScript {
    /// Its name, for [`Script::named`](crate::Script::named).
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
    ShippedScript {
        name: "flaky",
        sentence: "Fails three requests of ten, by dice, in three ways.",
        source: include_str!("../../scripts/flaky.toml"),
    },
    ShippedScript {
        name: "capacity_storm",
        sentence: "Has no room for five requests, then answers.",
        source: include_str!("../../scripts/capacity_storm.toml"),
    },
    ShippedScript {
        name: "cut_tool_call",
        sentence: "Cuts a tool call in its arguments, then sends it whole.",
        source: include_str!("../../scripts/cut_tool_call.toml"),
    },
    ShippedScript {
        name: "overflow_until_shorter",
        sentence: "Refuses a conversation as too long until it is shorter.",
        source: include_str!("../../scripts/overflow_until_shorter.toml"),
    },
    ShippedScript {
        name: "every_session_breaks_once",
        sentence: "Cuts the first answer of each session.",
        source: include_str!("../../scripts/every_session_breaks_once.toml"),
    },
];
