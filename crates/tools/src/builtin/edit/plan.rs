//! The plan of an edit: text and change to new text, or why not. No I/O.
//!
//! The exact text goes first; where it is not, every line break counts as `\n`,
//! so that text taken from Read matches a file with CRLF. What is replaced is the
//! smallest span that differs; each byte outside it stays as it is.

use std::{borrow::Cow, ops::Range};

use memchr::{memchr_iter, memmem};
use turnbuckle_errors::ErrorCode;

use super::explain;
use crate::ToolError;

/// How many places an error lists.
const LISTED: usize = 10;
/// How many places are counted before counting stops.
const COUNTED: usize = 1000;

/// What a model wants changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    /// The text to replace.
    pub(crate) old: &'a str,
    /// The text to put there.
    pub(crate) new: &'a str,
    /// Whether every place is meant.
    pub(crate) all: bool,
}

/// What will be done to a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan<'a> {
    /// The text as it was.
    before: &'a str,
    /// What is put into each span, with `\n` and with `\r\n` as line break.
    put: [String; 2],
    /// Whether it is the latter.
    by_pairs: Vec<bool>,
    /// Where the old text was, in bytes of the old text, in order.
    pub(crate) spans: Vec<Range<usize>>,
    /// The lines at which they start, counted from 1.
    pub(crate) lines: Vec<usize>,
}

impl Plan<'_> {
    /// The new text in pieces, in order: a large file is not copied for a small edit.
    pub(crate) fn pieces(&self) -> Vec<&str> {
        let [lf, crlf] = &self.put;
        let mut pieces = Vec::with_capacity(2 * self.spans.len() + 1);
        let mut done = 0;
        for (span, by_pairs) in self.spans.iter().zip(&self.by_pairs) {
            pieces.push(self.before.get(done..span.start).unwrap_or_default());
            pieces.push(if *by_pairs { crlf } else { lf });
            done = span.end;
        }
        pieces.push(self.before.get(done..).unwrap_or_default());
        pieces
    }

    /// The new text.
    pub(crate) fn text(&self) -> String {
        self.pieces().concat()
    }
}

/// Plans a change of a text.
///
/// # Errors
///
/// `INVALID_ARGUMENT`, `EDIT_NO_CHANGE`, `EDIT_NO_MATCH` or `EDIT_AMBIGUOUS`.
pub(crate) fn plan<'a>(text: &'a str, change: &Change<'_>) -> Result<Plan<'a>, ToolError> {
    let (exact, new) = (split_bom(change.old).1, split_bom(change.new).1);
    let (old, new) = (flatten(exact), flatten(new));
    if old.is_empty() {
        let text = "`old_string` is empty; to create a file or rewrite a whole one use Write";
        return Err(ToolError::new(ErrorCode::InvalidArgument, text));
    }
    if old == new {
        return Err(no_change(change));
    }
    let (bom, body) = split_bom(text);
    let flat = Flat::new(body);
    let places =
        if change.all { find_all(&flat.text, &old)? } else { flat.find_only(exact, &old)? };
    if places.is_empty() {
        return Err(explain::no_match(&flat.text, &old));
    }
    Ok(flat.replace(text, bom.len(), &places, &old, &new))
}

/// Every line break as `\n`.
fn flatten(text: &str) -> Cow<'_, str> {
    match memmem::find(text.as_bytes(), b"\r\n") {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(text.replace("\r\n", "\n")),
    }
}

fn split_bom(text: &str) -> (&str, &str) {
    match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    }
}

fn no_change(change: &Change<'_>) -> ToolError {
    let why = if change.old == change.new {
        "`old_string` and `new_string` are the same; check whether the work is already done"
    } else {
        "`old_string` and `new_string` differ in line endings or byte-order mark alone, which Edit \
         keeps as they are in the file"
    };
    ToolError::new(ErrorCode::EditNoChange, why)
}

/// The one place of several that may be meant: there is one, or none.
fn only(text: &str, places: Vec<usize>) -> Result<Vec<usize>, ToolError> {
    if places.len() < 2 {
        return Ok(places);
    }
    let more = if places.len() == COUNTED { " or more" } else { "" };
    Err(ToolError::new(
        ErrorCode::EditAmbiguous,
        format!(
            "`old_string` is in the file {}{more} times, at\n{}add surrounding lines until it is \
             there once, or set `replace_all`",
            places.len(),
            list(text, &places)
        ),
    ))
}

/// All places, overlapping ones too, up to [`COUNTED`].
fn overlapping<'a>(text: &'a str, old: &'a str) -> impl Iterator<Item = usize> + 'a {
    let finder = memmem::Finder::new(old.as_bytes()).into_owned();
    // Both are whole characters, so that a match never starts inside of one.
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let place = from + finder.find(text.as_bytes().get(from..)?)?;
        from = place + step;
        Some(place)
    })
}

fn find_all(text: &str, old: &str) -> Result<Vec<usize>, ToolError> {
    let places: Vec<usize> = memmem::find_iter(text.as_bytes(), old).collect();
    for place in &places {
        // A place that begins inside this one ends at most a length behind it.
        let end = (place + 2 * old.len()).min(text.len());
        let near = text.get(*place..text.floor_char_boundary(end)).unwrap_or(text);
        let next = overlapping(near, old).nth(1).map(|next| place + next);
        if let Some(next) = next.filter(|next| *next < place + old.len()) {
            return Err(ToolError::new(
                ErrorCode::EditAmbiguous,
                format!(
                    "the places of `old_string` overlap, so that it is not clear which to replace:\n{}\
                     give an `old_string` that cannot overlap itself",
                    list(text, &[*place, next])
                ),
            ));
        }
    }
    Ok(places)
}

/// The lines at which places start, numbered and bounded.
fn list(text: &str, places: &[usize]) -> String {
    let mut list = String::new();
    for place in places.iter().take(LISTED) {
        let number = line_of(text, *place);
        let line = text.lines().nth(number - 1).unwrap_or_default();
        list.push_str(&format!("{number:>6}\t{}\n", explain::excerpt(line)));
    }
    if places.len() > LISTED {
        list.push_str(&format!("       (and {} more)\n", places.len() - LISTED));
    }
    list
}

/// The number of the line that holds a byte, counted from 1.
pub(crate) fn line_of(text: &str, byte: usize) -> usize {
    1 + memchr_iter(b'\n', text.as_bytes().get(..byte).unwrap_or_default()).count()
}

/// A text with every line break as `\n`, and the way back to its bytes.
struct Flat<'a> {
    body: &'a str,
    text: Cow<'a, str>,
    /// Where a `\r` was left out: the places of its `\n` in `text`.
    pairs: Vec<usize>,
}

impl<'a> Flat<'a> {
    fn new(body: &'a str) -> Self {
        let pairs = memmem::find_iter(body.as_bytes(), b"\r\n");
        let pairs: Vec<usize> = pairs.enumerate().map(|(left_out, at)| at - left_out).collect();
        let text = if pairs.is_empty() { Cow::Borrowed(body) } else { flatten(body) };
        Self { body, text, pairs }
    }

    /// The byte in `body` of a byte in `text`; a line break counts whole.
    fn back(&self, at: usize) -> usize {
        at + self.pairs.partition_point(|pair| *pair < at)
    }

    /// The one place to replace; none if there is none.
    fn find_only(&self, exact: &str, old: &str) -> Result<Vec<usize>, ToolError> {
        let places: Vec<usize> = overlapping(&self.text, old).take(COUNTED).collect();
        if places.len() < 2 {
            return Ok(places);
        }
        // Other places that differ in line endings alone do not make it ambiguous.
        let exactly = |place: &usize| {
            let there = self.back(*place)..self.back(*place + old.len());
            self.body.get(there).is_some_and(|there| there == exact)
        };
        let mut exact: Vec<usize> = places.iter().copied().filter(exactly).collect();
        if exact.is_empty() || places.len() == COUNTED {
            exact = places;
        }
        only(&self.text, exact)
    }

    fn replace(
        &self,
        before: &'a str,
        mark: usize,
        places: &[usize],
        old: &str,
        new: &str,
    ) -> Plan<'a> {
        let (head, tail) = common_ends(old, new);
        let middle = new.get(head..new.len() - tail).unwrap_or(new);
        let put = [middle.to_owned(), middle.replace('\n', "\r\n")];
        let (mut spans, mut by_pairs, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        let mut lines = Lines::default();
        for place in places {
            let (start, end) = (self.back(place + head), self.back(place + old.len() - tail));
            spans.push(mark + start..mark + end);
            by_pairs.push(self.breaks_by_pairs(place + head));
            numbers.push(lines.at(&self.text, *place));
        }
        Plan { before, put, by_pairs, spans, lines: numbers }
    }

    /// Whether new line breaks at `at` are CRLF: as the line there, else the one before.
    fn breaks_by_pairs(&self, at: usize) -> bool {
        let (before, after) = self.text.split_at(at);
        let own = after.find('\n').map(|next| at + next);
        own.or_else(|| before.rfind('\n')).is_some_and(|at| self.pairs.binary_search(&at).is_ok())
    }
}

/// Counts lines over places in rising order, each byte once.
#[derive(Default)]
struct Lines {
    counted: usize,
    breaks: usize,
}

impl Lines {
    fn at(&mut self, text: &str, place: usize) -> usize {
        let part = text.get(self.counted..place).unwrap_or_default();
        self.breaks += memchr_iter(b'\n', part.as_bytes()).count();
        self.counted = place;
        self.breaks + 1
    }
}

/// How many bytes two texts share at their start and, apart from that, at their end.
fn common_ends(old: &str, new: &str) -> (usize, usize) {
    let same = |(a, b): &(char, char)| a == b;
    let length = |(a, _): (char, char)| a.len_utf8();
    let head: usize = old.chars().zip(new.chars()).take_while(same).map(length).sum();
    let (old, new) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let ends = old.chars().rev().zip(new.chars().rev());
    (head, ends.take_while(same).map(length).sum())
}

#[cfg(test)]
mod tests;
