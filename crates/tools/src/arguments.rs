//! Arguments: their schema for the model, and errors that name the argument.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;
use turnbuckle_errors::ErrorCode;

use crate::{ToolError, ToolSpec};

/// How much of a wrong name is quoted, in characters.
const QUOTED: usize = 60;
/// How much of an error of the parser is told, in characters.
const LONGEST_ERROR: usize = 300;

/// The introduction of a tool whose arguments are `T`.
pub(crate) fn spec<T: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: schema::<T>(),
    }
}

/// The schema of `T`: inline, without what models and providers have no use for.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("title");
        schema.remove("description");
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for property in properties.into_iter().flat_map(serde_json::Map::values_mut) {
            if let Some(property) = property.as_object_mut() {
                property.remove("format");
                property.remove("default");
            }
        }
    }
    schema
}

/// Reads the arguments of a call.
///
/// # Errors
///
/// `INVALID_ARGUMENT` that names the argument at fault and the allowed ones.
pub(crate) fn parse<T: DeserializeOwned>(spec: &ToolSpec, input: Value) -> Result<T, ToolError> {
    let allowed = Allowed::of(spec);
    allowed.check(&input)?;
    serde_json::from_value(input).map_err(|error| {
        // It may quote the argument.
        let error: String = error.to_string().chars().take(LONGEST_ERROR).collect();
        allowed.wrong(&error)
    })
}

/// What a schema says about the arguments, for errors.
struct Allowed<'a> {
    spec: &'a ToolSpec,
    properties: Vec<Property<'a>>,
    required: Vec<&'a str>,
    /// Whether there may be others.
    open: bool,
}

struct Property<'a> {
    name: &'a str,
    kind: &'a str,
    /// Whether it is a number that may be below zero.
    signed: bool,
}

impl<'a> Allowed<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        let properties = spec.input_schema.get("properties").and_then(Value::as_object);
        let property = |(name, schema): (&'a String, &'a Value)| Property {
            name,
            kind: schema.get("type").and_then(Value::as_str).unwrap_or("any"),
            signed: schema.get("minimum").is_none(),
        };
        let required = spec.input_schema.get("required").and_then(Value::as_array);
        Self {
            spec,
            properties: properties.into_iter().flatten().map(property).collect(),
            required: required.into_iter().flatten().filter_map(Value::as_str).collect(),
            open: spec.input_schema.get("additionalProperties") != Some(&Value::Bool(false)),
        }
    }

    fn check(&self, input: &Value) -> Result<(), ToolError> {
        let Some(input) = input.as_object() else {
            return Err(self.wrong("the arguments must be one JSON object"));
        };
        for (name, value) in input {
            let Some(property) = self.properties.iter().find(|known| known.name == name) else {
                if self.open {
                    continue;
                }
                let name: String = name.chars().take(QUOTED).collect();
                return Err(self.wrong(&format!("there is no argument `{name}`")));
            };
            let left_out = value.is_null() && !self.required.contains(&name.as_str());
            if !left_out && !property.fits(value) {
                let kind = property.kind;
                let article = if kind.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
                return Err(self.wrong(&format!("`{name}` must be {article} {kind}")));
            }
        }
        match self.required.iter().find(|name| !input.contains_key(**name)) {
            Some(name) => Err(self.wrong(&format!("`{name}` is missing"))),
            None => Ok(()),
        }
    }

    fn wrong(&self, why: &str) -> ToolError {
        let list: Vec<String> = self
            .properties
            .iter()
            .map(|Property { name, kind, .. }| {
                let optional = if self.required.contains(name) { "" } else { ", optional" };
                format!("`{name}` ({kind}{optional})")
            })
            .collect();
        let tool = &self.spec.name;
        let list = match list.as_slice() {
            [] => "it takes no arguments".to_owned(),
            list => format!("the arguments are {}", list.join(", ")),
        };
        ToolError::new(ErrorCode::InvalidArgument, format!("{tool}: {why}; {list}"))
    }
}

impl Property<'_> {
    fn fits(&self, value: &Value) -> bool {
        match self.kind {
            "string" => value.is_string(),
            "integer" => value.is_u64() || (self.signed && value.is_i64()),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        path: String,
        #[serde(default)]
        #[schemars(with = "u64")]
        limit: Option<u64>,
    }

    #[test]
    fn an_error_names_the_argument_at_fault_and_the_allowed_ones() {
        let spec = spec::<Sample>("Sample", "");
        let list = "the arguments are `path` (string), `limit` (integer, optional)";
        for (input, why) in [
            (json!({}), "`path` is missing"),
            (json!({"path": 1}), "`path` must be a string"),
            (json!({"path": null}), "`path` must be a string"),
            (json!({"path": "a", "limit": "5"}), "`limit` must be an integer"),
            (json!({"path": "a", "limit": -5}), "`limit` must be an integer"),
            (json!({"path": "a", "limit": 1.5}), "`limit` must be an integer"),
            (json!({"path": "a", "file": "b"}), "there is no argument `file`"),
            (json!(["a"]), "the arguments must be one JSON object"),
        ] {
            let error = parse::<Sample>(&spec, input).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert_eq!(error.text, format!("Sample: {why}; {list}"));
        }
    }

    #[test]
    fn a_null_for_an_optional_argument_is_as_good_as_none() {
        let spec = spec::<Sample>("Sample", "");
        let sample: Sample = parse(&spec, json!({"path": "a", "limit": null})).unwrap();
        assert_eq!(sample, Sample { path: "a".to_owned(), limit: None });
    }
}
