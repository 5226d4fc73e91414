//! Classifies one adversarial text of a given kind and size, for counting the
//! instructions that it costs: `classify_linear KIND BYTES`. Without arguments it names
//! the kinds.

#![expect(clippy::print_stdout, reason = "a program that answers on standard output")]

use std::{env, process::ExitCode};

use turnbuckle_errors::{ErrorBody, Fact, Facts, InBandError, Phase, StatusFact, classify};

/// What is repeated to make a text of each kind, and how it is fed.
const KINDS: &[(&str, &str, Feed)] = &[
    ("rows-that-almost-match", "too many tokens per dayx stream ended befor ", Feed::Message),
    ("limits-without-numbers", "limit requested limit 5x requested ", Feed::Message),
    ("delays-without-units", "try again in retry after 1 please wait 9x ", Feed::Message),
    ("delays-of-many-parts", "retry in 1s 2s 3s 4s 5s 6s ", Feed::Message),
    ("statuses-without-number", "status status code http \"http 4 ", Feed::Message),
    ("names-of-errors", "Error: TypeError: ", Feed::Message),
    ("open-braces", "{", Feed::Body),
    ("open-errors", "{\"error\":", Feed::Body),
    ("torn-list", "[1,\"a\",", Feed::Body),
    ("backslashes", "{\"message\":\"\\\\\\\\\\\\\\\\", Feed::Body),
    ("titles", "<title ", Feed::Body),
    ("details", "{\"violations\":[{\"quotaId\":\"x\"}]},", Feed::Details),
    ("zero-bytes", "\0\u{1}", Feed::Body),
    ("errors-in-texts", "\\\"error\\\"{", Feed::InBand),
];

#[derive(Clone, Copy)]
enum Feed {
    Message,
    Body,
    Details,
    InBand,
}

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let Some(kind) = args.next() else {
        for (kind, ..) in KINDS {
            println!("{kind}");
        }
        return ExitCode::SUCCESS;
    };
    let size: Option<usize> = args.next().and_then(|size| size.parse().ok());
    let known = KINDS.iter().find(|(name, ..)| *name == kind);
    let (Some((_, piece, feed)), Some(size)) = (known, size) else {
        eprintln!("usage: classify_linear [KIND BYTES]; without arguments it names the kinds");
        return ExitCode::from(2);
    };
    let mut text = piece.repeat(size / piece.len() + 1);
    text.truncate(text.floor_char_boundary(size));
    println!("{}", classify(&facts(text, *feed)).code);
    ExitCode::SUCCESS
}

fn facts(text: String, feed: Feed) -> Facts {
    match feed {
        Feed::Message => Facts::new(Phase::Request).with(Fact::Message(text)),
        Feed::Details => facts(format!("{{\"error\":{{\"details\":[{text}"), Feed::Body),
        Feed::Body => {
            let body = ErrorBody::parse_bytes(text.as_bytes(), None);
            Facts::new(Phase::Request).with(Fact::Status(StatusFact::new(429, body)))
        }
        Feed::InBand => {
            let body = ErrorBody::parse(&format!("{{\"error\":{{\"message\":\"{{{text}\"}}}}"));
            Facts::new(Phase::Stream).with(Fact::InBand(InBandError::new(body)))
        }
    }
}
