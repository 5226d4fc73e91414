use std::num::NonZeroUsize;

use bytes::Bytes;
use futures_util::StreamExt;
use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Event(String, String),
    Error(String),
}

fn seen(frame: Frame<'_>) -> Seen {
    match frame {
        Frame::Event { name, data } => Seen::Event(name.to_owned(), data.to_owned()),
        Frame::ErrorLine(text) => Seen::Error(text.to_owned()),
    }
}

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
    let mut decoder = SseDecoder::default();
    let mut all = Vec::new();
    let mut receive = |frame: Frame<'_>| {
        all.push(seen(frame));
        ControlFlow::<()>::Continue(())
    };
    for chunk in chunks {
        decoder.feed(chunk, &mut receive).unwrap();
    }
    decoder.end(&mut receive).unwrap();
    all
}

fn event(name: &str, data: &str) -> Seen {
    Seen::Event(name.into(), data.into())
}

#[track_caller]
fn check(stream: &str, expected: &[Seen]) {
    let bytes = stream.as_bytes();
    assert_eq!(decode([bytes]), expected, "whole: {stream:?}");
    assert_eq!(decode(bytes.chunks(1)), expected, "by bytes: {stream:?}");
}

#[test]
fn frames_are_read_as_the_standard_says() {
    check(
        "data: a\n\ndata:b\r\n\r\ndata:  c\r\r",
        &[event("", "a"), event("", "b"), event("", " c")],
    );
    check("\u{feff}data: a\n\n", &[event("", "a")]);
    check("\n\u{feff}data: a\n\n", &[]);
    check(
        ": comment\n\nevent: e\ndata: 1\ndata\ndata: 2\nid: 7\nretry: 5\n\n",
        &[event("e", "1\n\n2")],
    );
    check("event: lost\n\ndata: x\n\n", &[event("", "x")]);
    check("data:\n\n", &[event("", "")]);
}

#[test]
fn an_event_without_its_blank_line_and_a_line_without_its_end_still_count() {
    check("data: a\n\ndata: b\n", &[event("", "a"), event("", "b")]);
    check("data: a\n\ndata: b", &[event("", "a"), event("", "b")]);
    check("data: a\n\n: bye", &[event("", "a")]);
}

#[test]
fn an_error_field_line_is_seen() {
    check("data: a\n\nerror: {\"x\":1}\n\n", &[event("", "a"), Seen::Error("{\"x\":1}".into())]);
}

#[test]
fn a_line_without_end_is_refused_and_its_memory_is_bounded() {
    let mut decoder = SseDecoder::with_limit(1024);
    let mut receive = |_: Frame<'_>| ControlFlow::<()>::Continue(());
    let mut fed = 0;
    let refused = loop {
        match decoder.feed(&[b'x'; 100], &mut receive) {
            Ok(()) => fed += 100,
            Err(stopped) => break stopped,
        }
        assert!(decoder.line.capacity() <= 4096);
    };
    assert_eq!((refused, fed), (Stopped::TooLong, 1000));

    // Many lines of one event are bounded alike.
    let mut decoder = SseDecoder::with_limit(1024);
    let lines = "data: 0123456789\n".repeat(200);
    assert_eq!(decoder.feed(lines.as_bytes(), &mut receive), Err(Stopped::TooLong));
    // A line of empty data fields too: each adds a line break.
    let mut decoder = SseDecoder::with_limit(1024);
    assert_eq!(decoder.feed("data\n".repeat(2000).as_bytes(), &mut receive), Err(Stopped::TooLong));
}

#[test]
fn the_receiver_can_stop_the_decoder() {
    let mut decoder = SseDecoder::default();
    let mut count = 0;
    let mut receive = |_: Frame<'_>| {
        count += 1;
        ControlFlow::Break("enough")
    };
    let stopped = decoder.feed(b"data: 1\n\ndata: 2\n\n", &mut receive);
    assert_eq!(stopped, Err(Stopped::ByReceiver("enough")));
    assert_eq!(count, 1);
}

/// Cuts `bytes` after each of `sizes` in turn, again and again.
fn cut<'a>(bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((*sizes.next().unwrap()).clamp(1, rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Streams made of what matters to the decoder, and of anything.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "data: ", "data:", "data", "event: ", "event", ":", "id: 1", "retry: 3", "error: ", "\n",
            "\n\n", "\r", "\r\n", "\r\n\r\n", "{\"a\":1}", "é", "🦀", "\u{feff}", " ", "x",
        ]).prop_map(|text: &str| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Streams that every reader agrees about: whole events, valid UTF-8, no `error` field.
fn well_formed() -> impl Strategy<Value = String> {
    let text = "[a-zé🦀{}\": ]{0,12}";
    let line = prop_oneof![
        6 => text.prop_map(|t| format!("data: {t}")),
        1 => text.prop_map(|t| format!(":{t}")),
        1 => "[a-z]{1,5}".prop_map(|t| format!("event: {t}")),
        1 => Just("id: 7".to_owned()),
    ];
    let end = prop::sample::select(vec!["\n", "\r\n"]);
    let event = (prop::collection::vec(line, 0..4), end).prop_map(|(lines, end)| {
        // Readers differ about an event that names itself and holds nothing.
        let mut text: String = lines.iter().map(|line| format!("{line}{end}")).collect();
        text.push_str(&format!("data: last{end}{end}"));
        text
    });
    prop::collection::vec(event, 0..6).prop_map(|events| events.concat())
}

fn by_sse_core(bytes: &[u8]) -> Vec<Seen> {
    let mut decoder = sse_core::SseDecoder::with_limit(NonZeroUsize::new(MAX_EVENT_BYTES).unwrap());
    let mut rest = bytes;
    let mut all = Vec::new();
    while let Some(next) = decoder.next(&mut rest) {
        if let sse_core::SseEvent::Message(message) = next.unwrap() {
            let name = if message.event == "message" { "" } else { &*message.event };
            all.push(event(name, &message.data));
        }
    }
    all
}

fn by_sse_stream(bytes: &[u8]) -> Vec<Seen> {
    let body = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::copy_from_slice(bytes))]);
    let events = sse_stream::SseStream::from_bytes_stream(body).collect::<Vec<_>>();
    futures_util::FutureExt::now_or_never(events)
        .unwrap()
        .into_iter()
        .map(|next| {
            let next = next.unwrap();
            event(next.event.as_deref().unwrap_or(""), next.data.as_deref().unwrap_or(""))
        })
        .collect()
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_frames(
        stream in streams(), sizes in prop::collection::vec(1usize..9, 1..6),
    ) {
        prop_assert_eq!(decode(cut(&stream, &sizes)), decode([stream.as_slice()]));
    }

    #[test]
    fn anything_closed_by_blank_lines_reads_as_sse_core_reads_it(stream in streams()) {
        let mut closed = stream;
        closed.extend_from_slice(b"\n\n");
        let mut ours = decode([closed.as_slice()]);
        ours.retain(|seen| matches!(seen, Seen::Event(..)));
        // `sse-core` names a nameless event `message`; so may the server.
        for seen in &mut ours {
            if let Seen::Event(name, _) = seen && name == "message" { name.clear() }
        }
        prop_assert_eq!(ours, by_sse_core(&closed));
    }

    #[test]
    fn well_formed_streams_read_as_sse_stream_reads_them(stream in well_formed()) {
        prop_assert_eq!(decode([stream.as_bytes()]), by_sse_stream(stream.as_bytes()));
    }
}
