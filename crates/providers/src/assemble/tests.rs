use super::*;

fn piece<'a>(index: Option<u64>, id: &'a str, name: &'a str, arguments: &'a str) -> WireCall<'a> {
    WireCall { index, id: Some(id), name: Some(name), arguments, free_text: false }
}

#[track_caller]
fn check(pieces: &[WireCall<'_>], expected: &[(&str, &str, &str)]) {
    let mut assembler = Assembler::new();
    for piece in pieces {
        assembler.tool_call(*piece).unwrap();
    }
    assembler.finish(FinishReason::Stop, Some("stop"));
    let message = assembler.complete().unwrap();
    assert_eq!(message.finish(), FinishReason::ToolCalls);
    let calls: Vec<_> = message
        .message()
        .tool_calls
        .iter()
        .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_json()))
        .collect();
    assert_eq!(calls, expected);
}

#[test]
fn pieces_find_their_call_by_index_id_or_order() {
    // As OpenAI sends them.
    check(
        &[
            piece(Some(0), "a", "f", ""),
            piece(Some(1), "b", "g", "{}"),
            piece(Some(0), "", "", r#"{"x"#),
            piece(Some(0), "", "", r#"":1}"#),
        ],
        &[("a", "f", r#"{"x":1}"#), ("b", "g", "{}")],
    );
    // One id for two calls: each gets one of its own.
    check(
        &[piece(Some(0), "a", "f", "{}"), piece(Some(1), "a", "g", "{}")],
        &[("a", "f", "{}"), ("a_2", "g", "{}")],
    );
    // No ids, and every call numbered 0.
    check(
        &[piece(Some(0), "", "f", "{}"), piece(Some(0), "", "g", "{}")],
        &[("call_1", "f", "{}"), ("call_2", "g", "{}")],
    );
    // Every parallel call numbered 0, each with its own id.
    check(
        &[piece(Some(0), "a", "f", "{}"), piece(Some(0), "b", "f", "{}")],
        &[("a", "f", "{}"), ("b", "f", "{}")],
    );
    // Id and name repeated with each piece.
    check(&[piece(Some(0), "a", "f", "{"), piece(Some(0), "a", "f", "}")], &[("a", "f", "{}")]);
    // No index and no id after the first piece.
    check(&[piece(None, "a", "f", "{"), piece(None, "", "", "}")], &[("a", "f", "{}")]);
    // No index and no id at all: a name begins a call.
    check(
        &[piece(None, "", "f", "{}"), piece(None, "", "g", "{}")],
        &[("call_1", "f", "{}"), ("call_2", "g", "{}")],
    );
    // Another id with every piece, and a name only with the first.
    check(&[piece(Some(0), "a", "f", "{"), piece(Some(0), "b", "", "}")], &[("a", "f", "{}")]);
    // The id comes after the first piece.
    check(&[piece(Some(0), "", "f", "{"), piece(Some(0), "a", "", "}")], &[("a", "f", "{}")]);
}

#[test]
fn without_a_finish_reason_there_is_no_message() {
    let mut assembler = Assembler::new();
    assembler.text("all of it").unwrap();
    assert_eq!(assembler.partial().text, "all of it");
    assert_eq!(assembler.complete(), None);
}

#[test]
fn a_length_finish_stays_a_length_finish() {
    let mut assembler = Assembler::new();
    assembler.tool_call(piece(Some(0), "a", "f", r#"{"x"#)).unwrap();
    assembler.finish(FinishReason::Length, Some("length"));
    let message = assembler.complete().unwrap();
    assert_eq!(message.finish(), FinishReason::Length);
    assert_eq!(message.message().tool_calls[0].arguments, Arguments::Broken(r#"{"x"#.into()));
}

#[test]
fn a_refusal_is_visible_text_and_kept_apart() {
    let mut assembler = Assembler::new();
    assembler.text("Well. ").unwrap();
    assembler.refusal("I can").unwrap();
    assembler.refusal("not.").unwrap();
    assembler.finish(FinishReason::Stop, Some("stop"));
    let message = assembler.complete().unwrap();
    assert_eq!(message.message().text, "Well. I cannot.");
    assert_eq!(message.refusal_text(), Some("I cannot."));
    assert!(message.is_refusal());
}

#[test]
fn free_text_arguments_become_a_json_string() {
    let mut assembler = Assembler::new();
    for arguments in ["4 \"", "+ 4"] {
        assembler
            .tool_call(WireCall { arguments, free_text: true, ..piece(Some(0), "a", "f", "") })
            .unwrap();
    }
    assembler.finish(FinishReason::ToolCalls, None);
    let message = assembler.complete().unwrap();
    assert_eq!(message.message().tool_calls[0].arguments.as_json(), r#""4 \"+ 4""#);
}

#[test]
fn a_call_that_the_limit_cut_before_its_arguments_cannot_be_run() {
    let mut assembler = Assembler::new();
    assembler.tool_call(piece(Some(0), "a", "f", "")).unwrap();
    assembler.tool_call(piece(Some(1), "b", "g", "")).unwrap();
    assembler.finish(FinishReason::Length, Some("length"));
    let message = assembler.complete().unwrap();
    let calls = &message.message().tool_calls;
    assert_eq!(calls[0].arguments, Arguments::Whole("{}".into()));
    assert_eq!(calls[1].arguments, Arguments::Broken(String::new()));
}

#[test]
fn an_answer_is_bounded() {
    let mut assembler = Assembler::new();
    let mebibyte = "x".repeat(1024 * 1024);
    for _ in 0..64 {
        assembler.text(&mebibyte).unwrap();
    }
    assert_eq!(assembler.reasoning("x"), Err(TooLarge));

    let mut assembler = Assembler::new();
    let begun = (0..).take_while(|_| assembler.tool_call(piece(None, "", "f", "")).is_ok());
    assert_eq!(begun.count(), 1024);
}

#[test]
fn arguments_that_are_told_again_replace_those_of_the_pieces() {
    let mut assembler = Assembler::new();
    let piece = |index, name, arguments| WireCall {
        index: Some(index),
        name: Some(name),
        arguments,
        ..WireCall::default()
    };
    assembler.tool_call(piece(0, "a", r#"{"x":1"#)).unwrap();
    assembler.tool_call(piece(1, "b", r#"{"y":2}"#)).unwrap();
    assembler.retell_call(0, r#"{"x":12}"#).unwrap();
    assembler.retell_call(7, "no such call").unwrap();
    assembler.cut_call(1);
    assembler.finish(FinishReason::Stop, None);
    let calls = assembler.complete().unwrap().into_message().tool_calls;
    assert_eq!(calls[0].arguments, Arguments::Whole(r#"{"x":12}"#.into()));
    assert_eq!(calls[1].arguments, Arguments::Broken(r#"{"y":2}"#.into()));
}
