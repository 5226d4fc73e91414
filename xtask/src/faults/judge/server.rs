//! What the server and the disk saw of a session.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use turnbuckle_faults::{Ended, RecordedRequest};

use super::{kind, unless, word};
use crate::faults::{
    due::{Attempt, Call, Due},
    stage::{NOTES, Part, Seen},
    words,
};

pub(super) fn complaints(part: &Part, due: &Due, seen: &Seen) -> Vec<String> {
    let session = Session::new(part, due, seen);
    let promises = [counts, repeats, history, lost_words, ends, connections, files, secrets];
    promises.iter().flat_map(|promise| promise(&session)).collect()
}

/// The attempts that are due, each with the request that came of it.
struct Session<'a> {
    part: &'a Part,
    due: &'a Due,
    seen: &'a Seen,
    /// The place of the attempt among all, and the request of it.
    asked: Vec<(usize, &'a Attempt, &'a RecordedRequest)>,
}

impl<'a> Session<'a> {
    fn new(part: &'a Part, due: &'a Due, seen: &'a Seen) -> Self {
        let answered = seen.requests.iter().filter(|request| request.step.is_some());
        let makes_one =
            |(_, attempt): &(usize, &Attempt)| attempt.dealt.is_some() && !attempt.in_handshake;
        let attempts = due.attempts.iter().enumerate().filter(makes_one);
        let asked = attempts.zip(answered).map(|((at, attempt), one)| (at, attempt, one));
        Self { part, due, seen, asked: asked.collect() }
    }
}

/// As many attempts, requests and connections as are due.
fn counts(session: &Session<'_>) -> Vec<String> {
    let Session { due, seen, .. } = session;
    let (dealt, documented) = (seen.dealt, due.dealt());
    let steps: Vec<usize> = seen.requests.iter().filter_map(|request| request.step).collect();
    let wanted = due.attempts.iter().filter(|attempt| !attempt.in_handshake);
    let wanted: Vec<usize> = wanted.filter_map(|attempt| attempt.dealt).collect();
    let most = due.attempts.len() + due.spare;
    let (connections, left) = seen.connections;
    [
        unless(dealt == documented, || {
            format!("the server saw {dealt} attempts, documented are {documented}")
        }),
        unless(steps == wanted, || {
            format!("the server played the steps {steps:?}, due are {wanted:?}")
        }),
        unless(connections <= most, || format!("{connections} connections for {most} attempts")),
        unless(left == 0, || format!("{left} connections are left open at the end")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Every attempt of a step asks the same, so a failed one leaves nothing in the next.
fn repeats(session: &Session<'_>) -> Vec<String> {
    let pairs = session.asked.iter().zip(session.asked.iter().skip(1));
    let mut complaints = Vec::new();
    for ((_, before, asked), (_, after, again)) in pairs {
        let one_step = (before.prompt, before.step) == (after.prompt, after.step);
        // A nudge, or a history made smaller, is another question.
        let same = before.retry.is_some_and(|it| !matches!(it.budget, "silent" | "overflow"));
        complaints.extend(unless(!one_step || !same || asked.body == again.body, || {
            format!("request {} asks something else than request {}", again.seq, asked.seq)
        }));
    }
    complaints
}

/// A request holds every whole answer before it as often as it was given, and what
/// the tool read.
fn history(session: &Session<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (place, _, request) in &session.asked {
        let body = request.body.to_string();
        let kept: Vec<&Attempt> = session.due.kept_before(*place).collect();
        let texts: BTreeSet<&str> = kept.iter().map(|attempt| attempt.text.as_str()).collect();
        for text in texts.into_iter().filter(|text| !text.trim().is_empty()) {
            let due = kept.iter().filter(|attempt| attempt.text == text).count();
            // Within the arguments of a call it may stand once more.
            let known = |call: &Call| call.arguments.to_string().contains(text);
            let calls = kept.iter().flat_map(|attempt| &attempt.calls);
            let due = due + calls.filter(|call| known(call)).count();
            let quoted = Value::from(text).to_string();
            let said = body.matches(quoted.trim_matches('"')).count();
            complaints.extend(unless(said == due, || {
                format!("request {} remembers {text:?} {said} times, due are {due}", request.seq)
            }));
        }
        let reads = kept.iter().flat_map(|attempt| &attempt.calls).any(|call| {
            call.name == "Read"
                && call.refused.is_none()
                && call.arguments.get("path").is_some_and(|path| path == NOTES.0)
        });
        let knows = body.contains(NOTES.1.trim());
        complaints.extend(unless(knows == reads, || {
            format!("request {}: the tool's result was not sent, or is not due", request.seq)
        }));
    }
    complaints
}

/// No word of a failed answer, and no wording of a failure, is in any request.
fn lost_words(session: &Session<'_>) -> Vec<String> {
    let (mut kept, mut lost) = (BTreeSet::new(), BTreeSet::new());
    for attempt in &session.due.attempts {
        let said = words::of(&attempt.text).chain(words::of(&attempt.also));
        let words = said.filter(|word| word.len() > 3);
        if attempt.fails.is_none() { kept.extend(words) } else { lost.extend(words) }
    }
    // What stands in the first request was there before anything failed.
    let first = session.seen.requests.first().map(|first| first.body.to_string());
    let known = first.unwrap_or_default();
    lost.retain(|word| !kept.contains(word) && !known.contains(*word));
    let failures = session.seen.prompts.iter().flat_map(|told| &told.events);
    let wordings: BTreeSet<&str> = failures
        .filter(|event| kind(event) == "retry_scheduled")
        .map(|event| word(event, "/failure/message"))
        // What is shorter stands in many a request by itself.
        .filter(|wording| wording.len() > 8)
        .collect();
    let mut complaints = Vec::new();
    for request in &session.seen.requests {
        let body = request.body.to_string();
        if let Some(word) = lost.iter().find(|word| body.contains(**word)) {
            complaints.push(format!("request {} repeats {word:?} of a failed answer", request.seq));
        }
        if let Some(wording) = wordings.iter().find(|wording| body.contains(**wording)) {
            complaints.push(format!("request {} repeats the failure {wording:?}", request.seq));
        }
    }
    complaints
}

/// The server knows how each exchange ended, and sent the client nowhere else.
fn ends(session: &Session<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    for request in &session.seen.requests {
        let ended = request.ended;
        let open = matches!(ended, Ended::Open | Ended::Silence | Ended::Stopped);
        complaints.extend(unless(!open, || format!("request {} is left {ended:?}", request.seq)));
        let elsewhere = request.path.as_str().starts_with("/elsewhere");
        complaints.extend(unless(!elsewhere, || {
            format!("request {} followed a redirect to another host", request.seq)
        }));
    }
    complaints
}

/// After a broken connection or an expired clock, a connection of its own.
fn connections(session: &Session<'_>) -> Vec<String> {
    let retries: Vec<&Value> = session
        .seen
        .prompts
        .iter()
        .flat_map(|told| &told.events)
        .filter(|event| kind(event) == "retry_scheduled")
        .collect();
    let announced: Vec<usize> = session
        .due
        .attempts
        .iter()
        .enumerate()
        .filter(|(_, attempt)| attempt.retry.is_some())
        .map(|(at, _)| at)
        .collect();
    let mut complaints = Vec::new();
    for pair in session.asked.windows(2) {
        let [(failed_at, _, failed), (next_at, _, next)] = pair else { continue };
        // Between them an attempt may have failed of which no request came.
        if failed_at + 1 != *next_at {
            continue;
        }
        let retry = announced.iter().position(|at| at == failed_at).and_then(|at| retries.get(at));
        let transport = retry.is_some_and(|it| word(it, "/failure/source") == "transport");
        complaints.extend(unless(!transport || failed.connection != next.connection, || {
            format!("request {} came on the connection that failed", next.seq)
        }));
    }
    complaints
}

/// The calls of whole answers did their work, once each, and no others did any.
fn files(session: &Session<'_>) -> Vec<String> {
    let mut due = BTreeMap::from([(NOTES.0.to_owned(), NOTES.1.to_owned())]);
    let whole = session.due.attempts.iter().filter(|attempt| attempt.fails.is_none());
    for call in whole.flat_map(|attempt| &attempt.calls) {
        match call.name.as_str() {
            "Write" => {
                let (path, text) =
                    (word(&call.arguments, "/path"), word(&call.arguments, "/content"));
                due.insert(path.to_owned(), text.to_owned());
            }
            "Bash" => {
                let said = word(&call.arguments, "/command").strip_prefix("echo ");
                if let Some((line, file)) = said.and_then(|said| said.split_once(" >> ")) {
                    due.entry(file.to_owned()).or_default().push_str(&format!("{line}\n"));
                }
            }
            _ => {}
        }
    }
    let seen = &session.seen.files;
    let complaint = unless(*seen == due, || format!("the files are {seen:?}, due are {due:?}"));
    complaint.into_iter().collect()
}

/// The key went to the server and nowhere else.
fn secrets(session: &Session<'_>) -> Vec<String> {
    let Session { part, seen, .. } = session;
    let (header, before) = part.dialect.key_header();
    let key = format!("{before}{}", part.key);
    let sent = seen.requests.iter().all(|request| request.headers.get(header) == Some(&key));
    [
        unless(sent, || "a request came without the key".to_owned()),
        unless(!seen.key_told, || "the key can be seen in an event or in the outcome".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect()
}
