use std::sync::Arc;

use bytes::Bytes;
use turnbuckle_diagnostics::Redactor;
use turnbuckle_errors::{ErrorCode, Usage};

use super::Responses;
use crate::{
    Arguments, CompletedMessage, FinishReason,
    gemini::{BodyEnding, FailedAnswer},
    intake::decode_recorded,
    transport::ResponseHead,
};

fn decode(body: &str) -> Result<CompletedMessage, FailedAnswer> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let head = ResponseHead::new(200, []);
    let redact = Arc::new(Redactor::new([]));
    decode_recorded(head, [body], BodyEnding::Clean, Responses::new("m"), redact)
}

fn stream(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\r\n\r\n")).collect()
}

#[track_caller]
fn whole(events: &[&str]) -> CompletedMessage {
    decode(&stream(events)).unwrap()
}

#[track_caller]
fn failed(body: &str) -> (ErrorCode, &'static str, bool) {
    let failed = decode(body).unwrap_err();
    (failed.0.code(), failed.0.details().rule.unwrap(), failed.0.retriable())
}

/// A response with these parts.
fn parts(parts: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}},"index":0}}]}}"#)
}

/// The same, at the end.
fn last(parts: &str, word: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"parts":[{parts}]}},"finishReason":"{word}"}}],"usageMetadata":{{"promptTokenCount":3}}}}"#
    )
}

/// The native parts of the message.
fn native(message: &CompletedMessage) -> &[String] {
    message.message().native_for("gemini", "m").unwrap_or_default()
}

/// `name(arguments)` of each call, `cut` where they cannot be run.
fn calls(message: &CompletedMessage) -> Vec<String> {
    let told = |arguments: &Arguments| match arguments {
        Arguments::Whole(json) => json.clone(),
        Arguments::Broken(_) => "cut".to_owned(),
    };
    let calls = message.message().tool_calls.iter();
    calls.map(|call| format!("{}={}({})", call.id, call.name, told(&call.arguments))).collect()
}

const STOP: &str = r#"{"candidates":[{"finishReason":"STOP"}]}"#;

#[test]
fn only_a_finish_reason_completes_a_message() {
    let text = parts(r#"{"text":"a"}"#);
    assert_eq!(whole(&[&text, STOP]).message().text, "a");
    assert_eq!(whole(&[&text, STOP, "[DONE]"]).finish_raw(), Some("STOP"));
    let early = (ErrorCode::StreamFailed, "protocol.ended_early", true);
    assert_eq!(failed(&stream(&[&text])), early);
    assert_eq!(failed(&stream(&[&text, "[DONE]"])), early);
    assert_eq!(failed(&stream(&[&text, &last("", "FINISH_REASON_UNSPECIFIED")])), early);
    assert_eq!(failed(&stream(&[&text, &last("", "")])), early);
    // Of another candidate.
    let other = r#"{"candidates":[{"index":1,"finishReason":"STOP"}]}"#;
    assert_eq!(failed(&stream(&[&text, other])), early);
    // The token counts end nothing.
    let usage = r#"{"usageMetadata":{"totalTokenCount":3}}"#;
    assert_eq!(failed(&stream(&[&text, usage])), early);
    assert_eq!(failed("").1, "protocol.empty_body");
}

#[test]
fn every_response_may_say_stop_and_the_last_word_counts() {
    let message =
        whole(&[&last(r#"{"text":"a"}"#, "STOP"), &parts(r#"{"text":"b"}"#), &last("", "SAFETY")]);
    assert_eq!((&*message.message().text, message.finish()), ("ab", FinishReason::ContentFilter));
    assert_eq!(message.finish_raw(), Some("SAFETY"));
    // A word that means more than `STOP` stays.
    let message = whole(&[&last("", "MAX_TOKENS"), STOP]);
    assert_eq!(message.finish_raw(), Some("MAX_TOKENS"));
}

#[test]
fn what_follows_a_stop_is_kept_with_what_came_before_it() {
    let signed = r#"{"text":"a","thoughtSignature":"c2ln"}"#;
    let first = last(signed, "STOP");
    let message = whole(&[&first, &last(r#"{"text":"b"}"#, "STOP"), &last("", "STOP")]);
    assert_eq!(native(&message), [signed, r#"{"text":"b"}"#]);
    // A later part that cannot go back leaves no half of the message to send.
    let torn = r#"{"text":"b\ud83d","thoughtSignature":"Zw=="}"#;
    let message = whole(&[&first, &last(torn, "STOP")]);
    assert_eq!(message.message().text, "ab\u{fffd}");
    assert_eq!(message.message().native, None);
}

#[test]
fn a_blocked_prompt_is_filtered_and_no_empty_success() {
    let message = whole(&[r#"{"promptFeedback":{"blockReason":"OTHER"},"candidates":[]}"#]);
    assert_eq!(message.finish(), FinishReason::ContentFilter);
    assert_eq!(message.finish_raw(), Some("blocked:OTHER"));
    // Ratings alone block nothing.
    let rated = r#"{"promptFeedback":{"safetyRatings":[{"category":"X"}],"blockReason":null}}"#;
    assert_eq!(whole(&[rated, STOP]).finish(), FinishReason::Stop);
}

#[test]
fn an_error_wins_over_everything() {
    let error = r#"{"candidates":[{"finishReason":"STOP"}],"error":{"code":503,"status":"UNAVAILABLE","message":"x"}}"#;
    assert_eq!(failed(&stream(&[error])).0, ErrorCode::ProviderOverloaded);
    let error = r#"{"error":{"code":500,"status":"INTERNAL","message":"x"}}"#;
    assert_eq!(failed(&stream(&[STOP, error])).0, ErrorCode::ProviderError);
    let body = format!("{}event: error\ndata: {error}\n\n", stream(&[STOP]));
    assert_eq!(failed(&body).0, ErrorCode::ProviderError);
    // As a list, in an event or as the body (cases S047 and S055).
    let list = r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x"}}]"#;
    assert_eq!(failed(&stream(&[list])).0, ErrorCode::ProviderRateLimited);
    assert_eq!(failed(list).0, ErrorCode::ProviderRateLimited);
    // What an answer cost that then failed is known.
    let cost = r#"{"usageMetadata":{"promptTokenCount":9},"error":{"code":500,"message":"x"}}"#;
    let failure = decode(&stream(&[cost])).unwrap_err().0;
    assert_eq!(failure.details().usage.unwrap().input_tokens, Some(9));
}

#[test]
fn an_error_as_bare_json_after_the_last_event_is_the_servers_word() {
    // Case S017: Gemini sheds load in the middle of a stream.
    let text = stream(&[&parts(r#"{"text":"a"}"#)]);
    let error =
        "{\n \"error\": {\"code\": 503, \"status\": \"UNAVAILABLE\",\n  \"message\": \"x\"}\n}\n";
    let overloaded = |body: &str| failed(body).0 == ErrorCode::ProviderOverloaded;
    assert!(overloaded(&format!("{text}{error}")));
    assert!(overloaded(&format!("{text}{}", error.replace('\n', "\r\n"))));
    assert!(overloaded(&format!("{}{error}", stream(&[STOP]))));
    // Anything else there is no word of an error, and what goes on was none.
    for tail in ["{\"a\":\"error\"}\n", "{\n", "id: {\"error\": 1}\n"] {
        assert_eq!(failed(&format!("{text}{tail}")).1, "protocol.ended_early", "{tail}");
    }
    assert!(decode(&format!("{text}{error}{}", stream(&[STOP]))).is_ok());
}

#[test]
fn an_answer_that_its_server_calls_broken_is_no_success() {
    let call = r#"{"functionCall":{"name":"ls","args":{}}}"#;
    for word in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER", "MALFORMED_RESPONSE"] {
        let (code, _, retried) = failed(&stream(&[&last(call, word)]));
        assert_eq!((code, retried), (ErrorCode::ProviderError, true), "{word}");
        let failure = decode(&stream(&[&last("", word)])).unwrap_err().0;
        assert_eq!(failure.details().provider_code.as_ref().unwrap().to_string(), word);
    }
    let (code, _, retried) = failed(&stream(&[&last(call, "MISSING_THOUGHT_SIGNATURE")]));
    assert_eq!((code, retried), (ErrorCode::InvalidRequest, false));
}

#[test]
fn an_event_that_cannot_be_decoded_fails_the_stream() {
    let text = parts(r#"{"text":"a"}"#);
    for event in ["not json", "{\"candidates\":", "5", "\"message\"", "[1,", "{\"a\":1}{\"b\":2}"] {
        let (code, rule, retried) = failed(&stream(&[&text, event, STOP]));
        let expected = (ErrorCode::StreamFailed, "protocol.undecodable", true);
        assert_eq!((code, rule, retried), expected, "{event}");
        // After the end it takes nothing away.
        assert_eq!(whole(&[&text, STOP, event]).message().text, "a", "{event}");
    }
}

#[test]
fn unknown_and_mistyped_fields_are_passed_over() {
    let message = whole(&[
        r#"{"candidates":null,"responseId":5,"modelVersion":"x","new":{"a":[1]}}"#,
        r#"{"candidates":[{"content":null,"finishReason":null,"index":null}]}"#,
        r#"{"candidates":[{"content":{"parts":null}},{"content":{"parts":[{"text":"other"}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":"x"},"finishReason":7}]}"#,
        r#"{"candidates":[{"content":{"parts":[null,7,"x",[],{"text":null},{"functionCall":null},{"thought":"","text":"b"}]}}]}"#,
        r#"{"something":"new"}"#,
        STOP,
    ]);
    assert_eq!((&*message.message().text, &*message.message().reasoning), ("b", ""));
    assert_eq!(calls(&message), [""; 0]);
    assert_eq!(message.message().native, None);
}

#[test]
fn names_with_underscores_read_the_same() {
    let message = whole(&[
        r#"{"candidates":[{"content":{"parts":[{"function_call":{"name":"ls","args":{"a":1}},"thought_signature":"c2ln"}]},"finish_reason":"STOP"}],"usage_metadata":{"prompt_token_count":2}}"#,
    ]);
    assert_eq!(calls(&message), [r#"call_1=ls({"a":1})"#]);
    assert_eq!(message.usage().input_tokens, Some(2));
    assert_eq!(native(&message).len(), 1);
}

#[test]
fn a_whole_document_and_a_list_of_responses_are_answers() {
    let first = parts(r#"{"text":"a"}"#);
    let end = last(r#"{"text":"b"}"#, "STOP");
    assert_eq!(decode(&end).unwrap().message().text, "b");
    let list = format!("[{first}\n,\r\n{end}]");
    assert_eq!(decode(&list).unwrap().message().text, "ab");
    assert_eq!(failed(&format!("[{first},{end}")).1, "protocol.ended_early");
    assert_eq!(failed(&format!("[{first}]")).1, "protocol.ended_early");
    let wrapped = format!(r#"{{"response":{end},"traceId":"x"}}"#);
    assert_eq!(whole(&[&wrapped]).message().text, "b");
    assert_eq!(failed(r#"{"this":{"is":"foreign"}}"#).1, "protocol.undecodable");
}

#[test]
fn a_call_before_the_end_reads_tool_calls() {
    // Case S129: the last response has a content without parts.
    let message = whole(&[
        &parts(r#"{"functionCall":{"name":"ls","args":{}}}"#),
        r#"{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}]}"#,
    ]);
    assert_eq!(message.finish(), FinishReason::ToolCalls);
    assert_eq!(message.finish_raw(), Some("STOP"));
    assert_eq!(calls(&message), ["call_1=ls({})"]);
    // Nothing in it that only Google can read.
    assert_eq!(message.message().native, None);
}

#[test]
fn parallel_calls_stay_apart_with_and_without_ids() {
    let message = whole(&[
        &parts(
            r#"{"functionCall":{"name":"Read","args":{"p":1}}},{"functionCall":{"name":"Read","args":{"p":2}}}"#,
        ),
        &last(
            r#"{"functionCall":{"id":"x","name":"Read","args":"{\"p\":3}"}},{"functionCall":{"id":"x","name":"Read"}}"#,
            "STOP",
        ),
    ]);
    assert_eq!(
        calls(&message),
        [
            r#"call_1=Read({"p":1})"#,
            r#"call_2=Read({"p":2})"#,
            r#"x=Read({"p":3})"#,
            "x_4=Read({})"
        ]
    );
    let unnamed =
        whole(&[&last(r#"{"functionCall":{"args":{"a":1}}},{"functionCall":{}}"#, "STOP")]);
    assert_eq!(calls(&unnamed), [r#"call_1=unnamed({"a":1})"#]);
}

#[test]
fn signed_parts_are_kept_byte_for_byte_and_in_order() {
    let signed = r#"{ "text" : "b\u00e9" ,"thoughtSignature":"c2ln+/="}"#;
    let call = r#"{"functionCall":{"args":{"x": 1.0},"name":"ls"},"thoughtSignature":"Y2Fs"}"#;
    let empty = r#"{"text":"","thoughtSignature":"ZW5k"}"#;
    let message = whole(&[
        &parts(r#"{"text":"why","thought":true},{"text":" not","thought":true}"#),
        &parts(r#"{"text":"a"}"#),
        &parts(r#"{"text":"\""}"#),
        &parts(signed),
        &parts(call),
        &last(empty, "STOP"),
    ]);
    assert_eq!(message.message().text, "a\"bé");
    assert_eq!(message.message().reasoning, "why not");
    assert_eq!(
        native(&message),
        [r#"{"text":"why not","thought":true}"#, r#"{"text":"a\""}"#, signed, call, empty]
    );
    assert_eq!(message.message().native_for("gemini", "other"), None);
}

#[test]
fn what_the_server_ran_itself_is_kept_and_not_shown() {
    let code = r#"{"executableCode":{"language":"PYTHON","code":"1+1"}}"#;
    let result = r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}}"#;
    let message = whole(&[&parts(code), &parts(result), &last(r#"{"text":"2"}"#, "STOP")]);
    assert_eq!((&*message.message().text, message.finish()), ("2", FinishReason::Stop));
    assert_eq!(native(&message), [code, result, r#"{"text":"2"}"#]);
}

#[test]
fn parts_after_a_finish_reason_are_kept_as_well() {
    let message = whole(&[
        &last(r#"{"text":"a","thoughtSignature":"eA=="}"#, "STOP"),
        &parts(r#"{"text":"b"}"#),
    ]);
    assert_eq!(native(&message), [r#"{"text":"a","thoughtSignature":"eA=="}"#, r#"{"text":"b"}"#]);
}

#[test]
fn arguments_in_pieces_become_one_call() {
    let piece = |pieces: &str, more: bool| {
        let more = if more { r#","willContinue":true"# } else { "" };
        parts(&format!(r#"{{"functionCall":{{"partialArgs":[{pieces}]{more}}}}}"#))
    };
    let begin =
        parts(r#"{"functionCall":{"name":"Edit","willContinue":true},"thoughtSignature":"c2ln"}"#);
    let one = piece(r#"{"jsonPath":"$.a","stringValue":"x","willContinue":true}"#, true);
    let two = piece(r#"{"jsonPath":"$.a","stringValue":"y"}"#, true);
    let end = parts(r#"{"functionCall":{}}"#);
    let message = whole(&[&begin, &one, &two, &end, &begin, &piece("", false), STOP]);
    assert_eq!(calls(&message), [r#"call_1=Edit({"a":"xy"})"#, "call_2=Edit({})"]);
    assert_eq!(
        native(&message)[0],
        r#"{"functionCall":{"name":"Edit","args":{"a":"xy"}},"thoughtSignature":"c2ln"}"#
    );
    // One that does not end, or has a piece without a place, is not run.
    for events in [
        vec![&*begin, &*one, STOP],
        vec![&*begin, &*one, &*begin, &*end, STOP],
        vec![&*begin, &*piece(r#"{"jsonPath":"$.a[5]","numberValue":1}"#, false), STOP],
    ] {
        let message = whole(&events);
        assert_eq!(calls(&message)[0], "call_1=Edit(cut)", "{events:?}");
        assert_eq!(message.message().native, None);
    }
}

#[test]
fn token_counts_become_disjoint() {
    let usage = |json: &str| {
        *whole(&[&format!(
            r#"{{"candidates":[{{"finishReason":"STOP"}}],"usageMetadata":{json}}}"#
        )])
        .usage()
    };
    assert_eq!(
        usage(
            r#"{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7,"thoughtsTokenCount":5,"toolUsePromptTokenCount":11}"#
        ),
        Usage {
            input_tokens: Some(51),
            output_tokens: Some(7),
            cached_tokens: Some(60),
            reasoning_tokens: Some(5),
            ..Usage::default()
        }
    );
    let partial = usage(r#"{"promptTokenCount":100,"candidatesTokenCount":null}"#);
    assert_eq!(partial, Usage { input_tokens: Some(100), ..Usage::default() });
    assert_eq!(usage(r#"{"trafficType":"ON_DEMAND"}"#), Usage::default());
}
