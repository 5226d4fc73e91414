//! Every status that an error has been seen with, with each shape of body.

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
    (Meaning::Refused, &[405, 406, 409, 410, 411, 412, 414, 415, 416, 417]),
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

/// The shapes of a body that names no reason.
const SHAPES: &[(&str, &str, &str)] = &[
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
        let (fault, expected) = verdict(*meaning);
        for status in *statuses {
            for (shape, content_type, body) in SHAPES {
                let behaviour = Behaviour::raw(*content_type, *body).status(*status);
                let name = format!("{status}_{shape}");
                rows.push(row(fault, &name, CHAT, expected, behaviour));
            }
        }
    }
    // Any other success is one.
    for status in [201, 202, 203, 206, 299] {
        let behaviour = Behaviour::whole().status(status);
        rows.push(row("whole", &status.to_string(), CHAT, Expected::NOTHING, behaviour));
    }
    rows
}

fn verdict(meaning: Meaning) -> (&'static str, Expected) {
    let last = |code| Expected::last(code, "request");
    match meaning {
        Meaning::Redirect => ("redirect", last("PROVIDER_PROTOCOL_MISMATCH")),
        Meaning::Unauthorized => ("unauthorized", last("PROVIDER_UNAUTHORIZED")),
        Meaning::Quota => ("quota", last("PROVIDER_QUOTA_EXCEEDED")),
        Meaning::Timeout => ("request_timeout", Expected::setup("TIMEOUT")),
        Meaning::TooLarge => ("context_overflow", last("CONTEXT_TOO_LARGE")),
        Meaning::Refused => ("bad_request", last("INVALID_REQUEST")),
        Meaning::RateLimited => ("rate_limit", Expected::capacity("PROVIDER_RATE_LIMITED")),
        Meaning::Broken => ("server_error", Expected::setup("PROVIDER_ERROR")),
        Meaning::Overloaded => ("overloaded", Expected::capacity("PROVIDER_OVERLOADED")),
        Meaning::NotImplemented | Meaning::Other => ("not_implemented", last("PROVIDER_ERROR")),
    }
}
