//! In the middle of tool calls, and after a restart.

use std::sync::Arc;

use turnbuckle_providers::{
    ChatRequest, FinishReason, Message,
    testing::{ScriptedAttempt, ScriptedProvider},
};
use turnbuckle_tools::{PermissionMode, ToolSet};

use super::{answer, builder, shape, talk_with, too_large};
use crate::tools::tools;

/// Each call with its result next to it.
fn assert_paired(request: &ChatRequest) {
    let mut due: Vec<String> = Vec::new();
    for message in &request.messages {
        match message {
            Message::Tool(result) => assert_eq!(due.remove(0), result.call_id),
            other => {
                assert!(due.is_empty(), "{due:?}");
                if let Message::Assistant(said) = other {
                    due.extend(said.tool_calls.iter().map(|call| call.id.clone()));
                }
            }
        }
    }
    assert!(due.is_empty(), "{due:?}");
}

fn looks(words: usize) -> ScriptedAttempt {
    let what = "deep ".repeat(words);
    let arguments = format!("{{\"what\":\"{what}\"}}");
    let asked = ScriptedAttempt::default();
    asked
        .tool_call("call_1", "Look", &arguments)
        .tool_call("call_2", "Look", "{}")
        .finish(FinishReason::ToolCalls)
}

fn tool_set() -> ToolSet {
    tools().0.with_permissions(PermissionMode::Auto, Arc::new(turnbuckle_tools::DenyAll))
}

#[tokio::test(start_paused = true)]
async fn in_the_middle_of_its_tools_a_prompt_goes_on_from_a_summary() {
    let script =
        [looks(200), looks(200), looks(200), too_large(), answer("LOOKED"), answer("done")];
    let mut talk = talk_with(script, |builder| builder.tools(tool_set()));
    let (_, outcome) = talk.say("look three times").await;
    assert_eq!(outcome.text, "done");
    let requests = talk.provider.requests();
    let last = requests.last().unwrap();
    assert_paired(last);
    assert_eq!(shape(last)[..2], ["digest: LOOKED", "user: look three t"]);
    assert!(last.messages.len() < requests[3].messages.len());
    assert_eq!(last.tools.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_makes_the_same_request() {
    let folder = tempfile::tempdir().unwrap();
    let script = [
        looks(200),
        looks(200),
        looks(200),
        too_large(),
        answer("LOOKED"),
        looks(1),
        answer("done"),
        answer("in the same process"),
    ];
    let provider = ScriptedProvider::new(script);
    let runtime = builder(&provider).tools(tool_set()).build();
    let mut session = runtime.session_in(folder.path()).unwrap();
    let id = session.id().to_owned();
    assert!(session.prompt("look").outcome().await.ok);
    let live = session.transcript().clone();
    drop(session);

    let again = ScriptedProvider::new([looks(1), answer("after a restart")]);
    let runtime = builder(&again).tools(tool_set()).build();
    let mut session = runtime.resume(folder.path(), &id).unwrap();
    assert_eq!(*session.transcript(), live);
    assert!(session.prompt("and now?").outcome().await.ok);
    let request = again.requests().remove(0);
    assert_eq!(shape(&request)[0], "digest: LOOKED");
    assert_eq!(
        request.messages.iter().take(live.messages().len()).cloned().collect::<Vec<_>>(),
        live.messages().to_vec()
    );
    // Calls that the summary has replaced keep their ids to themselves.
    let last = again.requests().pop().unwrap();
    assert_paired(&last);
    let ids: Vec<_> = last
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool(result) => Some(result.call_id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ids[ids.len() - 2..], ["call_1_5", "call_2_5"]);
}
