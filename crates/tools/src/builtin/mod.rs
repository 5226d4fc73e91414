//! The built-in tools: Read, Write, Edit, Glob, Grep and Bash, in one workspace.
//!
//! [`tools`] gives them to a [`ToolSet`](crate::ToolSet); they share one memory
//! of what the session saw of each file, and one lock for changes.
//!
//! ```
//! use std::sync::Arc;
//! use turnbuckle_tools::{ToolSet, builtin::{self, Workspace}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let workspace = Workspace::open(".")?;
//! let set = builtin::tools(&workspace).into_iter().fold(ToolSet::new(), ToolSet::with);
//! let names: Vec<_> = set.specs().into_iter().map(|spec| spec.name).collect();
//! assert_eq!(names, ["Read", "Write", "Edit", "Glob", "Grep", "Bash"]);
//! # Ok(())
//! # }
//! ```

#[cfg(not(unix))]
compile_error!("the built-in tools need Unix: process groups, file modes, FIFOs");

mod bash;
mod edit;
mod encoding;
mod fs;
mod glob;
mod grep;
mod ledger;
mod outside;
mod question;
mod read;
mod search;
mod spill;
mod text;
mod workspace;
mod write;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use turnbuckle_errors::ErrorCode;

use self::{
    bash::Bash, edit::Edit, glob::Glob, grep::Grep, ledger::Ledger, outside::Folders, read::Read,
    spill::Outputs, write::Write,
};
pub use self::{
    bash::patch_command,
    workspace::{Workspace, WorkspaceError},
};
use crate::{Tool, ToolContext, ToolError, ToolOutput, arguments};

/// The default system prompt for an agent with these tools.
pub const SYSTEM_PROMPT: &str = include_str!("system_prompt.md");

/// The built-in tools for one session: Read, Write, Edit, Glob, Grep, Bash, in
/// this order.
///
/// They share what the session saw of each file, so make them once a session.
#[must_use]
pub fn tools(workspace: &Workspace) -> Vec<Arc<dyn Tool>> {
    let shared = Shared::new(workspace.clone());
    vec![
        Arc::new(Read::new(shared.clone())),
        Arc::new(Write::new(shared.clone())),
        Arc::new(Edit::new(shared.clone())),
        Arc::new(Glob::new(shared.clone())),
        Arc::new(Grep::new(shared.clone())),
        Arc::new(Bash::new(shared)),
    ]
}

/// What the file tools of one session share.
#[derive(Clone)]
struct Shared {
    workspace: Workspace,
    ledger: Arc<Ledger>,
    outputs: Arc<Outputs>,
    /// Folders outside the workspace that calls asked for.
    folders: Arc<Folders>,
    /// Held by the one change that is under way.
    changing: Arc<tokio::sync::Mutex<()>>,
}

impl Shared {
    fn new(workspace: Workspace) -> Self {
        Self {
            workspace,
            ledger: Arc::default(),
            outputs: Arc::default(),
            folders: Arc::default(),
            changing: Arc::default(),
        }
    }

    /// Runs file work that changes nothing; it is left behind on cancellation.
    async fn look(
        &self,
        context: &ToolContext,
        work: impl FnOnce(&Self, &Stop) -> Result<ToolOutput, ToolError> + Send + 'static,
    ) -> Result<ToolOutput, ToolError> {
        let stop = Stop(context.cancel.child_token());
        let _left_behind = stop.0.clone().drop_guard();
        let shared = self.at(context);
        let work = tokio::task::spawn_blocking(move || work(&shared, &stop));
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(cancelled()),
            done = work => done.unwrap_or_else(|_| Err(broke_down())),
        }
    }

    /// Runs file work that changes a file, one at a time.
    ///
    /// Cancel safety: a change that is dropped or cancelled lands whole or not
    /// at all, and the next change waits for it.
    async fn change(
        &self,
        context: &ToolContext,
        work: impl FnOnce(&Self, &Stop) -> Result<ToolOutput, ToolError> + Send + 'static,
    ) -> Result<ToolOutput, ToolError> {
        let turn = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(cancelled()),
            turn = Arc::clone(&self.changing).lock_owned() => turn,
        };
        let stop = Stop(context.cancel.child_token());
        let _left_behind = stop.0.clone().drop_guard();
        let shared = self.at(context);
        // Waited for even when cancelled: the model must know whether it landed.
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&shared, &stop)
        });
        outside::in_full(work.await.unwrap_or_else(|_| Err(broke_down())), context)
    }
}

/// Tells blocking work that nobody waits for it any more.
struct Stop(CancellationToken);

impl Stop {
    fn check(&self) -> Result<(), ToolError> {
        if self.0.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }
}

fn cancelled() -> ToolError {
    ToolError::new(ErrorCode::TurnAborted, "stopped: the prompt was cancelled; nothing was changed")
}

fn broke_down() -> ToolError {
    ToolError::new(ErrorCode::ToolFailed, "the tool broke down (a fault in it)")
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
