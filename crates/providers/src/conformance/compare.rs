//! What differs between an outcome and its row, or between two outcomes.

use serde_json::Value;
use sha2::{Digest, Sha256};
use turnbuckle_errors::{ErrorCode, Failure, SafeText, Usage};

use super::{AsItIs, ExpectedCall, ExpectedUsage, Outcome, Row};
use crate::{Arguments, ToolCall};

/// Every difference between the outcome and what the row expects.
pub(super) fn compare(row: &Row, outcome: &Outcome) -> Vec<String> {
    let mut found = Found { row, differences: Vec::new() };
    found.end(outcome);
    // An answer that must fail is only judged by its failure.
    if row.expect.error.is_none() || outcome.is_ok() {
        found.content(outcome);
    }
    found.differences
}

/// The difference between two outcomes of the same bytes.
pub(super) fn same(how: &str, whole: &Outcome, other: &Outcome) -> Option<String> {
    let equal = match (whole, other) {
        (Ok(a), Ok(b)) => a == b,
        (Err(a), Err(b)) => {
            let (a, b) = (&**a, &**b);
            a.0.code() == b.0.code() && a.0.details().rule == b.0.details().rule && a.1 == b.1
        }
        _ => false,
    };
    (!equal).then(|| format!("fed {how}, the outcome is another: {}", describe(other)))
}

fn describe(outcome: &Outcome) -> String {
    match outcome {
        Ok(message) => format!("a message that ended with `{}`", message.finish().as_str()),
        Err(failed) => {
            format!("{} by rule `{}`", failed.0.code(), failed.0.details().rule.unwrap_or("none"))
        }
    }
}

struct Found<'a> {
    row: &'a Row,
    differences: Vec<String>,
}

impl Found<'_> {
    fn differ(&mut self, what: &str, expected: &dyn std::fmt::Debug, got: &dyn std::fmt::Debug) {
        self.differences.push(format!("{what}: expected {expected:?}, got {got:?}"));
    }

    fn end(&mut self, outcome: &Outcome) {
        let expect = &self.row.expect;
        let must_fail = expect.error.is_some();
        match outcome {
            Ok(_) if must_fail && self.row.binds("error") => {
                self.differ("end", &"an error", &describe(outcome));
            }
            Err(failed) if must_fail => {
                let code = failed.0.code();
                let unclear = code == ErrorCode::StreamFailed || code == ErrorCode::NetworkError;
                if unclear && self.row.binds("error") {
                    self.differ("end", &"the provider's error", &describe(outcome));
                }
                self.status(failed.0.details().provider_status);
                self.told(&failed.0);
            }
            // A stream that never says that it ends is no message, by our contract.
            Err(failed) if expect.finish == "none" => {
                if failed.0.code() != ErrorCode::StreamFailed {
                    self.differ("end", &"STREAM_FAILED", &describe(outcome));
                }
            }
            // The answer was called broken by its finish reason.
            Err(failed) if expect.finish == "error" => {
                if failed.0.code() == ErrorCode::StreamFailed {
                    self.differ("end", &"the provider's error", &describe(outcome));
                }
            }
            Err(_) => self.differ("end", &expect.finish, &describe(outcome)),
            Ok(message) => {
                let raw = message.finish_raw().filter(|raw| !raw.is_empty());
                if self.row.binds("finish") {
                    let got = match expect.finish.starts_with("other:") {
                        true => format!("other:{}", raw.unwrap_or_default()),
                        false => message.finish().as_str().to_owned(),
                    };
                    if got != expect.finish {
                        self.differ("finish", &expect.finish, &got);
                    }
                    let wanted = expect.finish_raw.as_ref().and_then(Value::as_str);
                    if raw != wanted.filter(|raw| !raw.is_empty()) {
                        self.differ("finish_raw", &expect.finish_raw, &raw);
                    }
                } else if expect.finish == "none" {
                    self.differ("end", &"no whole message", &describe(outcome));
                }
            }
        }
    }

    fn status(&mut self, got: Option<u16>) {
        if got != Some(self.row.status) {
            self.differ("status", &self.row.status, &got);
        }
    }

    /// The provider's own code and sentence arrive as it sent them.
    fn told(&mut self, failure: &Failure) {
        let Some(error) = self.row.expect.error.as_ref().filter(|_| self.row.binds("error")) else {
            return;
        };
        let word = |name: &str| match error.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let words = [word("code"), word("type")];
        let got = failure.details().provider_code.as_ref().map(ToString::to_string);
        // A type in prose (`Bad Request`, of Doubleword) is no code.
        let fit = got.is_none() && words.iter().flatten().any(|word| word.contains(' '));
        if !fit && !words.contains(&got) && words != [None, None] {
            self.differ("error code", &words, &got);
        }
        if let Some(message) = word("message") {
            let message = SafeText::redacted(message.trim(), &AsItIs);
            if *failure.message() != message {
                self.differ("error message", &message, failure.message());
            }
        }
    }

    fn content(&mut self, outcome: &Outcome) {
        let expect = &self.row.expect;
        let (text, refusal, reasoning, calls, usage) = match outcome {
            Ok(message) => {
                let said = message.message();
                let refusal = message.refusal_text().unwrap_or_default();
                let text = said.text.strip_suffix(refusal).unwrap_or(&said.text);
                (text, refusal, &said.reasoning, &said.tool_calls, *message.usage())
            }
            Err(failed) => {
                let part = &failed.1;
                (&*part.text, "", &part.reasoning, &part.tool_calls, part.usage)
            }
        };
        if self.row.binds("text") {
            let hash = hex(&Sha256::digest(text.as_bytes()));
            let chars = text.chars().count();
            if (&hash, chars) != (&expect.text_sha256, expect.text_chars) {
                let expected = (&expect.text_sha256, expect.text_chars);
                self.differ("text", &expected, &(hash, chars));
            }
        }
        self.count("reasoning_chars", expect.reasoning_chars, reasoning);
        if outcome.is_ok() {
            self.count("refusal_chars", expect.refusal_chars, refusal);
        }
        self.calls(calls, outcome.is_ok());
        let wanted = expect.usage.unwrap_or_default();
        let got = as_reported(usage, self.row, wanted);
        if wanted != got {
            self.differ("usage", &wanted, &got);
        }
    }

    fn count(&mut self, what: &str, expected: usize, text: &str) {
        let got = text.chars().count();
        if got != expected {
            self.differ(what, &expected, &got);
        }
    }

    fn calls(&mut self, got: &[ToolCall], whole: bool) {
        let expected = &self.row.expect.tool_calls;
        let names = |calls: &mut dyn Iterator<Item = &String>| -> Vec<String> {
            calls.map(ToOwned::to_owned).collect()
        };
        let expected_names = names(&mut expected.iter().map(|call| &call.name));
        let got_names = names(&mut got.iter().map(|call| &call.name));
        if expected_names != got_names {
            self.differ("tool_calls", &expected_names, &got_names);
            return;
        }
        for (expected, got) in expected.clone().iter().zip(got) {
            // Calls of an unfinished message are never whole: compare what they hold.
            let arguments = match (&got.arguments, whole) {
                (Arguments::Broken(raw), false) => Arguments::parse(raw.clone()),
                (arguments, _) => arguments.clone(),
            };
            if !arguments_agree(expected, &arguments) {
                self.differ(&format!("arguments of {}", got.name), expected, &arguments);
            }
        }
    }
}

fn arguments_agree(expected: &ExpectedCall, got: &Arguments) -> bool {
    match (&expected.arguments_json, got) {
        (Some(json), Arguments::Whole(_)) => {
            // The index keeps arguments as JSON text.
            let wanted = match json {
                Value::String(text) => serde_json::from_str(text).ok(),
                other => Some(other.clone()),
            };
            match (wanted, got.value()) {
                (Some(wanted), Some(got)) => same_json(&wanted, &got),
                _ => false,
            }
        }
        (None, Arguments::Broken(raw)) => {
            expected.arguments_raw.as_ref().is_none_or(|expected| expected == raw)
        }
        _ => false,
    }
}

/// Equality of JSON values in which 2 equals 2.0.
fn same_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_json(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same_json(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Our disjoint counts put together again as the wire has them. OpenAI's dialect
/// counts cached tokens into the request and reasoning into the answer. Reasoning
/// stands beside the answer in xAI's Chat, and wherever there is more of it than
/// answer. Anthropic counts both beside the request, and only its rows name what
/// was written to a cache.
fn as_reported(usage: Usage, row: &Row, wire: ExpectedUsage) -> ExpectedUsage {
    let with = |count: Option<u64>, part: Option<u64>| count.map(|count| count + part.unwrap_or(0));
    let xai_chat = row.provider == "xai" && row.protocol == "chat";
    // Gemini's reasoning stands beside the answer, and what its own tools gave the
    // model to read beside the request.
    let gemini = row.protocol == "gemini";
    let beside = xai_chat || gemini || wire.reasoning > wire.output;
    let reasoning = usage.reasoning_tokens.filter(|_| !beside);
    let of_a_cache = with(Some(usage.cached_tokens.unwrap_or(0)), usage.cache_write_tokens);
    let anthropic = row.protocol == "anthropic";
    ExpectedUsage {
        input: match usage.input_tokens {
            fresh if anthropic => fresh,
            fresh => {
                with(fresh, of_a_cache).map(|all| all.saturating_sub(wire.tool_prompt.unwrap_or(0)))
            }
        },
        output: with(usage.output_tokens, reasoning),
        cached: usage.cached_tokens,
        cache_write: usage.cache_write_tokens.filter(|_| anthropic),
        reasoning: usage.reasoning_tokens,
        tool_prompt: wire.tool_prompt,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
