//! The tools of a session, and the rules under which they run.

mod door;
mod permit;

use std::{collections::BTreeMap, fmt, sync::Arc};

pub use door::{Admitted, PromptTools, STOP_GRACE};
use turnbuckle_errors::{ErrorCode, Opaque, Redact};

use self::permit::Allowed;
use crate::{
    Approver, CallLimits, DenyAll, Guard, MutationGuard, PermissionMode, RepetitionGuard, Tool,
    ToolError, ToolSpec, input::InputSchema,
};

/// The tools of a session, and the rules under which they run.
#[derive(Clone)]
pub struct ToolSet {
    tools: BTreeMap<String, Arc<Registered>>,
    order: Vec<String>,
    mode: PermissionMode,
    limits: CallLimits,
    approver: Arc<dyn Approver>,
    allowed: Allowed,
    redact: Arc<dyn Redact>,
}

/// A tool, and what was asked of it once.
struct Registered {
    tool: Arc<dyn Tool>,
    spec: ToolSpec,
    schema: InputSchema,
}

impl ToolSet {
    /// No tools, read-only, nobody to ask.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tools: BTreeMap::new(),
            order: Vec::new(),
            mode: PermissionMode::default(),
            limits: CallLimits::default(),
            approver: Arc::new(DenyAll),
            allowed: Allowed::default(),
            redact: Arc::new(Opaque),
        }
    }

    /// Adds a tool; one of the same name is replaced.
    ///
    /// Its [`spec`](Tool::spec) is taken here, once, and the schema in it is
    /// compiled. One that is no valid schema, or that refers to another document,
    /// checks nothing: the tool gets any JSON object then.
    #[must_use]
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Self {
        let spec = tool.spec().clone();
        let schema = InputSchema::of(&spec);
        let name = spec.name.clone();
        if self.tools.insert(name.clone(), Arc::new(Registered { tool, spec, schema })).is_none() {
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

    /// Sets what a model may do with its calls before it is stopped.
    #[must_use]
    pub const fn with_limits(mut self, limits: CallLimits) -> Self {
        self.limits = limits;
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
            .map(|registered| registered.spec.clone())
            .collect()
    }

    /// Opens the door for the calls of one prompt, with fresh guards.
    #[must_use]
    pub fn begin_prompt(&self) -> PromptTools {
        let mut guards: Vec<Box<dyn Guard>> =
            vec![Box::new(MutationGuard::new(Arc::clone(&self.redact)))];
        if self.limits.identical_calls > 0 {
            let limit = self.limits.identical_calls;
            guards.push(Box::new(RepetitionGuard::new(limit, Arc::clone(&self.redact))));
        }
        PromptTools::new(self.clone(), guards)
    }

    fn unknown(&self, name: &str) -> ToolError {
        // A model may write anything for a name.
        let name = name.get(..name.floor_char_boundary(NAME)).unwrap_or_default();
        let text =
            format!("there is no tool named `{name}`; the tools are: {}", self.order.join(", "));
        ToolError::new(ErrorCode::ToolNotFound, text)
    }
}

/// How much of an unknown name is quoted, in bytes.
const NAME: usize = 100;

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

#[cfg(test)]
mod tests;
