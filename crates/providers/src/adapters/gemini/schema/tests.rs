use super::*;

#[test]
fn a_schema_is_told_in_the_subset_of_the_api() {
    for (schema, told) in [
        (
            json!({"$schema": "x", "type": "object", "additionalProperties": false,
                "required": ["a", "unknown"], "properties": {
                "a": {"type": ["string", "null"], "format": "uri", "pattern": "^x"},
                "b": {"type": "integer", "exclusiveMinimum": 0, "format": "int32"}}}),
            json!({"type": "object", "required": ["a"], "properties": {
                "a": {"nullable": true, "pattern": "^x", "type": "string"},
                "b": {"format": "int32", "type": "integer"}}}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/k", "description": "own"}},
                "$defs": {"k": {"enum": ["x", "y"], "description": "theirs"}}}),
            json!({"type": "object", "properties": {
                "a": {"description": "own", "enum": ["x", "y"], "type": "string"}}}),
        ),
        (
            json!({"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "b": {"oneOf": [{"type": "integer"}, {"const": "x"}]}, "c": true, "d": false}}),
            json!({"type": "object", "properties": {
                "a": {"nullable": true, "type": "integer"},
                "b": {"anyOf": [{"type": "integer"}, {"enum": ["x"], "type": "string"}]},
                "c": {"type": "string"}}}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"},
                "b": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]},
                "c": {"type": "integer", "enum": [1, 2], "description": "How."},
                "d": {"type": ["string", "integer"]}}}),
            json!({"type": "object", "properties": {
                "a": {"type": "array", "items": {"type": "string"}},
                "b": {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "string"}]}},
                "c": {"type": "integer", "description": "How. One of: 1, 2."},
                "d": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}),
        ),
        (
            json!({"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"y": {"type": "string"}}, "required": ["y"]}],
                "$defs": {"a": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}}}),
            json!({"type": "object", "required": ["x", "y"],
                "properties": {"x": {"type": "string"}, "y": {"type": "string"}}}),
        ),
    ] {
        assert_eq!(of_arguments(&schema).unwrap(), Some(told), "{schema}");
    }
}

#[test]
fn a_tool_without_arguments_has_no_schema() {
    for schema in
        [json!({}), json!({"type": "object"}), json!({"type": "object", "properties": {}})]
    {
        assert_eq!(of_arguments(&schema).unwrap(), None, "{schema}");
    }
}

#[test]
fn a_schema_that_cannot_be_told_is_refused_with_its_place() {
    let tree = json!({"type": "object", "properties": {
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "$defs": {"node": {"type": "object", "properties": {"left/right": {"$ref": "#/$defs/node"}}}}});
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    for (schema, path) in [
        (json!(true), "#"),
        (json!(null), "#"),
        (json!({"type": "string"}), "#"),
        (tree, "#/properties/children/items/$ref/properties/left~1right/$ref"),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}}),
            "#/properties/a/$ref/properties/a/$ref",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}),
            "#/properties/a/$ref",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "https://x/y"}}}),
            "#/properties/a/$ref",
        ),
        (json!({"type": "object", "properties": {"a": 5}}), "#/properties/a"),
        (
            json!({"type": "object", "properties": {"a": {"allOf": [{"type": "string"}, {"type": "integer"}]}}}),
            "#/properties/a/allOf/1",
        ),
    ] {
        assert_eq!(of_arguments(&schema).unwrap_err().path, path, "{schema}");
    }
    let deep = json!({"type": "object", "properties": {"a": deep}});
    assert!(of_arguments(&deep).unwrap_err().problem.contains("too large"));
    // References that double with each level.
    let mut defs = Map::new();
    for n in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        defs.insert(
            format!("d{n}"),
            json!({"type": "object", "properties": {"a": next, "b": next}}),
        );
    }
    defs.insert("d40".into(), json!({"type": "string"}));
    let bomb =
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs});
    assert!(of_arguments(&bomb).unwrap_err().problem.contains("too large"));
}
