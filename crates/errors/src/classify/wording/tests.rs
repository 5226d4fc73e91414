use super::*;

/// Every row: what its stack says, and a near miss that must not match any row.
const EXAMPLES: &[(&str, &str, &str)] = &[
    (
        "wording.quota",
        "You exceeded your current quota, please check your plan",
        "exceeded your currentquota",
    ),
    (
        "wording.per_day",
        "Too many tokens per day, please wait before trying again.",
        "tokens per daylight",
    ),
    (
        "wording.credit",
        "Your credit balance is too low to access the API",
        "the credit balance is fine",
    ),
    (
        "wording.credits",
        "This request requires more credits, or fewer max_tokens",
        "more credits to the author",
    ),
    (
        "wording.extra_usage",
        "Extra usage is required for long context requests.",
        "extra usage is fine",
    ),
    (
        "wording.usage_limit",
        "Weekly usage limit reached. Resets in 6hr 29min.",
        "usage limits reached",
    ),
    (
        "wording.throttle",
        "Too many tokens, please wait before trying again.",
        "too many tokens in the vocabulary",
    ),
    (
        "wording.per_minute",
        "Tokens per minute limit exceeded - too many tokens processed",
        "tokens per minutes",
    ),
    (
        "wording.rate_limit",
        "Rate limit reached for gpt in organization",
        "the rate limit was not reached",
    ),
    (
        "wording.overflow.prompt_long",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "prompt is too longwinded",
    ),
    (
        "wording.overflow.prompt_too_long",
        "prompt too long; exceeded max context",
        "prompt: too long a story",
    ),
    (
        "wording.overflow.context_length",
        "This model's maximum context length is 8192 tokens.",
        "maximum context lengths vary",
    ),
    (
        "wording.overflow.window",
        "Your input exceeds the context window of this model",
        "exceeds the context windows",
    ),
    (
        "wording.overflow.limit",
        "input length and `max_tokens` exceed context limit: 1 + 2 > 3",
        "exceed context limitation",
    ),
    (
        "wording.overflow.size",
        "request (9 tokens) exceeds the available context size (5 tokens)",
        "the available context size is 5",
    ),
    (
        "wording.overflow.token_count",
        "The input token count (9) exceeds the maximum number of tokens allowed (5)",
        "the input token count is 9",
    ),
    (
        "wording.overflow.prompt_length",
        "This model's maximum prompt length is 5 but the request contains 9 tokens",
        "the maximum prompt length is 5",
    ),
    (
        "wording.overflow.reduce",
        "Please reduce the length of the messages or completion.",
        "reduce the length of the messages",
    ),
    ("wording.overflow.input_long", "Input is too long for requested model", "input is too long"),
    ("wording.terminated", "TypeError: terminated", "the process was terminated by signal 9"),
    (
        "wording.premature_close",
        "Error [ERR_STREAM_PREMATURE_CLOSE]: Premature close",
        "premature closed-form solution: prematureclose",
    ),
    (
        "wording.ended_before",
        "Anthropic stream ended before message_stop",
        "the party ended before midnight",
    ),
    (
        "wording.ended_without",
        "Stream ended without finish_reason",
        "the meeting ended without a vote",
    ),
    (
        "wording.peer_closed",
        "peer closed connection without sending complete message body (incomplete chunked read)",
        "peer closed connection",
    ),
    (
        "wording.closed_before_completed",
        "connection closed before message completed",
        "the connection closed",
    ),
];

#[test]
fn each_row_matches_its_stack_and_not_the_near_miss() {
    for row in ROWS {
        let (_, says, near) = EXAMPLES
            .iter()
            .find(|(rule, ..)| *rule == row.rule)
            .unwrap_or_else(|| panic!("{} has no example", row.rule));
        assert_eq!(conclude(says).map(|v| v.rule), Some(row.rule), "{says}");
        assert_eq!(conclude(near), None, "{near}");
    }
    assert_eq!(ROWS.len(), EXAMPLES.len());
}

#[test]
fn terminated_stands_alone_behind_error_names_only() {
    for text in
        ["terminated", "TypeError: terminated", "Error: TypeError: Terminated.", " terminated\n"]
    {
        assert_eq!(conclude(text).map(|v| v.code), Some(ErrorCode::StreamFailed), "{text}");
    }
    for text in ["terminated by user", "job: terminated", "undetermined", "not terminated"] {
        assert_eq!(conclude(text), None, "{text}");
    }
}

#[test]
fn digits_in_prose_are_no_status() {
    assert_eq!(conclude("retry after 4013 ms"), None);
    assert_eq!(conclude("model gpt-500-turbo said 429 words"), None);
}
