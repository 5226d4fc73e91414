//! The one door through which every call goes.

use std::{
    fmt,
    future::Future,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::FutureExt as _;
use serde_json::Value;
use turnbuckle_errors::{ErrorCode, Failure};

use super::{Registered, ToolSet};
use crate::{Admission, Aftermath, Call, Effect, Guard, ToolContext, ToolError, ToolOutcome};

/// How long a tool may take to end after its prompt was cancelled; then it is
/// dropped, and ends what it started that way. Longer than the built-in ones need
/// to end a process that ignores TERM.
pub const STOP_GRACE: Duration = Duration::from_secs(10);

/// The tools of one prompt: the same tools, with guards that count for it alone.
pub struct PromptTools {
    pub(super) set: ToolSet,
    guards: Mutex<Vec<Box<dyn Guard>>>,
    ended: Mutex<Option<Failure>>,
}

impl PromptTools {
    pub(super) const fn new(set: ToolSet, guards: Vec<Box<dyn Guard>>) -> Self {
        Self { set, guards: Mutex::new(guards), ended: Mutex::new(None) }
    }

    /// Adds a guard for this prompt.
    #[must_use]
    pub fn with_guard(self, guard: Box<dyn Guard>) -> Self {
        self.guards().push(guard);
        self
    }

    /// What a call does to the machine; unknown tools do nothing. Where the tool
    /// panics over the question, the strongest effect is taken.
    #[must_use]
    pub fn effect(&self, call: &Call) -> Effect {
        let Some(registered) = self.set.tools.get(&call.name) else { return Effect::Read };
        let input = call.input.as_ref().unwrap_or(&Value::Null);
        effect(registered, input).unwrap_or(Effect::Execute)
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

    /// Asks whether a call may run: the tool exists, its input is whole, within
    /// the limits and what the tool's schema says, the guards and the permissions
    /// allow it. May wait for a person.
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

    /// Runs a call that was admitted. A panic of the tool is a failed tool; one
    /// that does not end within [`STOP_GRACE`] after a cancellation is dropped.
    ///
    /// Cancel safety: dropping the future drops the tool's.
    pub async fn run(&self, call: &Call, admitted: Admitted, context: &ToolContext) -> ToolOutcome {
        let Admitted { registered, input, outside } = admitted;
        let context = &context.clone().with_outside(outside);
        let work = contained(async { registered.tool.run(input, context).await });
        let result = tokio::select! {
            biased;
            result = work => result.unwrap_or_else(|Panicked| Err(broke_down(&registered))),
            () = overdue(context) => Err(ToolError::new(
                ErrorCode::TurnAborted,
                "the prompt was cancelled, and the tool did not stop: its outcome is unknown",
            )),
        };
        let outcome = ToolOutcome { result, started: true };
        self.observe(call, &outcome);
        outcome
    }

    /// The failure with which a guard wants to end the prompt after this batch.
    #[must_use]
    pub fn ended(&self) -> Option<Failure> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn check(&self, call: &Call, context: &ToolContext) -> Result<Admitted, ToolError> {
        let registered = self.set.tools.get(&call.name);
        let registered = registered.ok_or_else(|| self.set.unknown(&call.name))?;
        let input = self.input(call, registered)?;
        let effect = effect(registered, &input).map_err(|Panicked| broke_down(registered))?;
        self.ask_guards(call, effect)?;
        // The tool says what it would do, and where.
        let permit = self.permit(call, &registered.tool, input, effect, context);
        let (input, outside) =
            contained(permit).await.unwrap_or_else(|Panicked| Err(broke_down(registered)))?;
        Ok(Admitted { registered: Arc::clone(registered), input, outside })
    }

    fn input(&self, call: &Call, registered: &Registered) -> Result<Value, ToolError> {
        let input = call.input.as_ref().map_err(|_| {
            let text =
                "the arguments are not whole JSON; send the call again with a complete JSON object";
            ToolError::new(ErrorCode::InvalidArgument, text)
        })?;
        let (most, bytes) = (self.set.limits.argument_bytes, written(input));
        if bytes > most {
            let name = &registered.spec.name;
            let text = format!(
                "{name}: the arguments have {bytes} bytes, and at most {most} are taken; do it in smaller steps"
            );
            return Err(ToolError::new(ErrorCode::InvalidArgument, text));
        }
        registered.schema.check(&registered.spec, input.clone())
    }

    fn ask_guards(&self, call: &Call, effect: Effect) -> Result<(), ToolError> {
        for guard in self.guards().iter_mut() {
            match caught(|| guard.before(call, effect)) {
                Ok(Admission::Allow) => {}
                Ok(Admission::Deny(error)) => return Err(error),
                // What it would have refused is not known.
                Err(Panicked) => return Err(denied("a guard broke down (a fault in it)")),
            }
        }
        Ok(())
    }

    fn observe(&self, call: &Call, outcome: &ToolOutcome) {
        for guard in self.guards().iter_mut() {
            if let Ok(Aftermath::EndPrompt(failure)) = caught(|| guard.after(call, outcome)) {
                let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
                ended.get_or_insert(failure);
            }
        }
    }

    fn guards(&self) -> MutexGuard<'_, Vec<Box<dyn Guard>>> {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that may run. Only [`PromptTools::admit`] makes one: without it nothing
/// can be handed to [`PromptTools::run`].
///
/// ```compile_fail
/// # use turnbuckle_tools::{Admitted, Call, PromptTools, ToolContext};
/// # async fn run(tools: &PromptTools, call: &Call, context: &ToolContext) {
/// tools.run(call, Admitted {}, context).await;
/// # }
/// ```
pub struct Admitted {
    registered: Arc<Registered>,
    input: Value,
    /// The folder outside the workspace that it may use.
    outside: Option<PathBuf>,
}

/// Code that is not ours panicked; the panic hook has told where.
#[derive(Debug)]
pub(super) struct Panicked;

fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    // Nothing of ours is left half done by it.
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| Panicked)
}

pub(super) async fn contained<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| Panicked)
}

fn effect(registered: &Registered, input: &Value) -> Result<Effect, Panicked> {
    caught(|| registered.tool.effect(input))
}

fn broke_down(registered: &Registered) -> ToolError {
    let text = format!("the tool `{}` broke down (a fault in it)", registered.spec.name);
    ToolError::new(ErrorCode::ToolFailed, text)
}

/// When a tool should have ended, because its prompt was cancelled.
async fn overdue(context: &ToolContext) {
    context.cancel.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
}

/// How long a value is as JSON without spaces.
fn written(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value can always be written, and a counter takes everything.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted").field("tool", &self.registered.spec.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for PromptTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptTools").field("set", &self.set).finish_non_exhaustive()
    }
}

pub(super) fn denied(why: &str) -> ToolError {
    ToolError::new(ErrorCode::ToolDenied, format!("not run: {why}"))
}
