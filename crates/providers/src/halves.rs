//! Halves of surrogate pairs: JSON may escape them alone, and a server that cuts
//! its text by UTF-16 units sends one half in each of two deltas.
//!
//! The JSON reader refuses a lone half. So [`mark`] rewrites the event, each half
//! as a private-use character, and a [`Mender`] joins the halves again across
//! deltas, or gives U+FFFD for a half that stays alone.

use std::{borrow::Cow, ops::RangeInclusive};

use serde::Deserialize;

/// Where the marks of halves lie; 0xD800 is the first half of all.
const MARKS: RangeInclusive<u32> = 0xF_0000..=0xF_07FF;
const FIRST_HALF: u32 = 0xD800;
const FIRST_MARK: u32 = 0xF_0000;
const ALONE: char = '\u{fffd}';

/// JSON without lone halves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) json: String,
    /// Whether its private characters are marks. Where the event uses them itself
    /// (icon fonts lie there), its lone halves became U+FFFD at once.
    pub(crate) marks: bool,
}

/// Reads an event. If lone halves stand in the way, they are marked, and the event is
/// read from `spare`; then what it borrows, and the JSON that is returned with it, may
/// hold marks, as the last value says.
pub(crate) fn read<'a, T: Deserialize<'a>>(
    json: &'a str,
    spare: &'a mut Option<Marked>,
) -> Option<(T, &'a str, bool)> {
    if let Ok(event) = serde_json::from_str(json) {
        return Some((event, json, false));
    }
    let marked: &'a Marked = spare.insert(mark(json)?);
    let event = serde_json::from_str(&marked.json).ok()?;
    Some((event, &marked.json, marked.marks))
}

/// A text that no other goes on with: its lone halves stay alone.
#[cfg_attr(
    not(any(feature = "anthropic", feature = "openai-responses", feature = "gemini")),
    expect(dead_code, reason = "Chat Completions tells no text twice")
)]
pub(crate) fn alone(text: Cow<'_, str>, marked: bool) -> Cow<'_, str> {
    let mut mender = Mender::default();
    let mut mended = mender.mend(text, marked);
    if mender.holds() {
        mended.to_mut().push_str(mender.rest());
    }
    mended
}

/// `json` with every lone half as a mark; `None` if it has none, so that whatever
/// is wrong with it is something else.
pub(crate) fn mark(json: &str) -> Option<Marked> {
    let halves = lone_halves(json);
    if halves.is_empty() {
        return None;
    }
    let used = json.chars().any(|c| MARKS.contains(&u32::from(c))) || escapes_a_mark(json);
    let mut marked = String::with_capacity(json.len());
    let mut rest = 0;
    for (at, unit) in halves {
        marked.push_str(json.get(rest..at).unwrap_or_default());
        marked.push(if used { ALONE } else { mark_of(unit) });
        rest = at + ESCAPE;
    }
    marked.push_str(json.get(rest..).unwrap_or_default());
    Some(Marked { json: marked, marks: !used })
}

/// Joins the marks of one text across its deltas.
#[derive(Debug, Default)]
pub(crate) struct Mender {
    /// A first half that waits for its second.
    held: Option<char>,
}

impl Mender {
    /// The delta with its halves joined. `marked` says whether it comes from an
    /// event that [`mark`] put marks into; the private characters of others are text.
    pub(crate) fn mend<'a>(&mut self, delta: Cow<'a, str>, marked: bool) -> Cow<'a, str> {
        if delta.is_empty() || (!marked && self.held.is_none()) {
            return delta;
        }
        let mut whole = String::with_capacity(delta.len());
        for c in delta.chars() {
            let half = marked.then(|| half_of(c)).flatten();
            match (self.held.take(), half) {
                (Some(first), Some(second)) if is_second(second) => {
                    whole.push(joined(first, second));
                }
                (held, half) => {
                    whole.extend(held.map(|_| ALONE));
                    match half {
                        Some(unit) if !is_second(unit) => self.held = Some(c),
                        Some(_) => whole.push(ALONE),
                        None => whole.push(c),
                    }
                }
            }
        }
        Cow::Owned(whole)
    }

    /// What is left of a half whose other half never came; once.
    pub(crate) fn rest(&mut self) -> &'static str {
        match self.held.take() {
            Some(_) => "\u{fffd}",
            None => "",
        }
    }

    /// Whether a half waits.
    pub(crate) const fn holds(&self) -> bool {
        self.held.is_some()
    }
}

/// The bytes of `\uXXXX`.
const ESCAPE: usize = 6;

/// Where lone halves are escaped, and which.
fn lone_halves(json: &str) -> Vec<(usize, u32)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = next_escape(json, at) {
        at = next + 2;
        let Some(unit) = unit_at(json, next) else { continue };
        at = next + ESCAPE;
        if !is_half(unit) {
            continue;
        }
        let paired = !is_second(unit) && unit_at(json, at).is_some_and(is_second);
        match paired {
            true => at += ESCAPE,
            false => found.push((next, unit)),
        }
    }
    found
}

/// The next backslash from `at` on; the one after it is its own escape's.
fn next_escape(json: &str, at: usize) -> Option<usize> {
    Some(at + json.get(at..)?.find('\\')?)
}

fn unit_at(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

/// Whether the JSON writes a private character of ours as a pair of escapes.
fn escapes_a_mark(json: &str) -> bool {
    let lower = json.to_ascii_lowercase();
    lower.contains("\\udb80\\u") || lower.contains("\\udb81\\u")
}

fn is_half(unit: u32) -> bool {
    (0xD800..=0xDFFF).contains(&unit)
}

fn is_second(unit: u32) -> bool {
    (0xDC00..=0xDFFF).contains(&unit)
}

fn mark_of(unit: u32) -> char {
    char::from_u32(unit - FIRST_HALF + FIRST_MARK).unwrap_or(ALONE)
}

fn half_of(c: char) -> Option<u32> {
    MARKS.contains(&u32::from(c)).then(|| u32::from(c) - FIRST_MARK + FIRST_HALF)
}

fn joined(first: char, second: u32) -> char {
    let high = half_of(first).unwrap_or(FIRST_HALF) - 0xD800;
    char::from_u32(0x1_0000 + (high << 10) + (second - 0xDC00)).unwrap_or(ALONE)
}

#[cfg(test)]
mod dialects;
#[cfg(test)]
mod tests {
    use super::*;

    /// Reads JSON texts as the deltas of one text.
    fn read(deltas: &[&str]) -> String {
        let mut mender = Mender::default();
        let mut whole = String::new();
        for delta in deltas {
            let marked = mark(delta);
            let json = marked.as_ref().map_or(*delta, |marked| &marked.json);
            let text: String = serde_json::from_str(json).unwrap();
            whole.push_str(&mender.mend(text.into(), marked.is_some_and(|marked| marked.marks)));
        }
        whole.push_str(mender.rest());
        whole
    }

    #[test]
    fn halves_join_within_and_across_deltas_and_stay_visible_alone() {
        for (deltas, whole) in [
            (&[r#""a\ud83d\ude00b""#][..], "a😀b"),
            (&[r#""a\ud83d""#, r#""\ude00b""#], "a😀b"),
            (&[r#""a\uD83D""#, r#""""#, r#""\uDE00b""#], "a😀b"),
            (&[r#""a\ud83d""#, r#""b""#], "a\u{fffd}b"),
            (&[r#""a\ud83d""#], "a\u{fffd}"),
            (&[r#""\ude00a""#], "\u{fffd}a"),
            (&[r#""\ude00\ud83d""#, r#""\ud83d\ude00""#], "\u{fffd}\u{fffd}😀"),
            (&[r#""\ud83d\ud83d""#, r#""\ude00""#], "\u{fffd}😀"),
            (&[r#""\ud83d""#, r#""\ud83d\ude00""#], "\u{fffd}😀"),
            (&[r#""\\ud83d \u0041\ud83d""#, r#""\n\ude00""#], "\\ud83d A\u{fffd}\n\u{fffd}"),
        ] {
            assert_eq!(read(deltas), whole, "{deltas:?}");
        }
    }

    #[test]
    fn private_characters_of_the_text_itself_stay_what_they_are() {
        for text in ["\u{f0001}", "\u{f07ff}"] {
            assert_eq!(read(&[&format!("\"{text}\"")]), text);
            assert_eq!(read(&[&format!("\"{text}\\ud83d\"")]), format!("{text}\u{fffd}"));
            assert_eq!(read(&[r#""\ud83d""#, &format!("\"{text}\"")]), format!("\u{fffd}{text}"));
        }
        assert_eq!(read(&[r#""\udb80\udc01\ud83d""#]), "\u{f0001}\u{fffd}");
    }

    #[test]
    fn what_has_no_lone_half_is_not_touched() {
        for json in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\ud8"#, "plain", r#""\u12G4""#, "\\"]
        {
            assert_eq!(mark(json), None, "{json}");
        }
    }
}
