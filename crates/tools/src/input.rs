//! Whether the input of a call is what its tool takes, by the tool's own schema.

use std::fmt::Write as _;

use jsonschema::{PatternOptions, ValidationError, Validator, error::ValidationErrorKind};
use serde_json::{Map, Value};
use turnbuckle_errors::ErrorCode;

use crate::{ToolError, ToolSpec};

/// How many of the things that are wrong the model is told.
const TOLD: usize = 4;
/// The most characters of one of them, and of the list of arguments.
const EACH: usize = 300;
const LIST: usize = 600;
/// How much of a wrong name is quoted, in bytes.
const NAME: usize = 60;

/// A tool's schema, compiled once.
pub(crate) struct InputSchema {
    /// `None` for a schema that cannot be used; the tool itself judges then.
    validator: Option<Validator>,
}

impl InputSchema {
    /// Compiles the schema of a tool. References to other documents are not
    /// followed, and patterns run in linear time: a schema may come from anybody.
    pub(crate) fn of(spec: &ToolSpec) -> Self {
        let options = jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
        let validator = options.build(&spec.input_schema);
        if validator.is_err() {
            tracing::warn!(tool = %spec.name, "the input schema cannot be used; calls are not checked against it");
        }
        Self { validator: validator.ok() }
    }

    /// The input as the tool gets it.
    ///
    /// Models write `null` for an optional argument that they leave out. Where the
    /// schema forbids that, it is left out.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` that says where the input is wrong, and how.
    pub(crate) fn check(&self, spec: &ToolSpec, input: Value) -> Result<Value, ToolError> {
        if !input.is_object() {
            return Err(wrong(spec, "the arguments must be one JSON object"));
        }
        let Some(validator) = &self.validator else { return Ok(input) };
        if validator.is_valid(&input) {
            return Ok(input);
        }
        let input = without_nulls(spec, input);
        let mut errors = validator.iter_errors(&input).peekable();
        if errors.peek().is_none() {
            drop(errors);
            return Ok(input);
        }
        let mut why = String::new();
        for error in errors.by_ref().take(TOLD) {
            if !why.is_empty() {
                why.push_str("; ");
            }
            let path = error.instance_path().as_str();
            if !path.is_empty() {
                let _ = write!(why, "at `{}`: ", cut(path, EACH));
            }
            why.push_str(cut(&told(&error), EACH));
        }
        if errors.next().is_some() {
            why.push_str("; and more");
        }
        Err(wrong(spec, &why))
    }
}

/// What is wrong, without the value: the model knows it, and it may be long.
fn told(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Required { property } => match property.as_str() {
            Some(name) => format!("`{name}` is missing"),
            None => error.masked_with("it").to_string(),
        },
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let names = unexpected.iter().map(|name| format!("`{}`", cut(name, NAME)));
            format!("there is no argument {}", names.collect::<Vec<_>>().join(", "))
        }
        _ => error.masked_with("it").to_string(),
    }
}

fn without_nulls(spec: &ToolSpec, input: Value) -> Value {
    let required = spec.input_schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)));
    match input {
        Value::Object(mut fields) => {
            fields.retain(|name, value| !value.is_null() || is_required(name));
            Value::Object(fields)
        }
        other => other,
    }
}

fn wrong(spec: &ToolSpec, why: &str) -> ToolError {
    let mut text = format!("{}: {why}", spec.name);
    if let Some(arguments) = arguments(spec).filter(|arguments| !arguments.is_empty()) {
        let _ = write!(text, "; the arguments are {}", cut(&arguments, LIST));
    }
    ToolError::new(ErrorCode::InvalidArgument, text)
}

/// What the schema says about the arguments, in one line.
fn arguments(spec: &ToolSpec) -> Option<String> {
    let properties: &Map<String, Value> = spec.input_schema.get("properties")?.as_object()?;
    let required = spec.input_schema.get("required").and_then(Value::as_array);
    let list = properties.iter().map(|(name, schema)| {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
        let needed = required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)));
        format!("`{name}` ({kind}{})", if needed { "" } else { ", optional" })
    });
    Some(list.collect::<Vec<_>>().join(", "))
}

/// The beginning of a text, at most so many bytes, no character cut.
fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
