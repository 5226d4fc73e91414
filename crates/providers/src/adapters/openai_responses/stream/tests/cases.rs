//! Failures that users of this API reported, as streams of our own.

use super::*;
use crate::transport::TransportError;

/// What a stream comes to: its code, and whether it may be tried again.
#[track_caller]
fn outcome(events: &[Value]) -> (ErrorCode, bool) {
    let failed = decode(&stream(events)).unwrap_err();
    (failed.0.code(), failed.0.retriable())
}

#[test]
fn an_error_event_is_read_nested_as_it_comes_and_flat_as_it_is_documented() {
    let nested = json!({"type": "error", "sequence_number": 2, "error": {
        "type": "too_many_requests", "code": "too_many_requests",
        "message": "Too Many Requests", "param": null}});
    assert_eq!(outcome(&[nested]), (ErrorCode::ProviderRateLimited, true));
    let flat = json!({"type": "error", "code": "server_error", "message": "x", "param": null,
        "sequence_number": 2});
    assert_eq!(outcome(&[flat]), (ErrorCode::ProviderError, true));
}

#[test]
fn an_error_in_the_middle_of_arguments_drops_the_call() {
    let body = stream(&[
        added(0, call("a", "")),
        arguments(0, r#"{"path":"#),
        json!({"type": "error", "error": {"code": "server_error", "message":
            "An error occurred while processing your request. You can retry your request"}}),
    ]);
    let failed = decode(&body).unwrap_err();
    assert_eq!((failed.0.code(), failed.0.retriable()), (ErrorCode::ProviderError, true));
    assert_eq!(failed.1.tool_calls[0].arguments, Arguments::Broken(r#"{"path":"#.into()));
}

#[test]
fn an_answer_that_failed_without_a_reason_may_be_tried_again() {
    let bare = json!({"type": "response.failed", "response": {"id": "resp_1",
        "status": "failed", "error": null}});
    assert_eq!(outcome(&[bare]), (ErrorCode::ProviderError, true));
    assert_eq!(outcome(&[json!({"type": "response.failed"})]), (ErrorCode::ProviderError, true));
}

#[test]
fn an_answer_that_failed_before_it_began_has_no_counts() {
    let prompt = json!({"type": "response.failed", "response": {"status": "failed",
        "error": {"code": "invalid_prompt", "message": "x"}}});
    assert_eq!(outcome(&[prompt]), (ErrorCode::InvalidRequest, false));
}

#[test]
fn a_filter_of_azure_as_the_only_event_is_final() {
    let filter = json!({"error": {"message": "The response was filtered",
        "code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}});
    assert_eq!(outcome(&[filter]), (ErrorCode::ContentFiltered, false));
}

#[test]
fn a_budget_spent_on_thinking_is_a_message_without_text() {
    let message = whole(&[json!({"type": "response.completed", "response": {
        "status": "completed",
        "output": [{"type": "reasoning", "summary": [{"text": "..."}]},
            {"type": "message", "content": []}],
        "usage": {"output_tokens": 32768}}})]);
    assert_eq!((&*message.message().text, &*message.message().reasoning), ("", "..."));
    // What is silent is the turn's to judge.
    assert_eq!(message.finish(), FinishReason::Stop);
}

#[test]
fn a_call_that_the_limit_cut_is_never_whole() {
    let message = whole(&[
        added(0, call("a", "")),
        arguments(0, r#"{"path":"r.md","cont"#),
        incomplete("max_output_tokens"),
    ]);
    assert_eq!(message.finish(), FinishReason::Length);
    assert!(matches!(message.message().tool_calls[0].arguments, Arguments::Broken(_)));
    // Cut before its arguments began, or while the item says so itself.
    let empty = whole(&[added(0, call("a", "")), incomplete("max_output_tokens")]);
    assert!(matches!(empty.message().tool_calls[0].arguments, Arguments::Broken(_)));
}

#[test]
fn reasoning_goes_back_with_its_id_and_its_encrypted_content() {
    let native = native(&[done(0, reasoning()), done(1, call("a", "{}")), completed()]).unwrap();
    assert_eq!(
        (&native[0]["id"], &native[0]["encrypted_content"]),
        (&json!("rs_1"), &json!("gAAA=="))
    );
}

#[test]
fn lines_are_split_at_line_ends_alone() {
    let odd = "\u{2705} \u{2028}\u{85}ok";
    assert_eq!(whole(&[text(odd), completed()]).message().text, odd);
}

#[test]
fn a_connection_that_breaks_is_told_by_its_cause_and_harms_no_whole_message() {
    let run = |events: &[Value]| {
        let broken = TransportError::new(turnbuckle_errors::Transport::Reset, None);
        decode_body(
            ResponseHead::new(200, []),
            [Bytes::from(stream(events))],
            BodyEnding::Broken(broken),
            Arc::new(Opaque),
        )
    };
    let failed = run(&[text("a")]).unwrap_err();
    assert_eq!(failed.0.code(), ErrorCode::StreamFailed);
    assert_eq!(run(&[text("a"), completed()]).unwrap().message().text, "a");
}
