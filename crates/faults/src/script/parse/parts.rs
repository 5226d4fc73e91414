//! The keys by which a step puts a fault together itself.

use super::super::{
    error::ScriptError,
    field::{Field, Source},
    parts::{Place, noise_of},
    step::Step,
};
use crate::behaviour::{Answer, ErrorReply, Insert, Tls};

/// Keys that say what happens, so that no behaviour needs to be named.
pub(super) const KEYS: &[&str] = &[
    "error",
    "raw",
    "redirect",
    "handshake",
    "status",
    "cut",
    "insert",
    "without_terminal",
    "gzip",
    "hang_up",
];
/// A table in which neither a behaviour is named nor one of these keys stands.
pub(super) const STEP: &str = "[[step]]; allowed instead are error, raw, redirect, handshake, \
     status, cut, insert, without_terminal, gzip and hang_up";
/// Of these, the ones that say what is answered.
const ANSWERS: &[&str] = &["error", "raw", "redirect", "handshake"];

const ERROR_KEYS: &[&str] = &["status", "type", "code", "message"];
const RAW_KEYS: &[&str] = &["content_type", "body"];
const INSERT_KEYS: &[&str] =
    &["what", "at", "event", "type", "code", "message", "bytes", "text", "every_ms"];
const INSERTS: &[&str] =
    &["error", "malformed", "huge_line", "corrupt_gzip", "raw", "comment", "ping", "delta"];
/// All but the good one, which is the first.
const FAILED_HANDSHAKES: &[&str] = Tls::WORDS.split_at(1).1;

const STATUS: &str = "a status with a body: 200 to 599, but 204 and 304";
const REDIRECT: &str = "a status that redirects: 301, 302, 303, 307 or 308";

/// What an error says when the script does not.
const MESSAGE: &str = "A fault of the script.";

pub(super) fn only_one_answer(fields: &[Field<'_>]) -> Result<(), ScriptError> {
    let mut answers = fields.iter().filter(|field| ANSWERS.contains(&field.key));
    match (answers.next(), answers.next()) {
        (Some(first), Some(second)) => Err(ScriptError::Beside {
            at: second.at(),
            key: second.key,
            other: first.key,
            why: "a request is answered once",
        }),
        _ => Ok(()),
    }
}

pub(super) fn set(step: Step, field: &Field<'_>) -> Result<Step, ScriptError> {
    let mut step = step;
    let parts = &mut step.parts;
    match field.key {
        "error" => parts.answer = Some(Answer::Error(error(field)?)),
        "raw" => parts.answer = Some(raw(field)?),
        "redirect" => {
            let status =
                field.status(REDIRECT, |status| matches!(status, 301..=303 | 307 | 308))?;
            parts.answer = Some(Answer::Redirect { status });
        }
        "handshake" => {
            let failed = |word: &str| Tls::from_word(word).filter(|tls| *tls != Tls::Good);
            parts.answer = Some(Answer::Handshake(field.word(FAILED_HANDSHAKES, failed)?));
        }
        "status" => parts.status = Some(field.status(STATUS, has_a_body)?),
        "cut" => parts.cut = Some(field.word(Place::WORDS, Place::from_word)?),
        "without_terminal" => parts.without_terminal = field.flag()?,
        "insert" => {
            for table in field.tables()? {
                parts.inserts.push(insert(field.source, &table)?);
            }
        }
        // `behaviour`, read before the others.
        _ => {}
    }
    Ok(step)
}

fn has_a_body(status: u16) -> bool {
    (200..=599).contains(&status) && status != 204 && status != 304
}

fn error(field: &Field<'_>) -> Result<ErrorReply, ScriptError> {
    let table = field.table()?;
    let fields = field.source.fields(table.table, ERROR_KEYS)?;
    let Some(status) = fields.iter().find(|field| field.key == "status") else {
        return Err(field.source.missing(&table, "status", "error"));
    };
    worded(ErrorReply::new(status.status(STATUS, has_a_body)?, "server_error", MESSAGE), &fields)
}

/// The error with the words that are set.
fn worded(reply: ErrorReply, fields: &[Field<'_>]) -> Result<ErrorReply, ScriptError> {
    let mut reply = reply;
    for field in fields {
        match field.key {
            "type" => field.string()?.clone_into(&mut reply.kind),
            "code" => reply = reply.code(field.string()?),
            "message" => field.string()?.clone_into(&mut reply.message),
            _ => {}
        }
    }
    Ok(reply)
}

fn raw(field: &Field<'_>) -> Result<Answer, ScriptError> {
    let mut content_type = "text/plain".to_owned();
    let mut body = Vec::new();
    for part in field.source.fields(field.table()?.table, RAW_KEYS)? {
        match part.key {
            "content_type" => part.string()?.clone_into(&mut content_type),
            _ => body = part.string()?.into(),
        }
    }
    Ok(Answer::Raw { content_type, body })
}

fn insert(source: &Source<'_>, table: &super::Place<'_>) -> Result<(Place, Insert), ScriptError> {
    let fields = source.fields(table.table, INSERT_KEYS)?;
    let get = |key| fields.iter().find(|field| field.key == key);
    let must = |key| get(key).ok_or_else(|| source.missing(table, key, "[[step.insert]]"));
    let what = must("what")?;
    let word = what.word(INSERTS, |word| INSERTS.iter().find(|known| **known == word).copied())?;
    let (known, insert): (&[&str], _) = match word {
        "error" => {
            let reply = worded(ErrorReply::new(500, "server_error", MESSAGE), &fields)?;
            (&["type", "code", "message"], Insert::Error(reply))
        }
        "huge_line" => (&["bytes"], Insert::HugeLine(must("bytes")?.count()?)),
        "corrupt_gzip" => (&[], Insert::CorruptGzip),
        "raw" => (&["text"], Insert::Bytes(must("text")?.string()?.into())),
        word => match (noise_of(word), get("every_ms")) {
            (None, _) => (&[], Insert::Malformed),
            (Some(noise), None) => (&["every_ms"], Insert::Noise(noise)),
            (Some(noise), Some(pause)) => (&["every_ms"], Insert::Endless(noise, pause.millis()?)),
        },
    };
    let general = ["what", "at", "event"];
    let idle = |field: &&Field<'_>| !general.contains(&field.key) && !known.contains(&field.key);
    if let Some(field) = fields.iter().find(idle) {
        return Err(ScriptError::NoEffect {
            at: field.at(),
            key: field.key,
            behaviour: word.to_owned(),
            why: "it does not have it",
        });
    }
    let place = match get("at") {
        Some(at) => at.word(Place::WORDS, Place::from_word)?,
        None => Place::AFTER_AN_EVENT,
    };
    match get("event") {
        Some(event) if !place.is_at_an_event() => Err(ScriptError::NoEffect {
            at: event.at(),
            key: "event",
            behaviour: place.as_str().to_owned(),
            why: "it is no place at a numbered event",
        }),
        event => Ok((place.at(event.map(Field::count).transpose()?), insert)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handshake_but_the_good_one_can_fail() {
        let failed: Vec<_> = Tls::WORDS.iter().filter(|word| **word != "good").copied().collect();
        assert_eq!(FAILED_HANDSHAKES, failed);
    }
}
