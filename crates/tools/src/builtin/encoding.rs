//! The encodings of text files: told from the bytes, kept on the way back.
//!
//! A byte-order mark tells UTF-16. Without one a file is UTF-8 if it can be, and
//! else in the old encoding that its bytes look like, provided that it can be
//! written back in it byte for byte. What is none of these is refused by name.

use std::{borrow::Cow, fmt};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use content_inspector::ContentType;
use encoding_rs::{Decoder, UTF_16BE, UTF_16LE};
use turnbuckle_errors::ErrorCode;

use super::question;
use crate::ToolError;

/// How much of a file is looked at to guess an old encoding, in bytes.
const SAMPLE: usize = 64 * 1024;

/// How the characters of a text file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
    /// One of the encodings from before Unicode.
    Old(&'static encoding_rs::Encoding),
}

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Old(encoding) => encoding.name(),
        }
    }

    /// The encoding that a byte-order mark tells, apart from UTF-8.
    pub(crate) fn of_mark(bytes: &[u8]) -> Option<Self> {
        match content_inspector::inspect(bytes) {
            ContentType::UTF_16LE => Some(Self::Utf16Le),
            ContentType::UTF_16BE => Some(Self::Utf16Be),
            _ => None,
        }
    }

    /// What decodes a file of this encoding piece by piece, its mark included;
    /// `None` for UTF-8.
    pub(crate) fn decoder(self) -> Option<Decoder> {
        Some(self.foreign()?.new_decoder_without_bom_handling())
    }

    /// The text in this encoding.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` that names the first character which it does not have.
    pub(crate) fn encode<'a>(self, path: &str, text: &'a str) -> Result<Cow<'a, [u8]>, ToolError> {
        let encoding = match self {
            Self::Utf8 => return Ok(Cow::Borrowed(text.as_bytes())),
            Self::Utf16Le => {
                return Ok(Cow::Owned(text.encode_utf16().flat_map(u16::to_le_bytes).collect()));
            }
            Self::Utf16Be => {
                return Ok(Cow::Owned(text.encode_utf16().flat_map(u16::to_be_bytes).collect()));
            }
            Self::Old(encoding) => encoding,
        };
        let (bytes, _, lacking) = encoding.encode(text);
        if !lacking {
            return Ok(bytes);
        }
        let lacks = |c: &char| encoding.encode(c.encode_utf8(&mut [0; 4])).2;
        let character = text.chars().find(lacks).map(String::from).unwrap_or_default();
        Err(ToolError::new(
            ErrorCode::InvalidArgument,
            format!(
                "`{path}` is in {}, which has no `{}`; write it in characters that it has, or \
                 convert the file to UTF-8 first (by Bash)",
                self.name(),
                question::whole(&character)
            ),
        ))
    }

    fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self.foreign() {
            None => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Some(encoding) => encoding.decode_without_bom_handling_and_without_replacement(bytes),
        }
    }

    fn foreign(self) -> Option<&'static encoding_rs::Encoding> {
        match self {
            Self::Utf8 => None,
            Self::Utf16Le => Some(UTF_16LE),
            Self::Utf16Be => Some(UTF_16BE),
            Self::Old(encoding) => Some(encoding),
        }
    }
}

/// Why bytes are no text that can be read and written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotText {
    Binary,
    Utf32,
    /// It has a mark of UTF-16, and what follows is not that.
    BrokenUtf16,
    /// Mostly UTF-8, with bytes that are not, the first ones at this line.
    BrokenUtf8(usize),
    /// Probably in this encoding, in which it cannot be written back exactly.
    Inexact(&'static str),
}

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binary => f.write_str("binary"),
            Self::Utf32 => f.write_str("UTF-32 text"),
            Self::BrokenUtf16 => f.write_str("broken UTF-16"),
            Self::BrokenUtf8(line) => write!(f, "UTF-8 with broken bytes (first at line {line})"),
            Self::Inexact(name) => {
                write!(f, "in an old encoding, probably {name}, and cannot be kept byte for byte")
            }
        }
    }
}

impl NotText {
    /// The refusal of content that cannot be handled.
    pub(crate) fn refusal(self, path: &str) -> ToolError {
        ToolError::new(
            ErrorCode::ToolBinaryContent,
            format!("`{path}` is {self}; use a program made for it (by Bash)"),
        )
    }
}

/// Reads the text out of a whole file; a byte-order mark stays as its first
/// character.
///
/// # Errors
///
/// [`NotText`]; what is returned is written back byte for byte by
/// [`Encoding::encode`].
pub(crate) fn decode(bytes: &[u8]) -> Result<(Cow<'_, str>, Encoding), NotText> {
    if let Some(encoding) = Encoding::of_mark(bytes) {
        let text = encoding.decode(bytes).ok_or(NotText::BrokenUtf16)?;
        return if text.contains('\0') { Err(NotText::Binary) } else { Ok((text, encoding)) };
    }
    not_text(bytes)?;
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok((Cow::Borrowed(text), Encoding::Utf8));
    }
    let mut survey = Survey::default();
    survey.push(bytes);
    let encoding = survey.finish()?;
    let inexact = NotText::Inexact(encoding.name());
    let text = encoding.decode(bytes).ok_or(inexact)?;
    let back = encoding.encode("", &text).map_err(|_| inexact)?;
    if *back == *bytes { Ok((text, encoding)) } else { Err(inexact) }
}

/// Refuses what is binary by its first bytes, or holds a NUL.
///
/// # Errors
///
/// [`NotText::Binary`] and [`NotText::Utf32`].
pub(crate) fn not_text(bytes: &[u8]) -> Result<(), NotText> {
    match content_inspector::inspect(bytes) {
        ContentType::UTF_32LE | ContentType::UTF_32BE => Err(NotText::Utf32),
        ContentType::BINARY => Err(NotText::Binary),
        _ if memchr::memchr(0, bytes).is_some() => Err(NotText::Binary),
        _ => Ok(()),
    }
}

/// Tells the encoding of bytes without a mark of UTF-16 that stream by.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// The first bytes of a character that goes on in the next piece.
    cut: Vec<u8>,
    lines: usize,
    /// Characters of more than one byte, and places that are no UTF-8.
    long: usize,
    broken: usize,
    first_broken: Option<usize>,
    controls: bool,
    /// What follows the first byte over 127: the same however the bytes are cut.
    sample: Vec<u8>,
}

impl Survey {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.take_sample(bytes);
        self.controls |= bytes.iter().any(|byte| matches!(byte, 0x01..=0x06 | 0x0e..=0x1a));
        let mut data = std::mem::take(&mut self.cut);
        data.extend_from_slice(bytes);
        let mut rest = data.as_slice();
        loop {
            let (valid, error) = match std::str::from_utf8(rest) {
                Ok(_) => (rest, None),
                Err(error) => (rest.get(..error.valid_up_to()).unwrap_or_default(), Some(error)),
            };
            self.lines += memchr::memchr_iter(b'\n', valid).count();
            self.long += valid.iter().filter(|byte| **byte >= 0xc0).count();
            let Some(error) = error else { break };
            let behind = rest.get(valid.len()..).unwrap_or_default();
            let Some(length) = error.error_len() else {
                self.cut = behind.to_vec();
                break;
            };
            self.break_here();
            rest = behind.get(length..).unwrap_or_default();
        }
    }

    /// The encoding.
    ///
    /// # Errors
    ///
    /// [`NotText::Binary`], and [`NotText::BrokenUtf8`] where too much is UTF-8
    /// for an old encoding.
    pub(crate) fn finish(mut self) -> Result<Encoding, NotText> {
        if !self.cut.is_empty() {
            self.break_here();
        }
        match self.first_broken {
            None => Ok(Encoding::Utf8),
            Some(_) if self.controls => Err(NotText::Binary),
            // By chance, old encodings have a few; by far most are no UTF-8.
            Some(line) if 2 * self.long > self.broken => Err(NotText::BrokenUtf8(line)),
            Some(_) => {
                let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
                detector.feed(&self.sample, true);
                Ok(Encoding::Old(detector.guess(None, Utf8Detection::Deny)))
            }
        }
    }

    fn break_here(&mut self) {
        self.broken += 1;
        self.first_broken.get_or_insert(self.lines + 1);
    }

    fn take_sample(&mut self, bytes: &[u8]) {
        let start = match self.sample.is_empty() {
            true => bytes.iter().position(|byte| *byte >= 0x80).unwrap_or(bytes.len()),
            false => 0,
        };
        let room = SAMPLE - self.sample.len();
        self.sample.extend(bytes.iter().skip(start).take(room));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Old texts as people wrote them, by the encoding that they are in.
    const OLD: &[(&str, &str)] = &[
        ("windows-1252", "Grüße aus Köln – das ist schön für die Bürger.\n"),
        ("windows-1251", "Съешь же ещё этих мягких французских булок, да выпей чаю.\n"),
        ("Shift_JIS", "日本語のテキストファイルを編集します。ソース表示、十分。\n"),
        ("GBK", "这是一个用来测试编码检测的中文文本文件，内容足够长。\n"),
        ("EUC-KR", "이것은 인코딩 검출을 시험하기 위한 한국어 문장입니다.\n"),
    ];

    fn old(name: &str, text: &str) -> Vec<u8> {
        encoding_rs::Encoding::for_label(name.as_bytes()).unwrap().encode(text).0.into_owned()
    }

    #[test]
    fn old_encodings_are_told_and_written_back_byte_for_byte() {
        for (name, text) in OLD {
            let bytes = [b"plain line\n".as_slice(), &old(name, &text.repeat(3))].concat();
            let (read, encoding) = decode(&bytes).unwrap();
            assert_eq!((encoding.name(), read.lines().nth(1)), (*name, Some(text.trim_end())));
            assert_eq!(*encoding.encode("", &read).unwrap(), *bytes);
        }
        let (read, encoding) = decode(b"const x = 1;\n// caf\xe9 note\n").unwrap();
        assert_eq!((&*read, encoding.name()), ("const x = 1;\n// café note\n", "windows-1252"));
    }

    #[test]
    fn marks_tell_utf_16_in_both_orders() {
        let text = "\u{feff}grün 😀\r\n";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (bytes, encoding) in [(little, Encoding::Utf16Le), (big, Encoding::Utf16Be)] {
            assert_eq!(decode(&bytes).unwrap(), (Cow::from(text), encoding));
            assert_eq!(*encoding.encode("", text).unwrap(), *bytes);
            assert_eq!(decode(&bytes[..bytes.len() - 1]), Err(NotText::BrokenUtf16));
        }
        assert_eq!(decode(b"\xff\xfe\x00\xd8a\x00"), Err(NotText::BrokenUtf16));
    }

    #[test]
    fn what_is_no_text_is_named() {
        for (bytes, what) in [
            (b"a\0b".as_slice(), NotText::Binary),
            (b"\x1f\x8b\x08\x01\xff\xfe\x02", NotText::Binary),
            (b"\x89PNG\r\n\x1a\n", NotText::Binary),
            (b"\xff\xfe\0\0a\0\0\0", NotText::Utf32),
            (b"\xff\xfea\0\0\0b\0", NotText::Binary),
        ] {
            assert_eq!(decode(bytes), Err(what), "{bytes:?}");
        }
        let broken = ["grün\ngrün\n".as_bytes(), b"\xfc\n"].concat();
        assert_eq!(decode(&broken), Err(NotText::BrokenUtf8(3)));
        let late = [vec![b'a'; 5000], vec![0]].concat();
        assert_eq!(decode(&late), Err(NotText::Binary));
        assert_eq!(decode(b"\xef\xbb\xbfgr\xc3\xbcn").unwrap().1, Encoding::Utf8);
    }

    #[test]
    fn a_character_that_an_encoding_lacks_is_named() {
        let encoding = Encoding::Old(encoding_rs::WINDOWS_1252);
        let error = encoding.encode("a", "ok → no").unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
        assert!(error.text.starts_with("`a` is in windows-1252, which has no `→`;"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_back_byte_for_byte(bytes: Vec<u8>) {
            if let Ok((text, encoding)) = decode(&bytes) {
                let back = encoding.encode("", &text).unwrap();
                prop_assert_eq!(&*back, bytes.as_slice());
            }
        }

        #[test]
        fn a_survey_is_the_same_however_the_bytes_are_cut(
            bytes in prop::collection::vec(prop::sample::select(b"a\n\xc3\xbc\xe2\x82\xac\xff".as_slice()), 0..40),
            size in 1_usize..7,
        ) {
            let mut whole = Survey::default();
            whole.push(&bytes);
            let mut pieces = Survey::default();
            bytes.chunks(size).for_each(|piece| pieces.push(piece));
            prop_assert_eq!(whole.finish(), pieces.finish());
        }
    }
}
