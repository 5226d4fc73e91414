//! The one door through which every call goes.

mod permit;

use std::{
    collections::BTreeMap,
    fmt,
    panic::AssertUnwindSafe,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::FutureExt as _;
use serde_json::Value;
use turnbuckle_errors::{ErrorCode, Failure, Opaque, Redact};

use self::permit::Allowed;
use crate::{
    Admission, Aftermath, Approver, Call, DenyAll, Effect, Guard, MutationGuard, PermissionMode,
    Tool, ToolContext, ToolError, ToolOutcome, ToolSpec,
};

/// The tools of a session, and the rules under which they run.
#[derive(Clone)]
pub struct ToolSet {
    tools: BTreeMap<String, Arc<dyn Tool>>,
    order: Vec<String>,
    mode: PermissionMode,
    approver: Arc<dyn Approver>,
    allowed: Allowed,
    redact: Arc<dyn Redact>,
}

impl ToolSet {
    /// No tools, read-only, nobody to ask.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tools: BTreeMap::new(),
            order: Vec::new(),
            mode: PermissionMode::default(),
            approver: Arc::new(DenyAll),
            allowed: Allowed::default(),
            redact: Arc::new(Opaque),
        }
    }

    /// Adds a tool; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Self {
        let name = tool.spec().name.clone();
        if self.tools.insert(name.clone(), tool).is_none() {
            self.order.push(name);
        }
        self
    }

    /// Sets which calls run without a question. What was allowed for the session
    /// is kept by the set and its clones, so make one set a session.
    #[must_use]
    pub fn with_permissions(mut self, mode: PermissionMode, approver: Arc<dyn Approver>) -> Self {
        self.mode = mode;
        self.approver = approver;
        self
    }

    /// Sets the redactor for what the guards report.
    #[must_use]
    pub fn with_redactor(mut self, redact: Arc<dyn Redact>) -> Self {
        self.redact = redact;
        self
    }

    /// What the model is told about the tools, in the order they were added.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.order
            .iter()
            .filter_map(|name| self.tools.get(name))
            .map(|tool| tool.spec().clone())
            .collect()
    }

    /// Opens the door for the calls of one prompt, with fresh guards.
    #[must_use]
    pub fn begin_prompt(&self) -> PromptTools {
        let guard: Box<dyn Guard> = Box::new(MutationGuard::new(Arc::clone(&self.redact)));
        PromptTools { set: self.clone(), guards: Mutex::new(vec![guard]), ended: Mutex::new(None) }
    }

    fn unknown(&self, name: &str) -> ToolError {
        let text =
            format!("there is no tool named `{name}`; the tools are: {}", self.order.join(", "));
        ToolError::new(ErrorCode::ToolNotFound, text)
    }
}

impl Default for ToolSet {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSet")
            .field("tools", &self.order)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// The tools of one prompt: the same tools, with guards that count for it alone.
pub struct PromptTools {
    set: ToolSet,
    guards: Mutex<Vec<Box<dyn Guard>>>,
    ended: Mutex<Option<Failure>>,
}

impl PromptTools {
    /// Adds a guard for this prompt.
    #[must_use]
    pub fn with_guard(self, guard: Box<dyn Guard>) -> Self {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner).push(guard);
        self
    }

    /// What a call does to the machine; unknown tools do nothing.
    #[must_use]
    pub fn effect(&self, call: &Call) -> Effect {
        let tool = self.set.tools.get(&call.name);
        tool.map_or(Effect::Read, |tool| tool.effect(call.input.as_ref().unwrap_or(&Value::Null)))
    }

    /// Runs one call to its outcome, whatever happens: an unknown tool, broken
    /// arguments, a denial, a panic of the tool are outcomes too.
    ///
    /// Cancel safety: dropping the future drops the tool's.
    pub async fn call(&self, call: &Call, context: &ToolContext) -> ToolOutcome {
        match self.admit(call, context).await {
            Ok(admitted) => self.run(call, admitted, context).await,
            Err(outcome) => outcome,
        }
    }

    /// Asks whether a call may run: the tool exists, its input is whole, the
    /// guards and the permissions allow it. May wait for a person.
    ///
    /// # Errors
    ///
    /// The outcome of a call that may not run; the tool was not started.
    pub async fn admit(&self, call: &Call, context: &ToolContext) -> Result<Admitted, ToolOutcome> {
        self.check(call, context).await.map_err(|error| {
            let outcome = ToolOutcome { result: Err(error), started: false };
            self.observe(call, &outcome);
            outcome
        })
    }

    /// Runs a call that was admitted. A panic of the tool is a failed tool.
    ///
    /// Cancel safety: dropping the future drops the tool's.
    pub async fn run(&self, call: &Call, admitted: Admitted, context: &ToolContext) -> ToolOutcome {
        let Admitted { tool, input, outside } = admitted;
        let context = context.clone().with_outside(outside);
        let run = AssertUnwindSafe(tool.run(input, &context)).catch_unwind().await;
        let panicked = |_| {
            let text = format!("the tool `{}` broke down (a fault in it)", call.name);
            Err(ToolError::new(ErrorCode::ToolFailed, text))
        };
        let outcome = ToolOutcome { result: run.unwrap_or_else(panicked), started: true };
        self.observe(call, &outcome);
        outcome
    }

    /// The failure with which a guard wants to end the prompt after this batch.
    #[must_use]
    pub fn ended(&self) -> Option<Failure> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn check(&self, call: &Call, context: &ToolContext) -> Result<Admitted, ToolError> {
        let tool = self.set.tools.get(&call.name).ok_or_else(|| self.set.unknown(&call.name))?;
        let input = call.input.clone().ok_or_else(|| {
            let text =
                "the arguments are not whole JSON; send the call again with a complete JSON object";
            ToolError::new(ErrorCode::InvalidArgument, text)
        })?;
        let effect = tool.effect(&input);
        self.ask_guards(call, effect)?;
        let (input, outside) = self.permit(call, tool, input, effect, context).await?;
        Ok(Admitted { tool: Arc::clone(tool), input, outside })
    }

    fn ask_guards(&self, call: &Call, effect: Effect) -> Result<(), ToolError> {
        let mut guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
        for guard in guards.iter_mut() {
            if let Admission::Deny(error) = guard.before(call, effect) {
                return Err(error);
            }
        }
        Ok(())
    }

    fn observe(&self, call: &Call, outcome: &ToolOutcome) {
        let mut guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
        for guard in guards.iter_mut() {
            if let Aftermath::EndPrompt(failure) = guard.after(call, outcome) {
                let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
                ended.get_or_insert(failure);
            }
        }
    }
}

/// A call that may run. Only [`PromptTools::admit`] makes one.
pub struct Admitted {
    tool: Arc<dyn Tool>,
    input: Value,
    /// The folder outside the workspace that it may use.
    outside: Option<PathBuf>,
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted").field("tool", &self.tool.spec().name).finish_non_exhaustive()
    }
}

impl fmt::Debug for PromptTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptTools").field("set", &self.set).finish_non_exhaustive()
    }
}

fn denied(why: &str) -> ToolError {
    ToolError::new(ErrorCode::ToolDenied, format!("not run: {why}"))
}

#[cfg(test)]
mod tests;
