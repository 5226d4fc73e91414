//! What tools say while they run.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::{Value, json};
use turnbuckle_providers::{FinishReason, testing::ScriptedAttempt};
use turnbuckle_runtime::{Event, EventKind};
use turnbuckle_tools::{
    Effect, MAX_PROGRESS, Tool, ToolContext, ToolError, ToolOutput, ToolSet, ToolSpec,
};

use crate::scene::{kind, play_with};

/// Says so many lines, one every millisecond or all at once, and once more after
/// its end, from a task that it left behind.
struct Talker(ToolSpec);

impl Talker {
    fn set() -> ToolSet {
        ToolSet::new().with(Arc::new(Self(ToolSpec {
            name: "Talk".into(),
            description: "talks".into(),
            input_schema: json!({"type": "object"}),
        })))
    }
}

#[async_trait]
impl Tool for Talker {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Read
    }

    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        for line in 0..input["lines"].as_u64().unwrap() {
            context.progress(&format!("line {line}\n"));
            if input["slowly"] == true {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        let left_behind = context.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            left_behind.progress("too late");
        });
        Ok(ToolOutput::text("said it"))
    }
}

async fn talk(arguments: &[&str]) -> Vec<Event> {
    let ask = arguments.iter().enumerate().fold(ScriptedAttempt::default(), |ask, (at, text)| {
        ask.tool_call(&format!("call-{at}"), "Talk", text)
    });
    let script = [ask.finish(FinishReason::ToolCalls), ScriptedAttempt::answer(["done"])];
    play_with(script, |builder| builder.tools(Talker::set())).await.events
}

/// The updates of one call: text, and bytes left out.
fn updates(events: &[Event], id: &str) -> Vec<(String, u64)> {
    let update = |event: &Event| match &event.kind {
        EventKind::ToolExecutionUpdate { tool_call_id, text, skipped_bytes }
            if tool_call_id == id =>
        {
            Some((text.clone(), *skipped_bytes))
        }
        _ => None,
    };
    events.iter().filter_map(update).collect()
}

#[tokio::test(start_paused = true)]
async fn a_host_sees_what_a_tool_says_between_its_start_and_its_end() {
    let events = talk(&[r#"{"lines":2,"slowly":true}"#, r#"{"lines":20,"slowly":true}"#]).await;
    assert_eq!(updates(&events, "call-0"), [("line 0\n".into(), 0), ("line 1\n".into(), 0)]);
    // Nothing comes after its end, while its neighbour still runs.
    assert_eq!(updates(&events, "call-1").len(), 20);
    let update = events.iter().find(|event| kind(event) == "tool_execution_update").unwrap();
    let update = serde_json::to_value(update).unwrap();
    assert_eq!((&update["toolCallId"], &update["text"]), (&json!("call-0"), &json!("line 0\n")));
    assert_eq!(update.get("skippedBytes"), None);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_talks_without_end_fills_no_memory() {
    let events = talk(&[r#"{"lines":100000}"#]).await;
    let updates = updates(&events, "call-0");
    let all: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
    let [(text, skipped)] = updates.as_slice() else { panic!("{} updates", updates.len()) };
    assert!(text.len() <= MAX_PROGRESS && all.ends_with(text));
    assert_eq!(text.len() as u64 + skipped, all.len() as u64);
}
