//! Which requests a step is for.

use serde_json::Value;

use crate::record::Headers;

/// What a request must be for a step to be dealt to it; all that is set must
/// hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Match {
    pub(super) path_contains: Option<String>,
    pub(super) model: Option<String>,
    pub(super) last_user_contains: Option<String>,
    pub(super) body_contains: Option<String>,
    pub(super) has_tool_result: Option<bool>,
    pub(super) headers: Vec<(String, String)>,
}

impl Match {
    /// The path, with its query, holds this text.
    #[must_use]
    pub fn path_contains(mut self, text: impl Into<String>) -> Self {
        self.path_contains = Some(text.into());
        self
    }

    /// It asks for this model.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// The last text of the user holds this text.
    #[must_use]
    pub fn last_user_contains(mut self, text: impl Into<String>) -> Self {
        self.last_user_contains = Some(text.into());
        self
    }

    /// The body holds this text, as it was sent.
    #[must_use]
    pub fn body_contains(mut self, text: impl Into<String>) -> Self {
        self.body_contains = Some(text.into());
        self
    }

    /// Its last message brings, or does not bring, the result of a tool.
    #[must_use]
    pub fn has_tool_result(mut self, has: bool) -> Self {
        self.has_tool_result = Some(has);
        self
    }

    /// This header holds this text.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.headers.push((name.into(), text.into()));
        self
    }

    /// Whether it is for every request.
    pub fn is_for_all(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn fits(&self, asked: &Asked<'_>) -> bool {
        let holds = |wanted: &Option<String>, text: &str| {
            wanted.as_ref().is_none_or(|wanted| text.contains(wanted.as_str()))
        };
        let header = |(name, wanted): &(String, String)| {
            let found = asked.headers.get(&name.to_ascii_lowercase());
            found.is_some_and(|value| value.contains(wanted.as_str()))
        };
        holds(&self.path_contains, asked.path)
            && self.model.as_ref().is_none_or(|model| asked.asks_for(model))
            && (self.body_contains.is_none()
                || holds(&self.body_contains, &String::from_utf8_lossy(asked.raw)))
            && (self.last_user_contains.is_none()
                || holds(&self.last_user_contains, &asked.last_user_text()))
            && self.has_tool_result.is_none_or(|wanted| wanted == asked.brings_a_result())
            && self.headers.iter().all(header)
    }
}

/// What a step may want to know of a request, whatever its dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a str,
    pub(crate) headers: &'a Headers,
    pub(crate) raw: &'a [u8],
    pub(crate) body: &'a Value,
}

/// Headers by which clients are known to say which session a request is of;
/// the first one is for people.
const SESSION_HEADERS: [&str; 4] =
    ["x-faults-session", "x-session-id", "x-session-affinity", "x-grok-conv-id"];

impl Asked<'_> {
    /// The session it says it belongs to, in any of the ways clients have.
    pub(crate) fn session(&self, own_header: Option<&str>) -> Option<&str> {
        let headers = own_header.into_iter().chain(SESSION_HEADERS);
        let header = headers.filter_map(|name| self.headers.get(name)).next();
        let text = |pointer: &str| self.body.pointer(pointer).and_then(Value::as_str);
        header.or_else(|| text("/prompt_cache_key")).or_else(|| text("/metadata/user_id"))
    }

    /// Gemini names the model in the path: `…/models/NAME:generateContent`.
    fn asks_for(&self, model: &str) -> bool {
        let in_path = || {
            let (_, rest) = self.path.split_once("/models/")?;
            rest.split_once(':').map(|(name, _)| name)
        };
        self.body.get("model").and_then(Value::as_str).or_else(in_path) == Some(model)
    }

    /// The messages: of Chat and Anthropic, of Responses, of Gemini.
    fn messages(&self) -> &[Value] {
        let lists = ["messages", "input", "contents"];
        let found = lists.iter().find_map(|name| self.body.get(name)?.as_array());
        found.map_or(&[], Vec::as_slice)
    }

    fn last_user_text(&self) -> String {
        // Responses takes a bare string for one message of the user.
        if let Some(text) = self.body.get("input").and_then(Value::as_str) {
            return text.to_owned();
        }
        // Gemini may leave the role out of a message of the user.
        let of_user = |message: &&Value| match message.get("role") {
            Some(role) => role == "user",
            None => message.get("parts").is_some(),
        };
        let texts = self.messages().iter().rev().filter(of_user).map(text_of);
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }

    fn brings_a_result(&self) -> bool {
        let Some(last) = self.messages().last() else { return false };
        let is = |value: &Value, key: &str, words: &[&str]| {
            value.get(key).and_then(Value::as_str).is_some_and(|word| words.contains(&word))
        };
        let part = |part: &Value| {
            is(part, "type", &["tool_result"]) || part.get("functionResponse").is_some()
        };
        is(last, "role", &["tool", "function"])
            || is(last, "type", &["function_call_output", "custom_tool_call_output"])
            || parts_of(last).iter().any(part)
    }
}

fn parts_of(message: &Value) -> &[Value] {
    let parts = message.get("content").or_else(|| message.get("parts"));
    parts.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text_of(message: &Value) -> String {
    if let Some(text) = message.get("content").and_then(Value::as_str) {
        return text.to_owned();
    }
    let texts = parts_of(message).iter().filter_map(|part| part.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
