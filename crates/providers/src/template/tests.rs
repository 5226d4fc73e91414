//! The template gives what the parser gives, and nothing else.

use std::{ops::ControlFlow, path::Path};

use proptest::prelude::*;

use super::{
    samples::{SAMPLES, Sample, told, with_text},
    *,
};
use crate::{StreamEvent, answer::Dialect, body::BodyDecoder};

fn same(sample: &Sample, events: &[String]) {
    let [with, without] = (sample.readings)();
    assert_eq!(told(with, events), told(without, events), "{events:#?}");
}

/// Bodies of strings, some of which are none.
fn bodies() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z ]{1,6}",
        2 => prop::sample::select(vec![
            "", "<think>", "</think>", "\\n", "\\\"", "\\\\", "\\/", "\\t", "\\b", "\\f", "\\r",
            "\\u0041", "\\u00e9", "\\ud83d\\ude00", "\\uD83D\\uDE00", "\\u0000", "é", "😀", "\u{2028}",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![
            "\"", "\\", "\\x", "\\u12", "\\u12g4", "\\u+123", "\\ud83d", "\\ude00", "\\ud83dx", "\\é",
            "\u{1}", "\n", "\t", "\",\"content\":\"", "\"}", "\u{7f}", "\\ud83d\\u0041",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

#[derive(Debug, Clone)]
enum Change {
    None,
    /// Another number where the nth one stands.
    Number(usize, String),
    /// This text at this part of the line.
    Insert(prop::sample::Index, String),
    Remove(prop::sample::Index, usize),
    /// A part of the line once more.
    Twice(prop::sample::Index, usize),
}

fn changes() -> impl Strategy<Value = Change> {
    let number = prop::sample::select(vec![
        "0",
        "7",
        "18",
        "00",
        "-1",
        "1.5",
        "1e3",
        "null",
        "true",
        "\"4\"",
        "",
        "123456789012345678901",
        "99999999999999",
        " 4",
        "4 ",
    ]);
    let text = prop::sample::select(vec![
        " ",
        "\n",
        "\"",
        ",",
        "\\",
        "{",
        "}",
        "[",
        "\"content\":\"x\",",
        "\"text\":\"x\",",
        "\"delta\":\"x\",",
        "\"obfuscation\":\"x\",",
        "\"sequence_number\":4,",
        "\"error\":1,",
        "\"id\":\"y\",",
        "x",
        "\"usage\":{\"prompt_tokens\":3},",
        "\"usageMetadata\":{\"candidatesTokenCount\":3},",
        "\"candidatesTokenCount\":3,",
        "\"finish_reason\":\"stop\",",
    ]);
    prop_oneof![
        6 => Just(Change::None),
        2 => (0..6_usize, number).prop_map(|(nth, number)| Change::Number(nth, number.to_owned())),
        2 => (any::<prop::sample::Index>(), text).prop_map(|(at, text)| Change::Insert(at, text.to_owned())),
        1 => (any::<prop::sample::Index>(), 1..4_usize).prop_map(|(at, count)| Change::Remove(at, count)),
        1 => (any::<prop::sample::Index>(), 1..30_usize).prop_map(|(at, count)| Change::Twice(at, count)),
    ]
}

fn changed(event: &str, change: &Change) -> String {
    let chars: Vec<char> = event.chars().collect();
    let end = |at: usize, count: usize| (at + count).min(chars.len());
    let text = |part: &[char]| part.iter().collect::<String>();
    match change {
        Change::None => event.to_owned(),
        Change::Number(nth, number) => {
            let mut from = 0;
            for _ in 0..=*nth {
                let Some(at) = event[from..].find(": ").or_else(|| event[from..].find(':')) else {
                    return event.to_owned();
                };
                from += at + 1;
            }
            let rest = &event[from..];
            let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
            format!("{}{number}{digits}", &event[..from])
        }
        Change::Insert(at, what) => {
            let at = at.index(chars.len());
            format!("{}{what}{}", text(&chars[..at]), text(&chars[at..]))
        }
        Change::Remove(at, count) => {
            let at = at.index(chars.len());
            format!("{}{}", text(&chars[..at]), text(&chars[end(at, *count)..]))
        }
        Change::Twice(at, count) => {
            let at = at.index(chars.len());
            format!("{}{}", text(&chars[..end(at, *count)]), text(&chars[at..]))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn garbled_repeats_read_as_without_a_template(
        sample in 0..SAMPLES.len(),
        first in 0..6_usize,
        texts in prop::collection::vec((bodies(), changes(), 0..18_usize), 1..9),
    ) {
        let sample = &SAMPLES[sample];
        let mut events: Vec<String> = sample.before.iter().map(|&event| event.to_owned()).collect();
        let event = |at: usize| sample.deltas[at % sample.deltas.len()];
        events.push(event(first).to_owned());
        for (number, (body, change, other)) in texts.iter().enumerate() {
            // Mostly the same kind again, as in a real stream.
            let event = if *other < 6 { event(*other) } else { event(first) };
            let counted = event.replace(":9,", &format!(":{},", 10 + number));
            events.push(changed(&with_text(&counted, body), change));
        }
        same(sample, &events);
    }
}

/// What is read of the second event once the first was learned.
fn read(varying: &'static [Varying], events: [&str; 2], delta: &str) -> Option<String> {
    let mut template = Template::new(varying);
    let at = events[0].find(delta).unwrap();
    template.learn(events[0], &events[0][at..at + delta.len()], ());
    template.read(events[1]).map(|(found, ())| found.delta.into_owned())
}

#[test]
fn a_text_is_read_where_all_else_is_the_same() {
    let learned = r#"{"a":1,"t":"one","b":2}"#;
    for (event, text) in [
        (r#"{"a":1,"t":"two","b":2}"#, Some("two")),
        (r#"{"a":1,"t":"é😀","b":2}"#, Some("é😀")),
        (r#"{"a":1,"t":"\n\"\\\/\u00e9\ud83d\ude00","b":2}"#, Some("\n\"\\/é😀")),
        (r#"{"a":1,"t":"","b":2}"#, None),
        (r#"{"a":1,"t":"x","b":3}"#, None),
        (r#"{"a":2,"t":"x","b":2}"#, None),
        (r#"{"a":1,"t":"x","b":2} "#, None),
        (r#"{"a":1,"t":"x","b":2}{"#, None),
        (r#"{"a":1,"t":"x","b":2"#, None),
        (r#"{"a":1,"t":"x","t":"y","b":2}"#, None),
        (r#"{"a":1,"t":"\ud83d","b":2}"#, None),
        (r#"{"a":1,"t":"\ud83d\u0041","b":2}"#, None),
        (r#"{"a":1,"t":"\u+041","b":2}"#, None),
        (r#"{"a":1,"t":"\x","b":2}"#, None),
        (r#"{"a":1,"t":"\"#, None),
        ("{\"a\":1,\"t\":\"\n\",\"b\":2}", None),
        ("", None),
    ] {
        assert_eq!(read(&[], [learned, event], "one").as_deref(), text, "{event}");
    }
}

#[test]
fn what_varies_is_let_vary_once_it_has() {
    const VARYING: &[Varying] = &[Varying::Number(&["u", "n"]), Varying::Text(&["pad"])];
    let event = |text: &str, n: &str, pad: &str| {
        format!(r#"{{"t":"{text}","u":{{"n":{n}}},"pad":"{pad}"}}"#)
    };
    let mut template = Template::new(VARYING);
    let learn = |template: &mut Template<()>, event: &str| {
        let at = event.find("one").unwrap();
        template.learn(event, &event[at..at + 3], ());
    };
    learn(&mut template, &event("one", "1", "x"));
    assert!(template.read(&event("two", "2", "x")).is_none(), "nothing is known to vary");
    learn(&mut template, &event("one", "2", "x"));
    let third = event("three", "345", "x");
    let (found, ()) = template.read(&third).unwrap();
    assert_eq!((&*found.delta, found.value(0), found.value(1)), ("three", Some("345"), None));
    for (n, pad) in [
        ("01", "x"),
        ("-1", "x"),
        ("1.0", "x"),
        ("1e1", "x"),
        ("", "x"),
        ("\"1\"", "x"),
        ("2", "y"),
    ] {
        assert!(template.read(&event("x", n, pad)).is_none(), "{n} {pad}");
    }
    learn(&mut template, &event("one", "9", "y"));
    let fourth = event("four", "0", "");
    let (found, ()) = template.read(&fourth).unwrap();
    assert_eq!((found.value(0), found.value(1)), (Some("0"), Some("")));
    assert!(template.read(&event("x", "0", "\\n")).is_none(), "an escape may be wrong");
}

#[test]
fn a_field_that_stands_twice_never_varies() {
    const VARYING: &[Varying] = &[Varying::Number(&["n"])];
    let mut template = Template::new(VARYING);
    for event in [r#"{"n":1,"n":2,"t":"one"}"#, r#"{"n":1,"n":3,"t":"one"}"#] {
        let at = event.find("one").unwrap();
        template.learn(event, &event[at..at + 3], ());
    }
    assert!(template.read(r#"{"n":1,"n":4,"t":"x"}"#).is_none());
    assert!(template.read(r#"{"n":1,"n":3,"t":"x"}"#).is_some());
}

#[test]
fn what_never_fits_is_not_learned_for_ever() {
    let mut template = Template::new(&[]);
    for number in 0..u32::from(MAX_UNUSED) + 3 {
        let event = format!(r#"{{"n":{number},"t":"one"}}"#);
        let at = event.find("one").unwrap();
        template.learn(&event, &event[at..at + 3], ());
    }
    assert!(template.read(r#"{"n":10,"t":"x"}"#).is_none());
    assert!(template.read(r#"{"n":7,"t":"x"}"#).is_some(), "the last that was learned");
}

/// What a body gives, by chunks of this size.
fn given(dialect: Box<dyn Dialect>, body: &[u8], chunk: usize) -> (Vec<StreamEvent>, String) {
    let mut decoder = BodyDecoder::new(dialect, Some("text/event-stream"));
    let mut events = Vec::new();
    let mut flow = ControlFlow::Continue(());
    for piece in body.chunks(chunk) {
        flow = decoder.feed(piece);
        events.extend(std::iter::from_fn(|| decoder.answer.take_event()));
        if flow.is_break() {
            break;
        }
    }
    let ended = decoder.end();
    events.extend(std::iter::from_fn(|| decoder.answer.take_event()));
    let usage = decoder.answer.reported_usage();
    let rest = format!("{flow:?} {ended:?} {usage:?} {:?}", decoder.complete());
    (events, rest)
}

#[test]
#[ignore = "needs a corpus; its folder comes in TURNBUCKLE_CORPUS"]
fn every_recording_reads_as_without_a_template() {
    let corpus = std::env::var_os("TURNBUCKLE_CORPUS").expect("TURNBUCKLE_CORPUS names the corpus");
    let mut count = 0;
    for (folder, sample) in ["chat", "anthropic", "responses", "gemini"].iter().zip(SAMPLES) {
        for file in std::fs::read_dir(Path::new(&corpus).join(folder)).unwrap() {
            let body = std::fs::read(file.unwrap().path()).unwrap();
            for chunk in [7, 1000, usize::MAX] {
                let [with, without] = (sample.readings)();
                assert_eq!(given(with, &body, chunk), given(without, &body, chunk));
            }
            count += 1;
        }
    }
    assert!(count > 300, "{count}");
}
