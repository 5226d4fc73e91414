//! Any text, with a known secret somewhere in it, in pieces or whole: nothing
//! leaks, masking again changes nothing, and nothing panics.
//!
//! The first byte of the input says where the secret goes and where the text is
//! cut; the rest is the text.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use turnbuckle_diagnostics::{Redactor, SafeUrl, SecretString};
use turnbuckle_errors::Redact as _;

const SECRET: &str = "correct-horse-battery";

static REDACTOR: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::new([SECRET, "two\nlines of it", "abc12"].map(SecretString::from)));

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let at = text.floor_char_boundary(usize::from(first).min(text.len()));
    let (before, after) = text.split_at(at);
    let with_secret = format!("{before}{SECRET}{after}");

    let masked = REDACTOR.redact(&with_secret).into_owned();
    assert!(!masked.contains(SECRET), "the secret is seen");
    assert_eq!(REDACTOR.redact(&masked), masked, "masking again changes it");

    let size = usize::from(first % 17) + 1;
    let mut stream = REDACTOR.stream();
    let (mut shown, mut rest) = (String::new(), with_secret.as_str());
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        shown += &stream.feed(piece);
        rest = more;
    }
    shown += &stream.finish();
    assert!(!shown.contains(SECRET), "the secret is seen in a stream");

    let url = SafeUrl::new(text.as_ref()).to_string();
    assert_eq!(url, SafeUrl::new(text.as_ref()).to_string());
    assert!(!REDACTOR.redact_header("x-other", &with_secret).contains(SECRET));
});
