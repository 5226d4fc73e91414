//! A request in the words of `generateContent`.

mod contents;

use bytes::Bytes;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};

use self::contents::Contents;
use super::schema::{self, BadSchema};
use crate::{ChatRequest, ToolChoice};

/// A part of a request that the API would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// The model has no name that a path can hold.
    #[error("the model name cannot be sent: write it like `gemini-2.5-flash`")]
    Model,
    /// The schema of a tool.
    #[error("the schema of the tool `{tool}` cannot be sent: {bad}")]
    Tool { tool: String, bad: BadSchema },
    /// The schema of the answer.
    #[error("the response format `{name}` cannot be sent: {bad}")]
    Format { name: String, bad: BadSchema },
    /// A number that JSON does not know.
    #[error("the request could not be written as JSON; look for a number that is infinite")]
    Json,
}

/// The path below the base URL, for a stream of this model's answer.
///
/// A name may say its collection (`models/x`, `tunedModels/x`); a bare one is of
/// `models`.
///
/// # Errors
///
/// [`Refused::Model`] for a name that would lead to another place.
pub(super) fn path(model: &str) -> Result<Vec<String>, Refused> {
    let mut segments: Vec<String> = model.trim().split('/').map(ToOwned::to_owned).collect();
    let odd = |segment: &String| segment.is_empty() || segment.starts_with('.');
    if segments.iter().any(odd) {
        return Err(Refused::Model);
    }
    if segments.len() == 1 {
        segments.insert(0, "models".to_owned());
    }
    if let Some(last) = segments.last_mut() {
        last.push_str(":streamGenerateContent");
    }
    Ok(segments)
}

/// Writes the body of a streaming request. Equal requests give equal bytes.
///
/// # Errors
///
/// [`Refused`] for what this API cannot be asked.
pub(super) fn body(request: &ChatRequest) -> Result<Bytes, Refused> {
    let tools = declarations(request)?;
    let generation = generation(request)?;
    let body = Body { request, tools, generation };
    serde_json::to_vec(&body).map(Bytes::from).map_err(|_| Refused::Json)
}

struct Body<'a> {
    request: &'a ChatRequest,
    tools: Vec<Declaration<'a>>,
    generation: Map<String, Value>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, tools, generation } = self;
        let mut fields =
            Fields { map: serializer.serialize_map(None)?, extra: &request.extra_body };
        if let Some(system) = request.system.as_deref().filter(|text| !text.is_empty()) {
            fields.put("systemInstruction", &json!({"parts": [{"text": system}]}))?;
        }
        fields.put("contents", &Contents(request))?;
        if !tools.is_empty() {
            fields.put("tools", &[FunctionDeclarations { function_declarations: tools }])?;
        }
        fields.merge("toolConfig", &tool_config(&request.tool_choice))?;
        fields.merge("generationConfig", generation)?;
        fields.end(&["toolConfig", "generationConfig"])
    }
}

/// The fields of a body. Those of the host win over ours; in `generationConfig` and
/// `toolConfig`, which hold several things each, they do so one by one.
struct Fields<'a, M> {
    map: M,
    extra: &'a Map<String, Value>,
}

impl<M: SerializeMap> Fields<'_, M> {
    fn put(&mut self, name: &str, value: &impl Serialize) -> Result<(), M::Error> {
        match self.extra.contains_key(name) {
            true => Ok(()),
            false => self.map.serialize_entry(name, value),
        }
    }

    fn merge(&mut self, name: &str, ours: &Map<String, Value>) -> Result<(), M::Error> {
        match self.extra.get(name) {
            Some(Value::Object(theirs)) => {
                let mut both = ours.clone();
                overlay(&mut both, theirs);
                self.map.serialize_entry(name, &both)
            }
            Some(theirs) => self.map.serialize_entry(name, theirs),
            None if ours.is_empty() => Ok(()),
            None => self.map.serialize_entry(name, ours),
        }
    }

    /// Writes what the host adds besides.
    fn end(mut self, written: &[&str]) -> Result<M::Ok, M::Error> {
        for (name, value) in self.extra {
            if !written.contains(&name.as_str()) {
                self.map.serialize_entry(name, value)?;
            }
        }
        self.map.end()
    }
}

fn overlay(ours: &mut Map<String, Value>, theirs: &Map<String, Value>) {
    for (name, value) in theirs {
        match (ours.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(value)) => overlay(inner, value),
            _ => {
                ours.insert(name.clone(), value.clone());
            }
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclarations<'a> {
    function_declarations: &'a [Declaration<'a>],
}

#[derive(Serialize)]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
}

fn declarations(request: &ChatRequest) -> Result<Vec<Declaration<'_>>, Refused> {
    request
        .tools
        .iter()
        .map(|tool| match schema::of_arguments(&tool.input_schema) {
            Ok(parameters) => {
                Ok(Declaration { name: &tool.name, description: &tool.description, parameters })
            }
            Err(bad) => Err(Refused::Tool { tool: tool.name.clone(), bad }),
        })
        .collect()
}

/// Whether, and which, tool has to be called. Whether several may be called at once,
/// this API cannot be told.
fn tool_config(choice: &ToolChoice) -> Map<String, Value> {
    let calling = match choice {
        ToolChoice::Auto => return Map::new(),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    Map::from_iter([("functionCallingConfig".to_owned(), calling)])
}

fn generation(request: &ChatRequest) -> Result<Map<String, Value>, Refused> {
    let mut config = Map::new();
    let mut put = |name: &str, value: Value| config.insert(name.to_owned(), value);
    if let Some(limit) = request.max_output_tokens {
        put("maxOutputTokens", limit.into());
    }
    if let Some(temperature) = request.temperature {
        if !temperature.is_finite() {
            return Err(Refused::Json);
        }
        put("temperature", short(temperature));
    }
    if !request.stop.is_empty() {
        put("stopSequences", request.stop.clone().into());
    }
    if let Some(format) = &request.response_format {
        let schema = schema::converted(&format.schema)
            .map_err(|bad| Refused::Format { name: format.name.clone(), bad })?;
        put("responseMimeType", "application/json".into());
        put("responseSchema", schema);
    }
    if let Some(effort) = request.reasoning_effort.as_deref().map(str::trim) {
        put("thinkingConfig", thinking(effort, &request.model));
    }
    Ok(config)
}

/// The number as it would be written by hand: `0.7`, and not `0.699999988079071`.
fn short(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// How much to think: a number is a budget of tokens, a word a level. Models before
/// Gemini 3 know budgets only; the words mean what Google's own route for OpenAI's
/// dialect makes of them. Models that cannot think refuse the field, so it is sent
/// only where somebody asked for it.
fn thinking(effort: &str, model: &str) -> Value {
    let lower = effort.to_ascii_lowercase();
    let budget = match (lower.parse::<i64>(), lower.as_str()) {
        (Ok(tokens), _) => Some(tokens),
        (_, "none") => Some(0),
        (_, word) if model.contains("gemini-2") => match word {
            "minimal" | "low" => Some(1024),
            "medium" => Some(8192),
            "high" => Some(24_576),
            _ => None,
        },
        _ => None,
    };
    match budget {
        Some(0) => json!({"thinkingBudget": 0}),
        Some(tokens) => json!({"includeThoughts": true, "thinkingBudget": tokens}),
        None => json!({"includeThoughts": true, "thinkingLevel": lower}),
    }
}

#[cfg(test)]
mod tests;
