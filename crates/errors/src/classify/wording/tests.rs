use super::*;

const REQUEST: Scene = Scene { phase: Phase::Request, google: false };

/// Every row: what its stack says, and a near miss that must not match any row.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("per_day", "Too many tokens per day, please wait before trying again.", "tokens per daylight"),
    (
        "per_minute",
        "Tokens per minute limit exceeded - too many tokens processed",
        "tokens per minutes",
    ),
    (
        "quota",
        "You exceeded your current quota, please check your plan",
        "exceeded your currentquota",
    ),
    ("quota_exceeded", "Quota exceeded for this key", "no quota exceeded anything"),
    ("credit", "Your credit balance is too low to access the API", "the credit balance is fine"),
    (
        "credits",
        "This request requires more credits, or fewer max_tokens",
        "more credits to the author",
    ),
    ("balance", "账户余额不足或无可用资源包,请充值。", "the insufficient-balance page"),
    ("extra_usage", "Extra usage is required for long context requests.", "extra usage is fine"),
    ("usage_limit", "Weekly usage limit reached. Resets in 6hr 29min.", "usage limits reached"),
    ("spending_limit", "Key limit exceeded (total limit)", "the key limits exceeded nothing"),
    (
        "throttle",
        "Too many tokens, please wait before trying again.",
        "too many tokens in the vocabulary",
    ),
    ("rate_limit", "Rate limit reached for gpt in organization", "the rate limit was not reached"),
    ("too_many_requests", "Too Many Requests", "too many requestsparameters"),
    (
        "no_capacity",
        "No capacity available for model m-1 on the server",
        "no capacity available for models",
    ),
    ("overloaded", "The engine is currently overloaded", "the method is overloaded"),
    ("overloaded_alone", "Error: Overloaded", "overloaded operators"),
    ("loading", "Loading model", "loading models is slow"),
    ("key", "API key not valid. Please pass a valid API key.", "the API key is valid"),
    (
        "model.pull",
        "model \"x\" not found, try pulling it first",
        "not found, try pulling it first",
    ),
    ("model.not_found", "not_found_error: model: claude-x", "model: not_found_errors"),
    (
        "model.access",
        "The model `x` does not exist or you do not have access to it.",
        "the file does not exist or you do not have access to it",
    ),
    (
        "model.requested",
        "The requested model 'x' does not exist.",
        "the requested file does not exist",
    ),
    ("model.unknown", "Model not found: grok-x", "the model not founded on facts"),
    (
        "filter",
        "filtered due to the prompt triggering the content management policy",
        "content management policies",
    ),
    (
        "overflow.prompt_long",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "prompt is too longwinded",
    ),
    (
        "overflow.prompt_too_long",
        "prompt too long; exceeded max context",
        "prompt: too long a story",
    ),
    (
        "overflow.context_length",
        "This model's maximum context length is 8192 tokens.",
        "maximum context lengths vary",
    ),
    (
        "overflow.model_length",
        "The decoder prompt (length 9) is longer than the maximum model length of 5",
        "maximum model lengths",
    ),
    ("overflow.exceeded", "context length exceeded", "the context length was exceeded"),
    (
        "overflow.window",
        "Your input exceeds the context window of this model",
        "exceeds the context windows",
    ),
    (
        "overflow.window_exceeded",
        "finish reason model_context_window_exceeded",
        "my_model_context_window_exceeded",
    ),
    (
        "overflow.limit",
        "input length and `max_tokens` exceed context limit: 1 + 2 > 3",
        "exceed context limitation",
    ),
    ("overflow.request", "request_too_large: over 32 MB", "request_too_large_test"),
    (
        "overflow.size",
        "request (9 tokens) exceeds the available context size (5 tokens)",
        "the available context size is 5",
    ),
    (
        "overflow.keep_first",
        "Trying to keep the first 9 tokens when context the overflows. However, the model is loaded with context length of only 5 tokens",
        "trying to keep the first place",
    ),
    (
        "overflow.keep",
        "The number of tokens to keep from the initial prompt is greater than the context length",
        "tokens to keep from the initial prompt",
    ),
    (
        "overflow.token_count",
        "The input token count (9) exceeds the maximum number of tokens allowed (5)",
        "the input token count is 9",
    ),
    (
        "overflow.prompt_length",
        "This model's maximum prompt length is 5 but the request contains 9 tokens",
        "the maximum prompt length is 5",
    ),
    (
        "overflow.reduce",
        "Please reduce the length of the messages or completion.",
        "reduce the length of the messages",
    ),
    ("overflow.max_length", "Prompt exceeds max length", "the prompt exceeds max lengths"),
    (
        "overflow.model_limit",
        "Your request exceeded model token limit: 5 (requested: 9)",
        "exceeded model token limits",
    ),
    ("overflow.input_long", "Input is too long for requested model", "input is too long"),
    (
        "overflow.input_length",
        "Input length 9 exceeds the maximum allowed input length of 5 tokens",
        "the maximum allowed input length is 5",
    ),
    ("overflow.no_query", "no user query found in messages", "no user queries found in messages"),
    (
        "server_error",
        "An error occurred while processing your request. You can retry your request",
        "you can retry your request",
    ),
    (
        "runner",
        "an error was encountered while running the model: unexpected EOF",
        "an error was encountered while running the models",
    ),
    (
        "decode",
        "failed to decode, try again, increasing context size or reducing parallel",
        "failed to decode the base64 image",
    ),
    ("idle", "Upstream idle timeout exceeded", "the idle timeout was not exceeded"),
    ("timed_out", "error sending request: operation timed out", "the operation timed outside"),
    ("request_timed_out", "APITimeoutError: Request timed out.", "the request timed out twice"),
    ("unsent.refused", "connect ECONNREFUSED 127.0.0.1:1", "he refused the connection"),
    ("unsent.unresolved", "getaddrinfo ENOTFOUND host.invalid", "the address was not found"),
    ("terminated", "TypeError: terminated", "the process was terminated by signal 9"),
    ("other_side_closed", "SocketError: other side closed", "the other side closes"),
    (
        "premature_close",
        "Error [ERR_STREAM_PREMATURE_CLOSE]: Premature close",
        "premature closed-form solution: prematureclose",
    ),
    (
        "disconnected",
        "stream disconnected before completion: stream closed before response.completed",
        "the stream disconnected",
    ),
    (
        "ended_before",
        "Anthropic stream ended before message_stop",
        "the party ended before midnight",
    ),
    ("ended_without", "Stream ended without finish_reason", "the meeting ended without a vote"),
    (
        "no_terminal_event",
        "Response ended without a terminal event",
        "the day ended without a terminally dull event",
    ),
    (
        "no_chunks",
        "request ended without sending any chunks",
        "the request ended without sending any",
    ),
    ("no_finish", "missing finish_reason for choice 0", "the finish_reason is missing"),
    (
        "reading_body",
        "error decoding response body: error reading a body from connection",
        "error decoding the response",
    ),
    (
        "peer_closed",
        "peer closed connection without sending complete message body (incomplete chunked read)",
        "peer closed connection",
    ),
    (
        "payload",
        "Response payload is not completed: <TransferEncodingError: 400>",
        "the response payload is complete",
    ),
    (
        "http2_reset",
        "stream error: stream ID 45; INTERNAL_ERROR; received from peer",
        "a stream error in the video",
    ),
    (
        "http2_goaway",
        "http2: server sent GOAWAY and closed the connection; ErrCode=NO_ERROR, debug=\"max_age\"",
        "go away",
    ),
    (
        "close_notify",
        "peer closed connection without sending TLS close_notify",
        "no close_notify was sent",
    ),
    (
        "closed_before_completed",
        "connection closed before message completed",
        "the connection closed",
    ),
    (
        "sending",
        "error sending request for url (https://host.invalid/v1)",
        "error sending the request",
    ),
    ("fetch", "TypeError: fetch failed", "git fetch failed in the shell"),
    ("connection_error", "APIConnectionError: Connection error.", "a connection error in the diff"),
    ("hang_up", "socket hang up", "the socket hangs up"),
    ("reset", "read ECONNRESET", "the connection was reset"),
];

#[test]
fn each_row_matches_its_stack_and_not_the_near_miss() {
    for row in ROWS {
        let name = row.rule.strip_prefix("wording.").unwrap();
        let (_, says, near) = EXAMPLES
            .iter()
            .find(|(rule, ..)| *rule == name)
            .unwrap_or_else(|| panic!("{name} has no example"));
        assert_eq!(conclude(says, REQUEST).map(|v| v.rule), Some(row.rule), "{says}");
        assert_eq!(conclude(near, REQUEST), None, "{near}");
    }
    assert_eq!(ROWS.len(), EXAMPLES.len());
}

#[test]
fn terminated_stands_alone_behind_error_names_only() {
    for text in
        ["terminated", "TypeError: terminated", "Error: TypeError: Terminated.", " terminated\n"]
    {
        assert_eq!(
            conclude(text, REQUEST).map(|v| v.code),
            Some(ErrorCode::StreamFailed),
            "{text}"
        );
    }
    for text in ["terminated by user", "job: terminated", "undetermined", "not terminated"] {
        assert_eq!(conclude(text, REQUEST), None, "{text}");
    }
}

#[test]
fn digits_in_prose_are_no_status() {
    assert_eq!(conclude("retry after 4013 ms", REQUEST), None);
    assert_eq!(conclude("model gpt-500-turbo said 429 words", REQUEST), None);
}

#[test]
fn a_plan_comes_before_a_rate_and_a_rate_before_an_overflow() {
    for (text, rule) in [
        ("Rate limit reached on tokens per day (TPD): Limit 5", "wording.per_day"),
        ("You exceeded your current quota: 10 requests per minute", "wording.per_minute"),
        ("Too many tokens, please wait: the prompt is too long", "wording.throttle"),
        ("rate limit reached; maximum context length is 5 tokens", "wording.rate_limit"),
    ] {
        assert_eq!(conclude(text, REQUEST).map(|v| v.rule), Some(rule), "{text}");
    }
}

#[test]
fn a_google_server_means_a_rate_by_the_words_of_a_quota() {
    let google = Scene { google: true, ..REQUEST };
    let prose = "You exceeded your current quota, please check your plan";
    let seen = conclude(prose, google).unwrap();
    assert_eq!(
        (seen.code, seen.retriable, seen.rule),
        (ErrorCode::ProviderRateLimited, true, "wording.quota+google")
    );
    let plan = conclude("Your credit balance is too low", google).unwrap();
    assert_eq!(plan.code, ErrorCode::ProviderQuotaExceeded);
}

#[test]
fn a_connection_that_failed_after_the_head_is_a_broken_answer() {
    let stream = Scene { phase: Phase::Stream, ..REQUEST };
    for text in ["peer closed connection without sending TLS close_notify", "read ECONNRESET"] {
        assert_eq!(conclude(text, REQUEST).map(|v| v.code), Some(ErrorCode::NetworkError));
        assert_eq!(conclude(text, stream).map(|v| v.code), Some(ErrorCode::StreamFailed));
    }
}

#[test]
fn two_numbers_tell_whether_a_request_can_ever_fit() {
    for (text, expected) in [
        ("on tokens per minute (TPM): Limit 8000, Requested 42084, please reduce", Some(true)),
        ("Limit 30000, Used 25265, Requested 8020. Please try again in 6.57s.", Some(false)),
        ("Limit 200,000, Requested 695,212.", Some(true)),
        ("Limit 8000, Requested 8000", Some(false)),
        ("Limit 8000, Used 9000", None),
        ("the unlimit 5, requested 9", None),
        ("limit none, requested many", None),
        ("Limit 99999999999999999999999999, Requested 5", None),
    ] {
        assert_eq!(above_the_limit(text), expected, "{text}");
    }
}
