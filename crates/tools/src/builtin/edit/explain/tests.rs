use super::*;

const FILE: &str = "\
fn main() {
\tlet name = \"Ada\";
    let total = first + second;   
    println!(\"it's {name}\");
}
";

fn explained(text: &str, old: &str) -> String {
    let error = no_match(text, old);
    assert_eq!(error.code, ErrorCode::EditNoMatch);
    error.text
}

#[test]
fn the_nearest_text_is_shown_with_the_first_difference() {
    insta::assert_snapshot!(explained(FILE, "let total = first - second;"), @r"
    `old_string` is not in the file; the nearest text is
         3	    let total = first + second;   
    first difference at line 3, column 23: the file has `+`, `old_string` has `-`
    Read the place once, then make the Edit anew from what is there now.
    ");
    insta::assert_snapshot!(explained(FILE, "nothing like it at all, zzz"), @r"
    `old_string` is not in the file, and nothing in it is near to it
    Read the place once, then make the Edit anew from what is there now.
    ");
}

#[test]
fn the_usual_reasons_are_named() {
    for (old, line, reason, difference) in [
        (
            "    let name = \"Ada\";",
            2,
            "tabs and spaces",
            "line 2, column 1: the file has a tab, `old_string` has a space",
        ),
        (
            "let total = first + second;\n    println",
            3,
            "blanks at the end of a line",
            "line 3, column 32: the file has a space, `old_string` has a line break",
        ),
        (
            "println!(\"it\u{2019}s {name}\");",
            4,
            "look-alike characters",
            "line 4, column 17: the file has `'`, `old_string` has `\u{2019}` (U+2019)",
        ),
        (
            "println!(\"it's\u{a0}{name}\");",
            4,
            "look-alike characters",
            "line 4, column 19: the file has a space, `old_string` has U+00A0",
        ),
        (
            "     4\t    println!(\"it's {name}\");",
            4,
            "line numbers of Read pasted",
            "line 4, column 5: the file has `p`, `old_string` has a space",
        ),
        (
            "LET total = first",
            3,
            "upper and lower case",
            "line 3, column 5: the file has `l`, `old_string` has `L`",
        ),
        (
            "let total = first + second;\r   \n",
            3,
            "carriage return",
            "line 3, column 32: the file has a space, `old_string` has a carriage return",
        ),
        (
            "fn main() {\\n\tlet name",
            1,
            "spelled out",
            "line 1, column 12: the file has a line break, `old_string` has `\\`",
        ),
    ] {
        let text = explained(FILE, old);
        assert!(text.contains(&format!("is\n{line:>6}\t")), "{old:?}: {text}");
        assert!(text.contains(reason), "{old:?}: {text}");
        assert!(text.contains(difference), "{old:?}: {text}");
    }
}

#[test]
fn a_window_of_several_lines_is_found_by_the_lines_it_shares() {
    let text: String = (1..=500).map(|number| format!("    step_{number}();\n")).collect();
    let old = "    step_300();\n    step_301(x);\n    step_302();\n";
    let message = explained(&text, old);
    assert!(message.contains("   300\t    step_300();"), "{message}");
    assert!(
        message.contains("line 301, column 14: the file has `)`, `old_string` has `x`"),
        "{message}"
    );
}

#[test]
fn the_end_of_the_file_and_of_the_text_are_names_too() {
    let message = explained("one\ntwo", "two\nthree");
    assert!(message.contains("the file has the end of the file, `old_string` has a line break"));
}

#[test]
fn a_line_break_that_the_end_of_the_file_lacks_is_named() {
    let message = explained("one\nkey: 1", "key: 1\n");
    assert!(
        message.contains("     2\tkey: 1\nthe file ends there without a line break; leave out")
    );
}

#[test]
fn explanations_of_large_texts_are_bounded() {
    let text = format!("{}\n", "lorem ipsum dolor ".repeat(500)).repeat(2000);
    let old = format!("{}\n", "lorem ipsum color ".repeat(500)).repeat(100);
    let message = explained(&text, &old);
    assert!(message.len() < 6000, "{}", message.len());
    assert!(message.contains("       …\n"));
    let excerpt = fresh_excerpt(&text, &old);
    assert!(excerpt.len() < FRESH_LINES * (SHOWN_CHARS + 20), "{}", excerpt.len());
}
