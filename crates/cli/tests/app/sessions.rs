//! What is kept of a run, and how a later one goes on with it.

use std::{
    io::BufRead as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::stage::{Ran, Stage, app, ran};

const TWO_ANSWERS: &str = "[[step]]\nbehaviour = \"whole\"\ntext = \"the first answer\"\n\
                           [[step]]\nbehaviour = \"whole\"\ntext = \"the second answer\"\n";

fn sessions(stage: &Stage, args: &[&str]) -> Ran {
    let mut command = app(&stage.state());
    command.arg("sessions").args(args);
    ran(command)
}

/// `turnbuckle run` without a prompt on the command line.
fn wordless(stage: &Stage, workspace: &Path, more: &[&str]) -> Ran {
    let mut command = app(&stage.state());
    command.args(["run", "--base-url", &stage.base_url(), "--workspace"]).arg(workspace).args(more);
    ran(command)
}

fn id_of(ran: &Ran) -> String {
    ran.object()["sessionId"].as_str().unwrap().to_owned()
}

fn file_of(stage: &Stage, id: &str) -> PathBuf {
    stage.state().join("sessions").join(format!("{id}.jsonl"))
}

fn roles(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages.map(|message| message["role"].as_str().unwrap()).collect()
}

#[test]
fn continue_goes_on_with_the_session_last_used_in_this_workspace() {
    let stage = Stage::new(TWO_ANSWERS);
    let elsewhere = tempfile::tempdir().unwrap();
    let none = wordless(&stage, &stage.workspace(), &["--continue"]);
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("SESSION_NOT_FOUND"), "{}", none.stderr);

    let first = stage.run(&["--output", "json"]);
    let other = wordless(&stage, elsewhere.path(), &["--continue"]);
    assert_eq!(other.code, Some(2), "{}", other.stderr);

    let second = stage.run(&["--output", "json", "--continue"]);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    assert_eq!(id_of(&second), id_of(&first));
    let third = wordless(&stage, &stage.workspace(), &["--output", "json", "--continue"]);
    assert_eq!((third.code, id_of(&third)), (Some(0), id_of(&first)), "{}", third.stderr);
    let asked = stage.asked();
    let all = ["system", "user", "assistant", "user", "assistant", "user"];
    assert_eq!(roles(&asked[2].body), all);
    let both = stage.run(&["--continue", "--session", &id_of(&first)]);
    assert_eq!(both.code, Some(2));
}

#[test]
fn a_run_that_was_killed_goes_on_with_a_whole_transcript() {
    let stage = Stage::new(
        "[[step]]\nbehaviour = \"whole\"\ntext = \"I note it\"\n[[step.tool_call]]\nname = \"Bash\"\n\
         arguments = { command = \"echo once >> log\" }\n\
         [[step]]\nbehaviour = \"stall\"\n[[step]]\nbehaviour = \"whole\"\ntext = \"back again\"\n",
    );
    let mut command = app(&stage.state());
    command
        .args(["run", "go", "--permission", "auto", "--output", "ndjson", "--base-url"])
        .args([stage.base_url().as_str(), "--workspace"])
        .arg(stage.workspace())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut lines =
        std::io::BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let in_second_step = |line: &String| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["type"] == "message_update" && event["turn"] == 2
    };
    assert!(lines.by_ref().any(|line| in_second_step(&line)));
    child.kill().unwrap();
    child.wait().unwrap();

    let more = ["--continue", "--output", "json", "--permission", "auto"];
    let ran = wordless(&stage, &stage.workspace(), &more);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("the last prompt was interrupted"), "{}", ran.stderr);
    assert_eq!(ran.object()["text"], "back again");
    assert_eq!(std::fs::read_to_string(stage.workspace().join("log")).unwrap(), "once\n");
    let asked = stage.asked();
    let body = &asked.last().unwrap().body;
    assert_eq!(roles(body), ["system", "user", "assistant", "tool", "user"]);
    let shown = sessions(&stage, &["show", &id_of(&ran)]).stdout;
    for part in ["go", "I note it", "Bash echo once", "interrupted", "back again"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn sessions_are_listed_shown_forked_exported_and_removed() {
    let stage = Stage::new(TWO_ANSWERS);
    assert_eq!(sessions(&stage, &["list"]).code, Some(0));
    let id = id_of(&stage.run(&["--output", "json"]));
    stage.run(&["--session", &id]);

    let listed = sessions(&stage, &["list", "--json"]);
    let lines = listed.lines();
    assert_eq!((lines.len(), &lines[0]["id"], &lines[0]["title"]), (1, &json!(id), &json!("go")));
    assert_eq!(lines[0]["problem"], Value::Null);
    let here = stage.workspace();
    let here = here.to_str().unwrap();
    assert_eq!(sessions(&stage, &["list", "--workspace", here]).stdout.lines().count(), 1);
    let state = stage.state();
    let there = ["list", "--workspace", state.to_str().unwrap()];
    assert_eq!(sessions(&stage, &there).stdout, "");

    // Nobody else's id begins like this.
    let prefix = &id[..20];
    let shown = sessions(&stage, &["show", prefix]);
    assert!(shown.stdout.contains("[2] model\nthe first answer"), "{}", shown.stdout);
    let markdown = sessions(&stage, &["export", prefix]).stdout;
    assert!(markdown.contains("## 4. Assistant\n\nthe second answer"), "{markdown}");
    let file = stage.workspace().join("session.json");
    let to = ["export", prefix, "--format", "json", "--to", file.to_str().unwrap()];
    assert_eq!(sessions(&stage, &to).code, Some(0));
    let exported: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(exported["entries"][3]["text"], "the second answer");

    let forked = sessions(&stage, &["fork", &id, "--at", "2"]);
    let fork = forked.stdout.trim();
    assert_ne!(fork, id);
    let went_on = stage.run(&["--session", fork, "--output", "json"]);
    assert_eq!(went_on.code, Some(0), "{}", went_on.stderr);
    let asked = stage.asked();
    let body = &asked.last().unwrap().body;
    assert_eq!(roles(body), ["system", "user", "assistant", "user"]);

    let removed = sessions(&stage, &["remove", &id, fork]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert!(!file_of(&stage, &id).exists() && !file_of(&stage, fork).exists());
}

#[test]
fn a_wrong_id_exits_2_and_says_what_to_do() {
    let stage = Stage::new(TWO_ANSWERS);
    let id = id_of(&stage.run(&["--output", "json"]));
    sessions(&stage, &["fork", &id]);
    for (args, code) in [
        (&["show", "nothing"][..], "SESSION_NOT_FOUND"),
        (&["show", "../../etc"], "SESSION_NOT_FOUND"),
        (&["show", "0"], "INVALID_ARGUMENT"),
        (&["fork", &id, "--at", "9"], "INVALID_ARGUMENT"),
        (&["export", "nothing"], "SESSION_NOT_FOUND"),
        (&["remove", &id, "nothing"], "SESSION_NOT_FOUND"),
    ] {
        let refused = sessions(&stage, args);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(refused.stderr.contains(code), "{args:?}: {}", refused.stderr);
    }
    // All ids are looked up before anything is removed.
    assert!(file_of(&stage, &id).exists());
    let run = stage.run(&["--session", "nothing", "--output", "json"]);
    assert_eq!(run.code, Some(2));
    assert_eq!(run.object()["failure"]["code"], "SESSION_NOT_FOUND");
}

#[test]
fn a_session_in_use_is_locked_and_can_be_read() {
    let stage = Stage::of(&["stall"]);
    let mut command = app(&stage.state());
    command
        .args(["run", "go", "--output", "ndjson", "--base-url", &stage.base_url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut lines =
        std::io::BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let begun = lines.by_ref().find(|line| line.contains("message_update")).unwrap();
    let begun: Value = serde_json::from_str(&begun).unwrap();
    let id = begun["sessionId"].as_str().unwrap();
    let refused = stage.run(&["--session", id, "--output", "json"]);
    let removed = sessions(&stage, &["remove", id]);
    let shown = sessions(&stage, &["show", id]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(refused.code, Some(2));
    assert_eq!(refused.object()["failure"]["code"], "SESSION_LOCKED");
    assert!(removed.code == Some(2) && removed.stderr.contains("SESSION_LOCKED"));
    assert!(shown.code == Some(0) && shown.stdout.contains("[1] user\ngo"), "{}", shown.stderr);
    // The system gives the lock of the dead back.
    assert_eq!(sessions(&stage, &["remove", id]).code, Some(0));
}

#[test]
fn damage_is_told_and_another_programs_file_is_left_alone() {
    let stage = Stage::new(TWO_ANSWERS);
    let id = id_of(&stage.run(&["--output", "json"]));
    let file = file_of(&stage, &id);
    let whole = std::fs::read_to_string(&file).unwrap();
    let damaged = whole.replacen("{\"record\":\"user\"", "{\"record\":\"user\"x", 1);
    std::fs::write(&file, format!("{damaged}{{\"record\":\"user\",\"te")).unwrap();
    let ran = stage.run(&["--session", &id]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("20 bytes of a record that was never whole"), "{}", ran.stderr);
    assert!(ran.stderr.contains("line 2 cannot be read"), "{}", ran.stderr);

    let newer = "{\"record\":\"session\",\"version\":99}\n";
    for (text, fix) in [("a diary\n", "move it out"), (newer, "update it")] {
        std::fs::write(&file, text).unwrap();
        let refused = stage.run(&["--session", &id]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains("SESSION_CORRUPT"), "{}", refused.stderr);
        assert!(refused.stderr.contains(fix), "{}", refused.stderr);
        assert!(sessions(&stage, &["list"]).stdout.contains(fix));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn an_export_into_a_pipe_is_exact() {
    let said = "colours \\u001b[31mred\\u001b[0m end";
    let stage = Stage::new(&format!("[[step]]\nbehaviour = \"whole\"\ntext = \"{said}\"\n"));
    let id = id_of(&stage.run(&["--output", "json"]));
    let piped = sessions(&stage, &["export", &id]).stdout;
    assert!(piped.contains("colours \u{1b}[31mred\u{1b}[0m end"), "{piped:?}");
    let file = stage.workspace().join("session.md");
    assert_eq!(sessions(&stage, &["export", &id, "--to", file.to_str().unwrap()]).code, Some(0));
    assert_eq!(std::fs::read_to_string(file).unwrap(), piped);
}
