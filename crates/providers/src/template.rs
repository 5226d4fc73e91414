//! A delta read without parsing its event: nearly every event of a stream repeats the
//! one before it, but for one text and a few counters.
//!
//! Once an event was parsed and did nothing but give one text, its [`Template`] keeps
//! the bytes around that text. A later event with the same bytes around a text of its
//! own gives that text, and nothing else: JSON in which one string's body is exchanged
//! for another, or one whole number for another, has the same structure. Everything
//! that differs anywhere else is parsed.

use std::{borrow::Cow, ops::Range};

use serde_json::value::RawValue;

use crate::loose::Fields;

/// The most values that may vary besides the delta.
const MAX_VARYING: usize = 6;

/// The longest event that is kept, its delta aside. A delta's surroundings are a few
/// hundred bytes.
const MAX_LINE: usize = 4096;

/// So many templates in a row that no event fitted, and no more are learned: every
/// event of this server differs in more than its text.
const MAX_UNUSED: u8 = 8;

/// Numbers up to here are the same in every reader of JSON.
const MAX_DIGITS: usize = 15;

/// A value that may change from event to event besides the delta, by the names that
/// lead to it. The dialect either does not read it, or asks [`Found`] for it.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(any(test, feature = "openai-chat", feature = "openai-responses", feature = "gemini")),
    expect(dead_code, reason = "nothing else varies in the other dialect")
)]
pub(crate) enum Varying {
    Text(&'static [&'static str]),
    /// A whole number that is at least 0.
    Number(&'static [&'static str]),
}

/// What an event held that fitted.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// Never empty.
    pub(crate) delta: Cow<'a, str>,
    values: [Option<&'a str>; MAX_VARYING],
}

impl<'a> Found<'a> {
    /// The value of this place in the list of varying ones; `None` where it never
    /// varied, so that it is as it was learned.
    #[cfg_attr(
        not(any(test, feature = "openai-responses", feature = "gemini")),
        expect(dead_code, reason = "the other dialects do not read what varies")
    )]
    pub(crate) fn value(&self, place: usize) -> Option<&'a str> {
        self.values.get(place).copied().flatten()
    }
}

/// The last event that only gave a text, with what a dialect learned from it.
#[derive(Debug)]
pub(crate) struct Template<T> {
    varying: &'static [Varying],
    /// The event without its delta.
    line: String,
    /// What is not compared, in the order of the line.
    holes: Vec<Hole>,
    /// Which of the varying values have been seen to vary.
    varies: [bool; MAX_VARYING],
    learned: Option<T>,
    unused: u8,
}

#[derive(Debug, Clone)]
struct Hole {
    at: Range<usize>,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Delta,
    Text(usize),
    Number(usize),
}

impl<T> Template<T> {
    /// Nothing is learned yet. At most [`MAX_VARYING`] values may vary.
    pub(crate) const fn new(varying: &'static [Varying]) -> Self {
        Self {
            varying,
            line: String::new(),
            holes: Vec::new(),
            varies: [false; MAX_VARYING],
            learned: None,
            unused: 0,
        }
    }

    /// One that never learns, to compare with.
    #[cfg(test)]
    pub(crate) const fn off() -> Self {
        let mut off = Self::new(&[]);
        off.unused = MAX_UNUSED;
        off
    }

    /// Reads an event that differs from the learned one in its text alone.
    pub(crate) fn read<'a>(&mut self, line: &'a str) -> Option<(Found<'a>, &T)> {
        let learned = self.learned.as_ref()?;
        let mut values = [None; MAX_VARYING];
        let mut delta = ("", false);
        let (mut rest, mut from) = (line, 0);
        for Hole { at, what } in &self.holes {
            rest = rest.strip_prefix(self.line.get(from..at.start)?)?;
            from = at.end;
            let (end, escaped) = match what {
                What::Number(_) => (number_end(rest)?, false),
                What::Text(_) | What::Delta => text_end(rest)?,
            };
            let (body, after) = rest.split_at_checked(end)?;
            rest = after;
            match what {
                What::Delta => delta = (body, escaped),
                What::Text(_) if escaped => return None,
                What::Text(place) | What::Number(place) => *values.get_mut(*place)? = Some(body),
            }
        }
        if rest != self.line.get(from..)? || delta.0.is_empty() {
            return None;
        }
        let delta = match delta {
            (body, true) => Cow::Owned(unescaped(body)?),
            (body, false) => Cow::Borrowed(body),
        };
        self.unused = 0;
        Some((Found { delta, values }, learned))
    }

    /// Keeps an event that was parsed and only gave `delta`, which borrows from it.
    pub(crate) fn learn(&mut self, line: &str, delta: &str, learned: T) {
        let Some(place) = place_in(line, delta).filter(|_| self.unused < MAX_UNUSED) else {
            return;
        };
        let around = line.get(..place.start).zip(line.get(place.end..));
        let Some((before, after)) = around.filter(|(before, after)| {
            before.ends_with('"') && after.starts_with('"') && !delta.is_empty()
        }) else {
            return;
        };
        if before.len() + after.len() > MAX_LINE {
            return;
        }
        self.unused += 1;
        let bare = [before, after].concat();
        self.holes.clear();
        self.holes.push(Hole { at: before.len()..before.len(), what: What::Delta });
        // With nothing to compare with, nothing has varied.
        if self.learned.is_some() {
            self.open_holes(&bare);
        }
        self.line = bare;
        self.learned = Some(learned);
        self.holes.sort_by_key(|hole| hole.at.start);
    }

    fn open_holes(&mut self, line: &str) {
        for (place, (varying, varies)) in self.varying.iter().zip(&mut self.varies).enumerate() {
            let Some(at) = varying.find(line) else { continue };
            if !*varies {
                let before = varying.find(&self.line).and_then(|at| self.line.get(at));
                *varies = before.is_some_and(|before| line.get(at.clone()) != Some(before));
            }
            if *varies {
                let what = match varying {
                    Varying::Text(_) => What::Text(place),
                    Varying::Number(_) => What::Number(place),
                };
                self.holes.push(Hole { at, what });
            }
        }
    }
}

impl Varying {
    /// Where the one value of these names stands in the line, without its quotes.
    fn find(self, line: &str) -> Option<Range<usize>> {
        let (Self::Text(names) | Self::Number(names)) = self;
        let mut value = line;
        for name in names {
            value = field(value, name)?;
        }
        let body = match self {
            Self::Text(_) => {
                let body = value.strip_prefix('"')?;
                let (end, escaped) = text_end(body)?;
                body.get(..end).filter(|_| !escaped)?
            }
            Self::Number(_) => Some(value).filter(|_| number_end(value) == Some(value.len()))?,
        };
        // An empty text may be anywhere, as far as its address tells.
        place_in(line, body).filter(|at| !at.is_empty())
    }
}

/// The one field of this name in an object.
fn field<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let fields: Fields<'a> = serde_json::from_str(object).ok()?;
    let mut named = fields.0.iter().filter(|(known, _)| known == name);
    let (_, value) = named.next()?;
    named.next().is_none().then_some(RawValue::get(value))
}

/// Where a part that borrows from a text stands in it.
fn place_in(whole: &str, part: &str) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let at = start..start.checked_add(part.len())?;
    (whole.get(at.clone()) == Some(part)).then_some(at)
}

/// Where the body of a JSON string ends, and whether it has escapes.
fn text_end(rest: &str) -> Option<(usize, bool)> {
    let bytes = rest.as_bytes();
    let (mut at, mut escaped) = (0, false);
    loop {
        match bytes.get(at)? {
            b'"' => return Some((at, escaped)),
            b'\\' => {
                escaped = true;
                at += 2;
            }
            0..0x20 => return None,
            _ => at += 1,
        }
    }
}

/// Where a whole number ends.
fn number_end(rest: &str) -> Option<usize> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let leads = digits > 1 && rest.starts_with('0');
    ((1..=MAX_DIGITS).contains(&digits) && !leads).then_some(digits)
}

/// The text of a string's body with escapes; `None` for one that the parser may
/// refuse, half a surrogate pair for one.
fn unescaped(body: &str) -> Option<String> {
    let mut text = String::with_capacity(body.len());
    let mut rest = body;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        rest = escape.get(1..)?;
        text.push(match escape.as_bytes().first()? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let (unit, after) = unit(rest)?;
                rest = after;
                match char::from_u32(unit) {
                    Some(c) => c,
                    None => {
                        let (second, after) = unit_after(rest)?;
                        rest = after;
                        joined(unit, second)?
                    }
                }
            }
            _ => return None,
        });
    }
    text.push_str(rest);
    Some(text)
}

fn unit_after(rest: &str) -> Option<(u32, &str)> {
    unit(rest.strip_prefix("\\u")?)
}

/// The UTF-16 unit of four digits, and what follows them.
fn unit(rest: &str) -> Option<(u32, &str)> {
    let (digits, after) = rest.split_at_checked(4)?;
    let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| plain).map(|unit| (unit, after))
}

fn joined(first: u32, second: u32) -> Option<char> {
    let pair = (0xD800..0xDC00).contains(&first) && (0xDC00..0xE000).contains(&second);
    char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second.checked_sub(0xDC00)?))
        .filter(|_| pair)
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
