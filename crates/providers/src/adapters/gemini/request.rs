//! A request in the words of `generateContent`.

mod contents;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::contents::Contents;
use super::{
    DIALECT,
    schema::{self, BadSchema},
};
use crate::{
    ChatRequest, ToolChoice, ToolDefinition,
    rendering::{Fields, Key},
    tool_list::WrittenFor,
};

/// Fields that hold several things each.
const TOOL_CONFIG: &str = "toolConfig";
const GENERATION_CONFIG: &str = "generationConfig";

/// A part of a request that the API would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// The model has no name that a path can hold.
    #[error("the model name cannot be sent: write it like `gemini-2.5-flash`")]
    Model,
    /// The schema of a tool.
    #[error("the schema of the tool `{tool}` cannot be sent: {bad}")]
    Tool { tool: String, bad: BadSchema },
    /// The tool that has to be called is not there.
    #[error("the tool choice names `{0}`, which is none of the request's tools; add it to them")]
    Choice(String),
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
    let by = WrittenFor { dialect: DIALECT, marked: false };
    let tools = request.tools.written(by, tools)?;
    if let ToolChoice::Named(name) = &request.tool_choice
        && !request.tools.iter().any(|tool| tool.name == *name)
        // The host's own tools are declared there.
        && !request.extra_body.contains_key("tools")
    {
        return Err(Refused::Choice(name.clone()));
    }
    let generation = generation(request)?;
    written(request, &tools, &generation).map_err(|_| Refused::Json)
}

fn written(
    request: &ChatRequest,
    tools: &[u8],
    generation: &Map<String, Value>,
) -> serde_json::Result<Bytes> {
    let mut fields = Fields::new(&request.extra_body);
    let system = request.system.as_deref().filter(|text| !text.is_empty());
    fields.put_some("systemInstruction", system.map(|text| json!({"parts": [{"text": text}]})))?;
    fields.messages("contents", None::<()>)?;
    fields.put_written("tools", tools)?;
    // The API refuses a choice among no tools.
    let offered = !tools.is_empty() || fields.theirs("tools").is_some();
    let choice = if offered { &request.tool_choice } else { &ToolChoice::Auto };
    merge(&mut fields, TOOL_CONFIG, &tool_config(choice))?;
    merge(&mut fields, GENERATION_CONFIG, generation)?;
    let model = request.model.clone();
    let key = Key { dialect: DIALECT, server: "", model, options: [false; 3] };
    let contents = Contents(&request.model);
    fields.end(&[TOOL_CONFIG, GENERATION_CONFIG])?.around(&request.messages, key, &contents)
}

/// Writes a field that holds several things; those of the host win one by one.
fn merge(fields: &mut Fields<'_>, name: &str, ours: &Map<String, Value>) -> serde_json::Result<()> {
    match fields.theirs(name) {
        Some(Value::Object(theirs)) => {
            let mut both = ours.clone();
            overlay(&mut both, theirs);
            fields.write(name, &both)
        }
        Some(theirs) => fields.write(name, theirs),
        None if ours.is_empty() => Ok(()),
        None => fields.write(name, ours),
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

/// The tools as the value of their field; nothing if there are none.
fn tools(tools: &[ToolDefinition]) -> Result<Vec<u8>, Refused> {
    let declarations = tools.iter().map(|tool| match schema::of_arguments(&tool.input_schema) {
        Ok(parameters) => {
            Ok(Declaration { name: &tool.name, description: &tool.description, parameters })
        }
        Err(bad) => Err(Refused::Tool { tool: tool.name.clone(), bad }),
    });
    let declarations = declarations.collect::<Result<Vec<_>, _>>()?;
    if declarations.is_empty() {
        return Ok(Vec::new());
    }
    let tools = [FunctionDeclarations { function_declarations: &declarations }];
    serde_json::to_vec(&tools).map_err(|_| Refused::Json)
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
