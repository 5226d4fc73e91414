//! Real processes that leave the session of their shell: none is left.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::ErrorCode;

use crate::{ToolError, ToolOutput, builtin::fixture::Fixture};

/// Far more than anything here takes, far less than what it must not wait for.
const SOON: Duration = Duration::from_secs(60);
/// Writes the mark of the command to a file, all at once.
const MARKED: &str = "echo $TURNBUCKLE_CALL > m; mv m mark;";

/// The living processes with `text` in their environment or, for those that
/// cleared it, in their arguments.
fn carriers(text: &str) -> Vec<u32> {
    let holds = |id: u32, file: &str| {
        let bytes = fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(text)
    };
    let ids = fs::read_dir("/proc").unwrap();
    ids.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter(|id| holds(*id, "environ") || holds(*id, "cmdline"))
        .collect()
}

/// The mark of a command, once it has started `count` processes that carry it.
async fn mark(fixture: &Fixture, count: usize) -> String {
    let ready = async {
        loop {
            if let Ok(text) = fs::read_to_string(fixture.path("mark"))
                && carriers(text.trim()).len() >= count
            {
                return text.trim().to_owned();
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, ready).await.expect("the command starts its processes")
}

/// Waits until nothing carries the text.
async fn none_left(text: &str) {
    let wait = async {
        while !carriers(text).is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, wait).await.unwrap_or_else(|_| panic!("left: {:?}", carriers(text)));
}

/// How a result begins.
fn ended(fixture: &Fixture, how: &str) -> String {
    format!("{how} (cwd: {})\n", fixture.workspace.path().display())
}

fn command(text: &str) -> Value {
    json!({ "command": format!("{MARKED} {text}") })
}

/// Runs a command and cancels it once it has started `count` processes.
async fn cancelled(
    fixture: &Fixture,
    text: &str,
    count: usize,
) -> (Result<ToolOutput, ToolError>, String) {
    let cancel = CancellationToken::new();
    let run = fixture.call_until("Bash", command(text), &cancel);
    let cancelling = async {
        let mark = mark(fixture, count).await;
        cancel.cancel();
        mark
    };
    timeout(SOON, async { tokio::join!(run, cancelling) }).await.unwrap()
}

#[tokio::test]
async fn what_left_the_session_ends_with_the_shell() {
    let fixture = Fixture::new();
    let run = fixture.text("Bash", command("setsid sleep 337 & echo hi"));
    let text = timeout(SOON, run).await.unwrap();
    let expected = "(background processes were still running and were ended)\n[stdout]\nhi\n";
    assert_eq!(text, ended(&fixture, "exit code 0") + expected);
    let mark = mark(&fixture, 0).await;
    assert_eq!(carriers(&mark), [0; 0]);
}

#[tokio::test]
async fn what_left_the_session_and_holds_no_pipe_ends_with_the_shell() {
    let fixture = Fixture::new();
    let script = "setsid sleep 338 > /dev/null 2>&1 < /dev/null & set -m; sleep 339 > /dev/null 2>&1 & exit 3";
    let run = fixture.error("Bash", command(script), ErrorCode::ToolFailed);
    let error = timeout(SOON, run).await.unwrap();
    let expected = ended(&fixture, "exit code 3")
        + "(background processes were still running and were ended)\n";
    assert!(error.text.starts_with(&expected), "{error}");
    let mark = mark(&fixture, 0).await;
    assert_eq!(carriers(&mark), [0; 0]);
}

#[tokio::test]
async fn what_left_the_session_ends_on_timeout() {
    let fixture = Fixture::new();
    let mut input = command("setsid sleep 340 & sleep 340");
    input["timeout_ms"] = 2000.into();
    let run = fixture.error("Bash", input, ErrorCode::ToolTimeout);
    let error = timeout(SOON, run).await.unwrap();
    assert!(error.text.starts_with("timed out after 2000 ms and was ended"), "{error}");
    let mark = mark(&fixture, 0).await;
    assert_eq!(carriers(&mark), [0; 0]);
}

#[tokio::test]
async fn what_left_the_session_ends_on_cancel() {
    let fixture = Fixture::new();
    // The shell, and a chain of sessions, the last of which has no other parent than init.
    let script = "setsid bash -c '(setsid sleep 341 &); sleep 341; true' & sleep 341; true";
    let (result, mark) = cancelled(&fixture, script, 5).await;
    assert_eq!(result.unwrap_err().code, ErrorCode::TurnAborted);
    assert_eq!(carriers(&mark), [0; 0]);
}

#[tokio::test]
async fn what_left_the_session_is_killed_on_drop() {
    let fixture = Fixture::new();
    let script = "trap '' TERM; setsid sleep 342 & setsid sleep 342 & sleep 342";
    let run = fixture.call("Bash", command(script));
    let mark = tokio::select! {
        _ = run => panic!("it does not end by itself"),
        mark = mark(&fixture, 4) => mark,
    };
    none_left(&mark).await;
}

#[tokio::test]
async fn what_left_the_session_and_ignores_term_is_killed_after_the_grace() {
    let fixture = Fixture::new();
    let script = "setsid bash -c 'trap \"\" TERM; echo > ready; while :; do sleep 0.1; done' & \
                  until test -e ready; do sleep 0.05; done";
    let started = Instant::now();
    let run = fixture.text("Bash", command(script));
    let text = timeout(SOON, run).await.unwrap();
    let expected = ended(&fixture, "exit code 0") + "(background processes";
    assert!(text.starts_with(&expected), "{text}");
    assert!(started.elapsed() >= Duration::from_secs(2), "the grace was given");
    let mark = mark(&fixture, 0).await;
    assert_eq!(carriers(&mark), [0; 0]);
}

#[tokio::test]
async fn a_child_without_the_mark_is_found_by_its_parent() {
    let fixture = Fixture::new();
    // A number that nothing else on the machine has among its arguments.
    let seconds = "99991343";
    let script = format!("echo {seconds} > mark; env -i setsid sleep {seconds} & wait");
    let cancel = CancellationToken::new();
    let run = fixture.call_until("Bash", json!({ "command": script }), &cancel);
    let cancelling = async {
        // The shell has the number among its arguments as well.
        mark(&fixture, 2).await;
        cancel.cancel();
    };
    let both = async { tokio::join!(run, cancelling) };
    let (result, ()) = timeout(SOON, both).await.unwrap();
    assert_eq!(result.unwrap_err().code, ErrorCode::TurnAborted);
    assert_eq!(carriers(seconds), [0; 0]);
}

/// A process that forks and ends, over and over: whoever looks for it comes too late.
/// It ignores TERM, tells each life, and ends by itself, so that a failure leaves nothing.
const RESTLESS: &str = r#"perl -e '
    $SIG{TERM} = $SIG{CHLD} = "IGNORE";
    for (my $end = time + 4; time < $end; ) {
        exit if fork;
        open my $lives, ">>", "lives";
        print $lives "x";
        close $lives;
        select undef, undef, undef, 0.001;
    }' &"#;

#[tokio::test]
async fn what_forks_faster_than_one_can_look_ends_with_its_group() {
    let end = "until [ -s lives ]; do sleep 0.01; done";
    for (input, how) in [
        (json!({ "command": format!("{RESTLESS} {end}") }), "exit code 0"),
        (
            json!({ "command": format!("{RESTLESS} {end}; sleep 343"), "timeout_ms": 1000 }),
            "timed out",
        ),
    ] {
        let fixture = Fixture::new();
        let outcome = timeout(SOON, fixture.call("Bash", input)).await.unwrap();
        let text = outcome.map_or_else(|error| error.text, |output| output.text);
        assert!(text.starts_with(how), "{text}");
        assert!(!text.contains("still holds"), "{text}");
        let lives = || fs::metadata(fixture.path("lives")).unwrap().len();
        let before = lives();
        sleep(Duration::from_millis(200)).await;
        assert_eq!(lives(), before, "it lives on after: {text}");
    }
}

#[tokio::test]
async fn processes_of_another_command_are_left_alone() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    let cancel = CancellationToken::new();
    let run = fixture.call_until("Bash", command("setsid sleep 344 & sleep 344; true"), &cancel);
    let meanwhile = async {
        let mark = mark(&fixture, 3).await;
        timeout(SOON, other.text("Bash", command("setsid sleep 345 & true"))).await.unwrap();
        let left = carriers(&mark).len();
        cancel.cancel();
        left
    };
    let (result, left) = tokio::join!(run, meanwhile);
    assert_eq!(left, 3);
    assert_eq!(result.unwrap_err().code, ErrorCode::TurnAborted);
}
