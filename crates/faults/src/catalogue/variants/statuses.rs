//! Every status that has a body: those that errors have been seen with, with each
//! shape of body, and the others with one of them.

use super::{CHAT, row};
use crate::{
    behaviour::Behaviour,
    catalogue::{Entry, Expected},
};

/// What a status means where the body says nothing of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Redirect,
    Unauthorized,
    Quota,
    Timeout,
    TooLarge,
    Refused,
    WrongPath,
    Proxy,
    RateLimited,
    Broken,
    Overloaded,
    NotImplemented,
    Other,
}

const STATUSES: &[(Meaning, &[u16])] = &[
    (Meaning::Redirect, &[300, 301, 302, 303, 305, 307, 308]),
    (Meaning::Unauthorized, &[401, 403]),
    (Meaning::Quota, &[402]),
    (Meaning::Timeout, &[408]),
    (Meaning::TooLarge, &[413]),
    (Meaning::WrongPath, &[404]),
    (Meaning::Proxy, &[407]),
    (Meaning::Refused, &[400, 405, 406, 409, 410, 411, 412, 414, 415, 416, 417, 422]),
    (Meaning::RateLimited, &[429]),
    (
        Meaning::Broken,
        &[
            500, 502, 504, 506, 507, 508, 510, 511, 520, 521, 522, 523, 524, 525, 526, 527, 530,
            561, 598, 599,
        ],
    ),
    (Meaning::Overloaded, &[503, 529]),
    (Meaning::NotImplemented, &[501, 505]),
    (Meaning::Other, &[418, 421, 423, 424, 425, 426, 428, 431, 440, 444, 451, 460, 498, 499]),
];

/// A name, the content-type, the body.
type Shape = (&'static str, &'static str, &'static str);

/// The shapes of a body that names no reason.
const SHAPES: &[Shape] = &[
    ("empty", "text/plain", ""),
    ("html", "text/html", "<!doctype html><html><body><h1>Sorry</h1></body></html>"),
    ("plain", "text/plain", "sorry\n"),
    ("foreign_json", "application/json", "{\"detail\":\"sorry\",\"trace\":[1,{\"a\":null}]}"),
    ("null_json", "application/json", "{\"error\":null}"),
    ("string_json", "application/json", "{\"error\":\"sorry\"}"),
    ("cut_json", "application/json", "{\"error\":{\"message\":\"sor"),
];

pub(super) fn rows() -> Vec<Entry> {
    let mut rows = Vec::new();
    for (meaning, statuses) in STATUSES {
        for status in *statuses {
            rows.extend(SHAPES.iter().map(|shape| error(*meaning, *status, shape)));
        }
    }
    let seen = |status| STATUSES.iter().any(|(_, statuses)| statuses.contains(&status));
    // The server sends a body with each, which these two forbid.
    let bodiless = |status| status == 204 || status == 304;
    for status in (201..600).filter(|status| !seen(*status) && !bodiless(*status)) {
        let meaning = match status {
            // Any other success is one.
            201..300 => {
                let behaviour = Behaviour::whole().status(status);
                let name = status.to_string();
                rows.push(row("whole", &name, CHAT, Expected::NOTHING, behaviour));
                continue;
            }
            300..400 => Meaning::Redirect,
            400..500 => Meaning::Other,
            _ => Meaning::Broken,
        };
        let shape = SHAPES.iter().cycle().nth(usize::from(status));
        rows.extend(shape.map(|shape| error(meaning, status, shape)));
    }
    rows
}

fn error(meaning: Meaning, status: u16, (shape, content_type, body): &Shape) -> Entry {
    let meaning = match (status, *shape) {
        // So some gateways refuse a prompt that is too long.
        (400 | 422, "empty") => Meaning::TooLarge,
        // A server that knows JSON knows the path.
        (404, "foreign_json" | "null_json" | "string_json" | "cut_json") => Meaning::Refused,
        _ => meaning,
    };
    let (fault, expected) = verdict(meaning);
    let behaviour = Behaviour::raw(*content_type, *body).status(status);
    row(fault, &format!("{status}_{shape}"), CHAT, expected, behaviour)
}

fn verdict(meaning: Meaning) -> (&'static str, Expected) {
    let last = |code| Expected::last(code, "request");
    match meaning {
        Meaning::Redirect => ("redirect", last("PROVIDER_PROTOCOL_MISMATCH")),
        Meaning::Unauthorized => ("unauthorized", last("PROVIDER_UNAUTHORIZED")),
        Meaning::Quota => ("quota", last("PROVIDER_QUOTA_EXCEEDED")),
        Meaning::Timeout => ("request_timeout", Expected::setup("TIMEOUT")),
        Meaning::TooLarge => ("context_overflow", last("CONTEXT_TOO_LARGE")),
        Meaning::WrongPath => ("wrong_path", last("PROVIDER_PROTOCOL_MISMATCH")),
        Meaning::Proxy => ("proxy_password", Expected::setup("NETWORK_ERROR")),
        Meaning::Refused => ("bad_request", last("INVALID_REQUEST")),
        Meaning::RateLimited => ("rate_limit", Expected::capacity("PROVIDER_RATE_LIMITED")),
        Meaning::Broken => ("server_error", Expected::setup("PROVIDER_ERROR")),
        Meaning::Overloaded => ("overloaded", Expected::capacity("PROVIDER_OVERLOADED")),
        Meaning::NotImplemented | Meaning::Other => ("not_implemented", last("PROVIDER_ERROR")),
    }
}
