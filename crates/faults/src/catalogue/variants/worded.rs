//! Errors as servers word them in whole bodies.

use super::{ANTHROPIC, CHAT, GEMINI, RESPONSES, row};
use crate::{
    behaviour::{Api, Behaviour},
    catalogue::{Entry, Expected},
};

const fn last(code: &'static str) -> Expected {
    Expected::last(code, "request")
}

/// A fault, a name, the API, the verdict, the status, the body.
type Body = (&'static str, &'static str, &'static [Api], Expected, u16, &'static str);

const OVERFLOW: Expected = last("CONTEXT_TOO_LARGE");
const QUOTA: Expected = last("PROVIDER_QUOTA_EXCEEDED");
const REFUSED: Expected = last("INVALID_REQUEST");
const RATE: Expected = Expected::capacity("PROVIDER_RATE_LIMITED");
const FULL: Expected = Expected::capacity("PROVIDER_OVERLOADED");
const DENIED: Expected = last("PROVIDER_UNAUTHORIZED");
const FILTERED: Expected = last("CONTENT_FILTERED");
const NO_MODEL: Expected = last("MODEL_NOT_CONFIGURED");

const BODIES: &[Body] = &[
    (
        "server_error",
        "stream_terminated",
        CHAT,
        Expected::setup("PROVIDER_ERROR"),
        502,
        r#"{"error":{"message":"terminated","type":"stream_error","code":"stream_terminated"}}"#,
    ),
    (
        "quota",
        "suspended",
        CHAT,
        QUOTA,
        429,
        r#"{"error":{"message":"Your account is suspended due to insufficient balance, please recharge","type":"exceeded_current_quota_error"}}"#,
    ),
    (
        "quota",
        "per_day",
        CHAT,
        QUOTA,
        429,
        r#"{"message":"Too many tokens per day, please wait before trying again."}"#,
    ),
    (
        "quota",
        "afford",
        CHAT,
        QUOTA,
        402,
        r#"{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 30104.","code":402}}"#,
    ),
    (
        "quota",
        "usage_limit",
        RESPONSES,
        QUOTA,
        429,
        r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":529498}}"#,
    ),
    (
        "quota",
        "weekly",
        CHAT,
        QUOTA,
        429,
        r#"{"error":{"message":"Weekly usage limit reached. Resets in 6hr 29min."}}"#,
    ),
    (
        "quota",
        "no_balance",
        CHAT,
        QUOTA,
        429,
        r#"{"error":{"message":"余额不足或无可用资源包,请充值。","type":"upstream_error","code":"1113"}}"#,
    ),
    (
        "quota",
        "per_day_id",
        GEMINI,
        QUOTA,
        429,
        r#"{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}}"#,
    ),
    (
        "rate_limit",
        "per_minute_id",
        GEMINI,
        RATE,
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProject"}]}]}}"#,
    ),
    (
        "rate_limit",
        "too_many_tokens",
        CHAT,
        RATE,
        429,
        r#"{"message":"Too many tokens, please wait before trying again."}"#,
    ),
    (
        "rate_limit",
        "anthropic",
        ANTHROPIC,
        RATE,
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded your per-minute rate limit"}}"#,
    ),
    (
        "long_wait",
        "above_the_tier",
        CHAT,
        last("PROVIDER_RATE_LIMITED"),
        413,
        r#"{"error":{"message":"Request too large for model m in service tier on_demand on tokens per minute (TPM): Limit 8000, Requested 42084, please reduce your message size","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ),
    (
        "overloaded",
        "engine",
        CHAT,
        FULL,
        429,
        r#"{"error":{"message":"The engine is currently overloaded, please try again later","type":"engine_overloaded_error"}}"#,
    ),
    (
        "overloaded",
        "no_capacity_array",
        GEMINI,
        FULL,
        429,
        r#"[{"error":{"code":429,"message":"No capacity available for model m-1 on the server","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"MODEL_CAPACITY_EXHAUSTED"}]}}]"#,
    ),
    (
        "overloaded",
        "529",
        ANTHROPIC,
        FULL,
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":null}"#,
    ),
    (
        "overloaded",
        "loading",
        CHAT,
        FULL,
        503,
        r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
    ),
    (
        "context_overflow",
        "glm",
        CHAT,
        OVERFLOW,
        400,
        r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#,
    ),
    (
        "context_overflow",
        "anthropic_413",
        ANTHROPIC,
        OVERFLOW,
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
    ),
    (
        "context_overflow",
        "anthropic_long",
        ANTHROPIC,
        OVERFLOW,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
    ),
    (
        "context_overflow",
        "llama",
        CHAT,
        OVERFLOW,
        400,
        r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request (144055 tokens) exceeds the available context size (131072 tokens), try increasing it"}}"#,
    ),
    (
        "context_overflow",
        "bedrock",
        CHAT,
        OVERFLOW,
        400,
        r#"{"message":"Input is too long for requested model."}"#,
    ),
    (
        "context_overflow",
        "sum",
        ANTHROPIC,
        OVERFLOW,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#,
    ),
    (
        "context_overflow",
        "lm_studio",
        CHAT,
        OVERFLOW,
        400,
        r#"{"error":"Trying to keep the first 10136 tokens when context overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough."}"#,
    ),
    (
        "context_overflow",
        "gemini",
        GEMINI,
        OVERFLOW,
        400,
        r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
    ),
    (
        "bad_request",
        "detail_list",
        CHAT,
        REFUSED,
        422,
        r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","param":null,"code":null}"#,
    ),
    (
        "bad_request",
        "tool_id",
        CHAT,
        REFUSED,
        400,
        r#"{"object":"error","message":"Tool call id was turn1_0 but must be a-z, A-Z, 0-9, with a length of 9.","type":"invalid_function_call","code":"3280"}"#,
    ),
    (
        "bad_request",
        "orphan",
        ANTHROPIC,
        REFUSED,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.12.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_x"}}"#,
    ),
    (
        "bad_request",
        "reasoning",
        CHAT,
        REFUSED,
        400,
        r#"{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
    ),
    (
        "bad_request",
        "signature",
        GEMINI,
        REFUSED,
        400,
        r#"{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}"#,
    ),
    (
        "bad_request",
        "reasoning_id",
        RESPONSES,
        REFUSED,
        400,
        r#"{"error":{"message":"Missing required parameter: 'input[2].id'.","type":"invalid_request_error","param":"input[2].id","code":"missing_required_parameter"}}"#,
    ),
    (
        "unauthorized",
        "plain",
        CHAT,
        DENIED,
        401,
        "Could not parse your authentication token. Please try signing in again.",
    ),
    (
        "unauthorized",
        "expired",
        CHAT,
        DENIED,
        401,
        r#"{"error":{"code":"token_expired","message":"Provided authentication token is expired."}}"#,
    ),
    (
        "unauthorized",
        "anthropic",
        ANTHROPIC,
        DENIED,
        401,
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
    ),
    (
        "unauthorized",
        "gemini_400",
        GEMINI,
        DENIED,
        400,
        r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#,
    ),
    (
        "unauthorized",
        "region",
        CHAT,
        DENIED,
        403,
        r#"{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","type":"request_forbidden"}}"#,
    ),
    (
        "filtered_prompt",
        "azure",
        CHAT,
        FILTERED,
        400,
        r#"{"error":{"message":"The response was filtered due to the prompt triggering the content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
    ),
    (
        "model_not_found",
        "anthropic",
        ANTHROPIC,
        NO_MODEL,
        404,
        r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-none"}}"#,
    ),
    (
        "model_not_found",
        "gemini",
        GEMINI,
        NO_MODEL,
        404,
        r#"{"error":{"code":404,"message":"models/none is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}"#,
    ),
    (
        "wrong_path",
        "json",
        CHAT,
        last("PROVIDER_PROTOCOL_MISMATCH"),
        404,
        r#"{"error":{"message":"Invalid URL (POST /v1/v1/chat/completions)","type":"invalid_request_error","param":null,"code":null}}"#,
    ),
    (
        "unauthorized",
        "key_and_hash",
        CHAT,
        DENIED,
        401,
        r#"{"message":"Authentication Error, Invalid proxy server token passed. Received API Key = {key}, Key Hash (Token) =2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b. Unable to find token in cache","type":"token_not_found_in_db","param":"key","code":"401"}"#,
    ),
    (
        "long_wait",
        "beyond_the_limit",
        CHAT,
        last("PROVIDER_RATE_LIMITED"),
        429,
        r#"{"error":{"type":"tokens","code":"rate_limit_exceeded","message":"Request too large for model m on tokens per min (TPM): Limit 200000, Requested 695212. The input or output tokens must be reduced in order to run successfully."}}"#,
    ),
];

pub(super) fn rows() -> Vec<Entry> {
    let whole = BODIES.iter().map(|(fault, name, api, expected, status, body)| {
        let content_type =
            if body.starts_with(['{', '[']) { "application/json" } else { "text/plain" };
        let behaviour = Behaviour::raw(content_type, *body).status(*status);
        row(fault, name, api, *expected, behaviour)
    });
    whole.collect()
}
