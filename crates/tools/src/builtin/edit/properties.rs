//! Random files and random edits, in all encodings and line endings.

use std::ops::Range;

use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, TestCaseError, TestRunner},
};

use super::plan::{Change, Plan, plan};
use crate::builtin::{encoding::Encoding, fixture::Fixture};

/// How many edits are tried that fit their file.
const CASES: u32 = 10_000;

/// An encoding and some characters that it has.
const ALPHABETS: &[(Encoding, &[&str])] = &[
    (Encoding::Utf8, &["a", "b", "ä", "€", "😀", "\u{301}", " "]),
    (Encoding::Utf16Le, &["a", "b", "ä", "€", "😀", "ਊ", " "]),
    (Encoding::Utf16Be, &["a", "b", "ä", "€", "😀", "ਊ", " "]),
    (Encoding::Old(encoding_rs::WINDOWS_1252), &["a", "b", "ä", "€", "é", "\u{81}", " "]),
    (Encoding::Old(encoding_rs::ISO_8859_2), &["a", "b", "ä", "ł", "ő", "Ż", " "]),
    (Encoding::Old(encoding_rs::WINDOWS_1251), &["a", "b", "я", "Ж", "ё", "№", " "]),
    // With second bytes that look like ASCII: `\`, `|`, `A`.
    (Encoding::Old(encoding_rs::SHIFT_JIS), &["a", "b", "表", "ソ", "ア", "ｱ", "\\"]),
    (Encoding::Old(encoding_rs::GBK), &["a", "b", "中", "傾", "文", "|", "A"]),
    (Encoding::Old(encoding_rs::BIG5), &["a", "b", "中", "功", "文", "|", "\\"]),
    (Encoding::Old(encoding_rs::EUC_JP), &["a", "b", "日", "本", "ｱ", "A", " "]),
    (Encoding::Old(encoding_rs::EUC_KR), &["a", "b", "한", "국", "똠", "A", " "]),
];

/// The line endings of a file; the last is all of them, mixed.
const ENDINGS: &[&[&str]] = &[&["\n"], &["\r\n"], &["\r"], &["\n", "\r\n", "\r"]];

#[derive(Debug)]
struct Case {
    encoding: Encoding,
    text: String,
    old: String,
    new: String,
    all: bool,
    /// Whether all its line breaks are the same, and not lone `\r`.
    uniform: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let file = (0..ALPHABETS.len(), 0..ENDINGS.len(), any::<bool>());
    let pieces = prop::collection::vec((0_usize..10, 0_usize..3), 1..60);
    let new = prop::collection::vec((0_usize..10, 0_usize..3), 0..6);
    let edit = (any::<prop::sample::Index>(), 1_usize..8, any::<bool>(), any::<bool>());
    (file, pieces, new, edit).prop_map(|((alphabet, ending, mark), pieces, new, edit)| {
        let (encoding, characters) = ALPHABETS[alphabet];
        let endings = ENDINGS[ending];
        let spell = |pieces: &[(usize, usize)]| -> String {
            let spell = |(piece, end): &(usize, usize)| {
                characters.get(*piece).copied().unwrap_or(endings[end % endings.len()])
            };
            pieces.iter().map(spell).collect()
        };
        let body = spell(&pieces);
        let (start, length, as_read, all) = edit;
        let characters: Vec<char> = body.chars().collect();
        let start = start.index(characters.len());
        let old: String = characters.iter().skip(start).take(length).collect();
        // UTF-16 is told by its mark; UTF-8 may have one.
        let marked = match encoding {
            Encoding::Utf8 => mark,
            Encoding::Utf16Le | Encoding::Utf16Be => true,
            Encoding::Old(_) => false,
        };
        Case {
            encoding,
            text: format!("{}{body}", if marked { "\u{feff}" } else { "" }),
            old: if as_read { old.replace("\r\n", "\n") } else { old },
            new: spell(&new),
            all,
            uniform: ending < 2,
        }
    })
}

fn bytes(encoding: Encoding, text: &str) -> Vec<u8> {
    encoding.encode("", text).unwrap().into_owned()
}

#[test]
fn only_the_spans_change_and_undo_gives_the_file_back() {
    let config = Config {
        cases: CASES,
        max_global_rejects: 20 * CASES,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config).run(&cases(), |case| check(&case)).unwrap();
    println!("counted: {CASES} property cases");
}

/// Checks one edit; a refused one does not count, for it changes nothing.
fn check(case: &Case) -> Result<(), TestCaseError> {
    let change = Change { old: &case.old, new: &case.new, all: case.all };
    let Ok(plan) = plan(&case.text, &change) else {
        return Err(TestCaseError::reject("the edit is refused"));
    };
    let new = plan.text();
    let (before, after) = (bytes(case.encoding, &case.text), bytes(case.encoding, &new));
    let spans = byte_spans(case, &plan);
    prop_assert!(case.all || spans.len() == 1);
    let Some(put) = replacements(&before, &after, &spans, case) else {
        return Err(TestCaseError::fail(format!("bytes outside the spans changed: {plan:?}")));
    };
    // Undone by the spans, whatever the line endings.
    let mut undone = Vec::new();
    let mut read = 0;
    let mut kept = 0;
    for (span, put) in spans.iter().zip(&put) {
        undone.extend_from_slice(&after[read..put.start]);
        undone.extend_from_slice(&before[span.clone()]);
        (read, kept) = (put.end, span.end);
    }
    undone.extend_from_slice(&after[read..]);
    prop_assert_eq!(&undone, &before);
    prop_assert_eq!(&after[read..], &before[kept..]);
    // Undone by an edit of the whole, where one kind of line break tells which to put.
    let breaks = |text: &str| text.contains('\n');
    let left = !new.trim_start_matches('\u{feff}').is_empty();
    if case.uniform && left && breaks(&new) == breaks(&case.text) {
        let back = Change { old: &new, new: &case.text, all: false };
        let undone = super::plan::plan(&new, &back);
        prop_assert_eq!(bytes(case.encoding, &undone.unwrap().text()), before);
    }
    Ok(())
}

/// The spans of a plan, in bytes of the encoded file.
fn byte_spans(case: &Case, plan: &Plan<'_>) -> Vec<Range<usize>> {
    let at = |end: usize| bytes(case.encoding, &case.text[..end]).len();
    plan.spans.iter().map(|span| at(span.start)..at(span.end)).collect()
}

/// Where in the new file is what replaced the spans; `None` if something else
/// changed. Between two of them, what was there must be there still.
fn replacements(
    before: &[u8],
    after: &[u8],
    spans: &[Range<usize>],
    case: &Case,
) -> Option<Vec<Range<usize>>> {
    // What was put there is as long as the new text, or shorter by what it shares
    // with the old, or longer by its carriage returns.
    let longest = bytes(case.encoding, &case.new.replace('\n', "\r\n")).len();
    let gap = |at: usize| {
        let start = at.checked_sub(1).map_or(0, |before| spans[before].end);
        &before[start..spans.get(at).map_or(before.len(), |span| span.start)]
    };
    // For each span the places where what replaced it may start, each with the one
    // that it was reached from; the last row is the end of the file.
    let mut rows = vec![Starts::new()];
    if after.starts_with(gap(0)) {
        rows[0].insert(gap(0).len(), 0);
    }
    for at in 1..=spans.len() {
        let mut row = Starts::new();
        for start in rows[at - 1].keys() {
            for end in *start..=(start + longest).min(after.len()) {
                if after[end..].starts_with(gap(at)) {
                    row.entry(end + gap(at).len()).or_insert(*start);
                }
            }
        }
        rows.push(row);
    }
    let mut end = after.len();
    let mut puts = Vec::new();
    for at in (1..=spans.len()).rev() {
        let start = *rows[at].get(&end)?;
        puts.push(start..end - gap(at).len());
        end = start;
    }
    puts.reverse();
    Some(puts)
}

type Starts = std::collections::BTreeMap<usize, usize>;

#[tokio::test]
async fn files_on_disk_are_changed_and_changed_back_byte_for_byte() {
    let fixture = Fixture::new();
    let mut runner = TestRunner::deterministic();
    let mut edited = 0;
    for _ in 0..400 {
        let case = cases().new_tree(&mut runner).unwrap().current();
        let change = Change { old: &case.old, new: &case.new, all: case.all };
        let before = bytes(case.encoding, &case.text);
        // An old encoding may be taken for another one in so short a text.
        let planned = match crate::builtin::encoding::decode(&before) {
            Ok((text, encoding)) if encoding == case.encoding => {
                plan(&text, &change).ok().map(|plan| plan.text())
            }
            _ => None,
        };
        fixture.put("file", &before);
        let input = serde_json::json!({
            "path": "file", "old_string": case.old, "new_string": case.new, "replace_all": case.all,
        });
        let result = fixture.call("Edit", input).await;
        match planned {
            Some(text) => {
                result.unwrap();
                assert_eq!(fixture.get("file"), bytes(case.encoding, &text));
                edited += 1;
            }
            None if result.is_err() => assert_eq!(fixture.get("file"), before),
            None => {}
        }
    }
    assert!(edited > 100, "{edited}");
}
