//! `turnbuckle chat`, through pipes and on a terminal of its own.

use std::{
    io::{Read as _, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::stage::{Ran, Stage, app};

const THREE: &str = "[[step]]\nbehaviour = \"whole\"\ntext = \"the first answer\"\n\
                     [[step]]\nbehaviour = \"whole\"\ntext = \"the second answer\"\n\
                     [[step]]\nbehaviour = \"whole\"\ntext = \"the third answer\"\n";

/// A chat that gets these lines from a pipe.
fn piped(stage: &Stage, lines: &[u8], more: &[&str]) -> Ran {
    let mut command = app(&stage.state());
    command
        .args(["chat", "--base-url", &stage.base_url(), "--workspace"])
        .arg(stage.workspace())
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A chat that was refused reads nothing.
    let _ = child.stdin.take().unwrap().write_all(lines);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn each_line_of_a_pipe_is_a_prompt_of_one_session() {
    let stage = Stage::new(THREE);
    let ran = piped(&stage, b"one\n\ntwo\nthree", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, "the first answer\nthe second answer\nthe third answer\n");
    let asked = stage.asked();
    assert_eq!(asked.last().unwrap().body["messages"].as_array().unwrap().len(), 6);
    assert_eq!(std::fs::read_dir(stage.state().join("sessions")).unwrap().count(), 1);
}

#[test]
fn commands_change_the_session() {
    let stage = Stage::new(THREE);
    let ran =
        piped(&stage, b"one\n/fork 1\ntwo\n/new\nthree\n/sessions\n/help\n/quit\nfour\n", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lengths: Vec<usize> = stage
        .asked()
        .iter()
        .map(|asked| asked.body["messages"].as_array().unwrap().len())
        .collect();
    // The system prompt is the first of each.
    assert_eq!(lengths, [2, 3, 2]);
    assert!(ran.stderr.contains("/resume ID"), "{}", ran.stderr);
    let listed = ran.stderr.lines().filter(|line| line.contains(" KiB ")).count();
    assert_eq!(listed, 3, "{}", ran.stderr);
}

#[test]
fn what_goes_wrong_in_a_pipe_is_told_and_the_rest_is_done() {
    let stage = Stage::of(&["model_not_found", "whole"]);
    let ran = piped(&stage, b"one\n/resume nothing\n/nwe\n\xff\xfe\ntwo\n", &[]);
    assert_eq!(ran.code, Some(1));
    for part in ["MODEL_NOT_CONFIGURED", "no session `nothing`", "did you mean `/new`?", "UTF-8"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
    assert_eq!(piped(&stage, b"one\n", &["--output", "json"]).code, Some(2));
}

#[test]
fn a_chat_goes_on_with_a_session_and_says_a_first_word() {
    let stage = Stage::new(THREE);
    assert_eq!(piped(&stage, b"one\n", &[]).code, Some(0));
    let ran = piped(&stage, b"", &["--continue", "and then?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "the second answer\n"), "{}", ran.stderr);
    assert_eq!(stage.asked()[1].body["messages"].as_array().unwrap().len(), 4);
    // A chat in which nothing was said leaves nothing.
    assert_eq!(piped(&stage, b"", &[]).code, Some(0));
    assert_eq!(std::fs::read_dir(stage.state().join("sessions")).unwrap().count(), 1);
}

/// A chat on a terminal, which `script` provides.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<String>>,
    read: usize,
}

impl Terminal {
    /// `None` where there is no `script` of util-linux.
    fn open(stage: &Stage, more: &str) -> Option<Self> {
        let helper = Command::new("script").arg("--version").output().ok()?;
        if !String::from_utf8_lossy(&helper.stdout).contains("util-linux") {
            return None;
        }
        let chat = format!(
            "stty cols 80 rows 24; exec {} chat --base-url {} --workspace {} {more}",
            env!("CARGO_BIN_EXE_turnbuckle"),
            stage.base_url(),
            stage.workspace().display()
        );
        let mut command = Command::new("script");
        command
            .args(["--quiet", "--return", "--command", &chat, "/dev/null"])
            .env("TERM", "xterm")
            .env_remove("OPENAI_API_KEY")
            .env("TURNBUCKLE_STATE_DIR", stage.state())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let keys = child.stdin.take().unwrap();
        let mut out = child.stdout.take().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = out.read(&mut piece) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
            }
        });
        Some(Self { child, keys, screen, read: 0 })
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until this is shown after what was waited for before.
    #[expect(clippy::disallowed_methods, reason = "waits for another process")]
    fn wait_for(&mut self, text: &str) {
        for _ in 0..3000 {
            let screen = self.screen.lock().unwrap().clone();
            if let Some(at) = screen[self.read..].find(text) {
                self.read += at + text.len();
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let screen = self.screen.lock().unwrap().clone();
        panic!("`{text}` is not shown: {:?}", &screen[self.read..]);
    }

    /// The exit code. The terminal stays open: one that closes would end the chat too.
    fn code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The terminal of a test that failed closes, which ends the chat on it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn ctrl_c_ends_the_prompt_and_not_the_program() {
    let stage = Stage::new(
        "[[step]]\nbehaviour = \"stall\"\nat_event = 9\ntext = \"these words come and then nothing follows any more\"\n\
         [[step]]\nbehaviour = \"whole\"\ntext = \"all is well\"\n",
    );
    let Some(mut terminal) = Terminal::open(&stage, "") else { return };
    terminal.wait_for("Ctrl-D leaves");
    terminal.wait_for("> ");
    terminal.press("hello\r");
    terminal.wait_for("these words");
    terminal.press("\u{3}");
    terminal.wait_for("cancelled");
    terminal.wait_for("> ");
    // Lines can be edited: the second letter is taken back.
    terminal.press("agz\u{7f}ain\r");
    terminal.wait_for("all is well");
    terminal.wait_for("> ");
    terminal.press("half a line\u{3}");
    terminal.wait_for("Ctrl-C once more");
    terminal.wait_for("> ");
    terminal.press("/help\r");
    terminal.wait_for("/resume ID");
    terminal.wait_for("> ");
    terminal.press("\u{3}");
    terminal.wait_for("Ctrl-C once more");
    terminal.wait_for("> ");
    terminal.press("\u{3}");
    assert_eq!(terminal.code(), Some(0));
    let asked = stage.asked();
    let said = |at: usize| asked[at].body["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(asked.len(), 2);
    assert_eq!((&said(0)["content"], &said(1)["content"]), (&"hello".into(), &"again".into()));
}

#[test]
fn history_survives_and_ctrl_d_leaves() {
    let stage = Stage::new(THREE);
    let Some(mut terminal) = Terminal::open(&stage, "") else { return };
    terminal.wait_for("> ");
    terminal.press("remember me\r");
    terminal.wait_for("the first answer");
    terminal.wait_for("> ");
    terminal.press("\u{4}");
    assert_eq!(terminal.code(), Some(0));

    let mut terminal = Terminal::open(&stage, "--continue").unwrap();
    terminal.wait_for("> ");
    // The arrow up brings the last line back.
    terminal.press("\u{1b}[A\r");
    terminal.wait_for("the second answer");
    terminal.wait_for("> ");
    terminal.press("\u{4}");
    assert_eq!(terminal.code(), Some(0));
    let asked = stage.asked();
    let messages = asked[1].body["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[3]["content"]), (4, &"remember me".into()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let history = std::fs::metadata(stage.state().join("chat-history")).unwrap();
        assert_eq!(history.permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_question_is_asked_on_the_terminal_and_answered_there() {
    let stage = Stage::new(
        "[[step]]\nbehaviour = \"whole\"\n[[step.tool_call]]\nname = \"Bash\"\n\
         arguments = { command = \"echo yes >> log\" }\n\
         [[step]]\nbehaviour = \"whole\"\n[[step.tool_call]]\nname = \"Bash\"\n\
         arguments = { command = \"echo no >> log\" }\n\
         [[step]]\nbehaviour = \"whole\"\ntext = \"all done\"\n",
    );
    let Some(mut terminal) = Terminal::open(&stage, "") else { return };
    terminal.wait_for("> ");
    terminal.press("go\r");
    terminal.wait_for("Allow this? [y]es");
    terminal.press("y\r");
    terminal.wait_for("Allow this? [y]es");
    terminal.press("\r");
    terminal.wait_for("all done");
    terminal.wait_for("> ");
    terminal.press("/quit\r");
    assert_eq!(terminal.code(), Some(0));
    assert_eq!(std::fs::read_to_string(stage.workspace().join("log")).unwrap(), "yes\n");
}
