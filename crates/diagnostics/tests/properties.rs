//! Ten thousand random secrets, spellings, surroundings and cuts leak nothing.

#![expect(clippy::indexing_slicing, reason = "indices are drawn within bounds; a test may panic")]

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use fastrand::Rng;
use turnbuckle_diagnostics::{MASK, Redactor, SecretString};
use turnbuckle_errors::Redact as _;

/// Pairs of secrets, and tuples for each pair: together 10,000 tuples.
const SECRETS: u64 = 100;
const TUPLES: usize = 100;

/// A spelling of `secret`, written here once more so that it can disagree, and
/// the part of it that must not be seen.
type Spelling = fn(&str, &mut Rng) -> (String, String);

const SPELLINGS: &[(&str, Spelling)] = &[
    ("plain", |secret, _| twice(secret.to_owned())),
    ("upper case", |secret, _| twice(secret.to_ascii_uppercase())),
    ("percent, upper hex", |secret, _| twice(percent(secret, false, true))),
    ("percent, lower hex", |secret, _| twice(percent(secret, false, false))),
    ("percent, every byte", |secret, _| twice(percent(secret, true, true))),
    ("form", |secret, _| twice(percent(secret, false, true).replace("%20", "+"))),
    ("hex", |secret, _| twice(secret.bytes().map(|b| format!("{b:02x}")).collect())),
    ("upper hex", |secret, _| twice(secret.bytes().map(|b| format!("{b:02X}")).collect())),
    ("JSON", |secret, _| {
        let quoted = serde_json::Value::from(secret).to_string();
        twice(quoted[1..quoted.len() - 1].to_owned())
    }),
    ("JSON in JSON", |secret, _| {
        let once = serde_json::Value::from(secret).to_string();
        let quoted = serde_json::Value::from(&once[1..once.len() - 1]).to_string();
        twice(quoted[1..quoted.len() - 1].to_owned())
    }),
    ("JSON, every character", |secret, _| {
        twice(secret.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect())
    }),
    ("base64", |secret, rng| base64_at(secret, rng, |bytes| STANDARD.encode(bytes))),
    ("base64 for URLs", |secret, rng| {
        base64_at(secret, rng, |bytes| URL_SAFE_NO_PAD.encode(bytes))
    }),
];

fn twice(text: String) -> (String, String) {
    (text.clone(), text)
}

fn percent(secret: &str, every: bool, upper: bool) -> String {
    secret.bytes().fold(String::new(), |text, byte| match byte {
        b if !every && (b.is_ascii_alphanumeric() || b"-._~".contains(&b)) => {
            text + &char::from(b).to_string()
        }
        b if upper => text + &format!("%{b:02X}"),
        b => text + &format!("%{b:02x}"),
    })
}

/// With random bytes around; what must not be seen is what the secret alone decides.
fn base64_at(secret: &str, rng: &mut Rng, encode: fn(&[u8]) -> String) -> (String, String) {
    let before = rng.usize(0..7);
    let mut bytes: Vec<u8> = (0..before).map(|_| rng.u8(..)).collect();
    bytes.extend(secret.bytes());
    let end = bytes.len();
    bytes.extend((0..rng.usize(0..7)).map(|_| rng.u8(..)));
    let text = encode(&bytes);
    let seen = text[(before * 8).div_ceil(6)..end * 8 / 6].to_owned();
    (text, seen)
}

/// What stands around it.
const AROUND: &[(&str, &str)] = &[
    ("", ""),
    ("bad key: ", "."),
    ("{\"error\":{\"message\":\"no such key ", "\",\"code\":null}}"),
    ("https://user:", "@host/path?x=1"),
    ("https://host/path?key=", "&alt=sse"),
    ("x-other: ", "\r\nx-next: 1\r\n"),
    ("Authorization: Basic ", "\n"),
    ("first line\nsecond ", " line\nthird line\n"),
    ("密码 é ", " 🔑"),
    ("let key = \"", "\";"),
    ("abc", "abc"),
    ("%3D", "%26"),
    ("\\n", "\\n"),
    ("token=", "; Path=/"),
    ("api_key=[redacted]", "[redacted]"),
];

fn secret(rng: &mut Rng) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const SIGNS: &[u8] = b"abcXYZ019 !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    let length = rng.usize(8..80);
    let kind = rng.u8(0..4);
    let text: String = (0..length)
        .map(|index| match kind {
            0 | 1 => char::from(LETTERS[rng.usize(..LETTERS.len())]),
            // White space at the ends is no part of a secret.
            2 => match char::from(SIGNS[rng.usize(..SIGNS.len())]) {
                ' ' if index == 0 || index + 1 == length => 'x',
                c => c,
            },
            _ => ['é', 'ß', '钥', '🔑', 'a', '7'][rng.usize(..6)],
        })
        .collect();
    text
}

/// Nothing much over half its length may be left of what must not be seen.
#[track_caller]
fn check(shown: &str, unseen: &str, what: &str) {
    let shown = shown.to_ascii_lowercase();
    let unseen: Vec<char> = unseen.to_ascii_lowercase().chars().collect();
    let half = (unseen.len() / 2).max(6).min(unseen.len());
    for part in unseen.windows(half).step_by(2) {
        let part: String = part.iter().collect();
        assert!(!shown.contains(&part), "{part:?} is seen in {shown:?}: {what}");
    }
}

fn in_pieces(redactor: &Redactor, text: &str, rng: &mut Rng) -> String {
    let mut stream = redactor.stream();
    let most = [1, 2, 5, 30, 200][rng.usize(..5)];
    let (mut shown, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        let cut = rest.ceil_char_boundary(rng.usize(1..=most).min(rest.len()));
        shown += &stream.feed(&rest[..cut]);
        rest = &rest[cut..];
    }
    shown + &stream.finish()
}

#[test]
fn ten_thousand_random_tuples_leak_nothing() {
    let mut tuples = 0;
    for seed in 0..SECRETS {
        let mut rng = Rng::with_seed(seed);
        let secrets = [secret(&mut rng), secret(&mut rng)];
        let redactor = Redactor::new(secrets.iter().cloned().map(SecretString::from));
        for _ in 0..TUPLES {
            let value = &secrets[rng.usize(..2)];
            let (name, spell) = SPELLINGS[rng.usize(..SPELLINGS.len())];
            let (spelling, unseen) = spell(value, &mut rng);
            let (before, after) = AROUND[rng.usize(..AROUND.len())];
            let filler = ["", "word ", "line of text\n"][rng.usize(..3)].repeat(rng.usize(0..12));
            let text = format!("{filler}{before}{spelling}{after}{filler}");
            let what = format!("seed {seed}, {name}, {value:?} in {text:?}");

            let masked = redactor.redact(&text).into_owned();
            check(&masked, &unseen, &what);
            assert!(masked.contains(MASK), "{what}");
            assert_eq!(redactor.redact(&masked), masked, "masking again changes it: {what}");
            check(&in_pieces(&redactor, &text, &mut rng), &unseen, &format!("in pieces, {what}"));
            tuples += 1;
        }
    }
    assert_eq!(tuples, 10_000);
}

/// Pieces of everything that the search stops at, and what goes with it.
const SOUP: &[&str] = &[
    "api_key",
    "token",
    "password",
    "Authorization",
    "Cookie",
    "bearer ",
    "Basic ",
    "sk-",
    "ghp_",
    "eyJ",
    "-----BEGIN PRIVATE KEY-----",
    "-----END",
    "://",
    ":",
    "=",
    "\"",
    "'",
    "\\",
    " ",
    "\n",
    ".",
    ",",
    ";",
    "&",
    "?",
    "@",
    "[",
    "]",
    "{",
    "<",
    "%3D",
    "\\u003d",
    "[redacted]",
    "a",
    "é",
    "🔑",
    "0123456789",
    "dXNlcjpwYXNz",
    "abcdefghijklmnop1234567890",
    "secret-of-mine",
    "SG.",
    "hooks.slack.com/services/",
    "--token ",
    ":AA",
    "12345678",
    "AKIA",
    "A1B2C3D4E5F6G7H8",
];

#[test]
fn masking_again_changes_nothing_whatever_the_text() {
    let redactor = Redactor::new(["secret-of-mine", "d]abcdefg"].map(SecretString::from));
    for seed in 0..5_000 {
        let mut rng = Rng::with_seed(seed);
        let text: String = (0..rng.usize(0..14)).map(|_| SOUP[rng.usize(..SOUP.len())]).collect();
        let masked = redactor.redact(&text).into_owned();
        assert!(!masked.contains("secret-of-mine"), "seed {seed}: {text:?}");
        assert_eq!(redactor.redact(&masked), masked, "seed {seed}: {text:?}");
    }
}

#[test]
fn pieces_of_any_text_come_out_whole_and_without_the_secret() {
    let redactor =
        Redactor::new(["secret-of-mine", "two\nlines-of-secret"].map(SecretString::from));
    for seed in 0..5_000 {
        let mut rng = Rng::with_seed(seed);
        let text: String = (0..rng.usize(0..14)).map(|_| SOUP[rng.usize(..SOUP.len())]).collect();
        let text = format!("{text}two\nlines-of-secret{text}");
        let shown = in_pieces(&redactor, &text, &mut rng);
        assert!(!shown.contains("secret-of-mine"), "seed {seed}: {text:?}");
        assert!(!shown.contains("lines-of-secret"), "seed {seed}: {text:?}");
        if text.contains("-----BEGIN") {
            // A stream cannot know that the end of a block never comes: it masks more.
            continue;
        }
        // The same again in one piece gives the same.
        let mut stream = redactor.stream();
        let whole = stream.feed(&text) + &stream.finish();
        assert_eq!(shown, whole, "seed {seed}: {text:?}");
    }
}
