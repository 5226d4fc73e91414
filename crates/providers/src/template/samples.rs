//! Events of each dialect that give one text, for tests of every dialect at once.

use std::ops::ControlFlow;

use crate::{
    Native,
    answer::{Answer, Dialect, Stop},
};

impl Dialect for Box<dyn Dialect> {
    fn event(&mut self, answer: &mut Answer, name: &str, data: &str) -> ControlFlow<Stop> {
        (**self).event(answer, name, data)
    }

    fn document(&mut self, answer: &mut Answer, body: &str) -> ControlFlow<Stop> {
        (**self).document(answer, body)
    }

    fn native(&mut self, answer: &Answer) -> Option<Native> {
        (**self).native(answer)
    }
}

/// A dialect as it is and with every event parsed, and events of its recordings: what
/// goes before them, and deltas.
pub(crate) struct Sample {
    pub(crate) readings: fn() -> [Box<dyn Dialect>; 2],
    pub(crate) before: &'static [&'static str],
    pub(crate) deltas: &'static [&'static str],
    /// What ends the answer.
    pub(crate) end: &'static [&'static str],
}

pub(crate) const SAMPLES: &[Sample] = &[
    #[cfg(feature = "openai-chat")]
    Sample {
        readings: crate::openai_chat::both_readings,
        before: &[
            r#"{"id":"c","object":"chat.completion.chunk","created":17,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"u1"}"#,
        ],
        deltas: &[
            r#"{"id":"c","object":"chat.completion.chunk","created":17,"model":"m","choices":[{"index":0,"delta":{"content":"a word"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"kq3Z"}"#,
            r#"{"choices":[{"delta":{"content":null,"reasoning_content":"why"},"finish_reason":null,"index":0}],"object":"chat.completion.chunk","usage":null,"created":1763460000,"system_fingerprint":null,"model":"qwq","id":"chatcmpl-1"}"#,
            r#"{"id":"1","choices":[{"index":0,"delta":{"content":" said"},"finish_reason":null}],"p":"abcdefgh"}"#,
            r#"{"choices":[{"index":0,"delta":{"reasoning":"it","content":""}}],"created":5}"#,
        ],
        end: &[r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#],
    },
    #[cfg(feature = "anthropic")]
    Sample {
        readings: crate::anthropic::both_readings,
        before: &[
            r#"{"type":"message_start","message":{"id":"m1","content":[],"usage":{"input_tokens":3}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"Read","input":{}}}"#,
        ],
        deltas: &[
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a word"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"why"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"1"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"text":"a gateway's"}}"#,
        ],
        end: &[r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#],
    },
    #[cfg(feature = "openai-responses")]
    Sample {
        readings: crate::openai_responses::both_readings,
        before: &[
            r#"{"type":"response.created","response":{"id":"r","status":"in_progress"},"sequence_number":0}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"i0","type":"message","content":[]},"sequence_number":1}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"i1","type":"function_call","call_id":"c1","name":"Read","arguments":""},"sequence_number":2}"#,
        ],
        deltas: &[
            r#"{"type":"response.output_text.delta","sequence_number":9,"item_id":"i0","output_index":0,"content_index":0,"delta":"a word","logprobs":[],"obfuscation":"kq3Z"}"#,
            r#"{"type":"response.function_call_arguments.delta","sequence_number":41,"item_id":"i1","output_index":1,"delta":"1","obfuscation":"x"}"#,
            r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs","summary_index":0,"delta":"why","sequence_number":3}"#,
            r#"{"type":"response.refusal.delta","item_id":"i0","content_index":1,"delta":"No","sequence_number":3}"#,
        ],
        end: &[r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#],
    },
    #[cfg(feature = "gemini")]
    Sample {
        readings: crate::gemini::both_readings,
        before: &[],
        deltas: &[
            r#"{"candidates": [{"content": {"parts": [{"text": "a word"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 8,"candidatesTokenCount": 5,"totalTokenCount": 13,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 8}]},"modelVersion": "gemini-2.0-flash","responseId": "a"}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"why","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"candidatesTokenCount":1,"thoughtsTokenCount":7,"totalTokenCount":13}}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"on"}]}}]}"#,
        ],
        end: &[r#"{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}"#],
    },
];

/// All that a reading tells of these events.
pub(crate) fn told(dialect: Box<dyn Dialect>, events: &[String]) -> Vec<String> {
    let mut dialect = dialect;
    let mut answer = Answer::default();
    let mut told = Vec::new();
    for event in events {
        let flow = dialect.event(&mut answer, "", event);
        while let Some(given) = answer.take_event() {
            told.push(format!("{given:?}"));
        }
        told.push(format!(
            "{flow:?} {} {} {:?}",
            answer.events(),
            answer.take_progress(),
            answer.reported_usage()
        ));
        if flow.is_break() {
            break;
        }
    }
    told.push(format!("{:?}", answer.partial()));
    told
}

/// The event with another text in place of its delta, which stands there once.
pub(crate) fn with_text(event: &str, body: &str) -> String {
    for delta in ["a word", "why", " said", "\"it\"", "No", "\"on\"", "a gateway's", "\"1\""] {
        if let Some((before, after)) = event.split_once(delta) {
            let quote = if delta.starts_with('"') { "\"" } else { "" };
            return format!("{before}{quote}{body}{quote}{after}");
        }
    }
    panic!("an event without a delta: {event}")
}
