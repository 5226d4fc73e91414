//! JSON schemas in the subset that this API takes.
//!
//! Google's `Schema` is OpenAPI's, and smaller than JSON Schema: no references, one
//! type, enumerations of texts only. What only narrows (`pattern` of a number,
//! `not`, `additionalProperties` …) is left out, since arguments are held against
//! the tool's own schema when they come. What would change the meaning is refused.

use serde_json::{Map, Value, json};

/// How deep a schema may be nested, references included.
const MAX_DEPTH: usize = 64;
/// How many places a schema may have once its references are written out.
const MAX_PLACES: usize = 10_000;

/// Why a schema cannot be sent, and where in it: a JSON pointer after `#`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at `{path}`, {problem}")]
pub(super) struct BadSchema {
    pub(super) path: String,
    pub(super) problem: &'static str,
}

/// Fields that mean the same in both.
const SAME: [&str; 14] = [
    "title",
    "description",
    "nullable",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "pattern",
    "default",
    "propertyOrdering",
];

/// The schema of a tool's arguments; `None` if it takes none, which this API wants
/// told by leaving the schema out.
///
/// # Errors
///
/// [`BadSchema`] for a root that is not the schema of an object, and for all that
/// [`converted`] refuses.
pub(super) fn of_arguments(schema: &Value) -> Result<Option<Value>, BadSchema> {
    if !schema.is_object() {
        let problem = "the root is no object; write {\"type\":\"object\"} for no arguments";
        return Err(bad("#", problem));
    }
    let converted = converted(schema)?;
    match converted.get("type").and_then(Value::as_str) {
        Some("object") => {}
        // Without a type any object fits.
        _ if schema.as_object().is_some_and(|root| !says_type(root)) => return Ok(None),
        _ => return Err(bad("#", "the root is not of type \"object\"; wrap it into an object")),
    }
    let empty = converted.get("properties").is_none_or(|named| *named == json!({}));
    Ok((!empty).then_some(converted))
}

/// Any schema in the words of this API.
///
/// # Errors
///
/// [`BadSchema`] for a reference that leads into itself, to nothing or out of the
/// schema, for members of an `allOf` that contradict each other, and for a schema
/// that nothing can satisfy or that is too large.
pub(super) fn converted(schema: &Value) -> Result<Value, BadSchema> {
    let mut converter = Converter { root: schema, within: Vec::new(), places: 0 };
    converter.convert(schema, "#", 0)
}

struct Converter<'s> {
    root: &'s Value,
    /// The references that lead to where we are.
    within: Vec<&'s str>,
    places: usize,
}

impl<'s> Converter<'s> {
    fn convert(&mut self, schema: &'s Value, path: &str, depth: usize) -> Result<Value, BadSchema> {
        self.places += 1;
        if depth > MAX_DEPTH || self.places > MAX_PLACES {
            return Err(bad(path, "the schema is too large; make it flatter"));
        }
        let fields = match schema {
            Value::Object(fields) => fields,
            // `true`: anything. The API wants a type, and a text can hold anything.
            Value::Bool(true) => return Ok(json!({"type": "string"})),
            Value::Bool(false) => {
                return Err(bad(path, "nothing satisfies the schema `false`; leave it out"));
            }
            _ => return Err(bad(path, "a schema must be an object")),
        };
        if let Some(reference) = fields.get("$ref") {
            return self.follow(fields, reference, path, depth);
        }
        let mut out = Map::new();
        for name in SAME {
            if let Some(value) = fields.get(name) {
                out.insert(name.to_owned(), value.clone());
            }
        }
        self.all_of(fields, &mut out, path, depth)?;
        self.choice(fields, &mut out, path, depth)?;
        self.typed(fields, &mut out, path, depth)?;
        Ok(Value::Object(out))
    }

    /// A reference: what it names, with the description that stands beside it.
    fn follow(
        &mut self,
        fields: &'s Map<String, Value>,
        reference: &'s Value,
        path: &str,
        depth: usize,
    ) -> Result<Value, BadSchema> {
        let path = &format!("{path}/$ref");
        let Value::String(reference) = reference else {
            return Err(bad(path, "a reference must be a text"));
        };
        if self.within.contains(&reference.as_str()) {
            return Err(bad(
                path,
                "the schema contains itself, which this API cannot be told; write the levels out",
            ));
        }
        let Some(pointer) = reference.strip_prefix('#') else {
            let problem = "the reference leads out of the schema; copy what it names into $defs";
            return Err(bad(path, problem));
        };
        let Some(target) = self.root.pointer(pointer) else {
            let problem = "the reference leads to nothing; define the schema under $defs";
            return Err(bad(path, problem));
        };
        self.within.push(reference);
        let mut found = self.convert(target, path, depth + 1)?;
        self.within.pop();
        if let (Some(own), Value::Object(found)) = (fields.get("description"), &mut found) {
            found.insert("description".to_owned(), own.clone());
        }
        Ok(found)
    }

    /// `allOf`, which this API does not know: its members written into one.
    fn all_of(
        &mut self,
        fields: &'s Map<String, Value>,
        out: &mut Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), BadSchema> {
        let Some(Value::Array(members)) = fields.get("allOf") else { return Ok(()) };
        for (n, member) in members.iter().enumerate() {
            let path = format!("{path}/allOf/{n}");
            // A member that only narrows has no type of its own.
            let typed =
                member.as_object().is_none_or(|it| says_type(it) || it.contains_key("$ref"));
            let Value::Object(member) = self.convert(member, &path, depth + 1)? else { continue };
            for (name, value) in member {
                if name == "type" && !typed {
                    continue;
                }
                match out.get_mut(&name) {
                    None => {
                        out.insert(name, value);
                    }
                    Some(there) => {
                        join(there, value, &name).map_err(|problem| bad(&path, problem))?
                    }
                }
            }
        }
        Ok(())
    }

    /// `anyOf`, `oneOf`, and a list of types.
    fn choice(
        &mut self,
        fields: &'s Map<String, Value>,
        out: &mut Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), BadSchema> {
        let mut members = Vec::new();
        for name in ["anyOf", "oneOf"] {
            let Some(Value::Array(listed)) = fields.get(name) else { continue };
            for (n, member) in listed.iter().enumerate() {
                if member.get("type").is_some_and(|kind| kind == "null") {
                    out.insert("nullable".to_owned(), Value::Bool(true));
                    continue;
                }
                members.push(self.convert(member, &format!("{path}/{name}/{n}"), depth + 1)?);
            }
        }
        if members.len() > 1 {
            out.insert("anyOf".to_owned(), Value::Array(members));
        } else if let Some(Value::Object(only)) = members.pop() {
            for (name, value) in only {
                out.entry(name).or_insert(value);
            }
        }
        Ok(())
    }

    /// The type, and what belongs to it.
    fn typed(
        &mut self,
        fields: &'s Map<String, Value>,
        out: &mut Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), BadSchema> {
        let kinds: Vec<&str> = match fields.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let real: Vec<&str> = kinds.iter().copied().filter(|kind| *kind != "null").collect();
        if real.len() < kinds.len() {
            out.insert("nullable".to_owned(), Value::Bool(true));
        }
        let kind = match real.as_slice() {
            [kind] => (*kind).to_owned(),
            // A choice, or the members of `allOf`, say it.
            [] if out.contains_key("anyOf") || out.contains_key("type") => {
                match out.get("type").and_then(Value::as_str) {
                    Some(kind) => kind.to_owned(),
                    None => return Ok(()),
                }
            }
            [] => guessed(fields).to_owned(),
            several => {
                let each = several.iter().map(|kind| match *kind {
                    "array" => json!({"type": "array", "items": {"type": "string"}}),
                    kind => json!({"type": kind}),
                });
                out.insert("anyOf".to_owned(), each.collect());
                return Ok(());
            }
        };
        match kind.as_str() {
            "object" => self.properties(fields, out, path, depth)?,
            "array" => self.items(fields, out, path, depth)?,
            _ => {}
        }
        values(fields, out, &kind);
        format(fields, out, &kind);
        out.insert("type".to_owned(), kind.into());
        Ok(())
    }

    fn properties(
        &mut self,
        fields: &'s Map<String, Value>,
        out: &mut Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), BadSchema> {
        let mut named = match out.remove("properties") {
            Some(Value::Object(named)) => named,
            _ => Map::new(),
        };
        if let Some(Value::Object(properties)) = fields.get("properties") {
            for (name, schema) in properties {
                // One that may never be given need not be told.
                if *schema == Value::Bool(false) {
                    continue;
                }
                let path = format!("{path}/properties/{}", escaped(name));
                named.insert(name.clone(), self.convert(schema, &path, depth + 1)?);
            }
        }
        let wanted = [out.remove("required"), fields.get("required").cloned()];
        let mut required: Vec<Value> = Vec::new();
        for name in wanted.into_iter().flatten().filter_map(|list| match list {
            Value::Array(names) => Some(names),
            _ => None,
        }) {
            for name in name {
                // The API refuses to require what is not described.
                let known = name.as_str().is_some_and(|name| named.contains_key(name));
                if known && !required.contains(&name) {
                    required.push(name);
                }
            }
        }
        if !named.is_empty() {
            out.insert("properties".to_owned(), Value::Object(named));
        }
        if !required.is_empty() {
            out.insert("required".to_owned(), Value::Array(required));
        }
        Ok(())
    }

    /// The API refuses a list without `items`.
    fn items(
        &mut self,
        fields: &'s Map<String, Value>,
        out: &mut Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), BadSchema> {
        let tuple = ["prefixItems", "items"].into_iter().find_map(|name| {
            fields.get(name).and_then(Value::as_array).map(|listed| (name, listed))
        });
        let items = match (tuple, fields.get("items")) {
            (Some((name, listed)), _) => {
                let mut each = Vec::new();
                for (n, schema) in listed.iter().enumerate() {
                    let one = self.convert(schema, &format!("{path}/{name}/{n}"), depth + 1)?;
                    if !each.contains(&one) {
                        each.push(one);
                    }
                }
                match each.len() {
                    0 => json!({"type": "string"}),
                    1 => each.pop().unwrap_or_default(),
                    _ => json!({"anyOf": each}),
                }
            }
            (None, Some(Value::Bool(false))) | (None, None) if out.contains_key("items") => {
                return Ok(());
            }
            (None, Some(Value::Bool(_)) | None) => json!({"type": "string"}),
            (None, Some(one)) => self.convert(one, &format!("{path}/items"), depth + 1)?,
        };
        out.insert("items".to_owned(), items);
        Ok(())
    }
}

/// `enum` and `const`. The API lists texts only; other values are told in words.
fn values(fields: &Map<String, Value>, out: &mut Map<String, Value>, kind: &str) {
    let listed: Vec<Value> = match (fields.get("enum"), fields.get("const")) {
        (_, Some(one)) => vec![one.clone()],
        (Some(Value::Array(listed)), None) => listed.clone(),
        _ => return,
    };
    if listed.contains(&Value::Null) {
        out.insert("nullable".to_owned(), Value::Bool(true));
    }
    let real: Vec<&Value> = listed.iter().filter(|value| !value.is_null()).collect();
    // It refuses an empty text among them.
    let texts =
        kind == "string" && real.iter().all(|it| it.as_str().is_some_and(|t| !t.is_empty()));
    if texts && !real.is_empty() {
        out.insert("enum".to_owned(), real.into_iter().cloned().collect());
        return;
    }
    let words: Vec<String> = real.iter().map(ToString::to_string).collect();
    if words.is_empty() {
        return;
    }
    let before = out.get("description").and_then(Value::as_str).unwrap_or_default();
    let gap = if before.is_empty() { "" } else { " " };
    let told = format!("{before}{gap}One of: {}.", words.join(", "));
    out.insert("description".to_owned(), told.into());
}

/// The few formats that the API takes; it refuses a schema with any other.
fn format(fields: &Map<String, Value>, out: &mut Map<String, Value>, kind: &str) {
    let Some(format) = fields.get("format").and_then(Value::as_str) else { return };
    let taken = match kind {
        "string" => format == "date-time",
        "integer" => ["int32", "int64"].contains(&format),
        "number" => ["float", "double"].contains(&format),
        _ => false,
    };
    if taken {
        out.insert("format".to_owned(), format.into());
    }
}

fn says_type(fields: &Map<String, Value>) -> bool {
    ["type", "properties", "items", "anyOf", "oneOf", "allOf", "enum", "const", "$ref"]
        .iter()
        .any(|name| fields.contains_key(*name))
}

/// The type of a schema that names none, by what else it says.
fn guessed(fields: &Map<String, Value>) -> &'static str {
    let example = match (fields.get("const"), fields.get("enum")) {
        (Some(one), _) => Some(one),
        (None, Some(Value::Array(listed))) => listed.iter().find(|value| !value.is_null()),
        _ => None,
    };
    match example {
        Some(Value::Bool(_)) => "boolean",
        Some(Value::Number(number)) if number.is_f64() => "number",
        Some(Value::Number(_)) => "integer",
        _ if fields.contains_key("properties") || fields.contains_key("additionalProperties") => {
            "object"
        }
        _ if fields.contains_key("items") || fields.contains_key("prefixItems") => "array",
        _ => "string",
    }
}

/// Writes what two members of an `allOf` say of one field into one.
fn join(there: &mut Value, value: Value, name: &str) -> Result<(), &'static str> {
    match (there, value) {
        (there, value) if *there == value => Ok(()),
        // Whoever speaks first describes it.
        _ if ["title", "description", "default", "nullable"].contains(&name) => Ok(()),
        (Value::Object(there), Value::Object(more)) if name == "properties" => {
            for (property, schema) in more {
                match there.get(&property) {
                    None => {
                        there.insert(property, schema);
                    }
                    Some(same) if *same == schema => {}
                    Some(_) => {
                        return Err(
                            "two members of `allOf` describe one property; keep one of them",
                        );
                    }
                }
            }
            Ok(())
        }
        (Value::Array(there), Value::Array(more)) if name == "required" => {
            for one in more {
                if !there.contains(&one) {
                    there.push(one);
                }
            }
            Ok(())
        }
        _ => Err("two members of `allOf` contradict each other for this API; merge them"),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn bad(path: &str, problem: &'static str) -> BadSchema {
    BadSchema { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests;
