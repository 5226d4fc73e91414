use serde_json::json;
use turnbuckle_errors::{Delivered, ErrorCode, Phase, Usage};
use turnbuckle_runtime::{
    PromptOutcome, PromptTiming, RetrySummary, ToolCallSummary, recovery::Budget,
};

use super::*;

const TEXT: &str = "one two three";

fn seen() -> Seen {
    let outcome = PromptOutcome {
        ok: true,
        text: TEXT.to_owned(),
        message_id: None,
        finish: None,
        outcome: Outcome::Completed,
        attempts: 1,
        retries: Vec::new(),
        failure: None,
        usage: Usage { output_tokens: Some(3), ..Usage::default() },
        tool_calls: Vec::new(),
        timing: PromptTiming::default(),
        session_id: "s".to_owned(),
    };
    let piece = json!({"type": "message_update", "kind": "text", "delta": "one"});
    Seen { events: vec![piece; 3], outcome }
}

fn cut() -> Seen {
    let mut seen = seen();
    seen.outcome.attempts = 2;
    seen.outcome.retries.push(RetrySummary {
        retry_id: "r".to_owned(),
        attempt: 1,
        budget: Budget::Stream,
        phase: Phase::Stream,
        code: ErrorCode::StreamFailed,
        delay_ms: 750,
        waited_ms: 750,
        bytes_received: 9,
        events_received: 1,
        provider_wait_ms: Some(5),
        stream_ms: Some(5),
        usage: None,
        delivered: None::<Delivered>,
    });
    seen.events.push(json!({"type": "message_restart"}));
    seen
}

fn request(body: &str, interrupted: bool) -> Request {
    Request { path: "/v1/messages".to_owned(), body: body.to_owned(), interrupted }
}

fn journal(requests: Vec<Request>) -> Witness {
    Witness { journal: Some(requests), ..Witness::default() }
}

fn complaints(kind: Kind, seen: &Seen, witness: &Witness) -> String {
    let due = Due { kind, text: Some(TEXT), path: Some("/v1/messages") };
    match verdict(&due, seen, witness) {
        Verdict::Failed(complaints) => complaints.join("\n"),
        Verdict::Passed | Verdict::Skipped => String::new(),
    }
}

#[test]
fn a_whole_turn_has_nothing_wrong() {
    assert_eq!(complaints(Kind::Text, &seen(), &journal(vec![request("a", false)])), "");
    let cut_then_whole = journal(vec![request("a", true), request("a", false)]);
    assert_eq!(complaints(Kind::Cut, &cut(), &cut_then_whole), "");
}

#[test]
fn other_text_than_was_sent_is_wrong() {
    let mut seen = seen();
    seen.outcome.text.push('!');
    let told = complaints(Kind::Text, &seen, &Witness::default());
    assert!(told.contains("\"one two three!\", and \"one two three\" was sent"), "{told}");
}

#[test]
fn text_that_comes_at_once_is_no_stream() {
    let mut seen = seen();
    seen.events.truncate(1);
    let told = complaints(Kind::Text, &seen, &Witness::default());
    assert_eq!(told, "1 pieces of text came, at least 3 are due");
}

#[test]
fn a_tool_turn_without_the_tool_is_wrong() {
    let whole = journal(vec![request("a", false)]);
    let told = complaints(Kind::Tool, &seen(), &whole);
    assert!(told.contains("tools ran: []") && told.contains("did not reach it"), "{told}");
    let mut seen = seen();
    let call = ToolCallSummary { id: "c".to_owned(), name: "Read".to_owned(), ok: true };
    seen.outcome.tool_calls.push(call);
    let result = journal(vec![request("the kettle sang before noon", false)]);
    assert_eq!(complaints(Kind::Tool, &seen, &result), "");
}

#[test]
fn a_cut_that_nobody_noticed_is_wrong() {
    let told = complaints(Kind::Cut, &seen(), &journal(vec![request("a", false)]));
    for due in ["0 retries, 1 are due", "declared void 0 times", "it broke 0 answers"] {
        assert!(told.contains(due), "{due}: {told}");
    }
    let relay = Witness { cuts: Some(0), ..Witness::default() };
    assert!(complaints(Kind::Cut, &cut(), &relay).contains("Some(0) answers were cut"));
}

#[test]
fn a_journal_that_tells_another_story_is_wrong() {
    let twice = journal(vec![request("a", false), request("a", false)]);
    let told = complaints(Kind::Text, &seen(), &twice);
    assert_eq!(told, "its journal has 2 requests of 1 attempts");
    assert_eq!(complaints(Kind::Text, &seen(), &journal(Vec::new())), "its journal is empty");
    let other = journal(vec![request("a", true), request("b", false)]);
    let told = complaints(Kind::Cut, &cut(), &other);
    assert_eq!(told, "the retry asks something else than the first attempt");
    let mut astray = request("a", false);
    astray.path = "/v1/complete".to_owned();
    assert_eq!(
        complaints(Kind::Text, &seen(), &journal(vec![astray])),
        "it was asked at /v1/complete"
    );
}

#[test]
fn tokens_that_were_made_and_not_reported_are_wrong() {
    let mut witness = Witness { tokens: Some(3), ..Witness::default() };
    assert_eq!(complaints(Kind::Text, &seen(), &witness), "");
    witness.tokens = Some(4);
    let told = complaints(Kind::Text, &seen(), &witness);
    assert_eq!(told, "it made Some(4) tokens, and Some(3) were reported");
}
