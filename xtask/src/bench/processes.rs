//! The processes of a measurement, all of one program built for release.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use super::{
    case::{Case, Reader},
    client::Took,
};
use crate::workspace::Workspace;

/// The tasks of the project, built for release.
pub(super) struct Program(PathBuf);

impl Program {
    pub(super) fn build(workspace: &Workspace) -> Result<Self> {
        let build = workspace.cargo(&["build", "--release", "--locked", "--package", "xtask"]);
        let ran = workspace.run("bench-build", build)?;
        if !ran.ok {
            bail!("the release build failed\n{}", ran.tail());
        }
        let name = format!("xtask{}", std::env::consts::EXE_SUFFIX);
        Ok(Self(workspace.target().join("release").join(name)))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Starts the server of the answers.
    pub(super) fn serve(&self) -> Result<Server> {
        let mut command = Command::new(&self.0);
        command.arg("bench-server").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().context("cannot start the server")?;
        let out = process.stdout.take();
        // Stopped from here on, whatever happens.
        let mut server = Server { process, address: String::new() };
        let out = out.context("the server has no output")?;
        BufReader::new(out).read_line(&mut server.address).context("the server said nothing")?;
        server.address.truncate(server.address.trim_end().len());
        if server.address.is_empty() {
            bail!("the server did not start; run `cargo xtask bench-server` to see why");
        }
        Ok(server)
    }

    /// Lets a client read one case from the server.
    pub(super) fn read(&self, server: &Server, case: Case, reader: Reader) -> Result<Took> {
        let mut client = self.client(case, reader);
        client.args(["--server", &server.address]);
        took(client, case, reader)
    }

    /// What runs a client on a recorded body under valgrind, to its end.
    pub(super) fn count(
        &self,
        case: Case,
        reader: Reader,
        body: &Path,
        profile: &Path,
    ) -> Result<Took> {
        let client = self.client(case, reader);
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"])
            .arg(format!("--callgrind-out-file={}", profile.display()))
            .arg(client.get_program())
            .args(client.get_args())
            .arg("--recorded")
            .arg(body);
        took(valgrind, case, reader)
    }

    fn client(&self, case: Case, reader: Reader) -> Command {
        let mut client = Command::new(&self.0);
        client.args(["bench-client", "--reader", reader.name(), "--case", &case.to_string()]);
        client
    }
}

fn took(mut command: Command, case: Case, reader: Reader) -> Result<Took> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.stdin(Stdio::null()).output();
    let out = out.with_context(|| format!("cannot run {name}; is it installed?"))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        bail!("{} could not read {case}: {}", reader.name(), said.trim());
    }
    serde_json::from_slice(&out.stdout).context("a client did not say what it took")
}

/// The server process, ended when this is dropped.
pub(super) struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Where it listens.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
