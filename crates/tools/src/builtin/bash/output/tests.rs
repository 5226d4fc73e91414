use super::{super::stream::Collector, *};
use crate::builtin::text::LINE_CHARS;

/// Both streams rendered, with stdout pushed in chunks of `chunk` bytes.
fn rendered(stdout: &[u8], stderr: &[u8], chunk: usize) -> String {
    let (mut out, mut err) = (Collector::default(), Collector::default());
    stdout.chunks(chunk).for_each(|chunk| out.push(chunk));
    err.push(stderr);
    let (mut out, mut err) = (out.finish(), err.finish());
    fit(&mut out, &mut err);
    render(&out, &err)
}

#[test]
fn both_streams_are_named_and_nothing_is_said_to_be_nothing() {
    assert_eq!(rendered(b"out\n", b"err", 1), "[stdout]\nout\n[stderr]\nerr\n");
    assert_eq!(rendered(b"", b"", 1), "(no output)\n");
}

#[test]
fn any_chunking_gives_the_same_text() {
    let bytes = "gr\u{fc}n \x1b[1;31mred\x1b[0m\r\n10%\r20%\r\n\n\u{1f600}end".as_bytes();
    let whole = rendered(bytes, b"", bytes.len());
    assert_eq!(whole, "[stdout]\ngr\u{fc}n red\n10%\n20%\n\n\u{1f600}end\n");
    for chunk in 1..bytes.len() {
        assert_eq!(rendered(bytes, b"", chunk), whole, "chunks of {chunk}");
    }
}

#[test]
fn bytes_that_are_not_text_are_shown_lossily() {
    assert_eq!(rendered(b"a\xff\xfeb\n", b"", 1), "[stdout]\na\u{fffd}\u{fffd}b\n");
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let line = "\u{1f600}".repeat(50_000);
    let text = rendered(line.as_bytes(), b"", 7);
    assert!(!text.contains('\u{fffd}'), "a character was cut");
    assert_eq!(text.matches('\u{1f600}').count(), LINE_CHARS);
    assert!(text.contains("more characters of this line"), "{}", text.len());
    assert!(text.contains("more bytes of this line"), "{}", text.len());
}

#[test]
fn head_and_tail_stay_and_the_middle_is_counted() {
    let lines: String = (1..=10_000).map(|number| format!("{number}\n")).collect();
    let text = rendered(lines.as_bytes(), b"", 4096);
    assert!(text.starts_with("[stdout]\n1\n2\n"), "the head is there");
    assert!(text.contains("\n2000\n… (6000 lines, 30000 bytes left out here) …\n8001\n"));
    assert!(text.contains("\n10000\n(to see what was left out"), "the tail is there");
}

#[test]
fn both_streams_together_stay_within_the_bounds() {
    let line = format!("{}\n", "x".repeat(99));
    let (large, small) = (line.repeat(5000), line.repeat(10));
    let both = rendered(large.as_bytes(), large.as_bytes(), 4096);
    assert!(both.len() < MAX_BYTES + 512 && both.len() > MAX_BYTES - 512, "{}", both.len());
    let one = rendered(large.as_bytes(), small.as_bytes(), 4096);
    assert!(one.len() < MAX_BYTES + 512 && one.len() > MAX_BYTES - 512, "{}", one.len());
    assert_eq!(one.split("[stderr]").nth(1).unwrap().matches(&line).count(), 10);
}
