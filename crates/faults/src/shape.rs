//! The events of an answer after a behaviour has changed them: pure, like the plan
//! that puts them in order.

use crate::{
    behaviour::{Api, Behaviour, BehaviourError, Change, Edit, Spot},
    dialect::Frame,
};

/// The events as this behaviour says them in this API.
pub(crate) fn events(
    behaviour: &Behaviour,
    api: Api,
    mut frames: Vec<Frame>,
) -> Result<Vec<Frame>, BehaviourError> {
    for edit in behaviour.edits.iter().filter(|edit| edit.api.is_none_or(|only| only == api)) {
        frames = edited(edit, frames)?;
    }
    if !behaviour.spellings.is_empty() {
        let terminal: Vec<bool> = frames.iter().map(|frame| frame.terminal).collect();
        let mut bytes: Vec<Vec<u8>> = frames.into_iter().map(|frame| frame.bytes).collect();
        behaviour.spellings.iter().for_each(|spelling| spelling.write(&mut bytes));
        frames = bytes
            .into_iter()
            .zip(terminal)
            .map(|(bytes, terminal)| Frame { bytes, terminal })
            .collect();
    }
    Ok(frames)
}

fn edited(edit: &Edit, frames: Vec<Frame>) -> Result<Vec<Frame>, BehaviourError> {
    let chosen = chosen(edit.spot, &frames);
    let mut changed = false;
    let mut result: Vec<Frame> = Vec::new();
    let mut held: Option<Frame> = None;
    for (frame, is_chosen) in frames.into_iter().zip(chosen) {
        if !is_chosen || held.is_some() {
            result.push(frame);
            result.extend(held.take());
            continue;
        }
        match edit.change {
            Change::Replace(from, to) => {
                let text = String::from_utf8_lossy(&frame.bytes);
                changed |= text.contains(from);
                let bytes = text.replace(from, to).into_bytes();
                result.push(Frame { bytes, ..frame });
                continue;
            }
            Change::Drop => {}
            Change::Twice => result.extend([frame.clone(), frame]),
            Change::AfterNext => held = Some(frame),
            Change::After(text) => {
                result.push(Frame { bytes: text.into(), terminal: false });
                result.push(frame);
            }
        }
        changed = true;
    }
    result.extend(held);
    match changed {
        true => Ok(result),
        // A fault that strikes nowhere would be a lie.
        false => Err(BehaviourError::NothingToEdit(edit.to_string())),
    }
}

fn chosen(spot: Spot, frames: &[Frame]) -> Vec<bool> {
    let holds = |frame: &Frame, text: &str| String::from_utf8_lossy(&frame.bytes).contains(text);
    let nth = |text: &str, wanted: usize| {
        let mut places = frames.iter().enumerate().filter(|(_, frame)| holds(frame, text));
        places.nth(wanted).map(|(index, _)| index)
    };
    let first = match spot {
        Spot::FirstHolding(text) => nth(text, 0),
        Spot::SecondHolding(text) => nth(text, 1),
        _ => None,
    };
    let choose = |(index, frame): (usize, &Frame)| match spot {
        Spot::Every => true,
        Spot::First => index == 0,
        Spot::Last => index + 1 == frames.len(),
        Spot::Terminal => frame.terminal,
        Spot::Holding(text) => holds(frame, text),
        Spot::FirstHolding(_) | Spot::SecondHolding(_) => first == Some(index),
    };
    frames.iter().enumerate().map(choose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour::Spelling;

    fn frames() -> Vec<Frame> {
        let frame = |text: &str, terminal| Frame { bytes: text.into(), terminal };
        vec![
            frame("data: {\"a\":1}\n\n", false),
            frame("data: {\"a\":2}\n\n", false),
            frame("data: {\"end\":true}\n\n", true),
        ]
    }

    fn said(behaviour: &Behaviour) -> Vec<String> {
        let events = events(behaviour, Api::Chat, frames()).unwrap();
        events.into_iter().map(|f| String::from_utf8(f.bytes).unwrap()).collect()
    }

    #[test]
    fn each_change_strikes_where_it_says() {
        let edit = |spot, change| said(&Behaviour::whole().edit(spot, change)).concat();
        let whole = |order: [&str; 3]| order.map(|o| format!("data: {{{o}}}\n\n")).concat();
        let (one, two, end) = ("\"a\":1", "\"a\":2", "\"end\":true");
        assert_eq!(
            edit(Spot::Holding("\"a\""), Change::Replace("\"a\"", "\"b\"")),
            whole(["\"b\":1", "\"b\":2", end])
        );
        assert_eq!(edit(Spot::First, Change::AfterNext), whole([two, one, end]));
        assert_eq!(edit(Spot::Terminal, Change::Drop).matches("data").count(), 2);
        assert_eq!(edit(Spot::Last, Change::Twice).matches("end").count(), 2);
        assert_eq!(edit(Spot::Every, Change::Twice).matches("data").count(), 6);
        assert_eq!(
            edit(Spot::SecondHolding("\"a\""), Change::Replace("2", "3")),
            whole([one, "\"a\":3", end])
        );
        assert_eq!(
            edit(Spot::First, Change::After("x\n\n")),
            format!("x\n\n{}", whole([one, two, end]))
        );
    }

    #[test]
    fn a_change_of_what_is_not_there_is_refused_and_one_for_another_api_is_not_made() {
        let none = Behaviour::whole().edit(Spot::Holding("nowhere"), Change::Drop);
        assert!(matches!(
            events(&none, Api::Chat, frames()),
            Err(BehaviourError::NothingToEdit(_))
        ));
        let other = Behaviour::whole().edit_in(Api::Gemini, Spot::Every, Change::Drop);
        assert_eq!(said(&other).len(), 3);
    }

    #[test]
    fn each_spelling_says_the_same_in_other_bytes() {
        let spelt = |spelling| said(&Behaviour::whole().spelling(spelling)).concat();
        let plain = said(&Behaviour::whole()).concat();
        assert_eq!(spelt(Spelling::CrLf), plain.replace('\n', "\r\n"));
        assert_eq!(spelt(Spelling::Cr), plain.replace('\n', "\r"));
        assert_eq!(spelt(Spelling::ByteOrderMark), format!("\u{feff}{plain}"));
        assert_eq!(spelt(Spelling::NoSpace), plain.replace(": {", ":{"));
        assert_eq!(spelt(Spelling::NoLastNewline), plain.trim_end());
        assert!(
            spelt(Spelling::MoreFields).contains("id: 2\nretry: 10\nx-unknown: 1\ndata: {\"end")
        );
        assert!(spelt(Spelling::ManyLines).starts_with("data: {\ndata: \"a\":1}\n\n"));
        assert!(spelt(Spelling::Comments).starts_with(":\n: keep-alive\n\n\ndata"));
    }
}
