//! JSON whose end is missing: closed where it broke off, so that what came counts.

use serde_json::Value;

/// Nesting beyond this is no error body.
const MAX_OPEN: usize = 64;

/// Reads `text` as JSON, whole or cut off somewhere; `None` if it is something else.
pub(super) fn json(text: &str) -> Option<Value> {
    match serde_json::from_str(text) {
        Ok(value) => Some(value),
        Err(error) if error.is_eof() && text.starts_with(['{', '[']) => {
            serde_json::from_str(&closed(text)?).ok()
        }
        Err(_) => None,
    }
}

/// `text` up to where it can be closed, with its closers.
///
/// A value that is a text keeps what came of it; any other torn part goes.
fn closed(text: &str) -> Option<String> {
    let mut scan = Scan::default();
    for (at, byte) in text.bytes().enumerate() {
        scan.step(at, byte)?;
    }
    let (mut whole, open) = match scan.string_value() {
        // A `\` at the end began an escape that never came.
        Some(start) => (format!("{}\"", unescaped(text, start)?), scan.open.len()),
        None => (text.get(..scan.safe)?.to_owned(), scan.safe_open),
    };
    whole.extend(scan.open.iter().take(open).rev().map(|closer| char::from(*closer)));
    Some(whole)
}

/// `text` without the escape sequence that its end may have torn.
fn unescaped(text: &str, string_start: usize) -> Option<&str> {
    let inside = text.get(string_start..)?;
    let tail = inside.len().saturating_sub(6);
    let tail = inside.get(inside.floor_char_boundary(tail)..)?;
    let torn = tail.rfind('\\').filter(|&at| {
        let backslashes = inside
            .get(..inside.len() - tail.len() + at + 1)
            .map_or(0, |upto| upto.bytes().rev().take_while(|byte| *byte == b'\\').count());
        let escape = tail.get(at + 1..).unwrap_or_default();
        backslashes % 2 == 1 && (escape.is_empty() || (escape.starts_with('u') && escape.len() < 5))
    });
    text.get(..text.len() - torn.map_or(0, |at| tail.len() - at))
}

/// Where a linear walk over JSON text stands.
#[derive(Default)]
struct Scan {
    /// The closers that are still owed, outermost first.
    open: Vec<u8>,
    /// The start of the text we are inside of.
    string: Option<usize>,
    escaped: bool,
    /// Whether what comes next is a value: after `:`, or in a list.
    value_next: bool,
    /// How much may be kept with nothing torn, and how many closers it owes.
    safe: usize,
    safe_open: usize,
}

impl Scan {
    fn step(&mut self, at: usize, byte: u8) -> Option<()> {
        if self.string.is_some() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.string = None,
                _ => {}
            }
            return Some(());
        }
        match byte {
            b'"' => self.string = Some(at),
            b'{' | b'[' => {
                if self.open.len() == MAX_OPEN {
                    return None;
                }
                self.open.push(if byte == b'{' { b'}' } else { b']' });
                self.value_next = byte == b'[';
                self.is_safe(at + 1);
            }
            b'}' | b']' => {
                self.open.pop();
                self.is_safe(at + 1);
            }
            b',' => {
                self.value_next = self.open.last() == Some(&b']');
                self.is_safe(at);
            }
            b':' => self.value_next = true,
            _ => {}
        }
        Some(())
    }

    fn is_safe(&mut self, at: usize) {
        self.safe = at;
        self.safe_open = self.open.len();
    }

    /// The start of the torn text, if it is a value and no key.
    fn string_value(&self) -> Option<usize> {
        self.string.filter(|_| self.value_next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_came_before_the_tear_counts() {
        for (torn, expected) in [
            (
                r#"{"error":{"type":"overloaded_error","mess"#,
                json!({"error":{"type":"overloaded_error"}}),
            ),
            (r#"{"error":{"message":"too ma"#, json!({"error":{"message":"too ma"}})),
            (r#"{"error":{"message":"a\"#, json!({"error":{"message":"a"}})),
            (r#"{"error":{"message":"a\\"#, json!({"error":{"message":"a\\"}})),
            (r#"{"error":{"message":"a\u00e"#, json!({"error":{"message":"a"}})),
            (r#"{"error":{"message":"\\\u00e9"#, json!({"error":{"message":"\\é"}})),
            (
                r#"[{"error":{"code":429,"status":"RES"#,
                json!([{"error":{"code":429,"status":"RES"}}]),
            ),
            (r#"{"code":42"#, json!({})),
            (r#"{"a":[1,2"#, json!({"a":[1]})),
            (r#"{"a":{"b":1},"c"#, json!({"a":{"b":1}})),
            (r#"{"a":1,"#, json!({"a":1})),
            ("{", json!({})),
        ] {
            assert_eq!(json(torn), Some(expected), "{torn}");
        }
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for text in ["upstream failed", "{not json", r#"{"a":1}}"#, "<html>", r#"{"a" "b"#] {
            assert_eq!(json(text), None, "{text}");
        }
        assert_eq!(json(&"[".repeat(MAX_OPEN + 1)), None);
    }

    proptest! {
        #[test]
        fn a_cut_anywhere_in_an_object_still_reads(
            message in any::<String>(), code in any::<u32>(), cut in 1_usize..400,
        ) {
            let whole = json!({"list": [1, {"deep": message}], "message": message, "code": code}).to_string();
            let torn = &whole[..whole.floor_char_boundary(cut.min(whole.len()))];
            prop_assert!(json(torn).is_some_and(|value| value.is_object()), "{torn}");
        }
    }
}
