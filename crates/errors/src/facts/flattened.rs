//! What another stack flattened into one text: the status and the error body
//! that it begins with. Strict, because digits in prose are no status.

mod python;

use serde_json::Value;

use super::{BodyShape, ErrorBody};

/// How far into a text its status may stand.
const MAX_LEAD_BYTES: usize = 512;

/// The longest `SomethingError: ` that is taken for the name of an error.
const MAX_NAME_BYTES: usize = 64;

/// A text that holds more than prose.
#[derive(Debug, PartialEq)]
pub(crate) struct Flattened {
    /// The status that the text states.
    pub(crate) status: Option<u16>,
    /// What follows it.
    pub(crate) body: ErrorBody,
}

impl Flattened {
    /// Reads `429 …`, `HTTP 503 …`, `status code: 429 …`, `[429 Too Many Requests] …`,
    /// or a text that is an error object; `None` if it is prose.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let text = without_error_names(text.trim());
        if text.starts_with(['{', '[']) {
            let body = ErrorBody::parse(text);
            let status = body.http_status.filter(|status| (400..600).contains(status));
            let says = body.message.is_some() || body.words().next().is_some() || status.is_some();
            if body.shape == BodyShape::Json && says {
                return Some(Self { status, body });
            }
        }
        let (status, rest) = leading(text).or_else(|| stated(text))?;
        Some(Self { status: Some(status), body: body_of(rest) })
    }
}

/// `text` behind any number of `TypeError: ` or `[SomeSdk Error]: `.
pub(crate) fn without_error_names(text: &str) -> &str {
    let mut rest = text;
    loop {
        let lead = rest.get(..rest.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default();
        let Some((name, _)) = lead.split_once(": ") else { return rest };
        let lower = name.trim_matches(['[', ']']).to_ascii_lowercase();
        let is_name = (lower.ends_with("error") || lower.ends_with("exception"))
            && lower.bytes().all(|b| b.is_ascii_alphanumeric() || b"._".contains(&b))
            || (name.starts_with('[') && lower.ends_with(" error"));
        match rest.get(name.len() + 2..) {
            Some(tail) if is_name => rest = tail.trim_start(),
            _ => return rest,
        }
    }
}

/// What follows a status: an error object somewhere in it, or prose. It is never
/// taken for an empty body, since a flattened text does not tell.
fn body_of(rest: &str) -> ErrorBody {
    let rest = rest.trim_start_matches([' ', ':', '-', ')', ']', ',', '"']);
    let object = rest.find('{').and_then(|at| rest.get(at..));
    let first = object.and_then(|text| {
        let json = serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?;
        json.ok().or_else(|| python::dict(text))
    });
    match first {
        Some(value) => ErrorBody::from_json(&value),
        None => {
            let mut body = ErrorBody::parse(rest);
            if body.shape == BodyShape::Empty {
                body.shape = BodyShape::Text;
            }
            body
        }
    }
}

/// A text that begins with a status and goes on like an error: `429 You exceeded…`
/// as the OpenAI and Anthropic SDKs for JavaScript say it.
fn leading(text: &str) -> Option<(u16, &str)> {
    let open = text.strip_prefix(['[', '(']).unwrap_or(text);
    let (status, rest) = status_at(open)?;
    let after = rest.trim_start_matches([' ', ':', '-', ')', ']']);
    let separated = rest.is_empty() || rest.starts_with([' ', ':', ')', ']']);
    let first = after.chars().next();
    let explicit = rest.trim_start().starts_with([':', '-', ')', ']']) || first.is_none();
    let goes_on = first.is_some_and(|c| "{[<".contains(c) || c.is_uppercase() || !c.is_ascii())
        || begins_with_any(after, LEADS)
        || reason(status).iter().any(|reason| begins_with(after, reason));
    (separated && (explicit || goes_on) && !counts_something(after)).then_some((status, rest))
}

/// A text that names its status: `HTTP 503`, `status code: 429`, or a status with
/// its reason in brackets, as Google's SDK for JavaScript writes it.
fn stated(text: &str) -> Option<(u16, &str)> {
    let lead = text.get(..text.floor_char_boundary(MAX_LEAD_BYTES)).unwrap_or_default();
    let lower = lead.to_ascii_lowercase();
    let marked = MARKERS
        .iter()
        .flat_map(|marker| lower.match_indices(marker).map(|(at, found)| (at, at + found.len())));
    let bracketed = lower.match_indices('[').map(|(at, _)| (at, at + 1));
    let mut found: Option<(usize, u16, &str)> = None;
    for (start, end) in marked.chain(bracketed) {
        let is_bracket = lower.get(start..end) == Some("[");
        let hit =
            if is_bracket { in_brackets(text, end) } else { marked_at(text, &lower, start, end) };
        if let Some((status, rest)) = hit.filter(|_| found.is_none_or(|(at, ..)| start < at)) {
            found = Some((start, status, rest));
        }
    }
    found.map(|(_, status, rest)| (status, rest))
}

fn in_brackets(text: &str, at: usize) -> Option<(u16, &str)> {
    let (status, rest) = status_at(text.get(at..)?)?;
    let named = reason(status).iter().find(|reason| begins_with(rest.trim_start(), reason))?;
    let after = rest.trim_start().get(named.len()..)?;
    after.starts_with(']').then_some((status, after))
}

fn marked_at<'a>(text: &'a str, lower: &str, start: usize, end: usize) -> Option<(u16, &'a str)> {
    let before = lower.get(..start)?;
    let at_border = !before.ends_with(|c: char| c.is_alphanumeric() || "_-/.".contains(c));
    // The exit status of a program is not the status of a response.
    let of_a_program = before.trim_end().ends_with("exit");
    // What somebody quotes is not what the server said.
    let quoted = ['"', '`'].iter().any(|mark| before.matches(*mark).count() % 2 == 1);
    if !at_border || of_a_program || quoted {
        return None;
    }
    let mut rest = text.get(end..)?.trim_start_matches([' ', ':', '=', '(', '\'', '"']);
    for filler in ["client error", "server error", "status", "code", "error"] {
        if begins_with(rest, filler) {
            rest = rest.get(filler.len()..)?.trim_start_matches([' ', ':', '=', '(']);
        }
    }
    let glued = rest.len() == text.len() - end;
    let (status, rest) = status_at(rest)?;
    (!glued && !counts_something(rest.trim_start())).then_some((status, rest))
}

/// Three digits from 400 to 599 with nothing glued to them, and what follows.
fn status_at(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(3)?;
    let status = digits.parse().ok().filter(|status| (400..600).contains(status))?;
    let mut after = rest.chars();
    let glued = match after.next() {
        Some('.') => after.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_alphanumeric() || "_%/".contains(c),
        None => false,
    };
    (digits.bytes().all(|b| b.is_ascii_digit()) && !glued).then_some((status, rest))
}

/// Whether the number before `text` counted something: "500 tokens".
fn counts_something(text: &str) -> bool {
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    UNITS.iter().any(|unit| unit.eq_ignore_ascii_case(word))
}

fn begins_with(text: &str, lead: &str) -> bool {
    let same = text.get(..lead.len()).is_some_and(|head| head.eq_ignore_ascii_case(lead));
    let next = text.get(lead.len()..).and_then(|rest| rest.chars().next());
    same && !next.is_some_and(char::is_alphanumeric)
}

fn begins_with_any(text: &str, leads: &[&str]) -> bool {
    leads.iter().any(|lead| begins_with(text, lead))
}

/// What a status is called by. Where one has several names, all of them.
fn reason(status: u16) -> &'static [&'static str] {
    match status {
        400 => &["bad request"],
        401 => &["unauthorized"],
        402 => &["payment required"],
        403 => &["forbidden"],
        404 => &["not found"],
        408 => &["request timeout"],
        409 => &["conflict"],
        413 => &["payload too large", "request entity too large", "content too large"],
        422 => &["unprocessable entity", "unprocessable content"],
        429 => &["too many requests"],
        500 => &["internal server error"],
        502 => &["bad gateway"],
        503 => &["service unavailable", "service temporarily unavailable"],
        504 => &["gateway timeout", "gateway time-out"],
        529 => &["overloaded", "site is overloaded"],
        _ => &[],
    }
}

/// What names a status.
const MARKERS: &[&str] = &[
    "status code",
    "status_code",
    "statuscode",
    "http_status",
    "error code",
    "status",
    "http/1.1",
    "http/1.0",
    "http/2",
    "http",
];

/// How an error goes on in small letters, as SDKs and servers write it.
const LEADS: &[&str] = &[
    "status code",
    "invalid",
    "incorrect",
    "rate limit",
    "quota",
    "overloaded",
    "model",
    "error",
    "upstream",
    "server",
    "request",
    "context",
    "prompt",
    "insufficient",
    "too many",
    "no body",
];

/// What numbers of this size count.
const UNITS: &[&str] = &[
    "bytes",
    "kb",
    "mb",
    "gb",
    "tokens",
    "words",
    "characters",
    "chars",
    "lines",
    "files",
    "items",
    "requests",
    "messages",
    "times",
    "ms",
    "seconds",
    "secs",
    "minutes",
    "min",
    "hours",
    "days",
    "pages",
    "steps",
    "calls",
    "errors",
    "results",
    "rows",
    "users",
    "people",
    "models",
    "percent",
];

#[cfg(test)]
mod tests;
