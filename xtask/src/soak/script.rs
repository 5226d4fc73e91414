//! What the provider does: whole answers, some of them calls of a tool, and in a part of
//! the requests a fault.

use anyhow::Result;
use serde_json::json;
use turnbuckle_faults::{After, Dealing, Match, Script, Step};

/// The faults of the provider, each as likely as the others. They are those that a
/// server on the way has: broken connections, errors, limits, silence, half answers,
/// and connections that are given up between two requests.
const FAULTS: &[&str] = &[
    "cut_before_status",
    "cut_after_headers",
    "cut_inside_event",
    "fin_inside_chunk",
    "end_before_terminal",
    "server_error",
    "html_error_page",
    "rate_limit",
    "overloaded",
    "inband_error",
    "malformed_event",
    "bad_chunk",
    "gzip_cut",
    "stall",
    "empty_answer",
    "close_after_answer",
    "reset_on_reuse",
];

/// The file that the tool reads.
pub(super) const NOTES: &str = "notes.txt";

/// Answers in a row before the script starts again.
const ANSWERS: f64 = 3.0;

/// A script in which this percentage of the requests meets a fault.
pub(super) fn script(percent: f64, seed: u64) -> Result<Script> {
    let mut steps = Vec::new();
    if percent > 0.0 {
        let share = (percent / 100.0).min(0.9);
        let chance = ANSWERS * share / (1.0 - share) / FAULTS.len() as f64;
        for name in FAULTS {
            steps.push(Step::named(name)?.probability(chance));
        }
    }
    let read = Step::named("whole")?.tool_call("Read", &json!({"path": NOTES}));
    steps.push(Step::named("whole")?);
    steps.push(read.when(Match::default().has_tool_result(false)));
    steps.push(Step::named("whole")?);
    let dealing = Dealing::default().after(After::StartAgain).seed(seed);
    Ok(Script::new(steps)?.dealt(dealing)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_may_strike_and_none_where_none_is_asked_for() {
        let names = |percent| {
            let script = script(percent, 1).unwrap();
            script.steps().iter().filter_map(Step::name).collect::<Vec<_>>()
        };
        assert_eq!(names(0.0), ["whole"; 3]);
        assert_eq!(names(5.0).len(), FAULTS.len() + 3);
    }
}
