//! Text that arrives in pieces.

use turnbuckle_diagnostics::{MASK, Redactor, SecretString, StreamRedactor};

const SECRET: &str = "correct-horse-battery";

fn stream() -> StreamRedactor {
    Redactor::new([SecretString::from(SECRET)]).stream()
}

/// What comes out of `pieces`, piece by piece, and at the end.
#[track_caller]
fn check(pieces: &[&str], expected: &[&str]) {
    let mut stream = stream();
    let mut shown: Vec<String> = pieces.iter().map(|piece| stream.feed(piece)).collect();
    shown.push(stream.finish());
    assert_eq!(shown, expected);
}

#[test]
fn a_secret_cut_anywhere_is_masked() {
    for cut in 1..SECRET.len() {
        let (head, tail) = SECRET.split_at(cut);
        check(&[&format!("a {head}"), &format!("{tail} b\n")], &["", "a [redacted] b\n", ""]);
    }
}

#[test]
fn whole_lines_come_out_at_once_and_the_rest_at_the_end() {
    check(&["one\ntwo\nthr", "ee"], &["one\ntwo\n", "", "three"]);
    check(&["", "\n"], &["", "\n", ""]);
}

#[test]
fn a_secret_with_line_breaks_is_held_until_it_is_known() {
    let secret = "first half\nsecond half";
    let redactor = Redactor::new([SecretString::from(secret)]);
    let mut stream = redactor.stream();
    assert_eq!(stream.feed("x\nfirst half\n"), "x\n");
    assert_eq!(stream.feed("second half\n"), "[redacted]\n");
    assert_eq!(stream.feed("first half\n"), "");
    assert_eq!(stream.feed("other\n"), "first half\nother\n");
}

#[test]
fn a_token_longer_than_what_is_held_is_masked_to_its_end() {
    let mut stream = stream();
    let mut shown = stream.feed("key sk-proj-");
    for _ in 0..1000 {
        shown += &stream.feed("a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6g7h8i9j0");
    }
    shown += &stream.feed(" and more\n");
    assert_eq!(shown, "key [redacted] and more\n");
}

#[test]
fn a_private_key_is_masked_over_its_lines() {
    let mut stream = stream();
    let mut shown = stream.feed("a\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n");
    for _ in 0..100 {
        shown += &stream.feed("MIIEpAIBAAKCAQEA0123456789abcdefghijklmnopqrstuvwxyz\n");
    }
    shown += &stream.feed("-----EN");
    shown += &stream.feed("D RSA PRIVATE KEY---");
    shown += &stream.feed("--\nb\n");
    shown += &stream.finish();
    assert_eq!(shown, format!("a\n{MASK}\nb\n"));
}

#[test]
fn a_private_key_without_an_end_does_not_hide_the_rest_for_ever() {
    let mut stream = stream();
    let mut shown = stream.feed("-----BEGIN PRIVATE KEY-----\n");
    for _ in 0..3000 {
        shown += &stream.feed("a line of ordinary text, many times over\n");
    }
    shown += &stream.finish();
    assert!(shown.starts_with(MASK) && shown.ends_with("text, many times over\n"));
    assert!(shown.len() < 3000 * 41, "nothing was masked");
}

#[test]
fn a_line_without_end_comes_out_in_parts() {
    let mut stream = stream();
    let mut shown = 0;
    for fed in 1..=10_000 {
        shown += stream.feed("word word word word ").len();
        assert!(fed * 20 - shown <= 10 * 1024, "{} bytes held", fed * 20 - shown);
    }
    shown += stream.finish().len();
    assert_eq!(shown, 200_000);
}

#[test]
fn a_secret_where_a_long_line_is_parted_is_masked_whole() {
    let part = "word ".repeat(1000);
    for before in (7000..8400).step_by(9) {
        let text = format!("{}{SECRET}{part}{part}", &part.repeat(2)[..before]);
        let mut stream = stream();
        let (mut shown, mut rest) = (String::new(), text.as_str());
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.len().min(61));
            shown += &stream.feed(piece);
            rest = more;
        }
        shown += &stream.finish();
        assert_eq!(shown, text.replace(SECRET, MASK), "the secret at {before}");
    }
}

#[test]
fn what_is_held_stays_small_whatever_is_fed() {
    for piece in
        ["word ", "sk-proj-a1b2c3d4", "correct-horse", "password=", "-----BEGIN PRIVATE KEY-----\n"]
    {
        let mut stream = stream();
        for _ in 0..20_000 {
            let _ = stream.feed(piece);
        }
        let shown = format!("{stream:?}");
        let held = shown.split("held: ").nth(1).unwrap().split(',').next().unwrap();
        assert!(held.parse::<usize>().unwrap() <= 10 * 1024, "{piece}: {shown}");
    }
}

#[test]
fn it_can_be_used_again_after_its_end() {
    let mut stream = stream();
    assert_eq!(stream.feed("a correct-horse"), "");
    assert_eq!(stream.finish(), "a correct-horse");
    assert_eq!(stream.feed("-battery\n"), "-battery\n");
}

#[test]
fn a_short_secret_in_a_url_is_masked_wherever_it_is_cut() {
    let mut stream = Redactor::new([SecretString::from("abc12")]).stream();
    let mut shown = stream.feed("see https://h/p?x=ab");
    shown += &stream.feed("c12 abc12\n");
    assert_eq!(shown, "see https://h/p?x=[redacted] abc12\n");
}
