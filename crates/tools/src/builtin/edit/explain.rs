//! Why an edit did not match: the nearest candidate, the first differing
//! character, and the usual reasons by name. All of it bounded.

use std::borrow::Cow;

use turnbuckle_errors::ErrorCode;

use super::plan::line_of;
use crate::{
    ToolError,
    builtin::text::{cut_text, numbered},
};

/// How many lines of a candidate are shown.
const SHOWN_LINES: usize = 12;
/// How much of a line is shown, in characters.
const SHOWN_CHARS: usize = 200;
/// How many pairs of lines are compared in search of a candidate.
const COMPARED: usize = 2_000_000;
/// How many lines are looked at in search of a candidate.
const LOOKED_AT: usize = 50_000;
/// How much of a file is searched for a candidate, in bytes.
const SEARCHED: usize = 2 * 1024 * 1024;
/// How alike the anchors of a candidate must be (1 is equal).
const ALIKE: f64 = 0.5;
/// How many lines a fresh excerpt has.
const FRESH_LINES: usize = 40;

/// The error for text that is not there. Both texts have `\n` line breaks.
pub(crate) fn no_match(text: &str, old: &str) -> ToolError {
    let mut message = "`old_string` is not in the file".to_owned();
    match candidate(text, old) {
        None if text.len() > SEARCHED => {
            message.push_str(", and nothing in its first 2 MiB is near")
        }
        None => message.push_str(", and nothing in it is near to it"),
        Some(near) => message.push_str(&near.describe(text, old)),
    }
    message.push_str("\nRead the place once, then make the Edit anew from what is there now.");
    ToolError::new(ErrorCode::EditNoMatch, message)
}

/// What the file holds now where the text was expected, else its first lines.
pub(crate) fn fresh_excerpt(text: &str, old: &str) -> String {
    let around = candidate(text, old).map_or(1, |near| near.line.saturating_sub(5).max(1));
    let lines = text.lines().skip(around - 1).take(FRESH_LINES);
    let shown: Vec<String> = lines.map(excerpt).collect();
    numbered(shown.iter().map(String::as_str), around)
}

/// A line, bounded for an error.
pub(crate) fn excerpt(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        None => line.to_owned(),
        Some((end, _)) => format!("{} …", line.get(..end).unwrap_or_default()),
    }
}

/// The place in a text that is nearest to what was looked for.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    line: usize,
    reason: Option<&'static str>,
}

/// A way in which texts differ that people and models do not see.
struct Lookalike {
    reason: &'static str,
    /// Takes the difference out of a text, keeping its lines.
    fold: fn(&str) -> String,
    /// Whether it is looked for in `old_string` alone.
    only_old: bool,
}

/// In the order of how sure each makes us; the last ones take out most.
const LOOKALIKES: &[Lookalike] = &[
    Lookalike {
        reason: "`old_string` has the line numbers of Read pasted into it; leave them out",
        fold: without_numbers,
        only_old: true,
    },
    Lookalike {
        reason: "the line endings differ: one side has a lone carriage return (\\r)",
        fold: without_returns,
        only_old: false,
    },
    Lookalike {
        reason: "they differ in blanks at the end of a line",
        fold: without_trailing_blanks,
        only_old: false,
    },
    Lookalike { reason: "they differ in tabs and spaces", fold: with_one_blank, only_old: false },
    Lookalike {
        reason: "they differ in look-alike characters (quotes, dashes, unusual blanks)",
        fold: with_plain_characters,
        only_old: false,
    },
    Lookalike {
        reason: "they differ in upper and lower case",
        fold: in_lower_case,
        only_old: false,
    },
    Lookalike {
        reason: "`old_string` has `\\n` or `\\\"` spelled out where the file has the character itself",
        fold: without_escapes,
        only_old: true,
    },
    Lookalike {
        reason: "they differ in blanks, look-alike characters and case",
        fold: all_of_it,
        only_old: false,
    },
];

fn candidate(text: &str, old: &str) -> Option<Candidate> {
    if let Some(start) = at_the_end(text, old) {
        let reason = "the file ends there without a line break; leave out the one at the end of \
                      `old_string`";
        return Some(Candidate { line: line_of(text, start), reason: Some(reason) });
    }
    let text = cut_text(text, SEARCHED);
    let invisible = LOOKALIKES.iter().find_map(|lookalike| {
        let fold = lookalike.fold;
        let old = fold(old);
        let text = if lookalike.only_old { Cow::Borrowed(text) } else { Cow::Owned(fold(text)) };
        let at = if old.trim().is_empty() { None } else { text.find(&old) }?;
        Some(Candidate { line: line_of(&text, at), reason: Some(lookalike.reason) })
    });
    invisible.or_else(|| nearest(text, old))
}

/// Where a text ends in what was looked for, but for a line break.
fn at_the_end(text: &str, old: &str) -> Option<usize> {
    let bare = old.strip_suffix('\n').filter(|bare| !bare.trim().is_empty())?;
    text.ends_with(bare).then(|| text.len() - bare.len())
}

/// The window of lines that shares most lines with what was looked for.
fn nearest(text: &str, old: &str) -> Option<Candidate> {
    let wanted: Vec<&str> = old.lines().map(str::trim).collect();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let anchor = wanted.iter().position(|line| !line.is_empty())?;
    let pairs = Pairs::of(wanted.get(anchor)?);
    let positions = (COMPARED / wanted.len()).min(LOOKED_AT).min(lines.len());
    let mut best: Option<(f64, usize)> = None;
    for at in 0..positions {
        let window = lines.get(at..).unwrap_or_default();
        let equal = window.iter().zip(&wanted).filter(|(a, b)| !a.is_empty() && a == b).count();
        let alike = window.get(anchor).map_or(0.0, |line| pairs.likeness(line));
        #[expect(clippy::cast_precision_loss, reason = "a count of lines is far below 2^52")]
        let score = equal as f64 + alike;
        if score >= ALIKE && best.is_none_or(|(most, _)| score > most) {
            best = Some((score, at));
        }
    }
    best.map(|(_, at)| Candidate { line: at + 1, reason: None })
}

/// The pairs of neighbouring characters of a line: how alike two lines are.
struct Pairs(std::collections::HashSet<(char, char)>);

impl Pairs {
    fn of(line: &str) -> Self {
        let line = excerpt(line).to_lowercase();
        Self(line.chars().zip(line.chars().skip(1)).collect())
    }

    fn likeness(&self, line: &str) -> f64 {
        let other = Self::of(line);
        let shared = self.0.intersection(&other.0).count();
        let total = self.0.len() + other.0.len();
        #[expect(clippy::cast_precision_loss, reason = "lines are cut before they are compared")]
        let likeness = if total == 0 { 0.0 } else { 2.0 * shared as f64 / total as f64 };
        likeness
    }
}

impl Candidate {
    fn describe(&self, text: &str, old: &str) -> String {
        let wanted = old.lines().count().max(1);
        let shown = wanted.min(SHOWN_LINES);
        let lines: Vec<String> =
            text.lines().skip(self.line - 1).take(shown).map(excerpt).collect();
        let more = if shown < wanted { "       …\n" } else { "" };
        let reason = self.reason.map_or_else(String::new, |reason| format!("{reason}\n"));
        let window: String =
            text.split_inclusive('\n').skip(self.line - 1).take(wanted + 1).collect();
        format!(
            "; the nearest text is\n{}{more}{reason}{}",
            numbered(lines.iter().map(String::as_str), self.line),
            first_difference(&window, old, self.line)
        )
    }
}

/// Names the first character at which a window, from its line on, differs.
fn first_difference(window: &str, old: &str, first_line: usize) -> String {
    let start = align(window, old);
    let there = window.get(start..).unwrap_or_default();
    let same: usize =
        there.chars().zip(old.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let before = window.get(..start + same).unwrap_or_default();
    let line = first_line + before.matches('\n').count();
    let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
    let in_file =
        name(there.get(same..).and_then(|rest| rest.chars().next()), "the end of the file");
    let in_old =
        name(old.get(same..).and_then(|rest| rest.chars().next()), "the end of `old_string`");
    format!(
        "first difference at line {line}, column {column}: the file has {in_file}, `old_string` has {in_old}"
    )
}

/// Where in the first line of a window the text most likely starts.
fn align(window: &str, old: &str) -> usize {
    if old.starts_with(char::is_whitespace) {
        return 0;
    }
    let line = window.lines().next().unwrap_or_default();
    let starts = line.char_indices().take(SHOWN_CHARS * 10);
    let shared = |start: usize| {
        let there = window.get(start..).unwrap_or_default();
        let pairs = there.chars().zip(old.chars()).take(SHOWN_CHARS);
        pairs.take_while(|(a, b)| plain(*a) == plain(*b)).count()
    };
    let mut best = (0, line.len() - line.trim_start().len());
    for (start, _) in starts {
        let shared = shared(start);
        // The first of the best.
        if shared > best.0 {
            best = (shared, start);
        }
    }
    best.1
}

fn name(character: Option<char>, none: &str) -> String {
    match character {
        None => none.to_owned(),
        Some('\n') => "a line break".to_owned(),
        Some('\t') => "a tab".to_owned(),
        Some('\r') => "a carriage return".to_owned(),
        Some(' ') => "a space".to_owned(),
        Some(c) if c.is_ascii_graphic() => format!("`{c}`"),
        Some(c) if c.is_control() || c.is_whitespace() => format!("U+{:04X}", u32::from(c)),
        Some(c) => format!("`{c}` (U+{:04X})", u32::from(c)),
    }
}

fn by_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.split('\n').map(change).collect::<Vec<_>>().join("\n")
}

fn without_numbers(text: &str) -> String {
    by_line(text, |line| {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = rest.len() < line.trim_start().len();
        let content = rest.strip_prefix(['\t', '→', '|', ':']).filter(|_| numbered);
        content.unwrap_or(line).to_owned()
    })
}

fn without_returns(text: &str) -> String {
    text.replace('\r', "")
}

fn without_trailing_blanks(text: &str) -> String {
    by_line(text, |line| line.trim_end().to_owned())
}

fn with_one_blank(text: &str) -> String {
    by_line(text, |line| {
        let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        words.join(" ")
    })
}

fn with_plain_characters(text: &str) -> String {
    text.chars().map(plain_form).collect()
}

fn in_lower_case(text: &str) -> String {
    text.to_lowercase()
}

fn without_escapes(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"")
}

fn all_of_it(text: &str) -> String {
    in_lower_case(&with_one_blank(&with_plain_characters(text)))
}

/// A character as it looks, whatever its case.
fn plain(character: char) -> char {
    plain_form(character).to_lowercase().next().unwrap_or(character)
}

/// The plain character that a character looks like.
const fn plain_form(character: char) -> char {
    match character {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' | '\u{00b4}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{00a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests;
