//! `turnbuckle faults serve`: the real binary, asked over real sockets.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Stdio},
    time::Duration,
};

use serde_json::Value;
use turnbuckle_faults::Script;

use crate::stage::{app, bare};

/// Far longer than any answer here takes.
const HANG: Duration = Duration::from_secs(60);

/// A running `faults serve`, ended when it is dropped.
struct Serving {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    base_url: String,
    _state: tempfile::TempDir,
}

impl Serving {
    fn start(args: &[&str]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut command = app(state.path());
        command.args(["faults", "serve", "--port", "0"]).args(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        out.read_line(&mut first).unwrap();
        let base_url = first.trim().strip_prefix("listening on ").expect(&first).to_owned();
        Self { child, out, base_url, _state: state }
    }

    /// Everything up to the last line of its greeting.
    fn greeting(&mut self) -> String {
        let mut told = String::new();
        while !told.contains("end with Ctrl-C\n") {
            assert_ne!(self.out.read_line(&mut told).unwrap(), 0, "{told}");
        }
        told
    }

    fn exchange(&self, request: &str) -> String {
        let address = self.base_url.trim_start_matches("http://").trim_end_matches("/v1");
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(HANG)).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A reset is an answer too.
        let _ = socket.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn chat(&self) -> String {
        let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
        let length = body.len();
        self.exchange(&format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        ))
    }

    fn own(&self, method: &str, path: &str) -> Value {
        let answer = self.exchange(&format!(
            "{method} /_faults/{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        ));
        let (_, body) = answer.split_once("\r\n\r\n").expect(&answer);
        serde_json::from_str(body).unwrap()
    }

    /// Ends it by a signal; gives its exit code and what it said.
    #[cfg(unix)]
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        let kill = std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(kill.success());
        let code = self.child.wait().unwrap().code();
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        (code, told)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_script_is_served_and_its_record_is_read_and_reset_over_http() {
    let mut serving = Serving::start(&["--script", "cut_once"]);
    let greeting = serving.greeting();
    assert!(greeting.contains("  1  cut_inside_event"), "{greeting}");
    assert!(greeting.contains("/_faults/requests\n"), "{greeting}");
    assert!(!serving.chat().contains("[DONE]"));
    assert!(serving.chat().contains("[DONE]"));
    let record = serving.own("GET", "requests");
    let ended: Vec<_> = record.as_array().unwrap().iter().map(|r| r["ended"].clone()).collect();
    assert_eq!(ended, ["reset", "complete"]);
    assert_eq!(serving.own("GET", "requests?since=1").as_array().unwrap().len(), 1);
    assert_eq!(serving.own("POST", "reset")["reset"], true);
    assert_eq!(serving.own("GET", "requests").as_array().unwrap().len(), 0);
    assert!(!serving.chat().contains("[DONE]"), "the script began again");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_cleanly_in_the_middle_of_an_answer_and_writes_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.ndjson");
    for signal in ["-INT", "-TERM"] {
        let path = record.to_str().unwrap();
        let mut serving = Serving::start(&["--behaviour", "stall", "--record", path]);
        serving.greeting();
        let address = serving.base_url.replace("http://", "").replace("/v1", "");
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(HANG)).unwrap();
        let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ";
        write!(socket, "{head}{}\r\n\r\n{body}", body.len()).unwrap();
        socket.read_exact(&mut [0; 16]).unwrap();
        let (code, told) = serving.end(signal);
        assert_eq!(code, Some(0), "{told}");
        assert!(told.contains("1 request"), "{told}");
        let written = fs::read_to_string(&record).unwrap();
        let line: Value = serde_json::from_str(written.trim()).unwrap();
        assert_eq!(line["behaviour"], "stall");
        fs::remove_file(&record).unwrap();
    }
}

#[test]
fn with_tls_the_authority_is_written_or_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let path = file.to_str().unwrap();
    let serving = Serving::start(&["--behaviour", "whole", "--tls", "--http2", "--ca-file", path]);
    assert!(serving.base_url.starts_with("https://127.0.0.1:"), "{}", serving.base_url);
    assert!(fs::read_to_string(&file).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    let mut serving = Serving::start(&["--behaviour", "whole", "--tls"]);
    serving.greeting();
    let mut line = String::new();
    serving.out.read_line(&mut line).unwrap();
    assert_eq!(line, "-----BEGIN CERTIFICATE-----\n");
    let ran = bare(&["faults", "serve", "--behaviour", "whole", "--ca-file", path]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("add --tls"), "{}", ran.stderr);
}

#[test]
fn the_same_seed_throws_the_same_dice() {
    let asked = |seed: &str| {
        let mut serving = Serving::start(&["--script", "flaky", "--seed", seed]);
        assert!(serving.greeting().contains(&format!("seed: {seed}\n")));
        (0..30).for_each(|_| drop(serving.chat()));
        let record = serving.own("GET", "requests");
        record.as_array().unwrap().iter().map(|r| r["step"].as_u64()).collect::<Vec<_>>()
    };
    let first = asked("7");
    assert!(first.contains(&Some(4)) && first.iter().any(|step| *step != Some(4)), "{first:?}");
    assert_eq!(asked("7"), first);
    assert_ne!(asked("8"), first);
}

#[test]
fn a_port_in_use_is_said_with_the_next_free_one_and_that_one_is_free() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = bare(&["faults", "serve", "--behaviour", "whole", "--port", &port]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains(&format!("port {port} is in use; free is --port ")),
        "{}",
        ran.stderr
    );
    let free = ran.stderr.split("--port ").nth(1).unwrap();
    let free: u16 =
        free.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
    assert!(free > taken.local_addr().unwrap().port());
}

#[test]
fn a_bad_script_is_refused_with_its_file_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    let path = file.to_str().unwrap();
    let include = format!("[[step]]\ninclude = \"{}\"\n", "./bad.toml");
    let cases = [
        ("[[step]]\nbehaviour = \"cut_inside_evnt\"\n", ":2:13: unknown behaviour"),
        ("[[step]]\nbehaviour = \"whole\"\nevent_delay_ms = -1\n", ":3:18: `event_delay_ms` must"),
        ("[[step]\n", ":1:8: "),
        (include.as_str(), ":2:11: the files include each other"),
    ];
    for (source, told) in cases {
        fs::write(&file, source).unwrap();
        let ran = bare(&["faults", "serve", "--script", path]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains(&format!("bad.toml{told}")), "{}", ran.stderr);
        assert!(ran.stderr.len() < 1000, "{}", ran.stderr);
    }
}

#[test]
fn every_shipped_script_is_listed_and_answers() {
    let listed = bare(&["faults", "list"]).stdout;
    for shipped in Script::shipped() {
        assert!(listed.contains(shipped.sentence), "{}", shipped.name);
        let serving = Serving::start(&["--script", shipped.name, "--seed", "1"]);
        // The longest row of them is six steps; then comes what stays.
        let answers: Vec<String> = (0..8).map(|_| serving.chat()).collect();
        let record = serving.own("GET", "requests");
        assert_eq!(record.as_array().unwrap().len(), 8, "{}", shipped.name);
        assert!(answers.iter().any(|a| a.contains("[DONE]")), "{}: {answers:?}", shipped.name);
    }
}
