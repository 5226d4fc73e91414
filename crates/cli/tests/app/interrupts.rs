//! Signals, readers that leave, and output that does not arrive.

use std::{io::BufRead as _, process::Stdio};

use serde_json::Value;

use crate::stage::{Stage, app, kinds};

#[test]
fn an_interrupt_ends_the_run_quietly_with_130() {
    let stage = Stage::of(&["stall"]);
    let mut command = app(&stage.state());
    command
        .args(["run", "go", "--output", "ndjson", "--base-url", &stage.base_url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines =
        std::io::BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    // Once a delta came, the run is in the middle of its answer.
    let begun = lines.by_ref().find(|line| line.contains("message_update")).unwrap();
    assert!(begun.contains("delta"));
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    let rest: Vec<Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let tail: Vec<_> = kinds(&rest).into_iter().rev().take(3).collect();
    assert_eq!(tail, ["agent_end", "turn_end", "message_end"]);
    assert_eq!(rest.last().unwrap()["outcome"], "aborted");
    assert_eq!(stage.asked().len(), 1);
}

#[test]
fn a_reader_that_leaves_ends_the_run() {
    let stage = Stage::new("[[step]]\nbehaviour = \"whole\"\nevent_delay_ms = 20\n");
    let mut command = app(&stage.state());
    command
        .args(["run", "go", "--output", "ndjson", "--base-url", &stage.base_url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(stage.asked().len() <= 1);
}

#[test]
fn two_signals_at_once_do_not_cut_the_end_off() {
    let stage = Stage::of(&["stall"]);
    let mut command = app(&stage.state());
    command
        .args(["run", "go", "--output", "ndjson", "--base-url", &stage.base_url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines =
        std::io::BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.by_ref().find(|line| line.contains("message_update")).unwrap();
    for signal in ["-INT", "-HUP", "-TERM"] {
        let sent =
            std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.is_ok());
    }
    let rest: Vec<Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(rest.last().unwrap()["type"], "agent_end");
}

#[test]
fn output_that_does_not_arrive_is_no_success() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    for format in ["text", "json", "ndjson"] {
        let stage = Stage::of(&["whole"]);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = app(&stage.state());
        command
            .args(["run", "go", "--output", format, "--base-url", &stage.base_url()])
            .stdout(full)
            .stderr(Stdio::piped());
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{format}");
        assert!(stderr.contains("the output could not be written"), "{format}: {stderr}");
    }
}

#[test]
fn an_interrupt_ends_a_run_that_nobody_reads() {
    // More than a pipe holds, so that the run waits for its reader.
    let text = "many words that fill a pipe ".repeat(20_000);
    let stage = Stage::new(&format!("[[step]]\nbehaviour = \"whole\"\ntext = \"{text}\"\n"));
    let mut command = app(&stage.state());
    command
        .args(["run", "go", "--output", "ndjson", "--base-url", &stage.base_url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("message_update") {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.is_ok());
    // Nobody reads on, and still it ends.
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_model_cannot_steer_a_terminal_whatever_its_size() {
    let helper = std::process::Command::new("script").arg("--version").output();
    if !helper.is_ok_and(|helper| String::from_utf8_lossy(&helper.stdout).contains("util-linux")) {
        return;
    }
    // 0 by 0 is what a terminal says that does not know its size.
    for size in ["cols 80 rows 24", "cols 0 rows 0"] {
        let text = r#"begin \u001b]52;c;aGk=\u0007\u001b[2J\u009b1m end"#;
        let stage = Stage::new(&format!("[[step]]\nbehaviour = \"whole\"\ntext = \"{text}\"\n"));
        let run = format!(
            "stty {size}; exec {} run go --base-url {} --workspace {}",
            env!("CARGO_BIN_EXE_turnbuckle"),
            stage.base_url(),
            stage.workspace().display()
        );
        let output = std::process::Command::new("script")
            .args(["--quiet", "--return", "--command", &run, "/dev/null"])
            .env_remove("OPENAI_API_KEY")
            .env("TURNBUCKLE_STATE_DIR", stage.state())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let screen = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(screen.contains("begin ]52;c;aGk=[2J1m end"), "{size}: {screen:?}");
    }
}
