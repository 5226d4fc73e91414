//! Runs the binary in a folder of its own, against a provider of its own.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use turnbuckle_faults::{FaultServer, RecordedRequest, Script};

/// A provider with a script, and a throw-away folder to work in.
pub(crate) struct Stage {
    /// Runs the provider while the stage stands.
    _runtime: tokio::runtime::Runtime,
    server: FaultServer,
    folder: tempfile::TempDir,
}

/// What a run printed, and how it ended.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Stage {
    pub(crate) fn new(script: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let script = Script::parse(script).unwrap();
        let server = runtime.block_on(FaultServer::start_anywhere(script)).unwrap();
        Self { _runtime: runtime, server, folder: tempfile::tempdir().unwrap() }
    }

    /// A script of these behaviours, one an attempt.
    pub(crate) fn of(behaviours: &[&str]) -> Self {
        let steps = behaviours.iter().map(|name| format!("[[step]]\nbehaviour = \"{name}\"\n"));
        Self::new(&steps.collect::<String>())
    }

    pub(crate) fn base_url(&self) -> String {
        self.server.base_url()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        let workspace = self.folder.path().join("workspace");
        std::fs::create_dir_all(&workspace).unwrap();
        workspace
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// `turnbuckle run PROMPT` against the provider, with more arguments.
    pub(crate) fn run(&self, more: &[&str]) -> Ran {
        let base_url = self.base_url();
        let workspace = self.workspace();
        let mut command = app(&self.state());
        command
            .args(["run", "go", "--base-url", &base_url, "--workspace"])
            .arg(workspace)
            .args(more);
        ran(command)
    }

    /// What the provider was asked, chats only.
    pub(crate) fn asked(&self) -> Vec<RecordedRequest> {
        let is_chat = |request: &RecordedRequest| request.behaviour.is_some();
        self.server.requests().into_iter().filter(is_chat).collect()
    }
}

impl Ran {
    /// Standard output as one JSON object a line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// Standard output as one JSON object.
    pub(crate) fn object(&self) -> Value {
        serde_json::from_str(&self.stdout).expect(&self.stdout)
    }
}

/// The types of events, runs of the same type folded into one.
pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    kinds.dedup();
    kinds
}

/// The binary, with no key in its environment and sessions kept in `state`.
pub(crate) fn app(state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_turnbuckle"));
    command.env_remove("OPENAI_API_KEY").env("TURNBUCKLE_STATE_DIR", state).stdin(Stdio::null());
    command
}

/// Runs the binary somewhere, with these arguments and nothing else.
pub(crate) fn bare(args: &[impl AsRef<OsStr>]) -> Ran {
    let state = tempfile::tempdir().unwrap();
    let mut command = app(state.path());
    command.args(args);
    ran(command)
}

pub(crate) fn ran(mut command: Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Ran {
        code: status.code(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}
