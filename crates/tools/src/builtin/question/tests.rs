use serde_json::json;

use super::*;
use crate::builtin::fixture::Fixture;

fn asked(tool: &str, input: &Value) -> String {
    let fixture = Fixture::new();
    let root = fixture.workspace.path().to_str().unwrap();
    fixture.tool(tool).describe(input).replace(root, "ROOT")
}

/// What is asked before a command runs.
const RUN: &str = "run this shell command in ROOT, with all your rights:\n";

#[test]
fn the_end_of_a_command_is_not_hidden_by_its_length() {
    let padded = format!("true {}; rm -rf ~", "x".repeat(3000));
    let question = asked("Bash", &json!({ "command": padded }));
    assert_eq!(question, format!("{RUN}{padded}"));
    let padded = format!("true {}; rm -rf ~", "ä".repeat(100_000));
    let question = asked("Bash", &json!({ "command": padded }));
    assert!(question.starts_with(&format!("{RUN}true ä")), "the head is shown");
    assert!(question.ends_with("ä; rm -rf ~"), "the tail is shown");
    assert!(question.len() < 9 * 1024, "{}", question.len());
    let shown = question.matches('ä').count();
    assert!(question.contains(&format!("\n… {} characters not shown …\n", 100_000 - shown)));
}

#[test]
fn the_bound_is_eight_kibibytes() {
    let command = "y".repeat(SHOWN);
    assert_eq!(whole(&command), command);
    let half = "y".repeat(SHOWN / 2);
    let longer = format!("{half}z{half}");
    assert_eq!(whole(&longer), format!("{half}\n… 1 characters not shown …\n{half}"));
}

#[test]
fn what_a_screen_would_hide_is_spelled_out() {
    let command = "echo \u{1b}[8mhidden\r; \u{202e}x\u{200b}\0\n\tls ä 漢 \u{1f600}";
    let expected = "echo \\u{1b}[8mhidden\\r; \\u{202e}x\\u{200b}\\u{0}\n\tls ä 漢 \u{1f600}";
    let question = asked("Bash", &json!({ "command": command }));
    assert_eq!(question, format!("{RUN}{expected}"));
    let question = asked("Read", &json!({"path": "a\nb\u{7f}"}));
    assert_eq!(question, "read the file a\\nb\\u{7f}");
    let question = asked("Read", &json!({"path": "a".repeat(10_000)}));
    assert!(question.contains("a … 1808 characters not shown … a"), "{question}");
}

#[test]
fn a_write_shows_its_size_and_first_lines() {
    let question = asked("Write", &json!({"path": "src/a", "content": "one\r\ntwo\n\nfour"}));
    assert_eq!(
        question,
        "write the file src/a, as a new one or over the one there (4 lines, 14 bytes):\n\
         + one\\r\n+ two\n+ \n+ four"
    );
    let content: String = (1..=30).map(|number| format!("{number}\n")).collect();
    let question = asked("Write", &json!({"path": "a", "content": content}));
    assert!(question.ends_with("\n+ 19\n+ 20\n… 30 characters not shown …"), "{question}");
    let question = asked("Write", &json!({"path": "a", "content": "ä".repeat(5000)}));
    assert!(question.ends_with("ä\n… 3976 characters not shown …"), "{question}");
    assert!(question.len() < 3000);
    let exact = "x\n".repeat(BEGIN_LINES);
    assert!(!begin("+ ", &exact).contains("not shown"));
    let question = asked("Write", &json!({"path": "a", "content": ""}));
    assert!(question.ends_with("(0 lines, 0 bytes)"), "{question}");
}

#[test]
fn an_edit_shows_the_old_and_the_new_text() {
    let input = json!({"path": "a", "old_string": "one\n+ two", "new_string": "three"});
    assert_eq!(
        asked("Edit", &input),
        "change one place in the file a, from (2 lines, 9 bytes):\n- one\n- + two\n\
         to (1 line, 5 bytes):\n+ three"
    );
    let input = json!({"path": "a", "old_string": "one", "new_string": "", "replace_all": true});
    assert_eq!(
        asked("Edit", &input),
        "change every place of a text in the file a, from (1 line, 3 bytes):\n- one\nto nothing"
    );
    let long = format!("{}end", "y".repeat(50_000));
    let question = asked("Edit", &json!({"path": "a", "old_string": long, "new_string": long}));
    assert_eq!(question.matches("characters not shown").count(), 2);
    assert_eq!(question.matches("yend").count(), 2);
    assert!(question.len() < 18 * 1024);
}

#[test]
fn input_that_is_not_right_is_described_all_the_same() {
    for (tool, expected) in [
        ("Read", "read the file ?"),
        ("Write", "write the file ?, as a new one or over the one there (0 lines, 0 bytes)"),
        ("Edit", "change one place in the file ?, from nothing\nto nothing"),
        ("Bash", &format!("{RUN}?")),
    ] {
        for input in [json!({}), json!(null), json!({"path": 1, "command": []})] {
            assert_eq!(asked(tool, &input), expected);
        }
    }
}
