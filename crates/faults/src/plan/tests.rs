use super::*;
use crate::{
    behaviour::ErrorReply,
    content::Content,
    dialect::{Ask, Chat, Dialect, Turn},
};

fn frames() -> Vec<Frame> {
    let content = Content {
        text: Some("un café ☕ two three four five six seven eight nine ten eleven".into()),
        ..Content::default()
    };
    Chat.frames(&content, &Ask::probe(), Turn::FIRST)
}

/// One letter an operation: E whole event, T torn, X malformed, ! error,
/// H huge line, G garbage, w wait, and the break.
fn shape(behaviour: &Behaviour) -> String {
    let ops = stream(behaviour, frames()).unwrap();
    let letter = |op: &Op| match op {
        Op::Event(bytes) if bytes == b"data: [DONE]\n\n" => "D".to_owned(),
        Op::Event(bytes) if bytes.windows(6).any(|w| w == b"\"stop\"") => "F".to_owned(),
        Op::Event(_) => "E".to_owned(),
        Op::Torn { .. } => "T".to_owned(),
        Op::Malformed => "X".to_owned(),
        Op::Error(_) => "!".to_owned(),
        Op::HugeLine(_) => "H".to_owned(),
        Op::CorruptGzip => "G".to_owned(),
        Op::Wait(_) => "w".to_owned(),
        Op::Only(..) => " only".to_owned(),
        Op::Noise(_) => " noise".to_owned(),
        Op::Endless(..) => " endless".to_owned(),
        Op::Break(how) => format!(" {}", how.as_str()),
    };
    ops.iter().map(letter).collect()
}

#[test]
fn a_whole_answer_is_every_event_and_no_break() {
    assert_eq!(shape(&Behaviour::whole()), "EEEEEEEEEEEEEEFD");
}

#[test]
fn each_point_cuts_where_its_name_says() {
    let cut = |point| shape(&Behaviour::whole().cut(point, How::Reset));
    assert_eq!(cut(Point::AfterHeaders), " reset");
    assert_eq!(cut(Point::BeforeEvent(3)), "EE reset");
    assert_eq!(cut(Point::AfterEvent(3)), "EEE reset");
    assert_eq!(cut(Point::InsideEvent(3)), "EET reset");
    assert_eq!(cut(Point::BeforeTerminal), "EEEEEEEEEEEEEE reset");
    assert_eq!(cut(Point::AfterTerminal), "EEEEEEEEEEEEEEF reset");
    assert_eq!(cut(Point::AtEnd), "EEEEEEEEEEEEEEFD reset");
}

#[test]
fn a_cut_inside_an_event_sends_half_of_the_bytes_it_announces() {
    let ops = stream(&Behaviour::whole().cut(Point::InsideEvent(2), How::Reset), frames()).unwrap();
    let whole = frames()[1].bytes.clone();
    assert_eq!(ops[1], Op::Torn { whole: whole.len(), sent: whole[..whole.len() / 2].to_vec() });
}

#[test]
fn a_cut_inside_a_character_leaves_bytes_that_are_no_utf8() {
    let ops = stream(&Behaviour::whole().cut(Point::InsideCharacter, How::Fin), frames()).unwrap();
    let Some(Op::Torn { sent, .. }) = ops.iter().rev().nth(1) else { panic!("{ops:?}") };
    let error = std::str::from_utf8(sent).unwrap_err();
    assert_eq!(error.error_len(), None, "only the end is missing");
    assert_eq!(error.valid_up_to(), sent.len() - 1);
}

#[test]
fn a_clean_end_inside_an_event_announces_only_what_it_sends() {
    let cut = Behaviour::whole().cut(Point::InsideEvent(3), How::CleanEnd);
    assert_eq!(shape(&cut), "EEE clean_end");
}

#[test]
fn inserts_and_cuts_compose_at_one_point() {
    let reply = ErrorReply::new(500, "server_error", "no");
    let behaviour = Behaviour::whole()
        .insert(Point::AfterEvent(2), Insert::Malformed)
        .insert(Point::AfterEvent(2), Insert::Error(reply))
        .insert(Point::BeforeTerminal, Insert::HugeLine(5))
        .cut(Point::AfterTerminal, How::CleanEnd);
    assert_eq!(shape(&behaviour), "EEX!EEEEEEEEEEEEHF clean_end");
}

#[test]
fn delays_stand_between_events_and_before_the_break() {
    let behaviour = Behaviour::whole()
        .cut(Point::AfterEvent(3), How::Silence)
        .after(Duration::from_millis(9))
        .event_delay(Duration::from_millis(1));
    assert_eq!(shape(&behaviour), "EwEwEw silence");
}

#[test]
fn an_answer_without_its_terminal_event_keeps_what_stands_around_it() {
    assert_eq!(shape(&Behaviour::whole().without_terminal()), "EEEEEEEEEEEEEED");
    let cut = Behaviour::whole().without_terminal().cut(Point::AfterTerminal, How::Fin);
    assert_eq!(shape(&cut), "EEEEEEEEEEEEEE fin");
}

#[test]
fn an_event_that_does_not_exist_is_refused_with_the_number_there_are() {
    let cut = |n| stream(&Behaviour::whole().cut(Point::InsideEvent(n), How::Reset), frames());
    assert!(cut(15).is_ok());
    assert_eq!(cut(16), Err(BehaviourError::EventOutOfRange { at: 16, events: 15 }));
    assert_eq!(cut(0), Err(BehaviourError::EventZero));
}

#[test]
fn a_text_of_plain_letters_has_no_character_to_cut() {
    let content = Content { text: Some("plain".into()), ..Content::default() };
    let frames = Chat.frames(&content, &Ask::probe(), Turn::FIRST);
    let cut = Behaviour::whole().cut(Point::InsideCharacter, How::Fin);
    assert_eq!(stream(&cut, frames), Err(BehaviourError::NoWideCharacter));
}

#[test]
fn a_plain_body_is_torn_with_its_whole_length_announced() {
    let error = Behaviour::error(ErrorReply::new(500, "server_error", "no"));
    let torn = body(&error.clone().cut(Point::InsideBody, How::Reset), b"0123456789".to_vec());
    assert_eq!((torn.bytes.as_slice(), torn.announced), (b"01234".as_slice(), 10));
    let clean = body(&error.clone().cut(Point::InsideBody, How::CleanEnd), b"0123456789".to_vec());
    assert_eq!((clean.bytes.len(), clean.announced), (5, 5));
    let headers = body(&error.cut(Point::AfterHeaders, How::Fin), b"0123456789".to_vec());
    assert_eq!((headers.bytes.len(), headers.announced), (0, 10));
}

#[test]
fn compositions_that_make_no_sense_are_refused_by_name() {
    let error = || Behaviour::error(ErrorReply::new(500, "server_error", "no"));
    let refused = |behaviour: Behaviour| behaviour.check().unwrap_err();
    assert_eq!(
        refused(error().cut(Point::InsideEvent(3), How::Reset)),
        BehaviourError::NoEvents(Point::InsideEvent(3))
    );
    assert_eq!(refused(error().without_terminal()), BehaviourError::NoTerminal);
    assert_eq!(
        refused(error().insert(Point::AfterEvent(1), Insert::Malformed)),
        BehaviourError::NoEvents(Point::AfterEvent(1))
    );
    assert_eq!(
        refused(Behaviour::whole().cut(Point::BeforeStatus, How::CleanEnd)),
        BehaviourError::CleanEndWithoutStatus
    );
    assert_eq!(
        refused(Behaviour::whole().insert(Point::InsideEvent(2), Insert::Malformed)),
        BehaviourError::InsertOutsideStream(Point::InsideEvent(2))
    );
    assert_eq!(
        refused(Behaviour::whole().cut(Point::AfterEvent(0), How::Reset)),
        BehaviourError::EventZero
    );
    assert_eq!(refused(Behaviour::whole().status(204)), BehaviourError::Status(204));
    assert_eq!(refused(Behaviour::whole().status(99)), BehaviourError::Status(99));
    for (name, value) in [("a b", "x"), ("x", "a\r\nb"), ("Content-Length", "3")] {
        let error = refused(Behaviour::whole().header(name, value));
        assert!(matches!(error, BehaviourError::Header(..)), "{name}: {error:?}");
    }
    assert_eq!(
        stream(&Behaviour::whole().cut(Point::InsideBody, How::Fin), frames()),
        Err(BehaviourError::BodyOfStream)
    );
}
