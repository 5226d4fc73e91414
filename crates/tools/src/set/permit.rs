//! Whether a call may run: the mode decides, or the approver is asked, once.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use turnbuckle_errors::ErrorCode;

use super::door::{Panicked, PromptTools, contained, denied};
use crate::{
    Answer, ApprovalRequest, Call, Effect, PermissionMode, Rule, Tool, ToolContext, ToolError,
    approve::PERMISSION_TIMEOUT,
};

/// What was allowed for the rest of the session: a tool, within the workspace or
/// within one folder outside of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Allowed(Arc<Mutex<BTreeSet<Allowance>>>);

type Allowance = (String, Option<PathBuf>);

impl Allowed {
    fn holds(&self, allowance: &Allowance) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(allowance)
    }

    fn add(&self, allowance: Allowance) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(allowance);
    }
}

impl PromptTools {
    /// Asks whether a call may run; gives back the input to run it with, and the
    /// folder outside the workspace that it may use, if it needs one.
    ///
    /// # Errors
    ///
    /// `TOOL_DENIED`, `PATH_OUTSIDE_WORKSPACE`, `PERMISSION_TIMEOUT`.
    pub(super) async fn permit(
        &self,
        call: &Call,
        tool: &Arc<dyn Tool>,
        input: Value,
        effect: Effect,
        context: &ToolContext,
    ) -> Result<(Value, Option<PathBuf>), ToolError> {
        let mode = self.set.mode;
        let rule = mode.rule(effect);
        if rule == Rule::Deny {
            return Err(denied("this session is read-only"));
        }
        let Some(outside) = tool.outside(&input).await else {
            if rule == Rule::Ask {
                self.ask(call, effect, tool.describe(&input), None, context).await?;
            }
            return Ok((input, None));
        };
        // What is outside is asked about whatever the mode allows inside.
        if mode == PermissionMode::ReadOnly {
            return Err(not_outside(&outside.path, "this session is read-only"));
        }
        let description = describe(&outside.path, &tool.describe(&input));
        let folder = Some(outside.folder);
        match self.ask(call, effect, description, folder.clone(), context).await {
            Err(error) if error.code == ErrorCode::ToolDenied && !context.cancel.is_cancelled() => {
                Err(not_outside(&outside.path, "the user did not allow it"))
            }
            Err(error) => Err(error),
            Ok(()) => Ok((outside.input, folder)),
        }
    }

    /// Asks, unless it was allowed for the session.
    async fn ask(
        &self,
        call: &Call,
        effect: Effect,
        description: String,
        outside: Option<PathBuf>,
        context: &ToolContext,
    ) -> Result<(), ToolError> {
        let allowance = (call.name.clone(), outside.clone());
        if self.set.allowed.holds(&allowance) {
            return Ok(());
        }
        let (call_id, tool) = (call.id.clone(), call.name.clone());
        let request = ApprovalRequest { call_id, tool, effect, description, outside };
        match self.answer(&request, context).await? {
            Answer::Allow => Ok(()),
            Answer::AllowForSession => {
                self.set.allowed.add(allowance);
                Ok(())
            }
            Answer::Deny => Err(denied("the user did not allow it")),
        }
    }

    async fn answer(
        &self,
        request: &ApprovalRequest,
        context: &ToolContext,
    ) -> Result<Answer, ToolError> {
        let answer = contained(async { self.set.approver.answer(request).await });
        let answer = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(denied("the prompt was cancelled")),
            answer = tokio::time::timeout(PERMISSION_TIMEOUT, answer) => answer,
        };
        // Whoever answers may cancel with the same move.
        if context.cancel.is_cancelled() {
            return Err(denied("the prompt was cancelled"));
        }
        let answer = answer.map_err(|_| {
            ToolError::new(
                ErrorCode::PermissionTimeout,
                "not run: nobody answered the permission question within 120 s",
            )
        })?;
        answer
            .map_err(|Panicked| denied("the permission question broke down (a fault in the host)"))
    }
}

/// The question in plain words: what leaves the workspace says so first.
fn describe(path: &Path, call: &str) -> String {
    format!("go OUTSIDE the workspace, to {}:\n{call}", path.to_string_lossy().escape_debug())
}

fn not_outside(path: &Path, why: &str) -> ToolError {
    let text = format!(
        "not run: `{}` is outside the workspace, and {why}; use a path inside it",
        path.display()
    );
    ToolError::new(ErrorCode::PathOutsideWorkspace, text)
}

#[cfg(test)]
mod tests;
