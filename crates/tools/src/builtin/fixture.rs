//! A real folder with the built-in tools in it, for tests.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc};

use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::ErrorCode;

use super::{Workspace, tools};
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// A workspace in a temporary folder, with one session's tools.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) workspace: Workspace,
    tools: Vec<Arc<dyn Tool>>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("base");
        fs::create_dir(&root).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let tools = tools(&workspace);
        Self { folder, workspace, tools }
    }

    /// The path of a file on the machine.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    /// The names in the root, sorted: what was left behind shows here.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.workspace.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn tool(&self, name: &str) -> &Arc<dyn Tool> {
        self.tools.iter().find(|tool| tool.spec().name == name).unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        self.tool(tool).run(input, &ToolContext::default()).await
    }

    pub(crate) async fn call_until(
        &self,
        tool: &str,
        input: Value,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        self.tool(tool).run(input, &ToolContext::new(cancel.clone())).await
    }

    /// The text of a call that works.
    pub(crate) async fn text(&self, tool: &str, input: Value) -> String {
        self.call(tool, input).await.unwrap().text
    }

    /// The error of a call that does not, with this code.
    pub(crate) async fn error(&self, tool: &str, input: Value, code: ErrorCode) -> ToolError {
        let error = self.call(tool, input).await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
        error
    }
}
