//! What a step says, for whoever judges what a client made of it.

use std::time::Duration;

use super::Step;
use crate::{
    behaviour::{Answer, Api},
    catalogue,
    content::ToolCall,
    dialect::{Anthropic, Ask, Chat, Dialect, Gemini, Responses, Turn},
    shape,
};

impl Step {
    /// The visible text that a whole answer of this step has; empty where it says
    /// nothing. Whether it gets that far is up to its behaviour.
    pub fn answer(&self) -> String {
        let heard = self.name().and_then(catalogue::find).and_then(|entry| entry.heard);
        heard.map_or_else(|| self.content().text().to_owned(), str::to_owned)
    }

    /// The tool calls that a whole answer of this step has.
    pub fn answer_calls(&self) -> Vec<ToolCall> {
        self.content().tool_calls
    }

    /// What a whole answer of this step thinks before it speaks, if it does.
    pub fn answer_reasoning(&self) -> Option<String> {
        self.content().reasoning
    }

    /// Whether its behaviour finds in this answer, as this API says it, what it changes.
    pub fn strikes_in(&self, api: Api) -> bool {
        let behaviour = self.behaviour();
        if !behaviour.carries_content() || behaviour.document {
            return true;
        }
        let dialect: &dyn Dialect = match api {
            Api::Chat => &Chat,
            Api::Responses => &Responses,
            Api::Anthropic => &Anthropic,
            Api::Gemini => &Gemini { stream: true },
        };
        let frames = dialect.frames(&self.content(), &Ask::probe(), Turn::FIRST);
        shape::events(&behaviour, api, frames).is_ok()
    }

    /// How long the client is asked to wait by `retry-after-ms`, or else by
    /// `retry-after` in seconds; `None` where neither header says so in a number
    /// above zero.
    pub fn asked_wait(&self) -> Option<Duration> {
        let behaviour = self.behaviour();
        let replied = match &behaviour.answer {
            Answer::Error(reply) => reply.headers.as_slice(),
            _ => &[],
        };
        let number = |wanted: &str| {
            let mut headers = behaviour.headers.iter().chain(replied);
            let (_, value) = headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
            value.trim().parse::<u64>().ok().filter(|wait| *wait > 0)
        };
        let millis = number("retry-after-ms").map(Duration::from_millis);
        millis.or_else(|| number("retry-after").map(Duration::from_secs))
    }
}

impl ToolCall {
    /// The tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arguments as they are sent.
    pub fn arguments(&self) -> &str {
        &self.arguments
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::DEFAULT_TEXT;

    #[test]
    fn a_step_tells_what_its_whole_answer_says() {
        let step = Step::named("stall").unwrap();
        assert_eq!((step.answer().as_str(), step.answer_calls().len()), (DEFAULT_TEXT, 0));
        let step = step.tool_call("Read", &json!({"path": "a"}));
        assert_eq!(step.answer(), "");
        let calls = step.answer_calls();
        let [call] = calls.as_slice() else { panic!("one call") };
        assert_eq!((call.name(), call.arguments()), ("Read", r#"{"path":"a"}"#));
        assert_eq!(step.text("Well.").answer(), "Well.");
    }

    #[test]
    fn a_change_of_the_finish_of_a_text_strikes_no_call() {
        let step = Step::named("refusal").unwrap();
        assert!(step.strikes_in(Api::Anthropic));
        let calls = step.tool_call("Read", &json!({"path": "a"}));
        assert!(!calls.strikes_in(Api::Anthropic));
        assert!(Step::named("rate_limit").unwrap().strikes_in(Api::Gemini));
    }

    #[test]
    fn a_wait_is_told_as_the_headers_ask_for_it() {
        let wait = |step: &Step| step.asked_wait().map(|wait| wait.as_millis());
        let limited = Step::named("rate_limit").unwrap();
        assert_eq!(wait(&limited), Some(300));
        assert_eq!(wait(&limited.retry_after(Duration::from_millis(1234))), Some(1234));
        assert_eq!(wait(&Step::named("overloaded").unwrap()), None);
        let seconds = Step::named("overloaded").unwrap().header("Retry-After", "2");
        assert_eq!(wait(&seconds), Some(2000));
    }
}
