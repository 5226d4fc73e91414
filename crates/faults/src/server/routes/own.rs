//! What the server says of itself, under `/_faults/`: the record, and what is
//! left of the script. None of it is recorded.

use serde_json::{Value, json};

use super::{Plain, error};
use crate::{Step, record::RecordedRequest, server::shared::Shared};

const FILTERS: &str = "session=NAME, connection=N, step=N, since=SEQ (after this number), \
                       bodies=whole";

/// Bytes of a body that are told, unless whole ones are asked for: a client sends
/// its conversation again with each request, and the record is read by people.
const BODY_TOLD: usize = 64 * 1024;

/// Answers a request for `/_faults/NAME`.
pub(super) fn answer(shared: &Shared, method: &str, name: &str, query: &str) -> Plain {
    match (method, name) {
        ("GET", "requests") => match Filter::read(query) {
            Ok(filter) => requests(shared, &filter),
            Err(message) => error(400, "invalid_request_error", message),
        },
        ("GET", "script") => Plain::new(200, &script(shared)),
        ("POST", "reset") => {
            shared.reset();
            Plain::new(200, &json!({"reset": true}))
        }
        (_, "requests" | "script") => super::wrong_method(method, &path(name), "GET"),
        (_, "reset") => super::wrong_method(method, &path(name), "POST"),
        _ => {
            let message = format!(
                "nothing is served at {}: there are GET /_faults/requests, GET /_faults/script \
                 and POST /_faults/reset",
                path(name)
            );
            error(404, "invalid_request_error", message)
        }
    }
}

fn path(name: &str) -> String {
    format!("/_faults/{name}")
}

fn requests(shared: &Shared, filter: &Filter) -> Plain {
    let mut kept = shared.records_where(|record| filter.keeps(record));
    if !filter.whole_bodies {
        kept.iter_mut().for_each(cut_body);
    }
    match serde_json::to_value(kept) {
        Ok(records) => Plain::new(200, &records),
        Err(problem) => error(500, "server_error", format!("cannot write the record: {problem}")),
    }
}

/// Leaves the beginning of a long body, as text.
fn cut_body(record: &mut RecordedRequest) {
    // A short one is told as it is, whatever its JSON is written like.
    if record.body_bytes <= BODY_TOLD || record.body.is_null() {
        return;
    }
    let mut text = match &record.body {
        Value::String(text) => text.clone(),
        json => json.to_string(),
    };
    text.truncate(text.floor_char_boundary(BODY_TOLD));
    record.body = format!("{text}…").into();
}

/// The steps, how they are dealt, and how often each may still be, in each row
/// that was begun.
fn script(shared: &Shared) -> Value {
    let script = shared.script();
    let step = |(number, step): (usize, &Step)| {
        json!({
            "step": number, "behaviour": step.name(), "does": step.behaviour().to_string(),
            "times": Some(step.plays()).filter(|times| *times != Step::ALWAYS), "probability": step.chance(),
            "matches": !step.is_for().is_for_all(),
        })
    };
    let steps: Vec<Value> = (1..).zip(script.steps()).map(step).collect();
    let left = shared.left();
    json!({
        "scope": script.dealing().scope.as_str(), "after": script.dealing().after.as_str(),
        "seed": shared.seed(), "attempts": left.attempts, "steps": steps, "rows": left.rows,
    })
}

/// Which requests of the record are wanted.
#[derive(Debug, Default)]
struct Filter {
    session: Option<String>,
    connection: Option<usize>,
    step: Option<usize>,
    since: usize,
    whole_bodies: bool,
}

impl Filter {
    fn read(query: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let number = || {
                let bad = |_| format!("`{key}` must be a whole number, not {value:?}");
                value.parse::<usize>().map_err(bad)
            };
            match key.as_ref() {
                "session" => filter.session = Some(value.into_owned()),
                "connection" => filter.connection = Some(number()?),
                "step" => filter.step = Some(number()?),
                "since" => filter.since = number()?,
                "bodies" if value == "whole" => filter.whole_bodies = true,
                "bodies" => return Err(format!("`bodies` can only be `whole`, not {value:?}")),
                _ => return Err(format!("unknown filter `{key}`; allowed: {FILTERS}")),
            }
        }
        Ok(filter)
    }

    fn keeps(&self, record: &RecordedRequest) -> bool {
        let same =
            |wanted: Option<usize>, found: Option<usize>| wanted.is_none() || wanted == found;
        record.seq > self.since
            && (self.session.is_none() || self.session == record.session)
            && same(self.connection, Some(record.connection))
            && same(self.step, record.step)
    }
}
