//! Masks an adversarial text of a given size, to count what it costs.
//!
//! ```sh
//! cargo build --release -p turnbuckle-diagnostics --example redact_linear
//! valgrind --tool=callgrind target/release/examples/redact_linear tokens 65536
//! ```
//!
//! The arguments are the kind of text (`redact_linear list` names them), its size in
//! bytes, and `stream` to feed it in pieces of 100 bytes.

#![expect(clippy::print_stdout, reason = "what it prints is its result")]

use std::process::ExitCode;

use turnbuckle_diagnostics::{Redactor, SecretString};
use turnbuckle_errors::Redact as _;

/// Each is repeated: the beginnings of shapes that then are none, secrets that
/// are nearly there, names without values, values without an end.
const KINDS: &[(&str, &str)] = &[
    ("tokens", "sk-a ghp_ eyJ AKIA xoxb- SG. "),
    ("jwt", "eyJaaaaaaaaaaaa."),
    ("jwt-run", "eyJ"),
    ("names", "password=password="),
    ("quotes", "\"api_key\":\""),
    ("open-quotes", "token='a"),
    ("pem", "-----BEGIN PRIVATE KEY-----!"),
    ("pem-ends", "-----BEGIN X-----END"),
    ("addresses", "a://u:"),
    ("at-signs", "a://u:p@@@@/"),
    ("blanks", "api_key:        "),
    ("backslashes", "api_key\\\\\\\":\\\\\\\""),
    ("cookies", "cookie: a=b; c; "),
    ("headers", "authorization: bearer "),
    ("pairs", "authorization: digest a=b,"),
    ("basic", "basic QUFB basic dXNl"),
    ("sql", "password 'a"),
    ("near", "correct-horse-batterz"),
    ("secrets", "correct-horse-battery"),
    ("repeats", "a"),
    ("short", "https://xyz"),
    ("sk-run", "sk-aaaaaaaaaaaaaaaaaaa"),
    ("digits", "12345678:AA"),
    ("flags", "--token --token "),
    ("masks", "api_key=[redacted]"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, rest @ ..] = arguments.as_slice() else {
        println!("usage: redact_linear KIND BYTES [stream], or redact_linear list");
        return ExitCode::from(2);
    };
    if kind == "list" {
        KINDS.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let unit = KINDS.iter().find(|(name, _)| name == kind).map(|(_, unit)| *unit);
    let size = rest.first().and_then(|size| size.parse::<usize>().ok());
    let (Some(unit), Some(size)) = (unit, size) else {
        println!("no such kind, or no size in bytes: redact_linear list names the kinds");
        return ExitCode::from(2);
    };
    let text = unit.repeat(size / unit.len());
    let known = ["correct-horse-battery", "aaaaaaaaaaaaaaab", "xyz"];
    let redactor = Redactor::new(known.map(SecretString::from));
    let length = if rest.get(1).is_some_and(|how| how == "stream") {
        let mut stream = redactor.stream();
        let mut length = 0;
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(100));
            length += stream.feed(piece).len();
            rest = after;
        }
        length + stream.finish().len()
    } else {
        redactor.redact(&text).len()
    };
    println!("{kind}: {} bytes in, {length} bytes out", text.len());
    ExitCode::SUCCESS
}
