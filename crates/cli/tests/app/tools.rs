use serde_json::{Value, json};

use crate::stage::{Stage, kinds};

fn result_of(body: &Value, id: &str) -> String {
    let messages = body["messages"].as_array().unwrap();
    let result = messages.iter().find(|message| message["tool_call_id"] == id).unwrap();
    result["content"].as_str().unwrap().to_owned()
}

const READ_THEN_EDIT: &str = r#"
[[step]]
behaviour = "whole"
[[step.tool_call]]
name = "Read"
arguments = { path = "notes.txt" }

[[step]]
behaviour = "whole"
[[step.tool_call]]
name = "Edit"
arguments = { path = "notes.txt", old_string = "two", new_string = "2" }

[[step]]
behaviour = "whole"
text = "done"
"#;

#[test]
fn a_model_reads_and_edits_a_real_file() {
    let stage = Stage::new(READ_THEN_EDIT);
    let file = stage.workspace().join("notes.txt");
    std::fs::write(&file, "one\r\ntwo\r\nthree").unwrap();
    let ran = stage.run(&["--permission", "accept-edits", "--output", "ndjson"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read(&file).unwrap(), b"one\r\n2\r\nthree");
    let events = ran.lines();
    let start = events.iter().position(|event| event["type"] == "tool_execution_start").unwrap();
    assert_eq!(events[start]["arguments"], json!({"path": "notes.txt"}));
    assert_eq!(
        kinds(&events[start..start + 4]),
        ["tool_execution_start", "tool_execution_end", "turn_end", "turn_start"]
    );
    let asked = stage.asked();
    assert!(result_of(&asked[1].body, "call_1").contains("two"));
}

#[test]
fn off_a_terminal_tools_may_only_read() {
    let stage = Stage::new(READ_THEN_EDIT);
    let file = stage.workspace().join("notes.txt");
    std::fs::write(&file, "one two").unwrap();
    let summary = stage.run(&["--output", "json"]).object();
    assert_eq!(summary["ok"], true);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one two");
    let oks: Vec<_> =
        summary["toolCalls"].as_array().unwrap().iter().map(|call| &call["ok"]).collect();
    assert_eq!(oks, [true, false]);
}

#[test]
fn the_same_edit_failing_twice_ends_the_prompt_with_both_mismatches() {
    let edit = "[[step]]\nbehaviour = \"whole\"\n[[step.tool_call]]\nname = \"Read\"\n\
                arguments = { path = \"notes.txt\" }\n\
                [[step]]\nbehaviour = \"whole\"\n[[step.tool_call]]\nname = \"Edit\"\n\
                arguments = { path = \"notes.txt\", old_string = \"tow\", new_string = \"2\" }\n";
    let stage = Stage::new(edit);
    let file = stage.workspace().join("notes.txt");
    std::fs::write(&file, "one\ntwo\n").unwrap();
    let ran = stage.run(&["--permission", "auto", "--output", "json"]);
    assert_eq!(ran.code, Some(1));
    let failure = &ran.object()["failure"];
    assert_eq!(failure["code"], "MUTATION_RETRY_BUDGET_EXHAUSTED");
    assert_eq!(failure["causeCode"], "EDIT_NO_MATCH");
    assert_eq!(failure["details"]["kind"], "edit");
    assert_eq!(failure["details"]["target"], "notes.txt");
    assert_eq!(failure["details"]["mismatches"].as_array().unwrap().len(), 2);
    assert_eq!(stage.asked().len(), 3);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntwo\n");

    let text = Stage::new(edit);
    std::fs::write(text.workspace().join("notes.txt"), "one\ntwo\n").unwrap();
    let ran = text.run(&["--permission", "auto"]);
    assert_eq!(ran.stderr.matches("  mismatch: ").count(), 2, "{}", ran.stderr);
}

#[test]
fn a_shell_command_runs_without_a_key_in_its_environment() {
    let stage = Stage::new(
        "[[step]]\nbehaviour = \"whole\"\n[[step.tool_call]]\nname = \"Bash\"\n\
         arguments = { command = \"echo [$OPENAI_API_KEY$MY_KEY]; pwd\" }\n\
         [[step]]\nbehaviour = \"whole\"\n",
    );
    let mut command = crate::stage::app(&stage.state());
    command
        .env("OPENAI_API_KEY", "sk-canary-one-123456")
        .env("MY_KEY", "sk-canary-two-123456")
        .args(["run", "go", "--permission", "auto", "--api-key-env", "MY_KEY"])
        .args(["--base-url", &stage.base_url(), "--workspace"])
        .arg(stage.workspace());
    let ran = crate::stage::ran(command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result = result_of(&stage.asked()[1].body, "call_1");
    assert!(result.contains("[]") && !result.contains("canary"), "{result}");
    assert!(result.contains("workspace"), "{result}");
}
