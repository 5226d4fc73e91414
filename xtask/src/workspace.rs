//! Where the workspace is, and cargo run in it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};
use cargo_metadata::{Metadata, MetadataCommand, Package};

/// The workspace that cargo finds from the current folder.
#[derive(Debug)]
pub(crate) struct Workspace {
    metadata: Metadata,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn find() -> Result<Self> {
        let metadata = MetadataCommand::new()
            .no_deps()
            .exec()
            .context("cargo cannot read the workspace; run this inside of it")?;
        Ok(Self { metadata })
    }

    pub(crate) fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    pub(crate) fn target(&self) -> &Path {
        self.metadata.target_directory.as_std_path()
    }

    pub(crate) fn members(&self) -> Vec<&Package> {
        self.metadata.workspace_packages()
    }

    /// `cargo` with these arguments, in the root, held to the lock file.
    pub(crate) fn cargo(&self, args: &[&str]) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        // What `cargo run` tells about xtask would make build scripts run again.
        for (name, _) in std::env::vars_os() {
            let inherited = name.to_string_lossy();
            let about_xtask = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
            if about_xtask.iter().any(|prefix| inherited.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command.args(args).current_dir(self.root()).stdin(Stdio::null());
        // Snapshots are compared, never written, unless a task says otherwise.
        command.env("INSTA_UPDATE", "no").env("CARGO_TERM_COLOR", "never");
        command
    }

    /// Runs a command to its end. What it prints goes to a log, and is handed
    /// back.
    pub(crate) fn run(&self, log: &str, mut command: Command) -> Result<Ran> {
        let folder = self.target().join("xtask");
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let log = folder.join(format!("{log}.log"));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdout(file.try_clone().context("cannot share the log")?).stderr(file);
        let name = command.get_program().to_string_lossy().into_owned();
        let status = command.status().with_context(|| format!("cannot run {name}"))?;
        let output = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        Ok(Ran { ok: status.success(), output, log })
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ok: bool,
    pub(crate) output: String,
    log: PathBuf,
}

/// The lines of a failed command that are shown; the rest is in its log.
const SHOWN_LINES: usize = 200;

impl Ran {
    /// The end of what it printed, and where the whole is.
    pub(crate) fn tail(&self) -> String {
        let lines: Vec<&str> = self.output.lines().collect();
        let cut = lines.len().saturating_sub(SHOWN_LINES);
        let shown = lines.get(cut..).unwrap_or_default().join("\n");
        match cut {
            0 => shown,
            cut => format!("({cut} lines before this: {})\n{shown}", self.log.display()),
        }
    }
}
