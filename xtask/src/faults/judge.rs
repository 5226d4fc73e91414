//! What is wrong with what was seen: the promises of the product, checked against
//! the server's record and the host's events, and against nothing else.

use serde_json::Value;
use turnbuckle_faults::Ended;

use super::{
    cell::{Cell, Variant},
    stage::Seen,
};

/// Every broken promise, one sentence each.
pub(crate) fn complaints(cell: &Cell, seen: &Seen) -> Vec<String> {
    let promises =
        [frame, attempts, retries, messages, ending, requests, tools, memory, connections, secrets];
    promises.iter().flat_map(|promise| promise(cell, seen)).collect()
}

/// A complaint, unless it holds.
fn unless(holds: bool, complaint: impl FnOnce() -> String) -> Option<String> {
    (!holds).then(complaint)
}

/// A word somewhere in a JSON value.
fn word<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("nothing")
}

fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

fn kind(event: &Value) -> &str {
    word(event, "/type")
}

fn of_kind<'s>(seen: &'s Seen, wanted: &'s str) -> impl Iterator<Item = &'s Value> {
    seen.events.iter().filter(move |event| kind(event) == wanted)
}

/// One `agent_start` first, one `agent_end` last, numbers without a gap, and an
/// `error` just before the end of what failed, nowhere else.
fn frame(_: &Cell, seen: &Seen) -> Vec<String> {
    let kinds: Vec<&str> = seen.events.iter().map(kind).collect();
    let count = |wanted| kinds.iter().filter(|kind| **kind == wanted).count();
    let gapless = (1..).zip(&seen.events).all(|(seq, event)| number(event, "/seq") == Some(seq));
    let errors = usize::from(seen.outcome_word() == "failed");
    let before_last = kinds.iter().rev().nth(1).copied();
    [
        unless(kinds.first() == Some(&"agent_start") && count("agent_start") == 1, || {
            "agent_start is not the first event, once".to_owned()
        }),
        unless(kinds.last() == Some(&"agent_end") && count("agent_end") == 1, || {
            format!("{} agent_end, or it is not the last event", count("agent_end"))
        }),
        unless(gapless, || "seq has a gap".to_owned()),
        unless(count("error") == errors, || format!("{} error events", count("error"))),
        unless(errors == 0 || before_last == Some("error"), || {
            "the error is not just before the end".to_owned()
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// As many as documented, by the server's count and by the client's.
fn attempts(cell: &Cell, seen: &Seen) -> Vec<String> {
    let documented = cell.attempts();
    let client = number(&seen.outcome, "/attempts");
    let next = seen.follow_up.as_ref().and_then(|next| number(next, "/attempts")).unwrap_or(0);
    let due = cell.requests() + usize::try_from(next).unwrap_or(usize::MAX);
    // What is sent on a connection that was given up may never be read.
    let unread = usize::from(cell.gives_up_connections() && next > 1);
    let all = seen.requests.len();
    [
        unless(seen.attempts == documented, || {
            format!("the server saw {} attempts, documented are {documented}", seen.attempts)
        }),
        unless(client == u64::try_from(documented).ok(), || {
            format!("the client tells {client:?} attempts, documented are {documented}")
        }),
        unless((due - unread..=due).contains(&all), || {
            format!("{all} requests in all, due are {due}")
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Each retry is announced with its reason, its budget and the documented wait,
/// then begins, and is told again in the outcome.
fn retries(cell: &Cell, seen: &Seen) -> Vec<String> {
    let expected = &cell.entry.expected;
    let mut complaints = Vec::new();
    let announced: Vec<&Value> = of_kind(seen, "retry_scheduled").collect();
    for (spent, retry) in (0..).zip(&announced) {
        let failure = retry.get("failure").unwrap_or(&Value::Null);
        complaints.extend(same("code", word(failure, "/code"), expected.code));
        complaints.extend(same("phase", word(retry, "/phase"), expected.phase));
        complaints.extend(same("phase", word(failure, "/details/phase"), expected.phase));
        complaints.extend(same("budget", word(retry, "/budget"), expected.budget));
        let delay = number(retry, "/delayMs");
        let (least, most) = documented_wait(word(retry, "/budget"), spent, cell.wish_ms);
        complaints.extend(unless(delay.is_some_and(|d| (least..=most).contains(&d)), || {
            format!("retry {} waits {delay:?} ms, documented are {least} to {most}", spent + 1)
        }));
    }
    let told = seen.outcome.get("retries").and_then(Value::as_array).map_or(0, Vec::len);
    let due = cell.attempts() - cell.earlier() - 1;
    complaints.extend(unless(announced.len() == due && told == due, || {
        format!("{due} retries are due, {} announced, {told} in the outcome", announced.len())
    }));
    let pairs: Vec<&Value> =
        seen.events.iter().filter(|event| kind(event).starts_with("retry_")).collect();
    let paired = pairs.chunks(2).all(|pair| match pair {
        [scheduled, started] => {
            (kind(scheduled), kind(started)) == ("retry_scheduled", "retry_started")
                && word(scheduled, "/retryId") == word(started, "/retryId")
        }
        _ => false,
    });
    complaints.extend(unless(paired, || "a retry was announced and did not begin".to_owned()));
    complaints
}

fn same(what: &str, seen: &str, expected: Option<&str>) -> Option<String> {
    unless(Some(seen) == expected, || {
        format!("the {what} is {seen}, documented is {}", expected.unwrap_or("none"))
    })
}

/// The shortest and the longest wait in milliseconds before a retry of a budget
/// of which `spent` are spent. Written down here again on purpose: a changed
/// policy has to be noticed.
fn documented_wait(budget: &str, spent: u32, wish_ms: Option<(u64, u64)>) -> (u64, u64) {
    const LONGEST: u64 = 30_000;
    match (budget, wish_ms) {
        ("stream", _) => (750, 750),
        ("silent", _) => (0, 0),
        (_, Some(wish)) => wish,
        ("setup", None) => (500, 625),
        (_, None) => {
            let least = 2000_u64.saturating_mul(2_u64.saturating_pow(spent));
            (least.min(LONGEST), (least + least / 4).min(LONGEST))
        }
    }
}

/// Each message has one id from its start to its one end; what a failed attempt
/// had told is void before anything else is told; the whole ones say exactly what
/// was sent.
fn messages(cell: &Cell, seen: &Seen) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut open: Option<&str> = None;
    let mut void = false;
    let mut told = String::new();
    let mut whole: Vec<&str> = Vec::new();
    let mut failed = 0;
    for event in &seen.events {
        let id = word(event, "/messageId");
        let is_open = open == Some(id);
        match kind(event) {
            "message_start" => {
                complaints.extend(unless(open.is_none(), || "two messages at once".to_owned()));
                (open, void) = (Some(id), false);
                told.clear();
            }
            "retry_scheduled" => void = open.is_some(),
            "message_restart" => {
                complaints.extend(unless(is_open && void, || format!("{id} restarts for nothing")));
                void = false;
                told.clear();
            }
            "message_update" => {
                complaints.extend(unless(is_open && !void, || {
                    format!("{id} is told further although what was told is void")
                }));
                told.push_str(if word(event, "/kind") == "text" {
                    word(event, "/delta")
                } else {
                    ""
                });
            }
            "message_end" => {
                complaints.extend(unless(is_open, || format!("{id} ends and has not begun")));
                let text = word(event, "/message/text");
                if event.get("failure").is_some() {
                    failed += 1;
                } else {
                    complaints.extend(unless(told == text, || {
                        format!("was told {told:?}, the message says {text:?}")
                    }));
                    whole.push(text);
                }
                open = None;
            }
            _ => {}
        }
    }
    complaints.extend(unless(open.is_none(), || "a message has no end".to_owned()));
    let mut due: Vec<&str> = if cell.completes() { vec![&cell.kept] } else { Vec::new() };
    if cell.variant == Variant::AfterTool {
        due.insert(0, "");
    }
    let most = usize::from(!cell.completes());
    complaints.extend(unless(failed <= most, || {
        format!("{failed} messages ended with a failure, at most {most} may")
    }));
    complaints.extend(unless(whole == due, || format!("whole messages: {whole:?}, due: {due:?}")));
    complaints
}

/// Completed with the exact text, or failed with the documented code and phase.
fn ending(cell: &Cell, seen: &Seen) -> Vec<String> {
    let due = if cell.completes() { "completed" } else { "failed" };
    let end = of_kind(seen, "agent_end").next().unwrap_or(&Value::Null);
    let mut complaints: Vec<String> = [seen.outcome_word(), word(end, "/outcome")]
        .into_iter()
        .filter_map(|word| unless(word == due, || format!("the prompt {word}, due is {due}")))
        .collect();
    if cell.completes() {
        let text = word(&seen.outcome, "/text");
        complaints.extend(unless(text == cell.kept, || format!("the outcome says {text:?}")));
        return complaints;
    }
    let error = of_kind(seen, "error").next().unwrap_or(&Value::Null);
    for told in [&seen.outcome, end, error] {
        let expected = cell.entry.expected;
        complaints.extend(same("final code", word(told, "/failure/code"), expected.code));
        complaints.extend(same(
            "final phase",
            word(told, "/failure/details/phase"),
            expected.phase,
        ));
    }
    complaints
}

/// Every attempt of a step asks the same, so a failed one leaves nothing in the
/// next; and the server knows how each exchange ended.
fn requests(cell: &Cell, seen: &Seen) -> Vec<String> {
    let step = seen.requests.get(cell.earlier()..cell.requests()).unwrap_or(&seen.requests);
    let mut complaints = Vec::new();
    for (before, after) in step.iter().zip(step.iter().skip(1)) {
        // A silent model is asked once more, with a nudge.
        let nudged = cell.entry.expected.budget == Some("silent");
        complaints.extend(unless(nudged || before.body == after.body, || {
            format!("request {} asks something else than request {}", after.seq, before.seq)
        }));
    }
    for request in &seen.requests {
        let body = request.body.to_string();
        let leaked = cell.lost.split(' ').find(|word| body.contains(word));
        if let Some(word) = leaked.filter(|_| cell.loses_words()) {
            complaints.push(format!("request {} repeats {word:?} of a failed answer", request.seq));
        }
        let ended = request.ended;
        let open = matches!(ended, Ended::Open | Ended::Silence | Ended::Stopped);
        complaints.extend(unless(!open, || format!("request {} is left {ended:?}", request.seq)));
    }
    complaints
}

/// The tool ran once, and the step after it knows its result.
fn tools(cell: &Cell, seen: &Seen) -> Vec<String> {
    let due = cell.calls();
    let ends: Vec<&Value> = of_kind(seen, "tool_execution_end").collect();
    if let Some(code) = cell.entry.expected.tool {
        let told = ends.iter().all(|end| word(end, "/failure/code") == code);
        return Vec::from_iter(unless(told && ends.len() == due, || {
            format!("{due} calls are to be answered with {code}: {ends:?}")
        }));
    }
    let starts = of_kind(seen, "tool_execution_start").count();
    let good = ends.iter().filter(|e| e.get("ok") == Some(&true.into())).count();
    let mut complaints = Vec::from_iter(unless(starts == due && good == due, || {
        format!("{starts} tools began and {good} did what was asked, due is {due}")
    }));
    if due > 0 {
        let after = seen.requests.get(1).map(|request| request.body.to_string());
        let knows = after.is_some_and(|body| body.contains("the kettle sang before noon"));
        complaints.extend(unless(knows, || "the tool's result was not sent".to_owned()));
    }
    complaints
}

/// The next prompt ends well too, and remembers the whole answer, once, as the
/// last thing said before it.
fn memory(cell: &Cell, seen: &Seen) -> Vec<String> {
    let Some(outcome) = &seen.follow_up else { return Vec::new() };
    let asked = seen.requests.last().map(|last| last.body.to_string()).unwrap_or_default();
    let said = asked.matches(&cell.kept).count();
    let ended = (word(outcome, "/outcome"), word(outcome, "/text"));
    let attempts = number(outcome, "/attempts");
    // It may meet a connection that the server gave up meanwhile.
    let most = if cell.gives_up_connections() { 2 } else { 1 };
    [
        unless(said == 1 || cell.kept.trim().is_empty(), || {
            format!("the next prompt remembers the answer {said} times")
        }),
        unless(ended == ("completed", cell.kept.as_str()), || {
            format!("the next prompt ended {ended:?}")
        }),
        unless(attempts.is_some_and(|attempts| (1..=most).contains(&attempts)), || {
            format!("the next prompt took {attempts:?} attempts, at most {most} are due")
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// After a broken connection or an expired clock, a connection of its own.
fn connections(cell: &Cell, seen: &Seen) -> Vec<String> {
    if cell.strikes_in_handshake() {
        // No request tells of the connection that failed; each handshake is one.
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let attempts = seen.requests.get(cell.earlier()..).unwrap_or_default();
    let pairs = attempts.iter().zip(attempts.iter().skip(1));
    for (retry, (failed, next)) in of_kind(seen, "retry_scheduled").zip(pairs) {
        let transport = word(retry, "/failure/source") == "transport";
        complaints.extend(unless(!transport || failed.connection != next.connection, || {
            format!("request {} came on the connection that failed", next.seq)
        }));
    }
    complaints
}

/// The key went to the server and nowhere else.
fn secrets(cell: &Cell, seen: &Seen) -> Vec<String> {
    let (header, before) = cell.dialect.key_header();
    let key = format!("{before}{}", cell.key);
    let sent = seen.requests.iter().all(|request| request.headers.get(header) == Some(&key));
    let events = Value::from(seen.events.clone()).to_string();
    let told = events.contains(&cell.key) || seen.told.contains(&cell.key);
    [
        unless(sent, || "a request came without the key".to_owned()),
        unless(!told, || "the key can be seen in an event or in the outcome".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests;
