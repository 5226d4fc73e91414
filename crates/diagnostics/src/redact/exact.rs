//! The spellings of a known secret.
//!
//! Case does not matter in the search, so `%2f` and `%2F`, hex of both cases and
//! a value that a server has upper-cased are all found.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use super::MASK;

/// Known secrets shorter than this are too likely to be ordinary words: they go
/// in headers and URLs only.
pub(super) const MIN_BYTES: usize = 8;

/// From this length on the longest spellings (every character escaped) are left out.
const MANY_BYTES: usize = 512;

/// A line of a secret with several lines counts alone from this length on.
const MIN_LINE_BYTES: usize = 16;

/// One spelling of a known secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Needle {
    pub(super) text: String,
    /// Goes in headers and URLs only.
    pub(super) short: bool,
    /// The base64 character before holds bits of the secret.
    pub(super) shares_first: bool,
    /// The base64 character after holds bits of the secret.
    pub(super) shares_last: bool,
}

/// All spellings of all `secrets`, each once.
pub(super) fn needles<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Vec<Needle> {
    let mut all = BTreeSet::new();
    for secret in secrets {
        let value = secret.trim();
        if !value.is_empty() {
            spellings(value, &mut all);
        }
    }
    // What stands in the mask itself would be masked for ever.
    all.retain(|needle| !MASK.contains(&needle.text.to_ascii_lowercase()));
    all.into_iter().collect()
}

fn spellings(value: &str, all: &mut BTreeSet<Needle>) {
    let short = value.len() < MIN_BYTES;
    let mut add = |text: String| {
        if !text.is_empty() {
            all.insert(Needle { text, short, shares_first: false, shares_last: false });
        }
    };
    for kept in PERCENT_KEPT {
        let encoded = percent(value, |byte| kept.contains(&byte));
        add(encoded.replace("%20", "+"));
        add(encoded);
    }
    add(value.to_owned());
    if short {
        return;
    }
    add(without_controls(value));
    add(html(value));
    for line in value.lines().map(str::trim) {
        if line.len() >= MIN_LINE_BYTES && line.len() < value.len() && !line.starts_with("-----") {
            add(line.to_owned());
        }
    }
    for escaped in JSON_ESCAPED {
        let ascii = json(value, escaped, true);
        // JSON inside a JSON string, as gateways wrap the body of another server.
        add(ascii.replace('\\', "\\\\").replace('"', "\\\""));
        add(ascii);
        add(json(value, escaped, false));
    }
    add(hex(value.as_bytes()));
    if value.len() <= MANY_BYTES {
        add(percent(value, |_| false));
        add(value
            .encode_utf16()
            .fold(String::new(), |text, unit| text + &format!("\\u{unit:04x}")));
    }
    for needle in base64(value.as_bytes()) {
        all.insert(Needle { text: needle.text.replace('+', "-").replace('/', "_"), ..needle });
        all.insert(needle);
    }
}

/// What encoders leave alone: RFC 3986 unreserved, `encodeURIComponent`, forms,
/// `encodeURI`, and the sets for paths and queries of the URL standard.
const PERCENT_KEPT: &[&[u8]] = &[
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!*'()",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._*",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!*'();/?:@&=+$,#",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!*'();/:@&=+$,%[]|^\\",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!*();/?:@&=+$,%[]|^\\`{}",
];

fn percent(value: &str, keep: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(value.len() * 3);
    for byte in value.bytes() {
        if keep(byte) {
            encoded.push(char::from(byte));
        } else {
            push(&mut encoded, format_args!("%{byte:02x}"));
        }
    }
    encoded
}

/// What encoders escape beyond the need: nothing, PHP, Go, .NET.
const JSON_ESCAPED: &[&[char]] = &[
    &[],
    &['/'],
    &['<', '>', '&'],
    &['<', '>', '&', '+', '\'', '`', '"'],
    &['<', '>', '&', '\'', '='],
];

fn json(value: &str, beyond: &[char], ascii: bool) -> String {
    let mut escaped = String::with_capacity(value.len() * 2);
    for c in value.chars() {
        match c {
            '/' if beyond.contains(&'/') => escaped.push_str("\\/"),
            c if beyond.contains(&c) || (ascii && !c.is_ascii()) => push_units(&mut escaped, c),
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            c if c.is_ascii_control() => push_units(&mut escaped, c),
            c => escaped.push(c),
        }
    }
    escaped
}

fn push_units(text: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        push(text, format_args!("\\u{unit:04x}"));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        push(&mut text, format_args!("{byte:02x}"));
        text
    })
}

fn html(value: &str) -> String {
    let escaped = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace('\'', "&#39;")
}

/// As `SafeText` cleans text before it asks for redaction.
fn without_controls(value: &str) -> String {
    let spaced = value.replace(['\n', '\r', '\t'], " ");
    spaced.chars().filter(|c| !c.is_control()).collect()
}

/// The characters that depend on `bytes` alone, for each place in a group of three.
fn base64(bytes: &[u8]) -> impl Iterator<Item = Needle> {
    (0..3_usize).filter_map(|offset| {
        let shifted = [vec![0; offset].as_slice(), bytes].concat();
        let bits = shifted.len() * 8;
        let encoded = STANDARD_NO_PAD.encode(shifted);
        let text = encoded.get((offset * 8).div_ceil(6)..bits / 6)?.to_owned();
        let (shares_first, shares_last) = (offset > 0, bits % 6 != 0);
        Some(Needle { text, short: false, shares_first, shares_last })
    })
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(more);
}
