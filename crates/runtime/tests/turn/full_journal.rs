use std::{io, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use serde_json::{Value, json};
use turnbuckle_providers::{
    FinishReason,
    testing::{ScriptedAttempt, ScriptedProvider},
};
use turnbuckle_runtime::{Record, Runtime, SessionStore, StoreError};
use turnbuckle_tools::{
    DenyAll, Effect, PermissionMode, Tool, ToolContext, ToolError, ToolOutput, ToolSet, ToolSpec,
};

use crate::scene::{check_promises, kind};

/// A journal with no room for the start of a change.
struct Full;

#[async_trait]
impl SessionStore for Full {
    async fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        match record {
            Record::ToolStart { .. } => Err(StoreError::Io {
                action: "write",
                path: PathBuf::from("journal"),
                source: io::ErrorKind::StorageFull.into(),
            }),
            _ => Ok(()),
        }
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

struct Work(ToolSpec, Effect);

#[async_trait]
impl Tool for Work {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effect(&self, _input: &Value) -> Effect {
        self.1
    }

    async fn run(&self, _input: Value, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        assert_eq!(self.1, Effect::Read, "a change began that no journal knows of");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        Ok(ToolOutput::text("seen"))
    }
}

#[tokio::test(start_paused = true)]
async fn reads_come_to_their_end_when_no_change_can_be_noted_any_more() {
    let tool = |name: &str, effect| {
        let (name, description) = (name.to_owned(), "d".to_owned());
        let input_schema = json!({"type": "object"});
        Arc::new(Work(ToolSpec { name, description, input_schema }, effect))
    };
    let tools = ToolSet::new()
        .with(tool("Look", Effect::Read))
        .with(tool("Change", Effect::Mutate))
        .with_permissions(PermissionMode::Auto, Arc::new(DenyAll));
    let asks = ScriptedAttempt::default()
        .tool_call("a", "Look", "{}")
        .tool_call("b", "Change", "{}")
        .finish(FinishReason::ToolCalls);
    let provider = Arc::new(ScriptedProvider::new([asks]));
    let mut session = Runtime::builder(provider, "model-x").tools(tools).build().session(Full);
    let mut prompt = session.prompt("go");
    let mut events = Vec::new();
    while let Some(event) = prompt.next().await {
        events.push(event);
    }
    let outcome = prompt.ended().expect("the prompt has ended").clone();
    check_promises(&events, &outcome);
    let of_tools = events.iter().map(kind).filter(|kind| kind.starts_with("tool"));
    assert_eq!(of_tools.collect::<Vec<_>>(), ["tool_execution_start", "tool_execution_end"]);
    assert!(!outcome.ok);
}
