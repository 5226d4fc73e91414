//! Every spelling of a server's wish to wait, and some that are none.

use super::{CHAT, row};
use crate::{
    behaviour::{Api, Behaviour},
    catalogue::{Entry, Expected},
};

/// A wait in milliseconds: at least, at most.
type Wait = (u64, u64);

/// The waits of our own where the server has no wish that can be read.
const OWN: Wait = (2000, 2500);

/// A name, the headers, and the wait before the first retry.
type Spelt = (&'static str, &'static [(&'static str, &'static str)], Wait);

const HEADERS: &[Spelt] = &[
    ("seconds", &[("retry-after", "3")], (3000, 3000)),
    ("fraction", &[("retry-after", "1.5")], (1500, 1500)),
    ("milliseconds", &[("retry-after-ms", "850")], (850, 850)),
    ("milliseconds_first", &[("retry-after-ms", "850"), ("retry-after", "20")], (850, 850)),
    ("empty_milliseconds", &[("retry-after-ms", ""), ("retry-after", "20")], (20_000, 20_000)),
    ("bad_milliseconds", &[("retry-after-ms", "soon"), ("retry-after", "20")], (20_000, 20_000)),
    ("spaces", &[("retry-after", "  7 ")], (7000, 7000)),
    // The date has whole seconds, and a busy machine takes a while to read it.
    ("date", &[("retry-after", "{now+30}")], (10_000, 30_000)),
    ("past_date", &[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], OWN),
    ("far_date", &[("retry-after", "Fri, 31 Dec 99999 23:59:59 GMT")], OWN),
    ("words", &[("retry-after", "in a while")], OWN),
    ("negative", &[("retry-after", "-5")], OWN),
    ("not_a_number", &[("retry-after", "NaN")], OWN),
    ("minutes", &[("retry-after", "1m2s")], (62_000, 62_000)),
    ("sixty", &[("retry-after", "60")], (60_000, 60_000)),
    ("none", &[], OWN),
];

/// A name, an API, a body of a 429, and the wait.
type Told = (&'static str, &'static [Api], &'static str, Wait);

const BODIES: &[Told] = &[
    (
        "try_again_in",
        CHAT,
        r#"{"error":{"message":"Rate limit reached for requests per min. Please try again in 4.013s.","type":"requests","code":"rate_limit_exceeded"}}"#,
        (4013, 4013),
    ),
    (
        "retry_after_ms_in_prose",
        CHAT,
        r#"{"error":{"message":"rate limited, retry after 4013 ms","code":"rate_limit_exceeded"}}"#,
        (4013, 4013),
    ),
    (
        "minutes_and_seconds",
        CHAT,
        r#"{"error":{"message":"Rate limit reached. Please try again in 1m2.5s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        (62_500, 62_500),
    ),
    (
        "retry_after",
        CHAT,
        r#"{"error":{"message":"Too many requests","code":"rate_limit_exceeded","retry_after":1.5}}"#,
        (1500, 1500),
    ),
    (
        "retry_after_ms",
        CHAT,
        r#"{"error":{"message":"Too many requests","code":"rate_limit_exceeded","retry_after_ms":"2250"}}"#,
        (2250, 2250),
    ),
    (
        "resets_in_seconds",
        CHAT,
        r#"{"error":{"message":"Too many requests","code":"rate_limit_exceeded","resets_in_seconds":60}}"#,
        (60_000, 60_000),
    ),
    (
        "retry_info",
        &[Api::Gemini],
        r#"{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"45.837906927s"}]}}"#,
        (45_837, 45_838),
    ),
    (
        "retry_info_whole",
        &[Api::Gemini],
        r#"[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"9s"}]}}]"#,
        (9000, 9000),
    ),
];

pub(super) fn rows() -> Vec<Entry> {
    let expected = Expected::capacity("PROVIDER_RATE_LIMITED");
    let mut rows = Vec::new();
    for (name, headers, wait) in HEADERS {
        let body = r#"{"error":{"message":"Too many requests","type":"requests"}}"#;
        let plain = Behaviour::raw("application/json", body).status(429);
        let behaviour =
            headers.iter().fold(plain, |behaviour, (name, value)| behaviour.header(*name, *value));
        let made = row("rate_limit", &format!("after_{name}"), CHAT, expected, behaviour);
        rows.push(Entry { wait_ms: Some(*wait), ..made });
    }
    for (name, api, body, wait) in BODIES {
        let behaviour = Behaviour::raw("application/json", *body).status(429);
        let made = row("rate_limit", &format!("told_{name}"), api, expected, behaviour);
        rows.push(Entry { wait_ms: Some(*wait), ..made });
    }
    for (name, date, wait) in [
        ("after_date", "{now+30}", (10_000, 30_000)),
        ("after_past_date", "Wed, 21 Oct 2015 07:28:00 GMT", OWN),
    ] {
        let behaviour = Behaviour::raw("text/plain", "").status(503).header("retry-after", date);
        let expected = Expected::capacity("PROVIDER_OVERLOADED");
        let made = row("overloaded", name, CHAT, expected, behaviour);
        rows.push(Entry { wait_ms: Some(wait), ..made });
    }
    // Longer than a step may take: told to the host, and not waited for.
    for (name, header, value) in [
        ("beyond_the_cap", "retry-after", "66"),
        ("hours", "retry-after", "13872"),
        ("beyond_all_time", "retry-after", "9999999999"),
        ("beyond_all_time_ms", "retry-after-ms", "99999999999999"),
        ("date_in_an_hour", "retry-after", "{now+3600}"),
    ] {
        let body = r#"{"error":{"message":"Too many requests","type":"requests"}}"#;
        let behaviour = Behaviour::raw("application/json", body).status(429).header(header, value);
        let expected = Expected::last("PROVIDER_RATE_LIMITED", "request");
        rows.push(row("long_wait", name, CHAT, expected, behaviour));
    }
    rows
}
