//! Whether a schema for an answer is one that strict mode takes.

use serde_json::Value;

/// Whether every object of the schema is closed and all of its properties are
/// required, which strict mode insists on.
pub(super) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let properties = fields.get("properties").and_then(Value::as_object);
            let is_object = fields.get("type").and_then(Value::as_str) == Some("object");
            let closed = fields.get("additionalProperties") == Some(&Value::Bool(false));
            let required = fields.get("required").and_then(Value::as_array);
            let all_required = properties.is_none_or(|properties| {
                properties
                    .keys()
                    .all(|name| required.is_some_and(|list| list.iter().any(|it| it == name)))
            });
            let fits = !(is_object || properties.is_some()) || (closed && all_required);
            // The names of properties are no keywords: a level is skipped there.
            fits && fields.iter().all(|(name, inner)| match (name.as_str(), inner) {
                ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                    named.values().all(is_strict)
                }
                ("enum" | "const" | "default" | "examples", _) => true,
                (_, inner) => is_strict(inner),
            })
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_strict_if_all_of_its_objects_are() {
        let inner = json!({"type": "object", "additionalProperties": false, "required": ["b"],
            "properties": {"b": {"type": "string"}}});
        let outer = |inner: &Value| {
            json!({"type": "object", "additionalProperties": false, "required": ["a"],
                "properties": {"a": {"type": "array", "items": inner}}})
        };
        assert!(is_strict(&outer(&inner)));
        for (at, value) in [
            ("/required", json!([])),
            ("/additionalProperties", json!(true)),
            ("/additionalProperties", json!(null)),
        ] {
            let mut loose = inner.clone();
            *loose.pointer_mut(at).unwrap() = value;
            assert!(!is_strict(&outer(&loose)), "{at}");
        }
    }
}
