//! The documents say what the program does.

use std::time::Duration;

use turnbuckle_providers::Clocks;
use turnbuckle_runtime::{
    ON_RETRY_LIMIT, RecoveryPolicy,
    compaction::CompactionPolicy,
    recovery::{AlwaysMode, QuotaCosts},
};

const README: &str = include_str!("../../../../README.md");
const RECOVERY: &str = include_str!("../../../../docs/RECOVERY.md");
const SESSIONS: &str = include_str!("../../../../docs/SESSIONS.md");
const QUICKSTART: &str = include_str!("../../examples/quickstart.rs");

#[test]
fn the_example_of_the_readme_is_the_one_that_compiles() {
    let code = README.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(QUICKSTART.ends_with(code), "copy the README's example to examples/quickstart.rs");
}

#[test]
fn the_recovery_page_has_the_numbers_of_the_policy() {
    let policy = RecoveryPolicy::default();
    let ms = |duration: Duration| format!("{} ms", duration.as_millis());
    let s = |duration: Duration| format!("{} s", duration.as_secs());
    for row in [
        format!(
            "| 1 | {}, up to 25 % jitter on top, at most {};",
            ms(policy.setup.delay),
            s(policy.setup.cap)
        ),
        format!("| {} | {} |", policy.stream.retries, ms(policy.stream.delay)),
        format!(
            "either phase | {} | the server's wish up to {}",
            policy.capacity.retries,
            s(policy.capacity.server_cap)
        ),
        format!(
            "else {}, doubling, up to 25 % jitter on top, at most {} |",
            s(policy.capacity.delay),
            s(policy.capacity.cap)
        ),
        format!("| {} | none |\n| overflow", policy.silent_retries),
        format!("after one compaction | {} | none |", policy.overflow_retries),
        format!("makes at most **{} attempts**", policy.max_attempts()),
        format!("it waits at most **{} s**", policy.max_wait().as_secs_f64()),
    ] {
        assert!(RECOVERY.contains(&row), "docs/RECOVERY.md lacks: {row}");
    }
    let always = AlwaysMode::default();
    let costs = QuotaCosts::default();
    let compaction = CompactionPolicy::default();
    let told = RECOVERY.replace('\n', " ");
    for sentence in [
        format!("double from {} to {}", s(always.delay), s(always.cap)),
        format!("{} after an expired clock, {} after any", costs.timeout, costs.transient),
        format!("had cost, or {}.", costs.success),
        format!("of its own and has {}.", s(ON_RETRY_LIMIT)),
        format!("would fill {} % of it", compaction.fill_percent),
        format!("aimed at ({} % of the most", compaction.target_percent),
    ] {
        assert!(told.contains(&sentence), "docs/RECOVERY.md lacks: {sentence}");
    }
    let clocks = Clocks::default();
    for (name, clock) in [
        ("`connect`", clocks.connect),
        ("`first_event`", clocks.first_event),
        ("`byte_idle`", clocks.byte_idle),
        ("`progress_idle`", clocks.progress_idle),
        ("finish grace", clocks.finish_grace),
    ] {
        let row = format!("| {name} | {} |", s(clock));
        assert!(RECOVERY.contains(&row), "docs/RECOVERY.md lacks: {row}");
    }
}

#[test]
fn the_sessions_page_has_every_record_and_field_that_a_turn_writes() {
    let stage = crate::stage::Stage::new(
        "[[step]]\nbehaviour = \"cut_inside_event\"\n\
         [[step]]\nbehaviour = \"whole\"\n[[step.tool_call]]\nname = \"Bash\"\n\
         arguments = { command = \"true\" }\n[[step]]\nbehaviour = \"model_not_found\"\n",
    );
    assert_eq!(stage.run(&["--permission", "auto"]).code, Some(1));
    let folder = std::fs::read_dir(stage.state().join("sessions")).unwrap();
    let file = folder.map(|file| file.unwrap().path()).next().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    for line in text.lines() {
        let record: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).unwrap();
        let kind = record["record"].as_str().unwrap().to_owned();
        let row = SESSIONS.lines().find(|line| line.starts_with(&format!("| `{kind}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/SESSIONS.md lacks the record {kind}"));
        for field in record.keys().filter(|field| !["record", "at"].contains(&field.as_str())) {
            let named = [format!("`{field}`"), format!("`{field}?`")];
            assert!(named.iter().any(|name| row.contains(name)), "{kind} lacks {field}: {row}");
        }
        if kind == "session" {
            assert!(SESSIONS.contains(&format!("`version` is {}.", record["version"])));
        }
        kinds.insert(kind);
    }
    assert_eq!(kinds.len(), 9, "{kinds:?}");
}
