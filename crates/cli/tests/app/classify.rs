use std::{io::Write as _, process::Stdio};

use serde_json::{Value, json};

use crate::stage::{Ran, app, bare};

/// `turnbuckle classify` with this on standard input.
fn piped(input: &[u8], args: &[&str]) -> Ran {
    let state = tempfile::tempdir().unwrap();
    let mut command = app(state.path());
    command.arg("classify").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // Written beside the reading, so that neither side waits for the other.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn codes(ran: &Ran) -> Vec<Value> {
    ran.lines().iter().map(|line| line["code"].clone()).collect()
}

#[test]
fn five_flattened_messages_are_told_for_what_they_are() {
    let input = "terminated\nAnthropic stream ended before message_stop\nPremature close\n\
                 429 You exceeded your current quota\nretry after 4013 ms\n";
    let ran = piped(input.as_bytes(), &["--explain"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        codes(&ran),
        [
            "STREAM_FAILED",
            "STREAM_FAILED",
            "STREAM_FAILED",
            "PROVIDER_QUOTA_EXCEEDED",
            "PROVIDER_ERROR"
        ]
    );
    let lines = ran.lines();
    assert_eq!(lines[3]["providerStatus"], 429);
    assert_eq!(
        lines[4],
        json!({
            "code": "PROVIDER_ERROR", "retriable": false, "retryAfterMs": 4013,
            "providerStatus": null, "providerCode": null, "delivered": "unknown",
            "rule": "unknown", "message": "retry after 4013 ms",
            "weighed": [{ "fact": "message", "rule": null, "decided": false }],
        })
    );
}

#[test]
fn a_message_may_be_an_argument() {
    let ran = bare(&["classify", "TypeError: terminated"]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.object()["rule"], "wording.terminated");
    assert_eq!(ran.object().get("weighed"), None);
}

#[test]
fn a_report_says_more_than_a_message() {
    let reports = [
        json!({"status": 429, "headers": {"retry-after": "7"}, "body": {"error": {"code": "rate_limit_exceeded"}}}),
        json!({"status": 429, "body": "{\"error\":{\"type\":\"insufficient_quota\"}}"}),
        json!({"event": {"type": "error", "error": {"type": "overloaded_error"}}}),
        json!({"message": "read ECONNRESET", "phase": "stream"}),
        json!({"message": "You exceeded your current quota", "provider": "gemini"}),
    ];
    let input: String = reports.iter().map(|report| format!("{report}\n")).collect();
    let ran = piped(input.as_bytes(), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(
        codes(&ran),
        [
            "PROVIDER_RATE_LIMITED",
            "PROVIDER_QUOTA_EXCEEDED",
            "PROVIDER_OVERLOADED",
            "STREAM_FAILED",
            "PROVIDER_RATE_LIMITED"
        ]
    );
    assert_eq!(ran.lines()[0]["retryAfterMs"], 7000);
    assert_eq!(ran.lines()[0]["providerCode"], "rate_limit_exceeded");
}

#[test]
fn a_bad_line_gets_an_error_in_its_place_and_the_rest_goes_on() {
    let mut input = b"terminated\n{\"staus\":429}\n{\"status\":\n\n{\"error\":{}}\n{}\n".to_vec();
    input.extend(std::iter::repeat_n(b'x', 3 << 20));
    input.extend(b"\n\xff\xfe terminated \xff\nterminated");
    let ran = piped(&input, &[]);
    assert_eq!(ran.code, Some(1));
    let lines = ran.lines();
    assert_eq!(lines.len(), 8, "{}", ran.stdout);
    for (at, line, word) in [
        (1, 2, "did you mean `status`?"),
        (2, 3, "no JSON"),
        (3, 5, "under `body`"),
        (4, 6, "nothing says what happened"),
        (5, 7, "longer than 1 MiB"),
    ] {
        let error = &lines[at]["error"];
        assert_eq!((&error["code"], &error["line"]), (&json!("INVALID_ARGUMENT"), &json!(line)));
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
    assert_eq!(lines[6]["code"], "PROVIDER_ERROR");
    assert_eq!(lines[7]["code"], "STREAM_FAILED");
}

#[test]
fn no_key_that_a_server_echoed_is_printed() {
    let key = "sk-ant-api03-CANARYcanaryCANARYcanaryCANARYcanary0123456789";
    let input = format!(
        "401 Incorrect API key provided: {key}\n\
         {{\"status\":401,\"body\":{{\"error\":{{\"message\":\"bad key {key}\",\"code\":\"{key}\"}}}}}}\n\
         {{\"{key}\":1}}\n{{\"phase\":\"{key}\"}}\n"
    );
    let ran = piped(input.as_bytes(), &["--explain"]);
    assert_eq!(ran.lines().len(), 4);
    assert!(!ran.stdout.contains("CANARY"), "{}", ran.stdout);
    assert!(!ran.stderr.contains("CANARY"), "{}", ran.stderr);
}

#[test]
fn nothing_at_all_is_answered_with_nothing() {
    let ran = piped(b"", &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
}
