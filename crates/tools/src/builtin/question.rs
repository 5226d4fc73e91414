//! What a person is asked to permit: all that matters of the input, in a form
//! that hides nothing.

use std::fmt::Write as _;

use serde_json::Value;

/// How much of a text is shown, in bytes; beyond it half of that from each end.
const SHOWN: usize = 8 * 1024;
/// How much of the content of a file is shown, in bytes.
const BEGIN: usize = 2 * 1024;
/// How many lines of the content of a file are shown.
const BEGIN_LINES: usize = 20;

/// A text of the input, `None` if it is not there.
pub(crate) fn text<'a>(input: &'a Value, name: &str) -> Option<&'a str> {
    input.get(name).and_then(Value::as_str)
}

/// A path of the input, on one line.
pub(crate) fn path(input: &Value) -> String {
    text(input, "path").map_or_else(|| "?".to_owned(), line)
}

/// A text on one line.
pub(crate) fn line(text: &str) -> String {
    visible(text, false, SHOWN)
}

/// The whole text up to 8 KiB, beyond it the head and the tail.
pub(crate) fn whole(text: &str) -> String {
    visible(text, true, SHOWN)
}

/// The same with each line marked, so that no line can pass for one of ours.
pub(crate) fn marked(mark: &str, text: &str) -> String {
    whole(text).lines().map(|line| format!("\n{mark}{line}")).collect()
}

/// The first lines of a content, marked, and how much is not shown.
pub(crate) fn begin(mark: &str, content: &str) -> String {
    let ends = content.match_indices('\n').map(|(at, _)| at + 1);
    let lines =
        ends.take(BEGIN_LINES).last().filter(|_| content.lines().nth(BEGIN_LINES).is_some());
    let end = content.floor_char_boundary(lines.unwrap_or(content.len()).min(BEGIN));
    let (shown, hidden) = content.split_at(end);
    let mut text = marked(mark, shown);
    if !hidden.is_empty() {
        let _ = write!(text, "\n{}", not_shown(hidden));
    }
    text
}

/// How large a text is.
pub(crate) fn size(text: &str) -> String {
    let count = |count: usize, what| {
        if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
    };
    format!("{}, {}", count(text.lines().count(), "line"), count(text.len(), "byte"))
}

fn not_shown(hidden: &str) -> String {
    format!("… {} characters not shown …", hidden.chars().count())
}

fn visible(text: &str, lines: bool, max: usize) -> String {
    if text.len() <= max {
        return plain(text, lines);
    }
    let (head, rest) = text.split_at(text.floor_char_boundary(max / 2));
    let (hidden, tail) = rest.split_at(rest.ceil_char_boundary(rest.len() - max / 2));
    let around = if lines { "\n" } else { " " };
    let remark = not_shown(hidden);
    format!("{}{around}{remark}{around}{}", plain(head, lines), plain(tail, lines))
}

/// Characters that a screen does not show, or by which it shows others elsewhere,
/// are spelled out.
fn plain(text: &str, lines: bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if (lines && matches!(character, '\n' | '\t')) || !is_hidden(character) {
            plain.push(character);
        } else {
            plain.extend(character.escape_default());
        }
    }
    plain
}

/// Controls, and marks without a width: those of direction among them.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}')
        || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(character, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests;
