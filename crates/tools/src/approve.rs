//! Who decides whether a call may run.

use std::{path::PathBuf, time::Duration};

use async_trait::async_trait;

use crate::Effect;

/// How long a permission question waits before no answer is a denial.
///
/// Long enough for a person to read a diff, short enough that a turn which
/// nobody watches ends by itself.
pub const PERMISSION_TIMEOUT: Duration = Duration::from_secs(120);

/// Which calls run without a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PermissionMode {
    /// Reads run; everything else is asked.
    Ask,
    /// Reads and changes of files run; programs are asked.
    AcceptEdits,
    /// Everything runs.
    Auto,
    /// Reads run; everything else is denied without a question.
    #[default]
    ReadOnly,
}

impl PermissionMode {
    /// What happens to a call with this effect.
    #[must_use]
    pub const fn rule(self, effect: Effect) -> Rule {
        match (self, effect) {
            (_, Effect::Read) | (Self::Auto, _) | (Self::AcceptEdits, Effect::Mutate) => Rule::Run,
            (Self::Ask, _) | (Self::AcceptEdits, Effect::Execute) => Rule::Ask,
            (Self::ReadOnly, _) => Rule::Deny,
        }
    }
}

/// What a mode says about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// It runs.
    Run,
    /// The [`Approver`] is asked.
    Ask,
    /// It is denied.
    Deny,
}

/// A permission question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// The call's id.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// What it does to the machine.
    pub effect: Effect,
    /// What will happen, in plain words.
    pub description: String,
    /// The folder outside the workspace that the call would use. Such a call is
    /// asked about in every mode but read-only, which denies it.
    pub outside: Option<PathBuf>,
}

/// The answer to a permission question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Run this call.
    Allow,
    /// Run this call, and further calls of the same tool without a question while
    /// the session lasts: inside the workspace, or inside the same folder outside.
    AllowForSession,
    /// Do not run it; the model is told.
    Deny,
}

/// Answers permission questions: a prompt on a terminal, a card in an editor.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Answers one question. It may take its time: the caller bounds the wait,
    /// and drops the future when the prompt is cancelled.
    async fn answer(&self, request: &ApprovalRequest) -> Answer;
}

/// The approver of a host that has nobody to ask.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

#[async_trait]
impl Approver for DenyAll {
    async fn answer(&self, _request: &ApprovalRequest) -> Answer {
        Answer::Deny
    }
}
