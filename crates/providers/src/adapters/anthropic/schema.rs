//! What this API refuses in tools and schemas, found before any request.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{ChatRequest, ToolDefinition};

/// The longest name of a tool.
const MAX_NAME: usize = 128;

/// A part of a request that the API would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error(
        "the tool name `{0}` cannot be sent: use 1 to 128 letters, digits, `_` and `-`, and each name once"
    )]
    Name(String),
    #[error("the schema of the tool `{tool}` cannot be sent: at `{path}`, {problem}")]
    Schema { tool: String, path: String, problem: &'static str },
    #[error("the response format `{name}` cannot be sent: at `{path}`, {problem}")]
    Format { name: String, path: String, problem: &'static str },
    #[error(
        "the reasoning effort `{0}` is unknown to this model: use none, low, medium, high or max"
    )]
    Effort(String),
    #[error("the request could not be written as JSON")]
    Json,
}

/// Checks every tool and the response format.
pub(super) fn check(request: &ChatRequest) -> Result<(), Refused> {
    let mut names = HashSet::new();
    for tool in &request.tools {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let fits = (1..=MAX_NAME).contains(&tool.name.len()) && tool.name.chars().all(plain);
        if !fits || !names.insert(&tool.name) {
            return Err(Refused::Name(tool.name.clone()));
        }
        root(tool)?;
    }
    match &request.response_format {
        Some(format) => recursion(&format.schema).map_or(Ok(()), |path| {
            Err(Refused::Format {
                name: format.name.clone(),
                path,
                problem: "the schema refers to itself; the API follows no recursion here, so \
                          write the levels out",
            })
        }),
        None => Ok(()),
    }
}

/// The root of a tool's schema as the API wants it: an object with `"type":"object"`.
///
/// A root that only refers to a definition is replaced by it, beside its definitions.
///
/// # Errors
///
/// [`Refused::Schema`] with the path of what cannot be sent.
pub(super) fn root(tool: &ToolDefinition) -> Result<Map<String, Value>, Refused> {
    let refuse = |path: &str, problem| {
        Err(Refused::Schema { tool: tool.name.clone(), path: path.to_owned(), problem })
    };
    let Value::Object(schema) = &tool.input_schema else {
        return refuse("#", "the root is no object; write {\"type\":\"object\"} for any arguments");
    };
    let mut root = schema.clone();
    let mut seen = HashSet::new();
    while let Some(reference) = root.shift_remove("$ref") {
        let path = reference.as_str().unwrap_or("$ref").to_owned();
        if !seen.insert(path.clone()) {
            return refuse(&path, "the reference of the root leads back to itself; name an object");
        }
        match path.strip_prefix('#').and_then(|pointer| tool.input_schema.pointer(pointer)) {
            Some(Value::Object(target)) => {
                for (name, value) in target {
                    root.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
            _ => return refuse(&path, "the reference of the root leads to no object"),
        }
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if root.contains_key(choice) {
            let path = format!("#/{choice}");
            return refuse(
                &path,
                "the root may not be a choice; put it into a property, or merge its members",
            );
        }
    }
    match root.get("type") {
        None => {
            root.insert("type".to_owned(), "object".into());
        }
        Some(Value::String(kind)) if kind == "object" => {}
        Some(_) => return refuse("#/type", "the root must be of type \"object\""),
    }
    Ok(root)
}

/// The path of a reference that leads into a definition around it, if there is one.
fn recursion(schema: &Value) -> Option<String> {
    follow(schema, schema, "#", &mut Vec::new(), &mut HashSet::new())
}

fn follow<'a>(
    root: &'a Value,
    at: &'a Value,
    path: &str,
    within: &mut Vec<&'a str>,
    done: &mut HashSet<&'a str>,
) -> Option<String> {
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
                return Some(here);
            }
            // A definition that is known to end is not walked again.
            if done.contains(reference) {
                return None;
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
    use crate::ResponseFormat;

    fn tool(name: &str, schema: Value) -> ToolDefinition {
        ToolDefinition { name: name.into(), description: String::new(), input_schema: schema }
    }

    fn refusal(tools: Vec<ToolDefinition>) -> String {
        let mut request = ChatRequest::new("m");
        request.tools = tools;
        check(&request).unwrap_err().to_string()
    }

    #[test]
    fn a_schema_that_the_api_refuses_is_named_with_its_path() {
        for (schema, path) in [
            (json!(true), "`#`"),
            (json!("x"), "`#`"),
            (json!({"type": "string"}), "`#/type`"),
            (json!({"type": ["object", "null"]}), "`#/type`"),
            (json!({"anyOf": [{"type": "object"}]}), "`#/anyOf`"),
            (json!({"$ref": "#/$defs/A"}), "`#/$defs/A`"),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}), "`#/$defs/A`"),
            (
                json!({"$ref": "#/$defs/A", "$defs": {
                    "A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}),
                "`#/$defs/A`",
            ),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}), "`#/type`"),
            (json!({"$ref": "https://example.com/schema"}), "`https://example.com/schema`"),
        ] {
            let said = refusal(vec![tool("good", json!({})), tool("bad", schema.clone())]);
            assert!(said.contains("`bad`") && said.contains(path), "{schema}: {said}");
        }
    }

    #[test]
    fn a_name_is_sent_once_and_in_plain_letters() {
        for name in ["", "two words", "dot.ted", "é", &"x".repeat(129)] {
            let said = refusal(vec![tool(name, json!({"type": "object"}))]);
            assert!(said.contains(&format!("`{name}`")), "{said}");
        }
        let twice = vec![tool("a", json!({})), tool("a", json!({}))];
        assert!(refusal(twice).contains("each name once"));
    }

    #[test]
    fn a_root_becomes_an_object_where_it_only_forgot_to_say_so() {
        assert_eq!(Value::Object(root(&tool("t", json!({}))).unwrap()), json!({"type": "object"}));
        let aliased = json!({"$ref": "#/$defs/A", "$defs": {
            "A": {"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}}});
        let root = Value::Object(root(&tool("t", aliased)).unwrap());
        assert_eq!(root["type"], "object");
        assert_eq!(root["properties"]["next"]["$ref"], "#/$defs/A");
        assert!(root["$defs"]["A"].is_object() && root.get("$ref").is_none());
    }

    #[test]
    fn a_response_format_may_not_refer_to_itself() {
        let check_format = |schema: Value| {
            let mut request = ChatRequest::new("m");
            request.response_format = Some(ResponseFormat { name: "answer".into(), schema });
            check(&request)
        };
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
    }
}
