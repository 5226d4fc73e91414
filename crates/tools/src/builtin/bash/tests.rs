use std::{ffi::OsString, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{process::environment, *};
use crate::{Progress, builtin::fixture::Fixture};

/// Far more than anything here takes, far less than what it must not wait for.
const SOON: Duration = Duration::from_secs(60);

fn command(text: &str) -> Value {
    json!({ "command": text })
}

/// How a result begins.
fn ended(fixture: &Fixture, how: &str) -> String {
    format!("{how} (cwd: {})\n", fixture.workspace.path().display())
}

/// Waits until a file is there and complete (ends with a newline).
async fn line_in(fixture: &Fixture, name: &str) -> String {
    let read = async {
        loop {
            if let Ok(text) = std::fs::read_to_string(fixture.path(name))
                && text.ends_with('\n')
            {
                return text.trim().to_owned();
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, read).await.unwrap()
}

/// Waits until a process is gone, or only its entry is left.
async fn gone(pid: &str) {
    let wait = async {
        loop {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.is_empty() || stat.rsplit(')').next().unwrap().trim_start().starts_with('Z') {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, wait).await.expect("the process goes away");
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_root_and_says_its_exit_code() {
    let fixture = Fixture::new();
    fixture.put("a", "");
    let output = fixture.call("Bash", command("ls; pwd -P; echo oops >&2")).await.unwrap();
    let root = fixture.workspace.path().display();
    let fine = ended(&fixture, "exit code 0");
    assert_eq!(output.text, format!("{fine}[stdout]\na\n{root}\n[stderr]\noops\n"));
    assert_eq!(output.touched, None);
    assert_eq!(fixture.text("Bash", command("true")).await, format!("{fine}(no output)\n"));
}

#[tokio::test]
async fn failures_and_signals_come_back_with_the_output() {
    let fixture = Fixture::new();
    let error = fixture.error("Bash", command("echo out; exit 3"), ErrorCode::ToolFailed).await;
    let expected = ended(&fixture, "exit code 3") + "[stdout]\nout\n";
    assert_eq!(error.text, expected);
    let error = fixture.error("Bash", command("kill -9 $$"), ErrorCode::ToolFailed).await;
    assert_eq!(error.text, ended(&fixture, "ended by signal 9 (KILL)") + "(no output)\n");
    let error = fixture.error("Bash", command("no-such-program"), ErrorCode::ToolFailed).await;
    let begin = ended(&fixture, "exit code 127") + "[stderr]\n";
    assert!(error.text.starts_with(&begin), "{error}");
}

#[tokio::test]
async fn there_is_no_input_and_no_terminal() {
    let fixture = Fixture::new();
    let script = "cat; test -t 0 || echo no input; (: < /dev/tty) 2>/dev/null || echo no terminal; echo $TERM";
    let text = fixture.text("Bash", command(script)).await;
    let fine = ended(&fixture, "exit code 0");
    assert_eq!(text, fine + "[stdout]\nno input\nno terminal\ndumb\n");
}

#[tokio::test]
async fn a_command_has_a_session_of_its_own() {
    let fixture = Fixture::new();
    let script = "ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/$$/stat; echo $$";
    let text = fixture.text("Bash", command(script)).await;
    let numbers: Vec<&str> = text.lines().skip(2).map(str::trim).collect();
    assert_eq!(numbers[0], numbers[1], "{text}");
}

#[test]
fn only_allowed_variables_reach_a_command() {
    let own = [
        ("PATH", "/bin"),
        ("LC_ALL", "C"),
        ("HOME", "/h"),
        ("OPENAI_API_KEY", "k"),
        ("ANTHROPIC_API_KEY", "k"),
        ("AWS_SECRET_ACCESS_KEY", "k"),
        ("TERM", "xterm"),
        ("BASH_ENV", "x"),
        ("LCX", "x"),
        ("MY_TOKEN", "k"),
        ("SSH_AUTH_SOCK", "s"),
    ];
    let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let kept = environment(own.into_iter());
    let kept: Vec<(&str, &str)> = kept
        .iter()
        .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
        .collect();
    assert_eq!(
        kept,
        [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("HOME", "/h"),
            ("TERM", "dumb"),
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
            ("GIT_EDITOR", "true"),
            ("GIT_SEQUENCE_EDITOR", "true"),
            ("GIT_TERMINAL_PROMPT", "0")
        ]
    );
    let bare = environment(std::iter::empty());
    assert_eq!(bare.last(), Some(&("LANG".into(), "C.UTF-8".into())), "where nothing says UTF-8");
}

#[tokio::test]
async fn the_environment_of_the_host_does_not_leak() {
    // Cargo sets this for tests; it stands for any variable of the host.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let fixture = Fixture::new();
    let text = fixture.text("Bash", command("env")).await;
    assert!(!text.contains("CARGO_MANIFEST_DIR"), "{text}");
    assert!(text.contains("PATH="), "{text}");
}

#[tokio::test]
async fn it_ends_when_the_shell_ends_whatever_holds_the_pipe() {
    let fixture = Fixture::new();
    let run = fixture.call("Bash", command("sleep 300 & echo $! > pid; echo started"));
    let output = timeout(SOON, run).await.unwrap().unwrap();
    let begin = ended(&fixture, "exit code 0") + "(background processes";
    assert!(output.text.starts_with(&begin), "{}", output.text);
    assert!(output.text.ends_with("[stdout]\nstarted\n"), "{}", output.text);
    gone(&line_in(&fixture, "pid").await).await;
}

#[tokio::test]
async fn a_timeout_ends_the_tree_and_keeps_the_output() {
    let fixture = Fixture::new();
    let script = "echo before; sleep 300 & echo $! > pid; wait";
    let input = json!({"command": script, "timeout_ms": 3000});
    let run = fixture.error("Bash", input, ErrorCode::ToolTimeout);
    let error = timeout(SOON, run).await.unwrap();
    assert!(error.text.starts_with("timed out after 3000 ms"), "{error}");
    assert!(error.text.ends_with("[stdout]\nbefore\n"), "{error}");
    gone(&line_in(&fixture, "pid").await).await;
}

/// Cancels a command once it has written `pid`; its error and that pid.
async fn cancelled_once_ready(fixture: &Fixture, script: &str) -> (ToolError, String) {
    let cancel = CancellationToken::new();
    let run = fixture.call_until("Bash", command(script), &cancel);
    let cancelling = async {
        let pid = line_in(fixture, "pid").await;
        cancel.cancel();
        pid
    };
    let both = async { tokio::join!(run, cancelling) };
    let (result, pid) = timeout(SOON, both).await.unwrap();
    let error = result.unwrap_err();
    assert_eq!(error.code, ErrorCode::TurnAborted);
    (error, pid)
}

#[tokio::test]
async fn cancelling_ends_the_command() {
    let fixture = Fixture::new();
    let (error, pid) = cancelled_once_ready(&fixture, "echo $$ > pid; sleep 300").await;
    assert!(error.text.starts_with("the prompt was cancelled"), "{error}");
    gone(&pid).await;
}

#[tokio::test]
async fn what_ignores_term_is_killed_after_the_grace() {
    let fixture = Fixture::new();
    let script = "(trap '' TERM; echo $BASHPID > pid; while :; do sleep 1; done) & wait";
    let started = Instant::now();
    let (_, pid) = cancelled_once_ready(&fixture, script).await;
    assert!(started.elapsed() >= Duration::from_secs(2), "the grace was given");
    gone(&pid).await;
}

#[tokio::test]
async fn what_obeys_term_may_clean_up() {
    let fixture = Fixture::new();
    let script = "trap 'echo cleaned; exit 1' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let (error, _) = cancelled_once_ready(&fixture, script).await;
    assert!(error.text.contains("[stdout]\ncleaned\n"), "{error}");
}

#[tokio::test]
async fn dropping_the_future_kills_the_group() {
    let fixture = Fixture::new();
    let script = "trap '' TERM; sleep 300 & echo $! > child; echo $$ > pid; wait";
    let run = fixture.call("Bash", command(script));
    let pid = tokio::select! {
        _ = run => panic!("it does not end by itself"),
        pid = line_in(&fixture, "pid") => pid,
    };
    gone(&pid).await;
    gone(&line_in(&fixture, "child").await).await;
}

#[tokio::test]
async fn a_host_sees_the_output_while_the_command_runs() {
    let fixture = Fixture::new();
    let (told, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let progress = Progress::new(move || told.send(()).unwrap());
    let context = ToolContext::default().with_progress(progress.clone());
    let script =
        "printf '\\033[1mone\\033[0m\\n'; until test -e go; do sleep 0.02; done; echo two >&2";
    let run = fixture.tool("Bash").run(command(script), &context);
    let watch = async {
        seen.recv().await.unwrap();
        assert_eq!(progress.take().unwrap().text, "one\n", "before the command has ended");
        fixture.put("go", "");
        seen.recv().await.unwrap();
        assert_eq!(progress.take().unwrap().text, "two\n");
    };
    let both = async { tokio::join!(run, watch) };
    let (output, ()) = timeout(SOON, both).await.unwrap();
    assert!(output.unwrap().text.ends_with("[stdout]\none\n[stderr]\ntwo\n"));
}

#[tokio::test]
async fn a_flood_is_bounded_and_both_ends_are_shown() {
    let fixture = Fixture::new();
    let run = fixture.text("Bash", command("seq 1 2000000; printf 'last\\xff' >&2"));
    let text = timeout(SOON, run).await.unwrap();
    assert!(text.len() < 97 * 1024, "{}", text.len());
    let begin = ended(&fixture, "exit code 0") + "[stdout]\n1\n2\n";
    assert!(text.starts_with(&begin));
    assert!(text.contains(" bytes left out here) …\n"));
    assert!(text.contains("\n2000000\n[stderr]\nlast\u{fffd}\n"));
}

#[tokio::test]
#[ignore = "a measurement: run it alone, with --release and --nocapture"]
async fn how_long_a_large_flood_takes() {
    let fixture = Fixture::new();
    for (source, bytes) in [("yes short line", 100_000_000), ("yes short line", 200_000_000)] {
        let started = Instant::now();
        let flood = command(&format!("{source} | head -c {bytes}"));
        let text = timeout(SOON, fixture.text("Bash", flood)).await.unwrap();
        println!("{source}, {bytes} bytes: {:?}", started.elapsed());
        assert!(text.contains(" bytes left out here) …\n"));
    }
    let started = Instant::now();
    let flood = command("head -c 200000000 /dev/zero");
    timeout(SOON, fixture.text("Bash", flood)).await.unwrap();
    println!("one line, 200000000 bytes: {:?}", started.elapsed());
}

#[tokio::test]
async fn arguments_that_cannot_be_run_are_refused() {
    let fixture = Fixture::new();
    for (input, why) in [
        (command(" \n"), "`command` is empty"),
        (command("a\0b"), "NUL"),
        (command(&"x".repeat(MAX_COMMAND + 1)), "Write it to a file"),
        (json!({"command": "ls", "timeout_ms": 0}), "from 1 to 300000"),
        (json!({"command": "ls", "timeout_ms": 300_001}), "from 1 to 300000"),
        (command(""), "`command` is empty"),
        (command(&"x".repeat(10_000_000)), "has 10000000 bytes, and at most 131071 are possible"),
        (json!({"cmd": "ls"}), "there is no argument `cmd`"),
        (json!({"command": "ls", "cwd": "/"}), "there is no argument `cwd`"),
        (json!({}), "`command` is missing"),
        (json!({"timeout_ms": 1000}), "`command` is missing"),
        (json!({"command": null}), "`command` must be a string"),
        (json!({"command": ["ls", "-l"]}), "`command` must be a string"),
        (json!({"command": "ls", "timeout_ms": "1000"}), "`timeout_ms` must be an integer"),
        (json!({"command": "ls", "timeout_ms": -1}), "`timeout_ms` must be an integer"),
        (json!({"command": "ls", "timeout_ms": 1.5}), "`timeout_ms` must be an integer"),
        (json!({"command": "ls", "timeout_ms": u64::MAX}), "from 1 to 300000"),
        (json!("ls"), "must be one JSON object"),
        (json!(["ls"]), "must be one JSON object"),
        (json!(null), "must be one JSON object"),
    ] {
        let error = fixture.error("Bash", input, ErrorCode::InvalidArgument).await;
        assert!(error.text.contains(why), "{error}");
        assert!(error.text.len() < 1000, "{}", error.text.len());
        assert_eq!(error.touched, None, "nothing ran, and no guard counts it");
    }
    let nothing: Option<u64> = None;
    fixture.text("Bash", json!({"command": "true", "timeout_ms": nothing})).await;
    let long = format!("true {}", "x".repeat(MAX_COMMAND - 5));
    fixture.text("Bash", command(&long)).await;
}

#[test]
fn a_machine_without_resources_is_told_apart() {
    let exhausted = io::Error::from_raw_os_error(Errno::AGAIN.raw_os_error());
    assert_eq!(not_started(&exhausted, Path::new("/")).code, ErrorCode::ProcessResourceExhausted);
    let missing = not_started(&io::ErrorKind::NotFound.into(), Path::new("/no/such"));
    assert_eq!(missing.code, ErrorCode::ToolFailed);
    assert!(missing.text.contains("the workspace `/no/such` is not there any more"), "{missing}");
}
