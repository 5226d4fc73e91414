//! From a behaviour to the bytes of one response: a pure function, so that
//! every composition can be tested without a socket.

use std::time::Duration;

use crate::{
    behaviour::{Api, Behaviour, BehaviourError, Cut, How, Insert, Noise, Point},
    dialect::Frame,
};

/// One thing the server does after the response head of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Op {
    /// Sends an event.
    Event(Vec<u8>),
    /// Announces a chunk of `whole` bytes and sends only these.
    Torn { whole: usize, sent: Vec<u8> },
    /// Sends an event whose data is not JSON.
    Malformed,
    /// Sends an error event.
    Error(crate::behaviour::ErrorReply),
    /// Sends one line with this many bytes of text.
    HugeLine(usize),
    /// Sends bytes that break the compression they stand in.
    CorruptGzip,
    /// Sends these bytes in this API alone.
    Only(Api, Vec<u8>),
    /// Says nothing, once.
    Noise(Noise),
    /// Says nothing for ever, with this wait after each time.
    Endless(Noise, Duration),
    /// Waits.
    Wait(Duration),
    /// Breaks. Nothing follows.
    Break(How),
}

/// The operations of a streamed answer. Without a [`Op::Break`] at its end,
/// the body ends properly.
pub(crate) fn stream(behaviour: &Behaviour, frames: Vec<Frame>) -> Result<Vec<Op>, BehaviourError> {
    let layout = Layout::of(&frames, behaviour.omit_terminal);
    let frames = keep(frames, behaviour.omit_terminal);
    let mut inserts = Vec::new();
    for (point, insert) in &behaviour.inserts {
        inserts.push((layout.place(*point, &frames)?, insert));
    }
    let cut = match &behaviour.cut {
        Some(cut) => Some((layout.place(cut.point, &frames)?, *cut)),
        None => None,
    };
    let mut ops = Vec::new();
    let mut said = false;
    for index in 0..=frames.len() {
        for (_, insert) in inserts.iter().filter(|(place, _)| place.frame == index) {
            gap(&mut ops, &mut said, behaviour.event_delay);
            ops.push(insert_op(insert));
        }
        let here = cut.filter(|(place, _)| place.frame == index);
        let frame = frames.get(index);
        if let Some((place, cut)) = here {
            if let Some(frame) = frame.filter(|_| place.offset > 0) {
                gap(&mut ops, &mut said, behaviour.event_delay);
                let sent = frame.bytes.get(..place.offset).unwrap_or_default();
                ops.push(torn(sent, frame.bytes.len(), cut.how));
            }
            wait(&mut ops, cut.after);
            ops.push(Op::Break(cut.how));
            return Ok(ops);
        }
        if let Some(frame) = frame {
            gap(&mut ops, &mut said, behaviour.event_delay);
            ops.push(Op::Event(frame.bytes.clone()));
        }
    }
    Ok(ops)
}

/// A body that is not a stream: what is sent of it, and the break, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    /// The length announced; more than is sent where the body is torn.
    pub(crate) announced: usize,
    pub(crate) cut: Option<Cut>,
}

/// The part of a plain body that is sent. Points that name an event, as they
/// do when a streaming behaviour meets a request with `stream: false`, tear
/// the body in its middle; a body that stands for an inserted event is whole
/// by then.
pub(crate) fn body(behaviour: &Behaviour, bytes: Vec<u8>) -> Body {
    let replaced = behaviour.inserts.iter().any(|(_, insert)| insert.replaces_a_document());
    let sent = match behaviour.cut.map(|cut| cut.point) {
        Some(point) if replaced && point.needs_stream() => bytes.len(),
        None | Some(Point::AtEnd | Point::AfterTerminal) => bytes.len(),
        Some(Point::AfterHeaders | Point::InsideHeaders | Point::BeforeStatus) => 0,
        Some(Point::InsideCharacter) => wide_character(&bytes).unwrap_or(bytes.len() / 2),
        Some(_) => bytes.len() / 2,
    };
    let clean = behaviour.cut.is_some_and(|cut| cut.how == How::CleanEnd);
    let announced = if clean { sent } else { bytes.len() };
    let mut bytes = bytes;
    bytes.truncate(sent);
    Body { bytes, announced, cut: behaviour.cut }
}

/// A place in a stream: after `offset` bytes of the frame with this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    frame: usize,
    offset: usize,
}

/// What the points need to know of a stream, taken before anything is left out.
struct Layout {
    /// The index of the terminal event, or the place it was left out of.
    terminal: usize,
    /// Events a point can name: up to and including the terminal one.
    events: usize,
}

impl Layout {
    fn of(frames: &[Frame], omit_terminal: bool) -> Self {
        let found = frames.iter().position(|frame| frame.terminal);
        let terminal = found.unwrap_or(frames.len());
        Self { terminal, events: terminal + usize::from(found.is_some() && !omit_terminal) }
    }

    fn place(&self, point: Point, frames: &[Frame]) -> Result<Place, BehaviourError> {
        let at = |frame| Place { frame, offset: 0 };
        Ok(match point {
            // A break before the status never gets as far as the stream.
            Point::BeforeStatus | Point::InsideHeaders | Point::AfterHeaders => at(0),
            Point::BeforeEvent(n) => at(self.index(n)?),
            Point::AfterEvent(n) => at(self.index(n)? + 1),
            Point::InsideEvent(n) => {
                let frame = self.index(n)?;
                let bytes = frames.get(frame).map_or(0, |f| f.bytes.len());
                Place { frame, offset: bytes / 2 }
            }
            Point::InsideCharacter => inside_character(frames)?,
            Point::BeforeTerminal => at(self.terminal),
            Point::AfterTerminal => at(self.events.max(self.terminal)),
            Point::AtEnd => at(frames.len()),
            Point::InsideBody => return Err(BehaviourError::BodyOfStream),
        })
    }

    fn index(&self, number: usize) -> Result<usize, BehaviourError> {
        match number.checked_sub(1) {
            None => Err(BehaviourError::EventZero),
            Some(index) if index < self.events => Ok(index),
            Some(_) => Err(BehaviourError::EventOutOfRange { at: number, events: self.events }),
        }
    }
}

fn keep(frames: Vec<Frame>, omit_terminal: bool) -> Vec<Frame> {
    let kept = frames.into_iter();
    kept.filter(|frame| !(omit_terminal && frame.terminal)).collect()
}

/// The middle one of the events with a character of several bytes, so that
/// something whole was sent before it where the text allows.
fn inside_character(frames: &[Frame]) -> Result<Place, BehaviourError> {
    let wide = |(frame, f): (usize, &Frame)| {
        wide_character(&f.bytes).map(|offset| Place { frame, offset })
    };
    let places: Vec<Place> = frames.iter().enumerate().filter_map(wide).collect();
    let middle = places.get(places.len() / 2).copied();
    middle.ok_or(BehaviourError::NoWideCharacter)
}

/// Just behind the first byte of the first character of several bytes.
fn wide_character(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte >= 0xC0).map(|lead| lead + 1)
}

/// A clean end is proper HTTP, so its last chunk announces what it carries,
/// and so does the chunk before a malformed one; any other break leaves the
/// client in the middle of an announced chunk.
fn torn(sent: &[u8], whole: usize, how: How) -> Op {
    if how.ends_between_chunks() {
        return Op::Event(sent.to_vec());
    }
    Op::Torn { whole, sent: sent.to_vec() }
}

fn insert_op(insert: &Insert) -> Op {
    match insert {
        Insert::Error(reply) => Op::Error(reply.clone()),
        Insert::Malformed => Op::Malformed,
        Insert::HugeLine(bytes) => Op::HugeLine(*bytes),
        Insert::CorruptGzip => Op::CorruptGzip,
        Insert::Bytes(bytes) => Op::Event(bytes.clone()),
        Insert::In(api, bytes) => Op::Only(*api, bytes.clone()),
        Insert::Noise(noise) => Op::Noise(*noise),
        Insert::Endless(noise, pause) => Op::Endless(*noise, *pause),
    }
}

fn gap(ops: &mut Vec<Op>, said: &mut bool, delay: Duration) {
    if *said {
        wait(ops, delay);
    }
    *said = true;
}

fn wait(ops: &mut Vec<Op>, delay: Duration) {
    if !delay.is_zero() {
        ops.push(Op::Wait(delay));
    }
}

#[cfg(test)]
mod tests;
