//! Each promise is broken by hand in what was really seen, and must be missed.

use serde_json::json;

use super::*;
use crate::faults::{cell, stage};

async fn played(fault: &str, variant: Variant) -> (Cell, Seen) {
    let cells = cell::cells(Some(fault), Some(cell::Dialect::Chat), 1).unwrap();
    let cell = cells.into_iter().find(|cell| cell.variant == variant).unwrap();
    let seen = stage::play(&cell).await.unwrap();
    assert_eq!(complaints(&cell, &seen), [""; 0], "holds before it is broken");
    (cell, seen)
}

fn position(seen: &Seen, wanted: &str) -> usize {
    seen.events.iter().position(|event| kind(event) == wanted).unwrap()
}

type Breakage = (fn(&mut Seen), &'static str);

#[track_caller]
fn check(cell: &Cell, seen: &Seen, breakages: &[Breakage]) {
    for (break_it, expected) in breakages {
        let mut broken = seen.clone();
        break_it(&mut broken);
        let found = complaints(cell, &broken);
        assert!(found.iter().any(|c| c.contains(expected)), "{expected:?} not in {found:#?}");
    }
}

#[tokio::test]
async fn a_broken_promise_of_a_recovered_answer_is_missed() {
    let (cell, seen) = played("cut_inside_character", Variant::AfterTool).await;
    let breakages: &[Breakage] = &[
        (|seen| seen.attempts += 1, "the server saw 4 attempts, documented are 3"),
        (|seen| seen.outcome["attempts"] = json!(2), "the client tells Some(2) attempts"),
        (|seen| seen.events.push(seen.events.last().unwrap().clone()), "2 agent_end"),
        (|seen| drop(seen.events.remove(1)), "seq has a gap"),
        (
            |seen| {
                let at = position(seen, "message_restart");
                seen.events.remove(at);
            },
            "told further although what was told is void",
        ),
        (
            |seen| {
                let at = position(seen, "message_restart");
                seen.events[at]["messageId"] = json!("another");
            },
            "another restarts for nothing",
        ),
        (
            |seen| {
                let at = seen.events.iter().rposition(|e| kind(e) == "message_end").unwrap();
                seen.events.insert(at, seen.events[at].clone());
            },
            "ends and has not begun",
        ),
        (
            |seen| {
                let at = seen.events.iter().rposition(|e| kind(e) == "message_update").unwrap();
                seen.events.insert(at, seen.events[at].clone());
            },
            "was told",
        ),
        (
            |seen| {
                // Gives up on the message and tells the answer under a new id.
                let at = position(seen, "message_restart");
                let mut end = seen.events[at].clone();
                end["type"] = json!("message_end");
                seen.events.insert(at, end);
                seen.events[at + 1]["type"] = json!("message_start");
            },
            "1 messages ended with a failure, at most 0 may",
        ),
        (
            |seen| {
                let at = position(seen, "retry_scheduled");
                seen.events[at]["delayMs"] = json!(749);
            },
            "waits Some(749) ms, documented are 750 to 750",
        ),
        (
            |seen| {
                let at = position(seen, "retry_scheduled");
                seen.events[at]["budget"] = json!("setup");
            },
            "the budget is setup, documented is stream",
        ),
        (
            |seen| {
                let at = position(seen, "retry_started");
                seen.events.remove(at);
            },
            "a retry was announced and did not begin",
        ),
        (|seen| seen.outcome["text"] = json!("something else"), "the outcome says"),
        (|seen| seen.outcome["outcome"] = json!("failed"), "the prompt failed, due is completed"),
        (
            |seen| seen.requests[2].body["messages"] = json!([]),
            "request 3 asks something else than request 2",
        ),
        (
            |seen| {
                seen.requests[3].body["messages"] = json!([{"role": "assistant", "content": "x"}])
            },
            "the next prompt remembers the answer 0 times",
        ),
        (
            |seen| seen.follow_up.as_mut().unwrap()["attempts"] = json!(2),
            "the next prompt took Some(2) attempts, at most 1 are due",
        ),
        (
            |seen| seen.follow_up.as_mut().unwrap()["outcome"] = json!("failed"),
            "the next prompt ended (\"failed\"",
        ),
        (|seen| seen.requests[1].ended = Ended::Stopped, "request 2 is left Stopped"),
        (
            |seen| seen.requests[2].connection = seen.requests[1].connection,
            "request 3 came on the connection that failed",
        ),
        (
            |seen| {
                let at = position(seen, "tool_execution_start");
                seen.events.insert(at, seen.events[at].clone());
            },
            "2 tools began",
        ),
    ];
    check(&cell, &seen, breakages);

    let mut leaking = seen.clone();
    let lost = cell.lost.split(' ').next().unwrap();
    leaking.requests[3].body["messages"][0]["content"] = json!(format!("so far: {lost}"));
    let found = complaints(&cell, &leaking);
    assert!(found.iter().any(|c| c.contains("of a failed answer")), "{found:#?}");
}

#[tokio::test]
async fn a_broken_promise_of_a_final_failure_is_missed() {
    let (cell, seen) = played("unauthorized", Variant::Always).await;
    let breakages: &[Breakage] = &[
        (|seen| seen.attempts = 2, "the server saw 2 attempts, documented are 1"),
        (
            |seen| seen.outcome["failure"]["code"] = json!("PROVIDER_ERROR"),
            "the final code is PROVIDER_ERROR, documented is PROVIDER_UNAUTHORIZED",
        ),
        (
            |seen| {
                let at = position(seen, "error");
                seen.events.remove(at);
            },
            "0 error events",
        ),
    ];
    check(&cell, &seen, breakages);

    let mut leaking = seen.clone();
    leaking.outcome["failure"]["message"] = json!("no");
    leaking.told.push_str(&cell.key);
    let found = complaints(&cell, &leaking);
    assert!(found.iter().any(|c| c.contains("the key can be seen")), "{found:#?}");
}

#[test]
fn the_documented_waits_are_those_of_the_design() {
    assert_eq!(documented_wait("stream", 0, Some((9, 9))), (750, 750));
    assert_eq!(documented_wait("setup", 0, None), (500, 625));
    assert_eq!(documented_wait("capacity", 0, None), (2000, 2500));
    assert_eq!(documented_wait("capacity", 3, None), (16_000, 20_000));
    assert_eq!(documented_wait("capacity", 4, None), (30_000, 30_000));
    assert_eq!(documented_wait("capacity", 4, Some((1234, 1234))), (1234, 1234));
}
