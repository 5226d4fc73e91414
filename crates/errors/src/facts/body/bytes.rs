//! Bytes to text, whatever the headers claim they are.

use std::borrow::Cow;

/// How many characters tell text from something else.
const SAMPLE_CHARS: usize = 1024;

/// Reads `raw` as text: by its byte-order mark, as UTF-8 where it is that, then
/// as what `content_type` names, then as Latin-1. `None` if it is no text.
pub(super) fn decode<'a>(raw: &'a [u8], content_type: Option<&str>) -> Option<Cow<'a, str>> {
    let charset = content_type.and_then(charset).unwrap_or_default();
    let text = match raw {
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        // A UTF-16 text without mark shows by its zero bytes.
        [0, first, ..] if *first != 0 => utf16(raw, u16::from_be_bytes),
        [first, 0, ..] if *first != 0 => utf16(raw, u16::from_le_bytes),
        _ => match utf8(raw) {
            Some(text) => Cow::Borrowed(text),
            None if charset.starts_with("utf-16") => utf16(raw, u16::from_be_bytes),
            None => Cow::Owned(raw.iter().map(|&byte| char::from(byte)).collect()),
        },
    };
    is_text(&text).then_some(text)
}

/// Whether `text` is written for reading: hardly a control character or a
/// character that could not be decoded.
pub(super) fn is_text(text: &str) -> bool {
    let sample = text.chars().take(SAMPLE_CHARS);
    let (mut all, mut strange) = (0_usize, 0_usize);
    for c in sample {
        all += 1;
        strange += usize::from(is_strange(c));
    }
    strange * 20 <= all
}

fn is_strange(c: char) -> bool {
    c == '\u{fffd}' || (c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}' | '\u{1b}'))
}

/// UTF-8, also when the cut at the end went through a character.
fn utf8(raw: &[u8]) -> Option<&str> {
    match std::str::from_utf8(raw) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(raw.get(..error.valid_up_to())?).ok()
        }
        Err(_) => None,
    }
}

fn utf16(raw: &[u8], unit: fn([u8; 2]) -> u16) -> Cow<'static, str> {
    let units: Vec<u16> = raw.as_chunks::<2>().0.iter().map(|pair| unit(*pair)).collect();
    Cow::Owned(String::from_utf16_lossy(&units))
}

/// The `charset` of a content type, in lower case.
fn charset(content_type: &str) -> Option<String> {
    let parameters = content_type.split(';').skip(1).filter_map(|part| part.split_once('='));
    let named = parameters.map(|(name, value)| (name.trim().to_ascii_lowercase(), value));
    let (_, value) = named.into_iter().find(|(name, _)| name == "charset")?;
    Some(value.trim().trim_matches('"').to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &[u8], content_type: Option<&str>, expected: Option<&str>) {
        assert_eq!(decode(raw, content_type).as_deref(), expected, "{raw:?} {content_type:?}");
    }

    fn utf16_bytes(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    #[test]
    fn marks_and_zero_bytes_tell_the_encoding() {
        check(b"\xEF\xBB\xBF{}", None, Some("{}"));
        let little = utf16_bytes("überlastet", u16::to_le_bytes);
        let big = utf16_bytes("überlastet", u16::to_be_bytes);
        check(&[&b"\xFF\xFE"[..], &little].concat(), Some("text/plain"), Some("überlastet"));
        check(&[&b"\xFE\xFF"[..], &big].concat(), None, Some("überlastet"));
        check(&utf16_bytes("{\"error\":1}", u16::to_le_bytes), None, Some("{\"error\":1}"));
        check(&utf16_bytes("{\"error\":1}", u16::to_be_bytes), None, Some("{\"error\":1}"));
    }

    #[test]
    fn a_wrong_charset_does_not_spoil_the_text() {
        check("überlastet".as_bytes(), Some("text/plain; charset=iso-8859-1"), Some("überlastet"));
        check("überlastet".as_bytes(), Some("text/plain; charset=utf-16"), Some("überlastet"));
        check(b"\xFCberlastet", Some("text/plain; Charset=\"UTF-8\""), Some("überlastet"));
        let unmarked = utf16_bytes("余额不足，请充值", u16::to_be_bytes);
        check(&unmarked, Some("text/plain;charset=UTF-16"), Some("余额不足，请充值"));
    }

    #[test]
    fn a_character_cut_at_the_end_is_left_out() {
        check(&"für".as_bytes()[..2], None, Some("f"));
    }

    #[test]
    fn bytes_that_are_no_text_give_none() {
        check(&[0x1F, 0x8B, 8, 0, 1, 2, 3, 0x9C, 0xF1, 0x02], Some("application/json"), None);
        check(&[0x28, 0xB5, 0x2F, 0xFD, 4, 0, 0x81, 0x90, 6], None, None);
        check(&[0; 64], None, None);
        assert!(is_text("one \u{fffd} in a long enough line of text"));
        assert!(!is_text("\u{1f}\u{fffd}\u{8}\u{0}\u{0}abc"));
    }
}
