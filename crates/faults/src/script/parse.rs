//! TOML to steps. The tables are walked by hand, because every complaint
//! needs the line it is about and the names that would have been right.

use std::{ops::Range, time::Duration};

use serde_json::{Map, Number, Value};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    error::{ScriptError, nearest, unknown_behaviour},
    serving::Serving,
    step::Step,
};
use crate::{
    behaviour::{Gzip, HangUp, How, Http2Code, Protocol, Tls},
    catalogue,
    content::{Finish, ToolCall, Usage},
};

const SCRIPT_KEYS: &[&str] = &["step", "server"];
const SERVER_KEYS: &[&str] = &["tls", "protocol", "ca_file"];
const STEP_KEYS: &[&str] = &[
    "behaviour",
    "text",
    "reasoning",
    "tool_call",
    "usage",
    "finish",
    "chunk_chars",
    "headers_delay_ms",
    "event_delay_ms",
    "cut_delay_ms",
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

/// The steps of a script, and its `[server]` table if it has one.
pub(super) fn script(source: &str) -> Result<(Vec<Step>, Option<Serving>), ScriptError> {
    let source = Source(source);
    let root = DeTable::parse(source.0).map_err(|error| ScriptError::Syntax {
        line: source.line(error.span().unwrap_or(0..0)),
        message: error.message().to_owned(),
    })?;
    let mut steps = Vec::new();
    let mut serving = None;
    for field in source.fields(root.get_ref(), SCRIPT_KEYS)? {
        if field.key == "server" {
            serving = Some(server(&field)?);
            continue;
        }
        for table in field.tables()? {
            steps.push(step(&source, &table)?);
        }
    }
    Ok((steps, serving))
}

fn server(field: &Field<'_>) -> Result<Serving, ScriptError> {
    let mut serving = Serving::default();
    for part in field.source.fields(field.table()?.table, SERVER_KEYS)? {
        serving = match part.key {
            "tls" => serving.tls(part.word(Tls::WORDS, Tls::from_word)?),
            "protocol" => serving.protocol(part.word(Protocol::WORDS, Protocol::from_word)?),
            _ => serving.ca_file(part.string()?),
        };
    }
    Ok(serving)
}

fn step(source: &Source<'_>, table: &Place<'_>) -> Result<Step, ScriptError> {
    let line = source.line(table.span.clone());
    let fields = source.fields(table.table, STEP_KEYS)?;
    let Some(behaviour) = fields.iter().find(|field| field.key == "behaviour") else {
        return Err(missing(line, "behaviour", "[[step]]"));
    };
    let name = behaviour.string()?;
    let Some(entry) = catalogue::find(name) else {
        return Err(unknown_behaviour(name, Some(behaviour.line())));
    };
    let mut step = Step::from_entry(entry);
    step.lines.step = Some(line);
    for field in &fields {
        step.lines.keys.push((field.key, field.line()));
        step = set(step, field)?;
    }
    Ok(step)
}

fn set(step: Step, field: &Field<'_>) -> Result<Step, ScriptError> {
    Ok(match field.key {
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
            let mut step = step;
            for (key, value) in in_order(field.table()?.table) {
                let value = field.source.field("headers", key.get_ref(), value);
                step = step.header(value.name.clone(), value.string()?);
            }
            step
        }
        // `behaviour`, read before the others.
        _ => step,
    })
}

fn tool_call(source: &Source<'_>, table: &Place<'_>) -> Result<ToolCall, ScriptError> {
    let line = source.line(table.span.clone());
    let fields = source.fields(table.table, CALL_KEYS)?;
    let get = |key| fields.iter().find(|field| field.key == key);
    let name = get("name").ok_or_else(|| missing(line, "name", "[[step.tool_call]]"))?.string()?;
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

/// The text, to turn offsets into lines.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn line(&self, span: Range<usize>) -> usize {
        let before = self.0.as_bytes().get(..span.start).unwrap_or(self.0.as_bytes());
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

impl<'a> Source<'a> {
    /// The fields of a table in the order they were written.
    fn fields(
        &'a self,
        table: &'a DeTable<'a>,
        allowed: &'static [&'static str],
    ) -> Result<Vec<Field<'a>>, ScriptError> {
        let mut fields = Vec::new();
        for (key, value) in in_order(table) {
            let name: &str = key.get_ref();
            let Some(known) = allowed.iter().find(|known| **known == name) else {
                return Err(ScriptError::UnknownKey {
                    line: self.line(key.span()),
                    key: name.to_owned(),
                    nearest: nearest(name, allowed),
                    allowed,
                });
            };
            fields.push(self.field(known, name, value));
        }
        Ok(fields)
    }

    fn field(
        &'a self,
        key: &'static str,
        name: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Field<'a> {
        Field { source: self, key, name: name.to_owned(), value }
    }
}

/// A table and where it stands.
struct Place<'a> {
    table: &'a DeTable<'a>,
    span: Range<usize>,
}

/// A key that is allowed at its place, and its value.
struct Field<'a> {
    source: &'a Source<'a>,
    key: &'static str,
    name: String,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Field<'a> {
    fn line(&self) -> usize {
        self.source.line(self.value.span())
    }

    fn wrong(&self, wanted: &'static str) -> ScriptError {
        ScriptError::WrongType {
            line: self.line(),
            key: self.name.clone(),
            wanted,
            found: kind(self.value.get_ref()),
        }
    }

    fn string(&self) -> Result<&'a str, ScriptError> {
        self.value.get_ref().as_str().ok_or_else(|| self.wrong("a string"))
    }

    fn table(&self) -> Result<Place<'a>, ScriptError> {
        place(self.value).ok_or_else(|| self.wrong("a table"))
    }

    fn tables(&self) -> Result<Vec<Place<'a>>, ScriptError> {
        let wrong = || self.wrong("an array of tables: write its header in double brackets");
        let array = self.value.get_ref().as_array().ok_or_else(wrong)?;
        array.iter().map(|item| place(item).ok_or_else(wrong)).collect()
    }

    fn word<T>(
        &self,
        allowed: &'static [&'static str],
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ScriptError> {
        let word = self.string()?;
        read(word).ok_or_else(|| ScriptError::UnknownWord {
            line: self.line(),
            key: self.key,
            word: word.to_owned(),
            nearest: nearest(word, allowed),
            allowed,
        })
    }

    fn whole(&self, wanted: &'static str, least: u64) -> Result<u64, ScriptError> {
        let Some(number) = self.value.get_ref().as_integer() else {
            return Err(self.wrong(wanted));
        };
        let parsed = u64::from_str_radix(number.as_str(), number.radix());
        // TOML integers have 64 bits with sign; more could not be written back.
        let fits = parsed.ok().filter(|n| *n >= least && i64::try_from(*n).is_ok());
        fits.ok_or_else(|| ScriptError::OutOfRange {
            line: self.line(),
            key: self.key,
            wanted,
            found: number.as_str().to_owned(),
        })
    }

    fn count(&self) -> Result<usize, ScriptError> {
        let count = self.whole("a whole number, 1 or more", 1)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    fn millis(&self) -> Result<Duration, ScriptError> {
        let wanted = "a whole number of milliseconds, 0 or more";
        Ok(Duration::from_millis(self.whole(wanted, 0)?))
    }
}

fn place<'a>(value: &'a Spanned<DeValue<'a>>) -> Option<Place<'a>> {
    let span = value.span();
    value.get_ref().as_table().map(|table| Place { table, span })
}

/// The map is sorted by name; the spans know the order of writing.
fn in_order<'a>(
    table: &'a DeTable<'a>,
) -> Vec<(&'a Spanned<toml::de::DeString<'a>>, &'a Spanned<DeValue<'a>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn missing(line: usize, key: &'static str, table: &'static str) -> ScriptError {
    ScriptError::MissingKey { line, key, table }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
