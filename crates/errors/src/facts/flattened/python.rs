//! A Python `dict` as its `repr` prints it: what the SDKs of OpenAI and Anthropic
//! for Python put behind `Error code: 429 - `.

use serde_json::Value;

/// Beyond this no SDK prints an error.
const MAX_BYTES: usize = 64 * 1024;

/// Reads the dict that `text` begins with; `None` if it is something else.
pub(super) fn dict(text: &str) -> Option<Value> {
    if !text.starts_with("{'") {
        return None;
    }
    let text = text.get(..text.floor_char_boundary(MAX_BYTES))?;
    let json = as_json(text)?;
    serde_json::Deserializer::from_str(&json).into_iter::<Value>().next()?.ok()
}

/// The same literal with JSON's quotes and words.
fn as_json(text: &str) -> Option<String> {
    let mut json = String::with_capacity(text.len());
    let (mut rest, mut open) = (text, 0_usize);
    while let Some(c) = rest.chars().next() {
        let tail = rest.get(c.len_utf8()..)?;
        rest = match c {
            '\'' | '"' => quoted(tail, c, &mut json)?,
            'N' | 'T' | 'F' => {
                let words = [("None", "null"), ("True", "true"), ("False", "false")];
                let (word, same) = words.iter().find(|(word, _)| rest.starts_with(word))?;
                json.push_str(same);
                rest.get(word.len()..)?
            }
            c => {
                json.push(c);
                tail
            }
        };
        match c {
            '{' | '[' => open += 1,
            '}' | ']' if open == 1 => return Some(json),
            '}' | ']' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Copies a text up to its closing `quote`; returns what follows it.
fn quoted<'a>(text: &'a str, quote: char, json: &mut String) -> Option<&'a str> {
    json.push('"');
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => {
                json.push('"');
                return text.get(at + c.len_utf8()..);
            }
            '"' => json.push_str("\\\""),
            '\\' => match chars.next()?.1 {
                '\'' => json.push('\''),
                // `\x1b`: the number is left out, the text around it stays.
                'x' => json.push('?'),
                escaped => json.extend(['\\', escaped]),
            },
            c if c.is_control() => json.push(' '),
            c => json.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_python_prints_is_read() {
        for (printed, expected) in [
            (
                "{'error': {'message': 'no credit', 'type': 'insufficient_quota', 'param': None}}",
                json!({"error": {"message": "no credit", "type": "insufficient_quota", "param": null}}),
            ),
            (
                r#"{'message': "it's \"late\"", 'ok': False, 'yes': True, 'n': [1, 2.5]}"#,
                json!({"message": "it's \"late\"", "ok": false, "yes": true, "n": [1, 2.5]}),
            ),
            (r"{'a': 'it\'s\n\x1b \\ end'}", json!({"a": "it's\n?1b \\ end"})),
            (r#"{'a': 'say "x"'} and more"#, json!({"a": "say \"x\""})),
            ("{'a': '余额不足'}", json!({"a": "余额不足"})),
        ] {
            assert_eq!(dict(printed), Some(expected), "{printed}");
        }
    }

    #[test]
    fn what_is_no_dict_is_none() {
        for text in ["{'a': 'torn", "{'a'", "{\"a\": 1}", "{'a': Nothing}", "'a'", "", "{'a': 1"] {
            assert_eq!(dict(text), None, "{text}");
        }
    }
}
