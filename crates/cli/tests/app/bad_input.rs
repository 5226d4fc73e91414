use std::{ffi::OsString, io::Write as _, process::Stdio};

use serde_json::Value;

use crate::stage::{Ran, Stage, app, bare, kinds, ran};

/// A run that must be refused before any request, with this code and these words.
#[track_caller]
fn refused(stage: &Stage, more: &[&str], code: &str, words: &[&str]) {
    for format in ["text", "json", "ndjson"] {
        let mut args = more.to_vec();
        args.extend(["--output", format]);
        let ran = stage.run(&args);
        assert_eq!(ran.code, Some(2), "{more:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with(&format!("error: {code}: ")), "{more:?}: {}", ran.stderr);
        for word in words {
            assert!(ran.stderr.contains(word), "{more:?}: {} lacks {word}", ran.stderr);
        }
        match format {
            "json" => assert_eq!(ran.object()["failure"]["code"], code),
            "ndjson" => {
                assert_eq!(kinds(&ran.lines()), ["agent_start", "error", "agent_end"]);
                assert_eq!(ran.lines()[2]["failure"]["code"], code);
            }
            _ => assert_eq!(ran.stdout, ""),
        }
    }
    assert!(stage.asked().is_empty(), "{more:?}");
}

#[test]
fn wrong_names_are_answered_with_the_nearest_right_one() {
    let stage = Stage::of(&["whole"]);
    refused(
        &stage,
        &["--provider", "openai-chta"],
        "INVALID_CONFIG",
        &["`openai-chta`", "did you mean `openai-chat`?"],
    );
    refused(&stage, &["--tools", "Raed"], "INVALID_CONFIG", &["did you mean `Read`?"]);
    refused(&stage, &["--permission", "autoo"], "INVALID_CONFIG", &["did you mean `auto`?"]);
}

#[test]
fn wrong_values_are_refused_before_any_request() {
    let stage = Stage::of(&["whole"]);
    let nowhere = stage.workspace().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    refused(&stage, &["--header", "no-value"], "INVALID_CONFIG", &["NAME=VALUE"]);
    refused(&stage, &["--max-steps", "0"], "INVALID_CONFIG", &["at least 1"]);
    refused(&stage, &["--idle-timeout-ms", "0"], "INVALID_CONFIG", &["at least 1"]);
    refused(&stage, &["--session", "never-was"], "SESSION_NOT_FOUND", &["no session"]);
    refused(
        &stage,
        &["--api-key-env", "TURNBUCKLE_NO_SUCH_KEY"],
        "PROVIDER_SECRET_MISSING",
        &["TURNBUCKLE_NO_SUCH_KEY"],
    );
    refused(&stage, &["--config", nowhere], "INVALID_CONFIG", &["cannot be read"]);
    refused(&stage, &["--image", nowhere], "INVALID_CONFIG", &["cannot be read", "nowhere"]);
    refused(&stage, &["--temperature", "-1"], "INVALID_CONFIG", &["from 0 up"]);
    let config = stage.workspace().join("c.toml");
    std::fs::write(&config, "modle = \"m\"\n").unwrap();
    refused(
        &stage,
        &["--config", config.to_str().unwrap()],
        "INVALID_CONFIG",
        &["`modle`", "did you mean `model`?"],
    );
}

#[test]
fn a_workspace_must_be_a_folder_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    for (workspace, word) in [(folder.path().join("nowhere"), "nowhere"), (file, "not a")] {
        let workspace = workspace.to_str().unwrap();
        let ran =
            bare(&["run", "go", "--base-url", "http://127.0.0.1:9/v1", "--workspace", workspace]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(
            ran.stderr.starts_with("error: INVALID_CONFIG: ") && ran.stderr.contains(word),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn an_address_needs_a_scheme() {
    for (url, word) in
        [("localhost:8080/v1", "http"), ("ftp://x/v1", "http"), ("not a url", "http"), ("", "http")]
    {
        let ran = bare(&["run", "go", "--base-url", url]);
        assert_eq!(ran.code, Some(2), "{url}: {}", ran.stderr);
        assert!(
            ran.stderr.starts_with("error: INVALID_CONFIG: ") && ran.stderr.contains(word),
            "{url}: {}",
            ran.stderr
        );
    }
}

#[test]
fn without_a_key_the_variable_and_the_demo_are_named() {
    let ran = bare(&["run", "go"]);
    assert_eq!(ran.code, Some(2));
    for word in ["PROVIDER_SECRET_MISSING", "OPENAI_API_KEY", "openai-chat", "turnbuckle demo"] {
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
    }
}

#[test]
fn a_key_that_no_header_can_carry_is_refused_unseen() {
    let stage = Stage::of(&["whole"]);
    let mut command = app(&stage.state());
    command.env("MY_KEY", "sk-canary-with\nline-break").args([
        "run",
        "go",
        "--api-key-env",
        "MY_KEY",
        "--base-url",
        &stage.base_url(),
    ]);
    let ran = ran(command);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("PROVIDER_SECRET_INVALID") && !ran.stderr.contains("canary"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_prompt_must_be_text_and_say_something() {
    let empty = bare(&["run", "  ", "--base-url", "http://127.0.0.1:9/v1"]);
    assert_eq!(empty.code, Some(2));
    assert!(empty.stderr.contains("the prompt is empty"), "{}", empty.stderr);
    // Nothing on standard input is an empty prompt too.
    let nothing = bare(&["run", "--base-url", "http://127.0.0.1:9/v1"]);
    assert!(nothing.stderr.contains("the prompt is empty"), "{}", nothing.stderr);
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt as _;
        let args: [OsString; 4] = [
            "run".into(),
            OsString::from_vec(vec![0xff, 0xfe]),
            "--base-url".into(),
            "http://127.0.0.1:9/v1".into(),
        ];
        let foreign = bare(&args);
        assert_eq!(foreign.code, Some(2));
        assert!(foreign.stderr.contains("UTF-8"), "{}", foreign.stderr);
    }
}

#[test]
fn a_prompt_comes_from_standard_input_too() {
    let stage = Stage::of(&["whole"]);
    let mut command = app(&stage.state());
    command
        .args(["run", "-", "--base-url", &stage.base_url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all("from é stdin".as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(stage.asked()[0].body.to_string().contains("from é stdin"));
}

#[test]
fn unknown_options_and_commands_exit_2_and_name_the_nearest() {
    let ran: Ran = bare(&["run", "go", "--modle", "x"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--model"), "{}", ran.stderr);
    let ran = bare(&["runn", "go"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("'run'"), "{}", ran.stderr);
    let ran = bare(&["run", "go", "--output", "jsn"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("'json'"), "{}", ran.stderr);
}

#[test]
fn what_is_not_built_is_not_listed() {
    let help = bare(&["--help"]).stdout;
    for command in ["demo", "run", "chat", "sessions", "classify", "faults"] {
        assert!(help.contains(command), "{help}");
    }
    for command in ["report", "doctor", "acp"] {
        assert!(!help.contains(&format!("\n  {command} ")), "{help}");
        assert_eq!(bare(&[command]).code, Some(2));
    }
    assert!(bare(&["run", "--help"]).stdout.contains("--continue"));
}

#[test]
fn the_faults_refuse_what_they_cannot_serve() {
    let ran = bare(&["faults", "serve", "--behaviour", "cut_insde_event"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("did you mean `cut_inside_event`?"), "{}", ran.stderr);
    let ran = bare(&["faults", "serve"]);
    assert_eq!(ran.code, Some(2));
    let ran = bare(&["faults", "serve", "--script", "dmo"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("demo"), "{}", ran.stderr);

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = bare(&["faults", "serve", "--behaviour", "whole", "--port", &port]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("in use") && ran.stderr.contains("--port"), "{}", ran.stderr);
}

#[test]
fn a_provider_that_speaks_something_else_is_asked_once() {
    for behaviour in ["html_page", "huge_line"] {
        let stage = Stage::of(&[behaviour]);
        let ran = stage.run(&["--output", "json"]);
        assert_eq!(ran.code, Some(1));
        let summary: Value = ran.object();
        assert_eq!(
            summary["failure"]["code"], "PROVIDER_PROTOCOL_MISMATCH",
            "{behaviour}: {summary}"
        );
        assert_eq!(summary["failure"]["retriable"], false);
        assert_eq!(stage.asked().len(), 1);
    }
}
