//! TOML to steps and settings. The tables are walked by hand, because every
//! complaint needs the place it is about and the names that would have been
//! right.

mod parts;

use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

use super::{
    dealing::{After, Dealing, Scope},
    error::{At, ScriptError, unknown_behaviour},
    field::{Field, Place, Source, in_order},
    serving::Serving,
    step::Step,
    when::Match,
};
use crate::{
    behaviour::{Gzip, HangUp, How, Http2Code, Protocol, Tls},
    catalogue,
    content::{Finish, ToolCall, Usage},
};

const SCRIPT_KEYS: &[&str] = &["step", "server", "seed", "scope", "session_header", "after"];
const SERVER_KEYS: &[&str] = &["tls", "protocol", "ca_file"];
const STEP_KEYS: &[&str] = &[
    "behaviour",
    "include",
    "match",
    "probability",
    "times",
    "text",
    "reasoning",
    "tool_call",
    "usage",
    "finish",
    "chunk_chars",
    "headers_delay_ms",
    "event_delay_ms",
    "cut_delay_ms",
    "error",
    "raw",
    "redirect",
    "handshake",
    "status",
    "cut",
    "insert",
    "without_terminal",
    "at_event",
    "how",
    "http2_code",
    "gzip",
    "hang_up",
    "retry_after_ms",
    "headers",
];
const CALL_KEYS: &[&str] = &["name", "id", "arguments"];
const USAGE_KEYS: &[&str] = &["input", "output", "cached", "reasoning"];
const MATCH_KEYS: &[&str] =
    &["last_user_contains", "body_contains", "model", "path_contains", "header", "has_tool_result"];

/// One file of a script: its steps, and its settings where it has any.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) items: Vec<Item>,
    pub(super) serving: Option<Serving>,
    pub(super) dealing: Dealing,
    /// The settings of the whole script that it has, and where.
    pub(super) settings: Vec<(&'static str, At)>,
}

/// A step, or the steps of another file.
#[derive(Debug)]
pub(super) enum Item {
    Step(Box<Step>),
    Include { at: At, name: String },
}

pub(super) fn script(source: &Source<'_>) -> Result<Parsed, ScriptError> {
    let root = DeTable::parse(source.text).map_err(|error| ScriptError::Syntax {
        at: source.at(error.span().unwrap_or(0..0)),
        message: error.message().to_owned(),
    })?;
    let mut parsed = Parsed::default();
    for field in source.fields(root.get_ref(), SCRIPT_KEYS)? {
        if field.key == "step" {
            for table in field.tables()? {
                parsed.items.push(item(source, &table)?);
            }
            continue;
        }
        parsed.settings.push((field.key, field.at()));
        let dealing = parsed.dealing.clone();
        parsed.dealing = match field.key {
            "server" => {
                parsed.serving = Some(server(&field)?);
                dealing
            }
            "seed" => dealing.seed(field.whole("a whole number, 0 or more", 0)?),
            "scope" => dealing.scope(field.word(Scope::WORDS, Scope::from_word)?),
            "after" => dealing.after(field.word(After::WORDS, After::from_word)?),
            _ => dealing.session_header(field.string()?),
        };
    }
    Ok(parsed)
}

fn server(field: &Field<'_>) -> Result<Serving, ScriptError> {
    let mut serving = Serving::default();
    let table = field.table()?;
    let parts = field.source.fields(table.table, SERVER_KEYS)?;
    if let Some(file) = parts.iter().find(|part| part.key == "ca_file")
        && !parts.iter().any(|part| part.key == "tls")
    {
        let table = "[server], whose `ca_file` would stay unwritten";
        return Err(ScriptError::MissingKey { at: file.at(), key: "tls", table });
    }
    for part in parts {
        serving = match part.key {
            "tls" => serving.tls(part.word(Tls::WORDS, Tls::from_word)?),
            "protocol" => serving.protocol(part.word(Protocol::WORDS, Protocol::from_word)?),
            _ => serving.ca_file(part.string()?),
        };
    }
    Ok(serving)
}

fn item(source: &Source<'_>, table: &Place<'_>) -> Result<Item, ScriptError> {
    let fields = source.fields(table.table, STEP_KEYS)?;
    let Some(include) = fields.iter().find(|field| field.key == "include") else {
        return Ok(Item::Step(Box::new(step(source, table, &fields)?)));
    };
    if let Some(beside) = fields.iter().find(|field| field.key != "include") {
        return Err(ScriptError::Beside {
            at: beside.at(),
            key: beside.key,
            other: "include",
            why: "the included steps say it themselves",
        });
    }
    Ok(Item::Include { at: include.at(), name: include.string()?.to_owned() })
}

fn step(source: &Source<'_>, table: &Place<'_>, fields: &[Field<'_>]) -> Result<Step, ScriptError> {
    let mut step = match fields.iter().find(|field| field.key == "behaviour") {
        Some(behaviour) => {
            let name = behaviour.string()?;
            let entry = catalogue::find(name);
            Step::from_entry(entry.ok_or_else(|| unknown_behaviour(name, behaviour.at()))?)
        }
        None if fields.iter().any(|field| parts::KEYS.contains(&field.key)) => Step::composed(),
        None => return Err(source.missing(table, "behaviour", parts::STEP)),
    };
    parts::only_one_answer(fields)?;
    step.lines.step = Some(source.at(table.span.clone()));
    for field in fields {
        step.lines.keys.push((field.key, field.at()));
        step = set(step, field)?;
    }
    Ok(step)
}

fn set(step: Step, field: &Field<'_>) -> Result<Step, ScriptError> {
    Ok(match field.key {
        "match" => step.when(conditions(field)?),
        "probability" => step.probability(field.probability()?),
        "times" => step.times(times(field)?),
        "text" => step.text(field.string()?),
        "reasoning" => step.reasoning(field.string()?),
        "tool_call" => field.tables()?.into_iter().try_fold(step, |step, table| {
            Ok::<_, ScriptError>(step.call(tool_call(field.source, &table)?))
        })?,
        "usage" => step.usage(usage(field)?),
        "finish" => step.finish(field.word(Finish::WORDS, Finish::from_word)?),
        "chunk_chars" => step.chunk_chars(field.count()?),
        "headers_delay_ms" => step.headers_delay(field.millis()?),
        "event_delay_ms" => step.event_delay(field.millis()?),
        "cut_delay_ms" => step.cut_delay(field.millis()?),
        "at_event" => step.at_event(field.count()?),
        "how" => step.how(field.word(How::WORDS, How::from_word)?),
        "http2_code" => step.http2_code(field.word(Http2Code::WORDS, Http2Code::from_word)?),
        "gzip" => step.gzip(field.word(Gzip::WORDS, Gzip::from_word)?),
        "hang_up" => step.hang_up(field.word(HangUp::WORDS, HangUp::from_word)?),
        "retry_after_ms" => step.retry_after(field.millis()?),
        "headers" => {
            field.strings()?.into_iter().fold(step, |step, (name, value)| step.header(name, value))
        }
        _ => parts::set(step, field)?,
    })
}

fn times(field: &Field<'_>) -> Result<usize, ScriptError> {
    let always = |word: &str| (word == "always").then_some(Step::ALWAYS);
    match field.value.get_ref() {
        DeValue::String(_) => field.word(&["always"], always),
        DeValue::Integer(_) => field.count(),
        _ => Err(field.wrong("a whole number, 1 or more, or \"always\"")),
    }
}

fn conditions(field: &Field<'_>) -> Result<Match, ScriptError> {
    let mut when = Match::default();
    for part in field.source.fields(field.table()?.table, MATCH_KEYS)? {
        when = match part.key {
            "last_user_contains" => when.last_user_contains(part.string()?),
            "body_contains" => when.body_contains(part.string()?),
            "model" => when.model(part.string()?),
            "path_contains" => when.path_contains(part.string()?),
            "has_tool_result" => when.has_tool_result(part.flag()?),
            _ => {
                part.strings()?.into_iter().fold(when, |when, (name, text)| when.header(name, text))
            }
        };
    }
    Ok(when)
}

fn tool_call(source: &Source<'_>, table: &Place<'_>) -> Result<ToolCall, ScriptError> {
    let fields = source.fields(table.table, CALL_KEYS)?;
    let get = |key| fields.iter().find(|field| field.key == key);
    let missing = || source.missing(table, "name", "[[step.tool_call]]");
    let name = get("name").ok_or_else(missing)?.string()?;
    let call = match get("arguments").map(|field| (field, field.value.get_ref())) {
        None => ToolCall::with_raw_arguments(name, "{}"),
        // A string is sent as it stands: broken JSON is a fault worth scripting.
        Some((_, DeValue::String(raw))) => ToolCall::with_raw_arguments(name, raw.as_ref()),
        Some((_, value @ DeValue::Table(_))) => ToolCall::new(name, &json(value)),
        Some((field, _)) => return Err(field.wrong("a table or a string")),
    };
    match get("id") {
        Some(id) => Ok(call.id(id.string()?)),
        None => Ok(call),
    }
}

fn usage(field: &Field<'_>) -> Result<Usage, ScriptError> {
    let mut usage = Usage::default();
    for part in field.source.fields(field.table()?.table, USAGE_KEYS)? {
        let tokens = part.whole("a whole number of tokens, 0 or more", 0)?;
        match part.key {
            "input" => usage.input = tokens,
            "output" => usage.output = tokens,
            "cached" => usage.cached = tokens,
            _ => usage.reasoning = tokens,
        }
    }
    Ok(usage)
}

/// TOML to JSON, keys in the order they were written.
fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(yes) => Value::from(*yes),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::from(number),
            // Beyond 64 bits it goes on as the text that was written.
            Err(_) => Value::from(number.as_str()),
        },
        DeValue::Float(number) => {
            let parsed = number.as_str().parse().ok().and_then(Number::from_f64);
            parsed.map_or_else(|| Value::from(number.as_str()), Value::Number)
        }
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| json(item.get_ref())).collect())
        }
        DeValue::Table(table) => {
            let mut map = Map::new();
            for (name, value) in in_order(table) {
                map.insert(name.get_ref().to_string(), json(value.get_ref()));
            }
            Value::Object(map)
        }
    }
}
