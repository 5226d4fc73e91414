//! The tools of a run, and who permits them.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::{Value, json};
use turnbuckle_errors::ErrorCode;
use turnbuckle_tools::{
    Answer, ApprovalRequest, Approver, Effect, PermissionMode, Tool, ToolContext, ToolError,
    ToolOutput, ToolSet, ToolSpec, Touched,
};

use crate::{kind::Plain, sabotage::Sabotage, script::Act, stage::Stage};

/// One tool for each of these acts that names one.
pub(crate) fn tools(stage: &Arc<Stage>, acts: &[Act]) -> ToolSet {
    let known = acts.iter().copied().filter(|act| *act != Act::Unknown);
    let set = known.fold(ToolSet::new(), |set, act| {
        let spec = ToolSpec {
            name: act.name().to_owned(),
            description: "plays its part".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"what": {"type": "string"}},
                "required": ["what"]
            }),
        };
        set.with(Arc::new(Prop { act, spec, stage: Arc::clone(stage) }))
    });
    set.with_permissions(PermissionMode::AcceptEdits, Arc::new(Somebody))
        .with_redactor(Arc::new(Plain))
}

/// The text that a call gives when it works.
pub(crate) fn done(what: &str) -> String {
    format!("did {what}")
}

struct Prop {
    act: Act,
    spec: ToolSpec,
    stage: Arc<Stage>,
}

#[async_trait]
impl Tool for Prop {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        match self.act {
            Act::Allowed | Act::Denied | Act::Unanswered => Effect::Execute,
            act if act.changes() => Effect::Mutate,
            _ => Effect::Read,
        }
    }

    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let what = input.get("what").and_then(Value::as_str).unwrap_or_default();
        let run = Run::begin(&self.stage, self.act, what);
        if self.stage.lock().sabotage == Some(Sabotage::RunTwice) && self.act == Act::Change {
            drop(Run::begin(&self.stage, self.act, what));
        }
        let work = tokio::time::sleep(Duration::from_millis(self.act.takes_ms()));
        if self.act == Act::StubbornChange {
            work.await;
        } else {
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => {
                    return Err(ToolError::new(ErrorCode::TurnAborted, "stopped"));
                }
                () = work => {}
            }
        }
        run.ended();
        match self.act {
            Act::Edit => {
                Ok(ToolOutput::text(done(what)).with_touched(Touched::Edit("notes".into())))
            }
            Act::MissedEdit => Err(ToolError::new(ErrorCode::EditNoMatch, "it is not there")
                .with_touched(Touched::Edit("notes".into()))),
            Act::FailingLook => Err(ToolError::new(ErrorCode::ToolFailed, "it cannot be seen")),
            // Unwinds like a panic, and prints nothing.
            Act::BreakingLook | Act::BreakingChange => std::panic::resume_unwind(Box::new("")),
            _ => Ok(ToolOutput::text(done(what))),
        }
    }
}

/// A tool at work; it stops when this is dropped.
struct Run<'a> {
    stage: &'a Stage,
    act: Act,
    what: &'a str,
}

impl<'a> Run<'a> {
    fn begin(stage: &'a Stage, act: Act, what: &'a str) -> Self {
        stage.lock().begin_tool(act, what);
        Self { stage, act, what }
    }

    /// It came to its own end.
    fn ended(self) {
        let mut state = self.stage.lock();
        if let Some(run) = state.tool_runs.iter_mut().rfind(|run| run.what == self.what) {
            run.ended = true;
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.stage.lock().end_tool(self.act);
    }
}

/// Says yes, no, or nothing, by the name of the tool.
struct Somebody;

#[async_trait]
impl Approver for Somebody {
    async fn answer(&self, request: &ApprovalRequest) -> Answer {
        if request.tool == Act::Unanswered.name() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(6)).await;
        if request.tool == Act::Allowed.name() { Answer::Allow } else { Answer::Deny }
    }
}
