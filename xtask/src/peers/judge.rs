//! What is wrong with a turn: by what the host saw, and by what the peer itself
//! wrote down.

use turnbuckle_runtime::Outcome;

use super::{
    Verdict,
    turn::{Kind, NOTES, Seen},
};

/// What a peer wrote down of one turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Witness {
    /// Each request it got, in order, where it keeps a list.
    pub(crate) journal: Option<Vec<Request>>,
    /// How many tokens it made, where it counts them.
    pub(crate) tokens: Option<u64>,
    /// How many answers were cut on their way, where a relay of ours cuts them.
    pub(crate) cuts: Option<usize>,
}

/// One request, as a peer wrote it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) body: String,
    /// Whether it broke its own answer.
    pub(crate) interrupted: bool,
}

/// What is due.
#[derive(Debug)]
pub(crate) struct Due<'a> {
    pub(crate) kind: Kind,
    /// The last answer; `None` if the model says what it likes.
    pub(crate) text: Option<&'a str>,
    /// The path that the peer is asked at; `None` if a gateway stands between.
    pub(crate) path: Option<&'a str>,
}

/// Everything that is wrong.
pub(crate) fn verdict(due: &Due<'_>, seen: &Seen, witness: &Witness) -> Verdict {
    let parts = [ending, streaming, hands, recovery, requests, counts];
    let complaints: Vec<String> = parts.iter().flat_map(|part| part(due, seen, witness)).collect();
    if complaints.is_empty() { Verdict::Passed } else { Verdict::Failed(complaints) }
}

/// In one line, what the table says of a turn.
pub(crate) fn summary(seen: &Seen, witness: &Witness) -> String {
    let outcome = &seen.outcome;
    let mut said = vec![format!("{} pieces of text", seen.pieces())];
    if !outcome.tool_calls.is_empty() {
        let calls: Vec<&str> = outcome.tool_calls.iter().map(|call| call.name.as_str()).collect();
        said.push(format!("ran {}", calls.join(", ")));
    }
    said.push(match outcome.attempts {
        1 => "1 request".to_owned(),
        attempts => format!("{attempts} requests"),
    });
    for retry in &outcome.retries {
        said.push(format!("{} recovered", retry.code.as_str()));
    }
    if let Some(tokens) = witness.tokens {
        said.push(format!("{tokens} tokens by its count"));
    }
    if let Some(journal) = &witness.journal {
        said.push(format!("{} in its journal", journal.len()));
    }
    said.join(", ")
}

fn unless(holds: bool, complaint: impl FnOnce() -> String) -> Option<String> {
    (!holds).then(complaint)
}

/// It completed, with the exact text where that is known.
fn ending(due: &Due<'_>, seen: &Seen, _: &Witness) -> Vec<String> {
    let outcome = &seen.outcome;
    let failure = outcome.failure.as_ref().map(|failure| format!(": {failure}"));
    let completed = unless(outcome.outcome == Outcome::Completed, || {
        format!("it ended {:?}{}", outcome.outcome, failure.unwrap_or_default())
    });
    let text = match due.text {
        Some(text) => unless(outcome.text == text, || {
            format!("it says {:?}, and {text:?} was sent", outcome.text)
        }),
        None => unless(!outcome.text.is_empty(), || "it says nothing".to_owned()),
    };
    completed.into_iter().chain(text).collect()
}

/// The text came in pieces.
fn streaming(due: &Due<'_>, seen: &Seen, _: &Witness) -> Vec<String> {
    let least = if due.kind == Kind::Tool { 1 } else { 3 };
    let pieces = seen.pieces();
    let complaint = || format!("{pieces} pieces of text came, at least {least} are due");
    unless(pieces >= least, complaint).into_iter().collect()
}

/// A tool ran once where it is due, and did what was asked.
fn hands(due: &Due<'_>, seen: &Seen, _: &Witness) -> Vec<String> {
    let calls: Vec<(&str, bool)> =
        seen.outcome.tool_calls.iter().map(|call| (call.name.as_str(), call.ok)).collect();
    let expected: &[(&str, bool)] = if due.kind == Kind::Tool { &[("Read", true)] } else { &[] };
    unless(calls == expected, || format!("tools ran: {calls:?}, due: {expected:?}"))
        .into_iter()
        .collect()
}

/// One retry where the answer breaks, else none; what was shown of it is void.
fn recovery(due: &Due<'_>, seen: &Seen, _: &Witness) -> Vec<String> {
    let retries = seen.outcome.retries.len();
    let expected = usize::from(due.kind.is_broken());
    let counted = unless(retries == expected, || format!("{retries} retries, {expected} are due"));
    let restarts = seen.of_kind("message_restart").count();
    let replaced = unless(due.kind != Kind::Cut || restarts == 1, || {
        format!("the shown text was declared void {restarts} times, once is due")
    });
    counted.into_iter().chain(replaced).collect()
}

/// By the peer's journal: as many requests as attempts, at the right place, the
/// same again after a break, and the tool's result in the last.
fn requests(due: &Due<'_>, seen: &Seen, witness: &Witness) -> Vec<String> {
    let Some(requests) = &witness.journal else { return Vec::new() };
    let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
        return vec!["its journal is empty".to_owned()];
    };
    let attempts = seen.outcome.attempts as usize;
    let broken = requests.iter().filter(|request| request.interrupted).count();
    let astray = requests.iter().find(|request| due.path.is_some_and(|path| path != request.path));
    [
        unless(requests.len() == attempts, || {
            format!("its journal has {} requests of {attempts} attempts", requests.len())
        }),
        unless(broken == usize::from(due.kind.is_broken()), || {
            format!("it broke {broken} answers by its journal")
        }),
        astray.map(|request| format!("it was asked at {}", request.path)),
        unless(!due.kind.is_broken() || first.body == last.body, || {
            "the retry asks something else than the first attempt".to_owned()
        }),
        unless(due.kind != Kind::Tool || last.body.contains(NOTES.1.trim()), || {
            "the tool's result did not reach it".to_owned()
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// By the peer's counters: the tokens that it made are those that were reported;
/// of a broken answer nobody can say how many came.
fn counts(due: &Due<'_>, seen: &Seen, witness: &Witness) -> Vec<String> {
    let told = seen.outcome.usage.output_tokens;
    let tokens =
        unless(due.kind.is_broken() || witness.tokens.is_none() || told == witness.tokens, || {
            format!("it made {:?} tokens, and {told:?} were reported", witness.tokens)
        });
    let cuts = unless(witness.cuts.is_none_or(|cuts| cuts == 1), || {
        format!("{:?} answers were cut, one is due", witness.cuts)
    });
    tokens.into_iter().chain(cuts).collect()
}

#[cfg(test)]
mod tests;
