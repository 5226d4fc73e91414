//! A server that is our child: started on a free port, waited for, and ended.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tokio::process::{Child, Command};

use super::http;

/// How long a server may take to be up; the slowest loads for a minute.
const UP: Duration = Duration::from_secs(240);
const POLL: Duration = Duration::from_millis(100);

/// The lines of its log that are shown when it does not come up.
const SHOWN_LINES: usize = 20;

/// A running server. Dropping it ends it too, without waiting for its end.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    child: Child,
}

impl Server {
    /// Starts `command`, whose output goes to `log`, and waits until `GET health`
    /// is answered with 200.
    ///
    /// # Errors
    ///
    /// It cannot be started, ends by itself, or is not up in time; with the end of
    /// its log.
    pub(crate) async fn start(
        mut command: Command,
        port: u16,
        health: &str,
        log: &Path,
    ) -> Result<Self> {
        let file = create(log)?;
        command.stdin(Stdio::null());
        command.stdout(file.try_clone().context("cannot share the log")?).stderr(file);
        let child = command.kill_on_drop(true).spawn();
        let child = child.with_context(|| {
            format!("cannot start {}", command.as_std().get_program().to_string_lossy())
        })?;
        let mut server = Self { port, child };
        match tokio::time::timeout(UP, server.up(health)).await {
            Ok(Ok(())) => Ok(server),
            Ok(Err(error)) => Err(error.context(tail(log))),
            Err(_) => bail!("it was not up within {} s\n{}", UP.as_secs(), tail(log)),
        }
    }

    async fn up(&mut self, health: &str) -> Result<()> {
        while http::get(self.port, health).await.is_err() {
            if let Some(status) = self.child.try_wait().context("cannot ask for its state")? {
                bail!("it ended by itself, {status}");
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Ends it, and waits until it is gone.
    pub(crate) async fn stop(mut self) -> Result<()> {
        self.child.kill().await.context("cannot end a server")
    }
}

/// A port of loopback that nobody listens on.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no port is free on loopback")?;
    Ok(listener.local_addr()?.port())
}

fn create(log: &Path) -> Result<File> {
    let folder = log.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    File::create(log).with_context(|| format!("cannot write {}", log.display()))
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default();
    format!("the end of {}:\n{}", log.display(), shown.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_ends_by_itself_is_told_with_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo no model here; exit 3"]);
        let log = folder.path().join("logs/peer.log");
        let error = Server::start(command, free_port().unwrap(), "/health", &log).await;
        let told = format!("{:#}", error.unwrap_err());
        assert!(told.contains("no model here") && told.contains("exit status: 3"), "{told}");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let command = Command::new("turnbuckle-no-such-peer");
        let log = folder.path().join("peer.log");
        let error = Server::start(command, free_port().unwrap(), "/health", &log).await;
        let told = format!("{:#}", error.unwrap_err());
        assert!(told.contains("cannot start turnbuckle-no-such-peer"), "{told}");
    }
}
