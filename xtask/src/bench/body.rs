//! The answers, with the fields that the real servers send around each piece.

use super::case::{Case, Dialect, Shape};

/// About as long as tokens are; some need an escape, some more than one byte.
const WORDS: [&str; 16] = [
    " the",
    " stream",
    " of",
    " small",
    " words",
    ".\n",
    " It",
    " goes",
    " on",
    " and",
    " \"on\"",
    ",",
    " until",
    " é",
    " everything",
    " came",
];

/// An answer as events: the bytes of a body, and where each event of it ends.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<usize>,
}

/// What a reader must have in the end: the text, or the arguments of the call.
pub(super) fn expected(case: Case) -> String {
    match case.shape {
        Shape::Long | Shape::Apart => (0..case.size).map(word).collect(),
        Shape::Big => "x".repeat(case.size),
        Shape::Fragments if case.dialect == Dialect::Gemini => {
            format!(r#"{{"text":"{}"}}"#, FRAGMENT.repeat(case.size))
        }
        Shape::Fragments => fragments(case.size).concat(),
        Shape::Rounds => arguments().repeat(case.size),
        Shape::First | Shape::Rest => word(0).repeat(case.size),
        Shape::Paced => (0..PACED_WORDS).map(word).collect::<String>().repeat(case.size),
    }
}

/// A plain fragment of a call's arguments.
const FRAGMENT: &str = " word";

/// How many pieces a paced stream has.
const PACED_WORDS: usize = 20;

/// The answer to one request of a case.
pub(super) fn answer(case: Case) -> Answer {
    let words = |count: usize| text(case.dialect, &(0..count).map(word).collect::<Vec<_>>());
    match case.shape {
        Shape::Long | Shape::Apart => words(case.size),
        Shape::Paced => words(PACED_WORDS),
        Shape::First | Shape::Rest => words(1),
        Shape::Big => text(case.dialect, &["x".repeat(case.size).as_str()]),
        Shape::Fragments => call(case.dialect, &fragments(case.size)),
        Shape::Rounds if case.dialect == Dialect::Gemini => whole_call(),
        Shape::Rounds => call(case.dialect, &[arguments()]),
    }
}

const fn arguments() -> &'static str {
    r#"{"path":"notes.txt"}"#
}

fn word(at: usize) -> &'static str {
    WORDS.get(at % WORDS.len()).copied().unwrap_or(" the")
}

/// Pieces of one JSON object; every eighth closes a string and opens the next one.
fn fragments(count: usize) -> Vec<&'static str> {
    let piece = |at: usize| match at {
        0 => r#"{"path":"a","text":[""#,
        at if at + 1 == count => r#""]}"#,
        at if at % 8 == 0 => r#"",""#,
        _ => FRAGMENT,
    };
    (0..count).map(piece).collect()
}

impl Answer {
    fn event(&mut self, name: Option<&str>, data: &str) {
        if let Some(name) = name {
            self.bytes.extend_from_slice(format!("event: {name}\n").as_bytes());
        }
        self.bytes.extend_from_slice(format!("data: {data}\n\n").as_bytes());
        self.ends.push(self.bytes.len());
    }

    fn chat(&mut self, delta: &str, finish: &str) {
        let padding = self.padding();
        self.event(None, &format!(
            r#"{{"id":"chatcmpl-AbCdEfGhIjKlMnOpQrStUv","object":"chat.completion.chunk","created":1764500000,"model":"gpt-4o","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}],"obfuscation":"{padding}"}}"#
        ));
    }

    /// What OpenAI pads its events with, another text in each.
    fn padding(&self) -> &'static str {
        const LETTERS: &str = "kq3ZxA9tWm0bRvE7uYcL5dHsPj2FgN8oXiKzT4wB1";
        let number = self.ends.len();
        let from = number * 7 % 29;
        LETTERS.get(from..from + 4 + number % 9).unwrap_or(LETTERS)
    }

    /// A response of Gemini, which tells the token counts so far.
    fn gemini(&mut self, parts: &str, finish: &str) {
        let (tokens, all) = (self.ends.len() + 1, self.ends.len() + 9);
        self.event(None, &format!(
            r#"{{"candidates": [{{"content": {{"parts": [{parts}],"role": "model"}},{finish}"index": 0}}],"usageMetadata": {{"promptTokenCount": 8,"candidatesTokenCount": {tokens},"totalTokenCount": {all},"promptTokensDetails": [{{"modality": "TEXT","tokenCount": 8}}]}},"modelVersion": "gemini-2.5-flash","responseId": "VL-Fao-BIOTbvdIPyZ3HiAQ"}}"#
        ));
    }

    /// An event of the two dialects that name their events.
    fn named(&mut self, name: &str, fields: &str) {
        self.event(Some(name), &format!(r#"{{"type":"{name}",{fields}}}"#));
    }

    /// An event of Responses, which numbers them.
    fn numbered(&mut self, name: &str, fields: &str) {
        let number = self.ends.len();
        self.named(name, &format!(r#""sequence_number":{number},{fields}"#));
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn text(dialect: Dialect, words: &[&str]) -> Answer {
    let mut answer = Answer::default();
    match dialect {
        Dialect::Chat => {
            answer.chat(r#"{"role":"assistant","content":"","refusal":null}"#, "null");
            for word in words {
                answer.chat(&format!(r#"{{"content":{}}}"#, quoted(word)), "null");
            }
            answer.chat("{}", r#""stop""#);
            answer.event(None, "[DONE]");
        }
        Dialect::Anthropic => {
            begin_message(&mut answer);
            answer.named(
                "content_block_start",
                r#""index":0,"content_block":{"type":"text","text":""}"#,
            );
            for word in words {
                let word = quoted(word);
                answer.named(
                    "content_block_delta",
                    &format!(r#""index":0,"delta":{{"type":"text_delta","text":{word}}}"#),
                );
            }
            end_message(&mut answer, "end_turn");
        }
        Dialect::Responses => {
            begin_response(&mut answer);
            let item = |status: &str, content: &str| {
                format!(
                    r#"{{"id":"msg_68a0","type":"message","status":"{status}","role":"assistant","content":[{content}]}}"#
                )
            };
            let place = r#""item_id":"msg_68a0","output_index":0,"content_index":0"#;
            let part = |text: &str| {
                format!(r#"{{"type":"output_text","annotations":[],"logprobs":[],"text":{text}}}"#)
            };
            let (empty, whole) = (part(r#""""#), quoted(&words.concat()));
            let begun = item("in_progress", "");
            answer.numbered(
                "response.output_item.added",
                &format!(r#""output_index":0,"item":{begun}"#),
            );
            answer.numbered("response.content_part.added", &format!(r#"{place},"part":{empty}"#));
            for word in words {
                let (word, padding) = (quoted(word), answer.padding());
                answer.numbered(
                    "response.output_text.delta",
                    &format!(r#"{place},"delta":{word},"logprobs":[],"obfuscation":"{padding}""#),
                );
            }
            answer.numbered(
                "response.output_text.done",
                &format!(r#"{place},"text":{whole},"logprobs":[]"#),
            );
            let part = part(&whole);
            answer.numbered("response.content_part.done", &format!(r#"{place},"part":{part}"#));
            end_response(&mut answer, &item("completed", &part));
        }
        Dialect::Gemini => {
            for word in words {
                answer.gemini(&format!(r#"{{"text": {}}}"#, quoted(word)), "");
            }
            answer.gemini(r#"{"text": ""}"#, r#""finishReason": "STOP","#);
        }
    }
    answer
}

fn call(dialect: Dialect, fragments: &[&str]) -> Answer {
    let mut answer = Answer::default();
    match dialect {
        Dialect::Chat => {
            answer.chat(
                r#"{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read","arguments":""}}]}"#,
                "null",
            );
            for fragment in fragments {
                let fragment = quoted(fragment);
                answer.chat(
                    &format!(
                        r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":{fragment}}}}}]}}"#
                    ),
                    "null",
                );
            }
            answer.chat("{}", r#""tool_calls""#);
            answer.event(None, "[DONE]");
        }
        Dialect::Anthropic => {
            begin_message(&mut answer);
            answer.named(
                "content_block_start",
                r#""index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}"#,
            );
            for fragment in fragments {
                let fragment = quoted(fragment);
                answer.named(
                    "content_block_delta",
                    &format!(r#""index":0,"delta":{{"type":"input_json_delta","partial_json":{fragment}}}"#),
                );
            }
            end_message(&mut answer, "tool_use");
        }
        Dialect::Responses => {
            begin_response(&mut answer);
            let item = |status: &str, arguments: &str| {
                format!(
                    r#"{{"id":"fc_1","type":"function_call","status":"{status}","call_id":"call_1","name":"read","arguments":{arguments}}}"#
                )
            };
            let place = r#""item_id":"fc_1","output_index":0"#;
            let begun = item("in_progress", r#""""#);
            answer.numbered(
                "response.output_item.added",
                &format!(r#""output_index":0,"item":{begun}"#),
            );
            for fragment in fragments {
                let (fragment, padding) = (quoted(fragment), answer.padding());
                answer.numbered(
                    "response.function_call_arguments.delta",
                    &format!(r#"{place},"delta":{fragment},"obfuscation":"{padding}""#),
                );
            }
            let whole = quoted(&fragments.concat());
            answer.numbered(
                "response.function_call_arguments.done",
                &format!(r#"{place},"arguments":{whole}"#),
            );
            end_response(&mut answer, &item("completed", &whole));
        }
        Dialect::Gemini => {
            // As Vertex AI streams arguments: pieces of a text, each with its place.
            let part = |call: &str| format!(r#"{{"functionCall": {{{call}}}}}"#);
            answer.gemini(&part(r#""name": "read","willContinue": true"#), "");
            for _ in fragments {
                let piece = format!(
                    r#""partialArgs": [{{"jsonPath": "$.text","stringValue": "{FRAGMENT}","willContinue": true}}],"willContinue": true"#
                );
                answer.gemini(&part(&piece), "");
            }
            answer.gemini(&part(""), r#""finishReason": "STOP","#);
        }
    }
    answer
}

/// A call of Gemini in one piece, as its public API sends every call.
fn whole_call() -> Answer {
    let mut answer = Answer::default();
    let arguments = arguments();
    answer.gemini(
        &format!(r#"{{"functionCall": {{"name": "read","args": {arguments}}}}}"#),
        r#""finishReason": "STOP","#,
    );
    answer
}

fn begin_message(answer: &mut Answer) {
    answer.named(
        "message_start",
        r#""message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}"#,
    );
}

fn end_message(answer: &mut Answer, reason: &str) {
    answer.named("content_block_stop", r#""index":0"#);
    answer.named(
        "message_delta",
        &format!(r#""delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":15}}"#),
    );
    answer.event(Some("message_stop"), r#"{"type":"message_stop"}"#);
}

fn begin_response(answer: &mut Answer) {
    let response =
        r#""response":{"id":"resp_68a0","object":"response","status":"in_progress","output":[]}"#;
    answer.numbered("response.created", response);
    answer.numbered("response.in_progress", response);
}

fn end_response(answer: &mut Answer, item: &str) {
    answer.numbered("response.output_item.done", &format!(r#""output_index":0,"item":{item}"#));
    answer.numbered(
        "response.completed",
        &format!(
            r#""response":{{"id":"resp_68a0","object":"response","status":"completed","output":[{item}],"usage":{{"input_tokens":25,"output_tokens":15,"total_tokens":40}}}}"#
        ),
    );
}
