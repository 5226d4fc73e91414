//! Text for models: bounds, binary content, near names, diffs.

use std::{borrow::Cow, time::Duration};

use similar::TextDiff;
use turnbuckle_errors::ErrorCode;

use super::workspace::Workspace;
use crate::ToolError;

/// The longest line that is shown, in characters.
pub(crate) const LINE_CHARS: usize = 2000;
/// How long a diff may be computed before it settles for a coarser one.
const DIFF_TIME: Duration = Duration::from_millis(200);
/// The largest diff for people, in bytes.
const DIFF_BYTES: usize = 64 * 1024;
/// Texts over this size are not compared line by line, in bytes.
pub(crate) const DIFF_INPUT: usize = 4 * 1024 * 1024;
/// How near a name must be to be worth naming (1 is equal).
const NEAR: f64 = 0.75;
/// How many near names are named.
const NEAR_NAMES: usize = 5;
/// How many names of a folder are compared.
const NAMES_LOOKED_AT: usize = 5000;

/// A line cut to [`LINE_CHARS`], saying how much was cut.
pub(crate) fn cut_line(line: &str) -> Cow<'_, str> {
    let Some((end, _)) = line.char_indices().nth(LINE_CHARS) else {
        return Cow::Borrowed(line);
    };
    let (head, rest) = line.split_at(end);
    Cow::Owned(format!("{head} … ({} more characters of this line)", rest.chars().count()))
}

/// Text cut to at most `max` bytes at the end of a line, or else of a character.
pub(crate) fn cut_text(text: &str, max: usize) -> &str {
    let head = text.get(..text.floor_char_boundary(max)).unwrap_or(text);
    if head.len() == text.len() {
        return text;
    }
    head.rfind('\n').and_then(|end| head.get(..=end)).unwrap_or(head)
}

/// Numbered lines as `cat -n` writes them, from line `first` on.
pub(crate) fn numbered<'a>(lines: impl Iterator<Item = &'a str>, first: usize) -> String {
    lines.zip(first..).map(|(line, number)| format!("{number:>6}\t{}\n", cut_line(line))).collect()
}

/// Refuses a NUL in a text that goes into a file, which would make it binary.
///
/// # Errors
///
/// `INVALID_ARGUMENT` that names the argument.
pub(crate) fn without_nul(tool: &str, name: &str, text: &str) -> Result<(), ToolError> {
    if !text.contains('\0') {
        return Ok(());
    }
    let text = format!("{tool}: `{name}` holds a NUL character, which no text file has; remove it");
    Err(ToolError::new(ErrorCode::InvalidArgument, text))
}

/// The error for a file that is not there, with names that are near to it.
pub(crate) fn missing(workspace: &Workspace, path: &str, advice: &str) -> ToolError {
    let near = near_names(workspace, path);
    let hint = if near.is_empty() {
        String::new()
    } else {
        format!("; near names there: `{}`", near.join("`, `"))
    };
    ToolError::new(ErrorCode::ToolFailed, format!("there is no file `{path}`{hint}{advice}"))
}

fn near_names(workspace: &Workspace, path: &str) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    let Ok(entries) = workspace.dir().read_dir(folder) else { return Vec::new() };
    let wanted = name.to_lowercase();
    let mut near: Vec<(f64, String)> = entries
        .take(NAMES_LOOKED_AT)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(|name| (likeness(&wanted, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let whole = |name| if folder == "." { name } else { format!("{folder}/{name}") };
    near.into_iter().take(NEAR_NAMES).map(|(_, name)| whole(name)).collect()
}

/// How alike two names are, with or without their endings.
fn likeness(a: &str, b: &str) -> f64 {
    let stem = |name: &str| name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    let stems = if stem(a) == stem(b) { 0.9 } else { 0.0 };
    strsim::normalized_damerau_levenshtein(a, b).max(stems)
}

/// A unified diff, bounded in time and size.
pub(crate) fn diff(path: &str, old: &str, new: &str) -> String {
    bounded_diff(&format!("a/{path}"), &format!("b/{path}"), old, new, DIFF_BYTES)
}

/// A unified diff with its own names and bound.
pub(crate) fn bounded_diff(
    old_name: &str,
    new_name: &str,
    old: &str,
    new: &str,
    bytes: usize,
) -> String {
    if old.len().max(new.len()) > DIFF_INPUT {
        return format!("--- {old_name}\n+++ {new_name}\n(too large to compare)\n");
    }
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, new);
    let text = diff.unified_diff().context_radius(3).header(old_name, new_name).to_string();
    let cut = cut_text(&text, bytes);
    if cut.len() == text.len() {
        return text;
    }
    format!("{cut}(the diff goes on: {} of {} bytes shown)\n", cut.len(), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_says_how_much_and_never_splits_a_character() {
        let line = "ä".repeat(LINE_CHARS + 3);
        let cut = cut_line(&line);
        assert_eq!(cut, format!("{} … (3 more characters of this line)", "ä".repeat(LINE_CHARS)));
        assert_eq!(cut_line("short"), "short");
        assert_eq!(cut_text("one\ntwo\n", 6), "one\n");
        assert_eq!(cut_text("äöü", 3), "ä");
        assert_eq!(cut_text("one", 3), "one");
    }

    #[test]
    fn a_diff_is_bounded() {
        let new: String = (0..1000).map(|number| format!("{number}\n")).collect();
        let text = bounded_diff("old", "new", "", &new, 100);
        assert!(text.starts_with("--- old\n+++ new\n@@"), "{text}");
        assert!(text.len() < 200 && text.contains("the diff goes on: "), "{text}");
    }
}
