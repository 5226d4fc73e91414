use proptest::prelude::*;

use super::*;

fn change<'a>(old: &'a str, new: &'a str) -> Change<'a> {
    Change { old, new, all: false }
}

fn every<'a>(old: &'a str, new: &'a str) -> Change<'a> {
    Change { old, new, all: true }
}

fn planned(text: &str, change: &Change<'_>) -> String {
    plan(text, change).unwrap().text()
}

fn refused(text: &str, change: &Change<'_>) -> (ErrorCode, String) {
    let error = plan(text, change).unwrap_err();
    (error.code, error.text)
}

#[test]
fn exactly_one_place_is_replaced() {
    assert_eq!(planned("a b c", &change("b", "x")), "a x c");
    assert_eq!(planned("a b c", &change("b ", "")), "a c");
    assert_eq!(planned("grün", &change("ü", "u")), "grun");
    let plan = plan("one\ntwo\nthree\n", &change("two\nthree", "2\nthree")).unwrap();
    assert_eq!(plan.text(), "one\n2\nthree\n");
    assert_eq!((plan.spans.first(), plan.spans.len()), (Some(&(4..7)), 1));
    assert_eq!(plan.lines, [2]);
}

#[test]
fn every_place_is_replaced_if_asked_for() {
    let plan = plan("a\nb\na\n", &every("a", "xx")).unwrap();
    assert_eq!(plan.text(), "xx\nb\nxx\n");
    assert_eq!(plan.lines, [1, 3]);
    assert_eq!(planned("abab", &every("ab", "ba")), "baba");
}

#[test]
fn several_places_list_their_lines_and_overlapping_ones_count() {
    let (code, text) = refused("a {\n}\nb {\n}\n", &change("}", "]"));
    assert_eq!(code, ErrorCode::EditAmbiguous);
    assert_eq!(
        text,
        "`old_string` is in the file 2 times, at\n     2\t}\n     4\t}\nadd surrounding lines until \
         it is there once, or set `replace_all`"
    );
    let (code, text) = refused("aaa", &change("aa", "b"));
    assert_eq!(code, ErrorCode::EditAmbiguous);
    assert!(text.contains("2 times"), "{text}");
    let (code, text) = refused("x\naaa", &every("aa", "b"));
    assert_eq!(code, ErrorCode::EditAmbiguous);
    assert!(text.contains("overlap") && text.contains("     2\taaa"), "{text}");
    let (_, text) = refused(&"x\n".repeat(5000), &change("x", "y"));
    assert!(text.contains("1000 or more times") && text.contains("(and 990 more)"), "{text}");
    assert!(text.len() < 1000);
}

#[test]
fn nothing_to_change_is_said_with_its_reason() {
    let (code, text) = refused("a", &change("a", "a"));
    assert_eq!(code, ErrorCode::EditNoChange);
    assert!(text.contains("are the same"), "{text}");
    let (code, text) = refused("a\r\n", &change("a\r\n", "a\n"));
    assert_eq!(code, ErrorCode::EditNoChange);
    assert!(text.contains("line endings"), "{text}");
    for old in ["", "\u{feff}"] {
        let (code, text) = refused("a", &change(old, "b"));
        assert_eq!(code, ErrorCode::InvalidArgument);
        assert!(text.contains("use Write"), "{text}");
    }
}

#[test]
fn line_endings_are_those_of_the_file() {
    assert_eq!(planned("a\r\nb\r\nc\r\n", &change("a\nb", "a\nx\ny")), "a\r\nx\r\ny\r\nc\r\n");
    assert_eq!(planned("a\nb\n", &change("a\r\nb", "a\r\nx\r\ny")), "a\nx\ny\n");
    assert_eq!(planned("a\r\nb", &change("b", "b\nc")), "a\r\nb\r\nc");
    assert_eq!(planned("a\r\nb\nc\n", &change("b", "b\nx")), "a\r\nb\nx\nc\n");
    assert_eq!(planned("a\nb\r\nc\n", &change("b", "b\nx")), "a\nb\r\nx\r\nc\n");
    assert_eq!(planned("a", &change("a", "a\nb")), "a\nb");
    // A mixed file keeps each line break that is not replaced, inside the match too.
    assert_eq!(
        planned("a\r\nb\nc\r\nd\n", &change("a\nb\nc\nd", "a\nb\nc\nx")),
        "a\r\nb\nc\r\nx\n"
    );
    assert_eq!(planned("a\r\nb\r\n", &change("a\n", "")), "b\r\n");
    assert_eq!(planned("a\r\nb\r\n", &change("\nb", "")), "a\r\n");
}

#[test]
fn the_exact_bytes_go_before_places_that_differ_in_line_endings() {
    let mixed = "x\ny\n---\r\nx\r\ny\r\n";
    assert_eq!(planned(mixed, &change("x\ny", "X\nY")), "X\nY\n---\r\nx\r\ny\r\n");
    assert_eq!(planned(mixed, &change("x\r\ny", "X\r\nY")), "x\ny\n---\r\nX\r\nY\r\n");
    assert_eq!(planned(mixed, &every("x\ny", "X\nY")), "X\nY\n---\r\nX\r\nY\r\n");
    // Neither is exact, or both are.
    assert_eq!(refused("a\r\nb\n|a\nb\r\n", &change("a\nb\n", "c")).0, ErrorCode::EditAmbiguous);
    let (code, text) = refused("a\nb a\nb a\r\nb", &change("a\nb", "c"));
    assert_eq!(code, ErrorCode::EditAmbiguous);
    assert!(text.contains("2 times"), "{text}");
    // A match never begins or ends inside of a CRLF.
    assert_eq!(planned("a\r\nb\nb", &change("\nb", "")), "a\r\nb");
    assert_eq!(refused("a\r\n", &change("a\r", "b")).0, ErrorCode::EditNoMatch);
}

#[test]
fn mark_and_final_newline_stay() {
    assert_eq!(planned("\u{feff}a\n", &change("a", "b")), "\u{feff}b\n");
    assert_eq!(planned("\u{feff}a\n", &change("\u{feff}a", "b")), "\u{feff}b\n");
    assert_eq!(planned("a", &change("a", "\u{feff}b")), "b");
    assert_eq!(planned("a\nb", &change("b", "c")), "a\nc");
    let marked = plan("\u{feff}a b", &change("b", "c")).unwrap();
    assert_eq!(marked.spans.first(), Some(&(5..6)));
}

#[test]
fn repetitive_text_is_searched_in_bounded_time() {
    // Each step would be a search of the whole if the search were not bounded.
    let text = "a".repeat(200_000);
    assert_eq!(refused(&text, &change(&"a".repeat(1000), "b")).0, ErrorCode::EditAmbiguous);
    assert_eq!(refused(&text, &every(&"a".repeat(1000), "b")).0, ErrorCode::EditAmbiguous);
    let lines = "x\n".repeat(100_000);
    assert_eq!(planned(&lines, &every("x", "y")), "y\n".repeat(100_000));
}

/// Text of a few characters in which matches, breaks and overlaps are common.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec!["a", "b", "ä", " ", "\n", "\r\n", "\r", "\u{feff}"]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn bytes_outside_the_spans_are_identical(
        text in texts(), old in texts(), new in texts(), all: bool,
    ) {
        let Ok(plan) = plan(&text, &Change { old: &old, new: &new, all }) else { return Ok(()) };
        let after = plan.text();
        let first = plan.spans.first().unwrap().start;
        prop_assert_eq!(&after.as_bytes()[..first], &text.as_bytes()[..first]);
        let behind = text.len() - plan.spans.last().unwrap().end;
        prop_assert!(after.ends_with(&text[text.len() - behind..]));
        // What is between the spans is there, in order.
        let mut rest = &after[first..];
        for pair in plan.spans.windows(2) {
            let between = &text[pair[0].end..pair[1].start];
            let at = rest.find(between);
            prop_assert!(at.is_some());
            rest = &rest[at.unwrap() + between.len()..];
        }
    }

    #[test]
    fn undo_gives_the_file_back(text in texts(), old in texts(), new in texts()) {
        let Ok(plan) = plan(&text, &change(&old, &new)) else { return Ok(()) };
        let span = plan.spans[0].clone();
        let after = plan.text();
        let end = after.len() - (text.len() - span.end);
        let undone = [&after[..span.start], &text[span.clone()], &after[end..]].concat();
        prop_assert_eq!(undone, text);
    }

    #[test]
    fn the_same_change_backwards_gives_the_file_back_when_it_is_unique(
        text in "[ab\n]{0,20}", old in "[ab\n]{1,4}", new in "[xy\n]{1,4}",
    ) {
        let Ok(there) = plan(&text, &change(&old, &new)) else { return Ok(()) };
        let there = there.text();
        let Ok(back) = plan(&there, &change(&new, &old)) else { return Ok(()) };
        prop_assert_eq!(back.text(), text);
    }

    #[test]
    fn a_file_of_crlf_stays_a_file_of_crlf(text in "[ab\n]{0,20}", old in "[ab\n]{1,4}", new in "[xy\n]{0,4}") {
        let pairs = text.replace('\n', "\r\n");
        let flat = plan(&text, &change(&old, &new));
        let file = plan(&pairs, &change(&old, &new));
        prop_assert_eq!(flat.is_ok(), file.is_ok());
        if let (Ok(flat), Ok(file)) = (flat, file) && text.contains('\n') {
            prop_assert_eq!(file.text(), flat.text().replace('\n', "\r\n"));
        }
    }

    #[test]
    fn every_refusal_is_bounded_and_names_one_of_the_codes(text in texts(), old in texts(), new in texts(), all: bool) {
        if let Err(error) = plan(&text, &Change { old: &old, new: &new, all }) {
            prop_assert!(error.text.len() < 8000);
            prop_assert!(matches!(
                error.code,
                ErrorCode::EditNoMatch | ErrorCode::EditAmbiguous | ErrorCode::EditNoChange
                    | ErrorCode::InvalidArgument
            ));
        }
    }
}
