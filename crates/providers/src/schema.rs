//! Whether a JSON schema can be sent to a model, found out before any request.

use std::{borrow::Cow, fmt::Write as _};

use serde_json::{Map, Value};

/// How deep a schema may be nested.
const MAX_DEPTH: usize = 100;

/// How many `$ref` the root may go through.
const MAX_HOPS: usize = 32;

/// Why a schema cannot be sent, and where in it: a JSON pointer after `#`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its schema at `{path}` {problem}")]
pub(crate) struct BadSchema {
    path: String,
    problem: &'static str,
}

impl BadSchema {
    fn at(path: &str, problem: &'static str) -> Self {
        Self { path: format!("#{path}"), problem }
    }
}

/// The schema of a tool's arguments as an object whose root says what it is.
///
/// A root that is a `$ref` is replaced by what it names; the definitions stay, so
/// that a recursive type below the root is fine.
///
/// # Errors
///
/// A root that is no schema of an object, that refers to itself, or a `$ref`
/// anywhere that leads nowhere, in a circle, or out of the schema.
pub(crate) fn of_arguments(schema: &Value) -> Result<Cow<'_, Value>, BadSchema> {
    let root = match schema {
        Value::Object(root) => root,
        Value::Bool(_) => {
            return Err(BadSchema::at("", "is a boolean; write {\"type\":\"object\"} for any"));
        }
        _ => return Err(BadSchema::at("", "is no schema; write an object")),
    };
    check(schema, schema, &mut String::new(), 0)?;
    let flat = without_ref(schema, root)?;
    let kind = flat.as_ref().unwrap_or(root).get("type");
    let is_object = match kind {
        None => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) => false,
    };
    if !is_object {
        return Err(BadSchema::at("/type", "is not `object`; wrap the value into an object"));
    }
    Ok(flat.map_or(Cow::Borrowed(schema), |flat| Cow::Owned(Value::Object(flat))))
}

/// The root with what its `$ref` names in the place of it; `None` if it has none.
fn without_ref(
    schema: &Value,
    root: &Map<String, Value>,
) -> Result<Option<Map<String, Value>>, BadSchema> {
    if !root.contains_key("$ref") {
        return Ok(None);
    }
    let mut flat = Map::new();
    let mut target = root;
    for _ in 0..MAX_HOPS {
        merge(&mut flat, target);
        target = match target.get("$ref") {
            None => return Ok(Some(flat)),
            Some(next) => match next.as_str().and_then(|next| resolve(schema, next)) {
                Some(Value::Object(target)) => target,
                _ => return Err(BadSchema::at("/$ref", "leads to no object of the schema")),
            },
        };
    }
    Err(BadSchema::at("/$ref", "refers to itself; write the type of the arguments out"))
}

/// What stands nearer to the root wins.
fn merge(into: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more.iter().filter(|(name, _)| *name != "$ref") {
        if !into.contains_key(name) {
            into.insert(name.clone(), value.clone());
        }
    }
}

/// Whether a reference leads to something that is no reference. A type that contains
/// itself does; one that only is itself says nothing, and no validator ends on it.
fn arrives(schema: &Value, reference: &str) -> bool {
    let mut reference = reference;
    for _ in 0..MAX_HOPS {
        match resolve(schema, reference).and_then(|target| target.get("$ref")) {
            Some(Value::String(next)) => reference = next,
            _ => return true,
        }
    }
    false
}

fn resolve<'a>(schema: &'a Value, reference: &str) -> Option<&'a Value> {
    schema.pointer(reference.strip_prefix('#')?)
}

/// Walks all schemas inside `value`, and nothing that only looks like one.
fn check(schema: &Value, value: &Value, path: &mut String, depth: usize) -> Result<(), BadSchema> {
    if depth > MAX_DEPTH {
        return Err(BadSchema::at(path, "is nested too deeply; define its parts in `$defs`"));
    }
    let Value::Object(fields) = value else { return Ok(()) };
    for (name, field) in fields {
        let inside = path.len();
        push(path, name);
        match (name.as_str(), field) {
            ("$ref", Value::String(reference)) => {
                if !reference.starts_with('#') {
                    return Err(BadSchema::at(
                        path,
                        "refers to another document; put that into `$defs`",
                    ));
                }
                // An anchor (`#name`) is the server's to find.
                let is_pointer = reference == "#" || reference.starts_with("#/");
                if is_pointer && resolve(schema, reference).is_none() {
                    return Err(BadSchema::at(path, "refers to what the schema does not hold"));
                }
                if is_pointer && !arrives(schema, reference) {
                    return Err(BadSchema::at(path, "refers to itself; write the type out"));
                }
            }
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => {
                for (name, one) in named {
                    let inside = path.len();
                    push(path, name);
                    check(schema, one, path, depth + 1)?;
                    path.truncate(inside);
                }
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(list)) => {
                for (at, one) in list.iter().enumerate() {
                    let inside = path.len();
                    let _ = write!(path, "/{at}");
                    check(schema, one, path, depth + 1)?;
                    path.truncate(inside);
                }
            }
            (
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "additionalItems"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                one,
            ) => check(schema, one, path, depth + 1)?,
            _ => {}
        }
        path.truncate(inside);
    }
    Ok(())
}

fn push(path: &mut String, name: &str) {
    path.push('/');
    for c in name.chars() {
        match c {
            '~' => path.push_str("~0"),
            '/' => path.push_str("~1"),
            c => path.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_cannot_be_sent_is_refused_with_its_place() {
        let mut deep = json!({"type": "string"});
        for _ in 0..150 {
            deep = json!({"type": "array", "items": deep});
        }
        for (schema, path) in [
            (json!(true), "`#`"),
            (json!(false), "`#`"),
            (json!(null), "`#`"),
            (json!([]), "`#`"),
            (json!({"type": "string"}), "`#/type`"),
            (json!({"type": ["string", "null"]}), "`#/type`"),
            (json!({"type": 5}), "`#/type`"),
            (json!({"$ref": "#"}), "`#/$ref`"),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}), "`#/$ref`"),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#"}}}), "`#/$ref`"),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": true}}), "`#/$ref`"),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}), "`#/type`"),
            (json!({"$ref": "#/$defs/None"}), "`#/$ref`"),
            (json!({"$ref": "https://example.com/s.json"}), "`#/$ref`"),
            (json!({"properties": {"a/b": {"$ref": "#/gone"}}}), "`#/properties/a~1b/$ref`"),
            (json!({"properties": {"a": {"$ref": "#/properties/a"}}}), "`#/properties/a/$ref`"),
            (
                json!({"properties": {"a": {"items": {"$ref": "#/$defs/A"}}},
                    "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}),
                "`#/properties/a/items/$ref`",
            ),
            (json!({"anyOf": [{}, {"items": {"$ref": "other.json"}}]}), "`#/anyOf/1/items/$ref`"),
            (json!({"properties": {"d": deep}}), "`#/properties/d/items"),
        ] {
            let error = of_arguments(&schema).unwrap_err().to_string();
            assert!(error.contains(path), "{schema}: {error}");
        }
    }

    #[test]
    fn a_schema_that_can_be_sent_is_not_copied() {
        for schema in [
            json!({}),
            json!({"type": "object", "additionalProperties": false}),
            json!({"type": ["object", "null"]}),
            // A property, a default and a constant may be named or look like anything.
            json!({"properties": {"$ref": {"type": "string", "default": {"$ref": "x"}}}}),
            json!({"properties": {"a": {"const": {"$ref": "x"}}, "b": {"$ref": "#anchor"}}}),
            // A tree is fine below the root.
            json!({"properties": {"t": {"$ref": "#/$defs/T"}},
                "$defs": {"T": {"properties": {"next": {"$ref": "#/$defs/T"}}}}}),
            json!({"properties": {"again": {"$ref": "#"}}}),
        ] {
            assert!(matches!(of_arguments(&schema), Ok(Cow::Borrowed(_))), "{schema}");
        }
    }

    #[test]
    fn a_reference_at_the_root_is_replaced_by_what_it_names() {
        let tree = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}}});
        let schema = json!({"$ref": "#/$defs/T", "title": "mine", "$defs": {"T": tree}});
        let flat = of_arguments(&schema).unwrap().into_owned();
        assert_eq!(
            flat,
            json!({"title": "mine", "$defs": {"T": tree}, "type": "object",
                "properties": {"next": {"$ref": "#/$defs/T"}}})
        );
    }
}
