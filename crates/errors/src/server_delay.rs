//! The server's wish to wait, in every spelling, as a `Duration`.
//!
//! Nonsense (negative, zero, not a number, a date in the past) is no wish at all:
//! the caller then falls back to its own backoff, so that a `retry-after: 0` can
//! never become a loop without delay. A wish beyond a year is one of a year: the
//! server means "not now", and asking in two seconds would ignore that.

use std::time::{Duration, SystemTime};

use serde_json::Value;

/// The longest wish; a longer one is cut to it.
const MAX_DELAY: Duration = Duration::from_secs(366 * 24 * 3600);

/// How deep a body is searched.
const MAX_DEPTH: usize = 8;

/// Reads the response headers: `retry-after-ms`, else `retry-after` as seconds,
/// as a span (`1m30s`), or as an HTTP date relative to `now`.
#[must_use]
pub fn delay_from_headers<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: SystemTime,
) -> Option<Duration> {
    let millis = header("retry-after-ms").and_then(|text| number_of(text.trim(), 0.001));
    millis.or_else(|| {
        let text = header("retry-after")?.trim();
        number_of(text, 1.0).or_else(|| whole_span(text)).or_else(|| {
            let date = httpdate::parse_http_date(text).ok()?;
            believed(date.duration_since(now).ok()?)
        })
    })
}

/// Reads an error body: Google's `retryDelay` and `quotaResetDelay`, the
/// `resets_in_seconds` of coding plans, `retry_after…` fields of gateways, then
/// the wording of its message.
#[must_use]
pub fn delay_from_body(body: &Value, message: Option<&str>) -> Option<Duration> {
    typed(body, 0).or_else(|| delay_from_wording(message?))
}

/// Reads prose: a span behind words such as "try again in", "retry after",
/// "resets in". A number without a unit is not a delay.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle_errors::delay_from_wording;
/// assert_eq!(delay_from_wording("Please try again in 1.2s."), Some(Duration::from_millis(1200)));
/// assert_eq!(delay_from_wording("retry after 4013 ms"), Some(Duration::from_millis(4013)));
/// assert_eq!(delay_from_wording("try again in a while"), None);
/// ```
#[must_use]
pub fn delay_from_wording(text: &str) -> Option<Duration> {
    const LEADS: [&str; 6] = [
        "try again in ",
        "retry in ",
        "retry after ",
        "resets in ",
        "available in ",
        "please wait ",
    ];
    let lower = text.to_ascii_lowercase();
    LEADS.iter().find_map(|lead| {
        lower
            .match_indices(lead)
            .find_map(|(at, _)| span(lower.get(at + lead.len()..)?).map(|(wait, _)| wait))
    })
}

fn typed(value: &Value, depth: usize) -> Option<Duration> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Array(items) => items.iter().find_map(|item| typed(item, depth + 1)),
        Value::Object(fields) => fields
            .iter()
            .find_map(|(name, value)| field(name, value))
            .or_else(|| fields.values().find_map(|inner| typed(inner, depth + 1))),
        _ => None,
    }
}

fn field(name: &str, value: &Value) -> Option<Duration> {
    let unit = match name {
        "retryDelay"
        | "quotaResetDelay"
        | "retry_after"
        | "retry_after_seconds"
        | "resets_in_seconds" => 1.0,
        "retry_after_ms" => 0.001,
        _ => return None,
    };
    match value {
        Value::Number(number) => scaled(number.as_f64()?, unit),
        Value::String(text) => whole_span(text).or_else(|| number_of(text.trim(), unit)),
        _ => None,
    }
}

fn number_of(text: &str, seconds: f64) -> Option<Duration> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if plain { scaled(text.parse().ok()?, seconds) } else { None }
}

fn scaled(number: f64, seconds: f64) -> Option<Duration> {
    wish(number * seconds)
}

/// A wait of so many seconds, if it is one at all.
fn wish(seconds: f64) -> Option<Duration> {
    let longest = MAX_DELAY.as_secs_f64();
    (seconds > 0.0)
        .then(|| seconds.min(longest))
        .and_then(|seconds| believed(Duration::try_from_secs_f64(seconds).ok()?))
}

/// The wait in whole milliseconds, rounded up so that it is never cut short.
fn believed(wait: Duration) -> Option<Duration> {
    let millis = u64::try_from(wait.min(MAX_DELAY).as_nanos().div_ceil(1_000_000)).ok()?;
    (millis > 0).then(|| Duration::from_millis(millis))
}

fn whole_span(text: &str) -> Option<Duration> {
    let lower = text.trim().to_ascii_lowercase();
    span(&lower).filter(|(_, rest)| rest.is_empty()).map(|(wait, _)| wait)
}

/// Reads a span at the start of lower-case `text`, such as `6m0s`, `1.2s`,
/// `373.8ms`, `20 seconds`, `6hr 29min`; returns it and what follows.
fn span(text: &str) -> Option<(Duration, &str)> {
    let mut rest = text;
    let mut total = 0.0;
    let mut any = false;
    loop {
        let start = rest.trim_start();
        let digits = start.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(start.len());
        let (number, tail) = start.split_at(digits);
        let tail = tail.trim_start_matches(' ');
        let word = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(word);
        let (Ok(number), Some(unit)) = (number.parse::<f64>(), unit_seconds(unit)) else { break };
        total += number * unit;
        any = true;
        rest = tail;
    }
    if any { wish(total).map(|wait| (wait, rest)) } else { None }
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86400.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn headers(pairs: &[(&str, &str)], expected_ms: Option<u64>) {
        let now = httpdate::parse_http_date("Mon, 30 Nov 2026 12:00:00 GMT").unwrap();
        let get = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
        assert_eq!(
            delay_from_headers(get, now),
            expected_ms.map(Duration::from_millis),
            "{pairs:?}"
        );
    }

    #[test]
    fn header_spellings_in_their_order() {
        headers(&[("retry-after-ms", "1500"), ("retry-after", "9")], Some(1500));
        headers(&[("retry-after-ms", "12.5")], Some(13));
        headers(&[("retry-after-ms", "soon"), ("retry-after", "9")], Some(9000));
        headers(&[("retry-after", "2")], Some(2000));
        headers(&[("retry-after", "0.75")], Some(750));
        headers(&[("retry-after", "1m30s")], Some(90_000));
        headers(&[("retry-after", "Mon, 30 Nov 2026 12:00:07 GMT")], Some(7000));
        headers(&[], None);
    }

    #[test]
    fn header_nonsense_is_no_wish() {
        for text in [
            "",
            "0",
            "0.0",
            "-1",
            "-0.5",
            "NaN",
            "inf",
            "1e9",
            "soon",
            "1.2.3",
            "Mon, 30 Nov 2026 11:59:59 GMT",
            "1 2",
            "+5",
            "0x10",
            "5;q=1",
            "\u{663}",
            ".",
            "..",
            "Fri, 31 Dec 99999 23:59:59 GMT",
            "Mon, 30 Nov 2026",
        ] {
            headers(&[("retry-after", text)], None);
            headers(&[("retry-after-ms", text)], None);
        }
    }

    #[test]
    fn body_spellings() {
        let wait = |json: &str| {
            let value: Value = serde_json::from_str(json).unwrap();
            delay_from_body(&value, value.pointer("/error/message").and_then(Value::as_str))
                .map(|wait| wait.as_millis())
        };
        assert_eq!(wait(r#"{"error":{"details":[{"retryDelay":"45.837906927s"}]}}"#), Some(45_838));
        assert_eq!(
            wait(r#"{"error":{"details":[{"metadata":{"quotaResetDelay":"373.8ms"}}]}}"#),
            Some(374)
        );
        assert_eq!(wait(r#"{"error":{"resets_in_seconds":60}}"#), Some(60_000));
        assert_eq!(wait(r#"{"retry_after":1.5}"#), Some(1500));
        assert_eq!(wait(r#"{"error":{"retry_after_ms":"250"}}"#), Some(250));
        assert_eq!(wait(r#"{"error":{"message":"Please try again in 6m0s."}}"#), Some(360_000));
        assert_eq!(wait(r#"{"retry_after":-5}"#), None);
        assert_eq!(wait(r#"{"retry_after":null}"#), None);
    }

    #[test]
    fn prose_needs_a_lead_and_a_unit() {
        let wait = |text| delay_from_wording(text).map(|wait| wait.as_millis());
        assert_eq!(wait("Limit 200, Used 190. Please try again in 4.77s. Visit"), Some(4770));
        assert_eq!(wait("Please retry after 26 seconds."), Some(26_000));
        assert_eq!(wait("Please retry in 26.66s"), Some(26_660));
        assert_eq!(wait("Weekly usage limit reached. Resets in 6hr 29min."), Some(23_340_000));
        assert_eq!(wait("try again in 20ms"), Some(20));
        assert_eq!(wait("retry after 500"), None);
        assert_eq!(wait("it took 20 seconds"), None);
        assert_eq!(wait("try again in -1s"), None);
        let year = Some(MAX_DELAY.as_millis());
        assert_eq!(wait("retry in 99999999999999999999999 days"), year);
    }

    #[test]
    fn a_wish_beyond_a_year_is_one_of_a_year() {
        let year = u64::try_from(MAX_DELAY.as_millis()).ok();
        for text in ["9999999999", "99999999999999999999", "999d", "Mon, 30 Nov 2099 12:00:00 GMT"]
        {
            headers(&[("retry-after", text)], year);
        }
        headers(&[("retry-after-ms", "99999999999999999999999")], year);
    }

    proptest::proptest! {
        #[test]
        fn no_header_gives_a_wait_of_zero_or_of_years(text in "\\PC{0,40}|[0-9.smhd ]{0,30}") {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
            for name in ["retry-after", "retry-after-ms"] {
                let wait = delay_from_headers(|asked| (asked == name).then_some(text.as_str()), now);
                proptest::prop_assert!(wait.is_none_or(|wait| !wait.is_zero() && wait <= MAX_DELAY));
            }
            let wait = delay_from_wording(&format!("try again in {text}"));
            proptest::prop_assert!(wait.is_none_or(|wait| !wait.is_zero() && wait <= MAX_DELAY));
        }
    }
}
