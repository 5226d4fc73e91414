//! Each promise is broken by hand in what was really seen, and must be missed.

use serde_json::json;

use turnbuckle_faults::Ended;

use super::*;
use crate::faults::{
    cell::{Choice, cells},
    dialect::Dialect,
    stage,
};

async fn played(fault: &str, when: &str) -> (Part, Seen) {
    let choice = Choice { only: Some(fault), dialect: Some(Dialect::Chat), thin: false, seed: 1 };
    let cells = cells(choice).cells;
    let cell = cells.into_iter().find(|cell| cell.when.to_string() == when).unwrap();
    let seen = stage::play(&cell.part, None).await.unwrap();
    assert_eq!(complaints(&cell.part, &seen), [""; 0], "holds before it is broken");
    (cell.part, seen)
}

fn events(seen: &mut Seen) -> &mut Vec<Value> {
    &mut seen.prompts[0].events
}

fn position(seen: &mut Seen, wanted: &str) -> usize {
    events(seen).iter().position(|event| kind(event) == wanted).unwrap()
}

fn last(seen: &mut Seen, wanted: &str) -> usize {
    events(seen).iter().rposition(|event| kind(event) == wanted).unwrap()
}

type Breakage = (fn(&mut Seen), &'static str);

#[track_caller]
fn check(part: &Part, seen: &Seen, breakages: &[Breakage]) {
    for (break_it, expected) in breakages {
        let mut broken = seen.clone();
        break_it(&mut broken);
        let found = complaints(part, &broken);
        assert!(found.iter().any(|c| c.contains(expected)), "{expected:?} not in {found:#?}");
    }
}

#[tokio::test]
async fn a_broken_promise_of_a_recovered_answer_is_missed() {
    let (part, seen) = played("cut_inside_character", "later once text").await;
    let breakages: &[Breakage] = &[
        (|seen| seen.dealt += 1, "the server saw 5 attempts, documented are 4"),
        (|seen| seen.requests[1].step = Some(1), "the server played the steps [1, 1, 3, 3]"),
        (|seen| seen.connections.0 = 5, "5 connections for 4 attempts"),
        (|seen| seen.connections.1 = 1, "1 connections are left open at the end"),
        (|seen| drop(seen.prompts.pop()), "1 prompts were played, 2 are due"),
        (
            |seen| seen.prompts[0].outcome["attempts"] = json!(2),
            "the client tells 2 attempts, due are 3",
        ),
        (
            |seen| {
                let last = events(seen).last().unwrap().clone();
                events(seen).push(last);
            },
            "2 agent_end",
        ),
        (|seen| drop(events(seen).remove(1)), "seq has a gap"),
        (
            |seen| {
                let at = position(seen, "turn_end");
                events(seen).remove(at);
            },
            "a step begins inside of one",
        ),
        (
            |seen| {
                let at = position(seen, "message_restart");
                events(seen).remove(at);
            },
            "told further although what was told is void",
        ),
        (
            |seen| {
                let at = position(seen, "message_restart");
                events(seen)[at]["messageId"] = json!("another");
            },
            "another restarts for nothing",
        ),
        (
            |seen| {
                let at = last(seen, "message_end");
                let end = events(seen)[at].clone();
                events(seen).insert(at, end);
            },
            "ends and has not begun",
        ),
        (
            |seen| {
                let at = last(seen, "message_update");
                let delta = events(seen)[at].clone();
                events(seen).insert(at, delta);
            },
            "was told",
        ),
        (
            |seen| {
                // Gives up on the message and tells the answer under a new id.
                let at = position(seen, "message_restart");
                let mut end = events(seen)[at].clone();
                end["type"] = json!("message_end");
                events(seen).insert(at, end);
                events(seen)[at + 1]["type"] = json!("message_start");
            },
            "1 messages ended with a failure, at most 0 may",
        ),
        (
            |seen| {
                let at = position(seen, "retry_scheduled");
                events(seen)[at]["delayMs"] = json!(749);
            },
            "waits Some(749) ms, documented are 750 to 750",
        ),
        (
            |seen| {
                let at = position(seen, "retry_scheduled");
                events(seen)[at]["budget"] = json!("setup");
            },
            "the budget is setup, documented is stream",
        ),
        (
            |seen| {
                let at = position(seen, "retry_started");
                events(seen).remove(at);
            },
            "a retry was announced and did not begin",
        ),
        (
            |seen| seen.prompts[0].outcome["retries"][0]["delayMs"] = json!(1),
            "retry 1 is another one in the outcome",
        ),
        (|seen| seen.prompts[0].outcome["text"] = json!("something else"), "the outcome says"),
        (
            |seen| seen.prompts[0].outcome["outcome"] = json!("failed"),
            "the prompt failed, due is completed",
        ),
        (
            |seen| seen.requests[2].body["messages"] = json!([]),
            "request 3 asks something else than request 2",
        ),
        (
            |seen| {
                seen.requests[3].body["messages"] = json!([{"role": "assistant", "content": "x"}]);
            },
            "request 4 remembers",
        ),
        (
            |seen| seen.prompts[1].outcome["attempts"] = json!(2),
            "prompt 2: the client tells 2 attempts, due are 1",
        ),
        (
            |seen| seen.prompts[1].outcome["outcome"] = json!("failed"),
            "prompt 2: the prompt failed",
        ),
        (|seen| seen.requests[1].ended = Ended::Stopped, "request 2 is left Stopped"),
        (
            |seen| seen.requests[2].connection = seen.requests[1].connection,
            "request 3 came on the connection that failed",
        ),
        (
            |seen| {
                let at = position(seen, "tool_execution_start");
                let start = events(seen)[at].clone();
                events(seen).insert(at, start);
            },
            "2 tools began",
        ),
        (
            |seen| {
                let failure = events(seen)
                    .iter()
                    .find_map(|event| event.pointer("/failure/message"))
                    .unwrap()
                    .clone();
                seen.requests[3].body["so_far"] = failure;
            },
            "request 4 repeats the failure",
        ),
    ];
    check(&part, &seen, breakages);

    let mut leaking = seen.clone();
    let answer = part.script.steps()[1].answer();
    let lost = answer.split(' ').find(|word| word.len() > 3).unwrap();
    leaking.requests[3].body["messages"][0]["content"] = json!(format!("so far: {lost}"));
    let found = complaints(&part, &leaking);
    assert!(found.iter().any(|c| c.contains("of a failed answer")), "{found:#?}");
}

#[tokio::test]
async fn a_call_of_a_failed_answer_that_runs_is_missed() {
    let (part, seen) = played("end_before_terminal", "first once tool").await;
    assert_eq!(seen.files.keys().collect::<Vec<_>>(), ["kept.txt", "notes.txt"]);
    let breakages: &[Breakage] = &[
        (|seen| drop(seen.files.insert("lost.txt".into(), "zinc".into())), "the files are"),
        (|seen| drop(seen.files.remove("kept.txt")), "the files are"),
        (
            |seen| {
                let at = position(seen, "tool_execution_end");
                events(seen)[at]["ok"] = json!(false);
            },
            "1 tools began and 0 did what was asked, due is 1",
        ),
        (
            |seen| {
                let at = position(seen, "tool_execution_start");
                events(seen)[at]["arguments"]["path"] = json!("lost.txt");
            },
            "1 tools began and 1 did what was asked",
        ),
    ];
    check(&part, &seen, breakages);
}

#[tokio::test]
async fn a_broken_promise_of_a_final_failure_is_missed() {
    let (part, seen) = played("unauthorized", "first always text").await;
    let breakages: &[Breakage] = &[
        (|seen| seen.dealt = 2, "the server saw 2 attempts, documented are 1"),
        (
            |seen| seen.prompts[0].outcome["failure"]["code"] = json!("PROVIDER_ERROR"),
            "the final code is PROVIDER_ERROR, documented is PROVIDER_UNAUTHORIZED",
        ),
        (
            |seen| {
                let at = position(seen, "error");
                events(seen).remove(at);
            },
            "0 error events",
        ),
    ];
    check(&part, &seen, breakages);

    let mut leaking = seen.clone();
    leaking.key_told = true;
    let found = complaints(&part, &leaking);
    assert!(found.iter().any(|c| c.contains("the key can be seen")), "{found:#?}");
}
