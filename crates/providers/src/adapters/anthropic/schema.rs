//! What this API refuses in tools and schemas, found before any request.

use std::{borrow::Cow, collections::HashSet};

use serde_json::Value;

use crate::{
    ResponseFormat, ToolDefinition,
    schema::{self, BadSchema},
};

/// The longest name of a tool.
const MAX_NAME: usize = 128;

/// How many references may lead into each other in the schema of an answer.
const MAX_WITHIN: usize = 32;

/// A part of a request that the API would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error(
        "the tool name `{0}` cannot be sent: use 1 to 128 letters, digits, `_` and `-`, and each name once"
    )]
    Name(String),
    #[error("the tool `{tool}` cannot be sent: {problem}")]
    Schema { tool: String, problem: Problem },
    #[error("the response format `{name}` cannot be sent: {problem}")]
    Format { name: String, problem: Problem },
    #[error("the tool choice names `{0}`, which is none of the request's tools; add it to them")]
    Choice(String),
    #[error(
        "the reasoning effort `{0}` is unknown to this model: use none, low, medium, high or max"
    )]
    Effort(String),
    #[error("the request could not be written as JSON")]
    Json,
}

/// What is wrong with a schema, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error(transparent)]
    Bad(#[from] BadSchema),
    #[error(
        "its schema at `#/{0}` is a choice, which the root may not be; merge its members, or put it into a property"
    )]
    Choice(&'static str),
    #[error(
        "its schema at `{0}` refers to what it is part of, and this API follows no recursion in answers; write the levels out"
    )]
    Recursion(String),
    #[error("its schema at `{0}` leads through too many references; write some of them out")]
    Deep(String),
}

/// The schemas of the tools as they are sent, once these were checked.
///
/// # Errors
///
/// The first [`Refused`] part.
pub(super) fn checked(tools: &[ToolDefinition]) -> Result<Vec<Cow<'_, Value>>, Refused> {
    let mut names = HashSet::new();
    let mut schemas = Vec::with_capacity(tools.len());
    for tool in tools {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let fits = (1..=MAX_NAME).contains(&tool.name.len()) && tool.name.chars().all(plain);
        if !fits || !names.insert(&tool.name) {
            return Err(Refused::Name(tool.name.clone()));
        }
        schemas.push(root(tool)?);
    }
    Ok(schemas)
}

/// Checks the schema of an answer.
///
/// # Errors
///
/// [`Refused::Format`] with the path of what cannot be sent.
pub(super) fn check_format(format: &ResponseFormat) -> Result<(), Refused> {
    let refuse = |problem| Refused::Format { name: format.name.clone(), problem };
    schema::of_arguments(&format.schema).map_err(|bad| refuse(bad.into()))?;
    recursion(&format.schema).map_or(Ok(()), |problem| Err(refuse(problem)))
}

/// The root of a tool's schema as the API wants it: `"type":"object"`, and no choice.
///
/// # Errors
///
/// [`Refused::Schema`] with the path of what cannot be sent.
fn root(tool: &ToolDefinition) -> Result<Cow<'_, Value>, Refused> {
    let refuse = |problem| Refused::Schema { tool: tool.name.clone(), problem };
    let schema = schema::of_arguments(&tool.input_schema).map_err(|bad| refuse(bad.into()))?;
    if let Some(choice) = ["anyOf", "oneOf", "allOf"].iter().find(|one| schema.get(one).is_some()) {
        return Err(refuse(Problem::Choice(choice)));
    }
    if schema.get("type").is_some_and(|kind| kind == "object") {
        return Ok(schema);
    }
    // It said nothing, or that it may be null as well.
    let mut schema = schema.into_owned();
    if let Value::Object(root) = &mut schema {
        root.insert("type".to_owned(), "object".into());
    }
    Ok(Cow::Owned(schema))
}

/// A reference that leads into a definition around it, or too deep, if there is one.
fn recursion(schema: &Value) -> Option<Problem> {
    follow(schema, schema, "#", &mut Vec::new(), &mut HashSet::new())
}

fn follow<'a>(
    root: &'a Value,
    at: &'a Value,
    path: &str,
    within: &mut Vec<&'a str>,
    done: &mut HashSet<&'a str>,
) -> Option<Problem> {
    match at {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(place, item)| follow(root, item, &format!("{path}/{place}"), within, done)),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let here = format!("{path}/{name}");
            let (true, Value::String(reference)) = (name == "$ref", value) else {
                // Definitions count where they are used.
                let definitions = name == "$defs" || name == "definitions";
                return if definitions { None } else { follow(root, value, &here, within, done) };
            };
            let reference = reference.as_str();
            if reference == "#" || within.contains(&reference) {
                return Some(Problem::Recursion(here));
            }
            // A definition that is known to end is not walked again.
            if done.contains(reference) {
                return None;
            }
            if within.len() >= MAX_WITHIN {
                return Some(Problem::Deep(here));
            }
            let target = root.pointer(reference.strip_prefix('#')?)?;
            within.push(reference);
            let found = follow(root, target, reference, within, done);
            within.pop();
            done.insert(reference);
            found
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, schema: Value) -> ToolDefinition {
        ToolDefinition { name: name.into(), description: String::new(), input_schema: schema }
    }

    fn refusal(tools: &[ToolDefinition]) -> String {
        checked(tools).unwrap_err().to_string()
    }

    #[test]
    fn a_schema_that_the_api_refuses_is_named_with_its_path() {
        for (schema, path) in [
            (json!(true), "`#`"),
            (json!({"type": "string"}), "`#/type`"),
            (json!({"type": "object", "anyOf": [{"required": ["a"]}]}), "`#/anyOf`"),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": {"oneOf": []}}}), "`#/oneOf`"),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}), "`#/$ref`"),
        ] {
            let said = refusal(&[tool("good", json!({})), tool("bad", schema.clone())]);
            assert!(said.contains("`bad`") && said.contains(path), "{schema}: {said}");
        }
    }

    #[test]
    fn a_name_is_sent_once_and_in_plain_letters() {
        for name in ["", "two words", "dot.ted", "é", &"x".repeat(129)] {
            let said = refusal(&[tool(name, json!({"type": "object"}))]);
            assert!(said.contains(&format!("`{name}`")), "{said}");
        }
        let twice = [tool("a", json!({})), tool("a", json!({}))];
        assert!(refusal(&twice).contains("each name once"));
    }

    #[test]
    fn a_root_becomes_an_object_where_it_only_forgot_to_say_so() {
        for schema in [json!({}), json!({"type": ["object", "null"]})] {
            assert_eq!(*root(&tool("t", schema)).unwrap(), json!({"type": "object"}));
        }
        let aliased = json!({"$ref": "#/$defs/A", "$defs": {
            "A": {"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}}});
        let aliased = tool("t", aliased);
        let root = root(&aliased).unwrap();
        assert_eq!(root["type"], "object");
        assert_eq!(root["properties"]["next"]["$ref"], "#/$defs/A");
        assert!(root["$defs"]["A"].is_object() && root.get("$ref").is_none());
    }

    #[test]
    fn a_response_format_may_not_refer_to_itself() {
        let check_format =
            |schema: Value| check_format(&ResponseFormat { name: "answer".into(), schema });
        let twice = json!({"properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"type": "string"}}});
        assert_eq!(check_format(twice), Ok(()));
        for schema in [
            json!({"properties": {"a": {"$ref": "#"}}}),
            json!({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {
                "A": {"properties": {"b": {"items": {"$ref": "#/$defs/B"}}}},
                "B": {"anyOf": [{"$ref": "#/$defs/A"}]}}}),
        ] {
            let said = check_format(schema).unwrap_err().to_string();
            assert!(said.contains("`answer`") && said.contains("$ref`"), "{said}");
        }
        // A chain without an end in sight does not exhaust the stack.
        let link =
            |n: usize| json!({"properties": {"next": {"$ref": format!("#/$defs/D{}", n + 1)}}});
        let mut defs: serde_json::Map<_, _> =
            (0..5000).map(|n| (format!("D{n}"), link(n))).collect();
        defs.insert("D5000".into(), json!({"type": "string"}));
        let chain = json!({"properties": {"a": {"$ref": "#/$defs/D0"}}, "$defs": defs});
        let said = check_format(chain).unwrap_err().to_string();
        assert!(said.contains("too many references"), "{said}");
    }
}
