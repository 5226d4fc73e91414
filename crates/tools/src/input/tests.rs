use serde_json::json;

use super::*;

fn spec(input_schema: Value) -> ToolSpec {
    ToolSpec { name: "Sample".into(), description: "d".into(), input_schema }
}

fn sample() -> ToolSpec {
    spec(json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1},
            "edits": {"type": "array", "items": {
                "type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"],
            }},
            "mode": {"enum": ["a", "b"]},
            "note": {"type": ["string", "null"]},
        },
        "required": ["path"],
        "additionalProperties": false,
    }))
}

fn check(spec: &ToolSpec, input: Value) -> Result<Value, String> {
    InputSchema::of(spec).check(spec, input).map_err(|error| {
        assert_eq!(error.code, ErrorCode::InvalidArgument);
        error.text
    })
}

#[test]
fn what_the_schema_allows_passes_as_it_is() {
    for input in [
        json!({"path": "a"}),
        json!({"path": "a", "limit": 3, "edits": [{"old": "x", "more": 1}], "mode": "b"}),
        json!({"path": "a", "note": null}),
    ] {
        assert_eq!(check(&sample(), input.clone()), Ok(input));
    }
}

#[test]
fn an_error_says_where_and_what() {
    let list = "the arguments are `path` (string), `limit` (integer, optional), \
                `edits` (array, optional), `mode` (any, optional), `note` (any, optional)";
    for (input, why) in [
        (json!({}), "`path` is missing"),
        (json!({"path": "a", "edits": [{}]}), "at `/edits/0`: `old` is missing"),
        (json!({"path": 1}), r#"at `/path`: it is not of type "string""#),
        (json!({"path": null}), r#"at `/path`: it is not of type "string""#),
        (json!({"path": "a", "limit": 0}), "at `/limit`: it is less than the minimum of 1"),
        (
            json!({"path": "a", "edits": [{"old": "x"}, {"old": 2}]}),
            r#"at `/edits/1/old`: it is not of type "string""#,
        ),
        (json!({"path": "a", "mode": "c"}), r#"at `/mode`: it is not one of "a" or "b""#),
        (json!({"path": "a", "file": "b"}), "there is no argument `file`"),
        (json!(["a"]), "the arguments must be one JSON object"),
    ] {
        assert_eq!(check(&sample(), input), Err(format!("Sample: {why}; {list}")));
    }
}

#[test]
fn a_null_for_an_optional_argument_is_as_good_as_none() {
    let input = json!({"limit": null, "path": "a", "note": null});
    assert_eq!(check(&sample(), input), Ok(json!({"path": "a"})));
}

#[test]
fn the_text_is_bounded_whatever_the_model_wrote() {
    let long = "x".repeat(100_000);
    let mut input = Map::new();
    for at in 0..50 {
        input.insert(format!("{at}{long}"), Value::Null);
        input.insert(format!("{at}"), long.clone().into());
    }
    input.insert("edits".into(), Value::from(vec![long.clone(); 50]));
    input.insert("path".into(), Value::from(vec![long]));
    let text = check(&sample(), input.into()).unwrap_err();
    assert!(text.len() < (TOLD + 1) * 2 * EACH + LIST, "{} bytes", text.len());
    assert!(text.contains("; and more"), "{text}");
}

#[test]
fn a_schema_that_cannot_be_used_leaves_the_judgement_to_the_tool() {
    for schema in [
        json!({"type": "strnig"}),
        json!({"$ref": "http://127.0.0.1:9/elsewhere.json"}),
        json!({"properties": {"a": {"pattern": "(?=look)ahead"}}}),
    ] {
        let input = json!({"a": 1});
        assert_eq!(check(&spec(schema.clone()), input.clone()), Ok(input), "{schema}");
    }
}

#[test]
fn a_hostile_pattern_costs_no_time() {
    let hostile = spec(json!({"properties": {"a": {"pattern": "^(a|a)*(a|a)*(a|a)*$"}}}));
    let text = format!("{}b", "a".repeat(50_000));
    let error = check(&hostile, json!({"a": text})).unwrap_err();
    assert!(error.len() < 1000, "{}", error.len());
}
