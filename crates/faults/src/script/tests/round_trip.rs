//! Every script that can be read can be written, and reads back to an equal one.

use std::time::Duration;

use proptest::{prelude::*, sample::select};

use super::super::{parts::Place, *};
use crate::{
    behaviour::{Answer, ErrorReply, Gzip, HangUp, How, Http2Code, Insert, Noise, Protocol, Tls},
    catalogue,
    content::{Finish, ToolCall, Usage},
};

/// A change to a step; those that it would refuse are not made.
struct Change(Box<dyn Fn(Step) -> Step>);

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it changes shows in the script.
        f.write_str("Change")
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,12}", "\\PC{0,8}", "[\\x00-\\x1f\"'\\\\\u{7f}\u{85}é漢🦀]{1,6}"]
}

fn change<T: Clone + fmt::Debug + 'static>(
    values: impl Strategy<Value = T> + 'static,
    make: impl Fn(Step, &T) -> Step + Clone + 'static,
) -> BoxedStrategy<Change> {
    let change = move |value: T| {
        let make = make.clone();
        Change(Box::new(move |step| make(step, &value)))
    };
    values.prop_map(change).boxed()
}

fn word<T: Copy + fmt::Debug + 'static>(
    words: &'static [&'static str],
    read: fn(&str) -> Option<T>,
) -> impl Strategy<Value = T> {
    select(words).prop_map(move |word| read(word).unwrap())
}

fn place() -> impl Strategy<Value = Place> {
    (select(Place::WORDS), proptest::option::of(1..5usize)).prop_map(|(word, event)| {
        let place = Place::from_word(word).unwrap();
        if place.is_at_an_event() { place.at(event) } else { place }
    })
}

fn reply() -> impl Strategy<Value = ErrorReply> {
    let status = select(vec![200, 301, 400, 429, 503, 599]);
    (status, text(), proptest::option::of(text()), text()).prop_map(
        |(status, kind, code, message)| {
            let reply = ErrorReply::new(status, kind, message);
            match code {
                Some(code) => reply.code(code),
                None => reply,
            }
        },
    )
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        text().prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::vec((text(), inner), 0..4)
                .prop_map(|pairs| serde_json::Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn tool_call() -> impl Strategy<Value = ToolCall> {
    let call = prop_oneof![
        (text(), json()).prop_map(|(name, arguments)| ToolCall::new(name, &arguments)),
        (text(), text()).prop_map(|(name, raw)| ToolCall::with_raw_arguments(name, raw)),
    ];
    (call, proptest::option::of(text())).prop_map(|(call, id)| match id {
        Some(id) => call.id(id),
        None => call,
    })
}

fn conditions() -> impl Strategy<Value = Match> {
    let option = || proptest::option::of(text());
    let headers = proptest::collection::btree_map("[a-z]{1,6}", text(), 0..3);
    (option(), option(), option(), option(), proptest::option::of(any::<bool>()), headers).prop_map(
        |(path, model, last, body, result, headers)| {
            let when = Match {
                path_contains: path,
                model,
                last_user_contains: last,
                body_contains: body,
                has_tool_result: result,
                headers: Vec::new(),
            };
            headers.into_iter().fold(when, |when, (name, text)| when.header(name, text))
        },
    )
}

fn noise() -> impl Strategy<Value = Noise> {
    select(vec![Noise::Comment, Noise::Ping, Noise::Delta])
}

fn millis() -> impl Strategy<Value = Duration> {
    (0..100_000u64).prop_map(Duration::from_millis)
}

fn about_whom() -> Vec<BoxedStrategy<Change>> {
    vec![
        change(conditions(), |step, when| step.when(when.clone())),
        change(0.0..=1.0f64, |step, chance| step.probability(*chance)),
        change(prop_oneof![1..9usize, Just(Step::ALWAYS)], |step, times| step.times(*times)),
    ]
}

fn about_content() -> Vec<BoxedStrategy<Change>> {
    let tokens = (0..9u64, 0..9u64, 0..3u64, 0..3u64);
    let usage = tokens.prop_map(|(input, output, cached, reasoning)| Usage {
        input,
        output,
        cached,
        reasoning,
    });
    vec![
        change(text(), |step, text| step.text(text)),
        change(text(), |step, text| step.reasoning(text)),
        change(tool_call(), |step, call| step.call(call.clone())),
        change(usage, |step, usage| step.usage(*usage)),
        change(word(Finish::WORDS, Finish::from_word), |step, finish| step.finish(*finish)),
        change(1..20usize, |step, chars| step.chunk_chars(*chars)),
    ]
}

fn about_the_wire() -> Vec<BoxedStrategy<Change>> {
    vec![
        change(millis(), |step, delay| step.headers_delay(*delay)),
        change(millis(), |step, delay| step.event_delay(*delay)),
        change(millis(), |step, delay| step.cut_delay(*delay)),
        change(millis(), |step, delay| step.retry_after(*delay)),
        change(1..12usize, |step, number| step.at_event(*number)),
        change(word(How::WORDS, How::from_word), |step, how| step.how(*how)),
        change(word(Http2Code::WORDS, Http2Code::from_word), |step, code| step.http2_code(*code)),
        change(word(Gzip::WORDS, Gzip::from_word), |step, gzip| step.gzip(*gzip)),
        change(word(HangUp::WORDS, HangUp::from_word), |step, hang_up| step.hang_up(*hang_up)),
        change(("[A-Za-z-]{1,8}", "[ -~é]{0,8}"), |step, (name, value)| step.header(name, value)),
    ]
}

fn about_parts() -> Vec<BoxedStrategy<Change>> {
    let raw = (text(), text())
        .prop_map(|(content_type, body)| Answer::Raw { content_type, body: body.into() });
    let handshake =
        select(&Tls::WORDS[1..]).prop_map(|word| Answer::Handshake(Tls::from_word(word).unwrap()));
    let answer = prop_oneof![
        reply().prop_map(Answer::Error),
        raw,
        select(vec![301, 302, 303, 307, 308]).prop_map(|status| Answer::Redirect { status }),
        handshake,
    ];
    let insert = prop_oneof![
        // The status of an error inside a stream says nothing.
        reply().prop_map(|reply| Insert::Error(ErrorReply { status: 500, ..reply })),
        Just(Insert::Malformed),
        (1..9usize).prop_map(Insert::HugeLine),
        Just(Insert::CorruptGzip),
        text().prop_map(|text| Insert::Bytes(text.into())),
        noise().prop_map(Insert::Noise),
        (noise(), millis()).prop_map(|(noise, pause)| Insert::Endless(noise, pause)),
    ];
    vec![
        change(answer, |mut step, answer| {
            step.parts.answer = Some(answer.clone());
            step
        }),
        change(200..600u16, |mut step, status| {
            step.parts.status = Some(*status);
            step
        }),
        change(place(), |mut step, place| {
            step.parts.cut = Some(place.at(None));
            step
        }),
        change((place(), insert), |mut step, insert| {
            step.parts.inserts.push(insert.clone());
            step
        }),
        change(Just(()), |mut step, ()| {
            step.parts.without_terminal = true;
            step
        }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let named =
        (0..catalogue::all().len()).prop_map(|index| Step::from_entry(&catalogue::all()[index]));
    // A composition holds at least one part; this one suits any of them.
    let composed = Just(()).prop_map(|()| {
        let mut step = Step::composed();
        step.parts.status = Some(200);
        step
    });
    let mut changes = about_whom();
    changes.extend(about_content());
    changes.extend(about_the_wire());
    changes.extend(about_parts());
    let changes = proptest::collection::vec(proptest::strategy::Union::new(changes), 0..8);
    (prop_oneof![3 => named.boxed(), 2 => composed.boxed()], changes).prop_map(|(step, changes)| {
        changes.into_iter().fold(step, |step, change| {
            let changed = (change.0)(step.clone());
            if changed.check(1).is_ok() { changed } else { step }
        })
    })
}

fn dealing() -> impl Strategy<Value = Dealing> {
    let option = proptest::option::of::<BoxedStrategy<u64>>;
    (
        option(any::<u64>().boxed()),
        word(Scope::WORDS, Scope::from_word),
        word(After::WORDS, After::from_word),
        proptest::option::of(text()),
    )
        .prop_map(|(seed, scope, after, header)| {
            let mut dealing = Dealing::default().scope(scope).after(after);
            dealing.seed = seed.map(|seed| seed & (u64::MAX >> 1));
            dealing.session_header = header.map(|name| name.to_ascii_lowercase());
            dealing
        })
}

fn serving() -> impl Strategy<Value = Serving> {
    let tls = proptest::option::of(word(Tls::WORDS, Tls::from_word));
    let file = proptest::option::of(text());
    (tls, word(Protocol::WORDS, Protocol::from_word), file).prop_map(|(tls, protocol, file)| {
        let mut serving = Serving::default().protocol(protocol);
        serving.tls = tls;
        serving.ca_file = file.filter(|_| tls.is_some()).map(Into::into);
        serving
    })
}

/// What does not fit together is left as it was, so that every draw is a script.
fn script() -> impl Strategy<Value = Script> {
    let steps = proptest::collection::vec(step(), 1..6);
    (steps, dealing(), proptest::option::of(serving())).prop_map(|(steps, dealing, serving)| {
        let mut kept: Vec<Step> = Vec::new();
        for step in steps {
            kept.push(step);
            if Script::new(kept.clone()).is_err() {
                kept.pop();
            }
        }
        if kept.is_empty() {
            kept.push(Step::named("whole").unwrap());
        }
        let script = Script::new(kept).unwrap();
        let script = script.clone().dealt(dealing).unwrap_or(script);
        match serving {
            Some(serving) => script.clone().on(serving).unwrap_or(script),
            None => script,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_random_script_is_written_and_read_back(script in script()) {
        let written = script.to_toml().unwrap();
        let read = Script::parse(&written);
        prop_assert!(read.as_ref().is_ok_and(|read| *read == script), "{written}\n{read:?}");
        // Written once more it is the same text, so nothing was lost unseen.
        prop_assert_eq!(read.unwrap().to_toml().unwrap(), written);
    }
}
