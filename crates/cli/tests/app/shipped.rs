//! The scripts of `faults serve` that show what the tools hold against.

use std::fs;

use serde_json::Value;
use turnbuckle_faults::Script;

use crate::stage::{Ran, Stage, app, ran};

fn stage(name: &str) -> Stage {
    let shipped = Script::shipped().iter().find(|shipped| shipped.name == name).unwrap();
    Stage::new(shipped.source)
}

#[test]
fn an_edit_that_fails_twice_ends_the_run_and_shows_both_mismatches() {
    let stage = stage("edit_fails_twice");
    let ran = stage.run(&["--permission", "accept-edits", "--output", "json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let failure = &ran.object()["failure"];
    assert_eq!(failure["code"], "MUTATION_RETRY_BUDGET_EXHAUSTED");
    assert_eq!(failure["causeCode"], "EDIT_NO_MATCH");
    assert_eq!(failure["details"]["target"], "greeting.txt");
    let mismatches = failure["details"]["mismatches"].as_array().unwrap();
    assert_eq!(mismatches.len(), 2);
    let told = |text: &Value| text.as_str().unwrap().contains("`old_string` is not in the file");
    assert!(mismatches.iter().all(told), "{mismatches:?}");
    let difference = |text: &Value| text.as_str().unwrap().contains("first difference at line 1");
    assert!(mismatches.iter().all(difference), "{mismatches:?}");
    assert_eq!(stage.asked().len(), 3, "the last step is never asked for");
    let file = stage.workspace().join("greeting.txt");
    assert_eq!(fs::read_to_string(file).unwrap(), "Hello, world!\n");

    let text = self::stage("edit_fails_twice").run(&["--permission", "accept-edits"]);
    assert_eq!(text.code, Some(1));
    assert!(text.stderr.contains("MUTATION_RETRY_BUDGET_EXHAUSTED"), "{}", text.stderr);
    assert_eq!(text.stderr.matches("  mismatch: ").count(), 2, "{}", text.stderr);
}

/// The results that the provider got, in the order of the calls.
fn results(stage: &Stage) -> Vec<String> {
    let asked = stage.asked();
    let messages = asked.last().unwrap().body["messages"].as_array().unwrap().clone();
    let of = |message: &Value| message["content"].as_str().unwrap().to_owned();
    messages.iter().filter(|message| message["role"] == "tool").map(of).collect()
}

/// The processes that carry a mark in their environment.
#[cfg(target_os = "linux")]
fn carriers(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let environment = fs::read(path.join("environ")).ok()?;
        let carries = String::from_utf8_lossy(&environment).contains(mark);
        carries.then(|| fs::read_to_string(path.join("cmdline")).unwrap_or_default())
    });
    processes.collect()
}

#[cfg(target_os = "linux")]
#[test]
fn commands_that_run_away_all_come_back_and_leave_nothing() {
    let stage = stage("commands_run_away");
    // What a command carries, so that an outer one finds the processes of inner ones.
    let mark = format!("shipped-{}", std::process::id());
    let mut command = app(&stage.state());
    command
        .env("TURNBUCKLE_CALL", &mark)
        .args(["run", "go", "--permission", "auto", "--output", "json"])
        .args(["--base-url", &stage.base_url(), "--workspace"])
        .arg(stage.workspace());
    let ran: Ran = ran(command);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.object()["text"], "All four commands came back.");
    let results = results(&stage);
    let [flood, behind, input, stubborn] = results.as_slice() else {
        panic!("four results: {results:?}");
    };
    assert!(flood.starts_with("exit code 0 ") && flood.len() < 100 * 1024, "{}", flood.len());
    assert!(flood.contains("bytes left out here) …\n") && flood.contains("first 64 MiB"));
    assert!(behind.contains("background processes were still running and were ended"), "{behind}");
    assert!(input.starts_with("exit code 0 ") && input.ends_with("\n(no output)\n"), "{input}");
    assert!(stubborn.contains("timed out after 1000 ms and was ended"), "{stubborn}");
    assert_eq!(carriers(&mark), [""; 0]);
    assert!(ran.object()["timing"]["toolMs"].as_u64().unwrap() >= 3000, "TERM got its 2 s");
    // The kept output goes with the session.
    let path = flood.split('`').find(|part| part.contains("output-")).unwrap();
    assert!(!fs::exists(path).unwrap(), "{path}");
}
