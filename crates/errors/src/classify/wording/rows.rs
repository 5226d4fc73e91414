//! The table of wordings, in the order in which they are asked.

use super::{Pattern, Row};
use crate::ErrorCode;

const fn row(rule: &'static str, pattern: Pattern, code: ErrorCode) -> Row {
    Row { rule, pattern, code }
}

pub(super) const ROWS: &[Row] = &[
    // --- a plan, a credit or a daily limit -------------------------------------------
    // OpenAI.
    row(
        "wording.quota",
        Pattern::Phrase("exceeded your current quota"),
        ErrorCode::ProviderQuotaExceeded,
    ),
    // Bedrock.
    row(
        "wording.per_day",
        Pattern::Phrase("too many tokens per day"),
        ErrorCode::ProviderQuotaExceeded,
    ),
    // Anthropic.
    row(
        "wording.credit",
        Pattern::Phrase("credit balance is too low"),
        ErrorCode::ProviderQuotaExceeded,
    ),
    // OpenRouter.
    row(
        "wording.credits",
        Pattern::Phrase("requires more credits"),
        ErrorCode::ProviderQuotaExceeded,
    ),
    // Anthropic, an entitlement and no rate.
    row(
        "wording.extra_usage",
        Pattern::Phrase("extra usage is required"),
        ErrorCode::ProviderQuotaExceeded,
    ),
    // Coding plans of several providers.
    row(
        "wording.usage_limit",
        Pattern::Phrase("usage limit reached"),
        ErrorCode::ProviderQuotaExceeded,
    ),
    // --- a rate ----------------------------------------------------------------------
    // Bedrock.
    row(
        "wording.throttle",
        Pattern::Phrase("too many tokens, please wait"),
        ErrorCode::ProviderRateLimited,
    ),
    // Cerebras, OpenAI tiers.
    row("wording.per_minute", Pattern::Phrase("tokens per minute"), ErrorCode::ProviderRateLimited),
    // OpenAI, Groq.
    row(
        "wording.rate_limit",
        Pattern::Phrase("rate limit reached"),
        ErrorCode::ProviderRateLimited,
    ),
    // --- a context that is too small -------------------------------------------------
    // Anthropic, Vertex.
    row(
        "wording.overflow.prompt_long",
        Pattern::Phrase("prompt is too long"),
        ErrorCode::ContextTooLarge,
    ),
    // Ollama's cloud.
    row(
        "wording.overflow.prompt_too_long",
        Pattern::Phrase("prompt too long"),
        ErrorCode::ContextTooLarge,
    ),
    // OpenAI, vLLM, DeepSeek, OpenRouter.
    row(
        "wording.overflow.context_length",
        Pattern::Phrase("maximum context length"),
        ErrorCode::ContextTooLarge,
    ),
    // OpenAI.
    row(
        "wording.overflow.window",
        Pattern::Phrase("exceeds the context window"),
        ErrorCode::ContextTooLarge,
    ),
    // Anthropic.
    row(
        "wording.overflow.limit",
        Pattern::Phrase("exceed context limit"),
        ErrorCode::ContextTooLarge,
    ),
    // llama.cpp.
    row(
        "wording.overflow.size",
        Pattern::Phrase("exceeds the available context size"),
        ErrorCode::ContextTooLarge,
    ),
    // Gemini.
    row(
        "wording.overflow.token_count",
        Pattern::Ordered(&["input token count", "exceeds the maximum number of tokens allowed"]),
        ErrorCode::ContextTooLarge,
    ),
    // xAI.
    row(
        "wording.overflow.prompt_length",
        Pattern::Ordered(&["maximum prompt length is", "but the request contains"]),
        ErrorCode::ContextTooLarge,
    ),
    // Groq.
    row(
        "wording.overflow.reduce",
        Pattern::Phrase("reduce the length of the messages or completion"),
        ErrorCode::ContextTooLarge,
    ),
    // Bedrock.
    row(
        "wording.overflow.input_long",
        Pattern::Phrase("input is too long for requested model"),
        ErrorCode::ContextTooLarge,
    ),
    // --- a broken connection, as flattened by other stacks -------------------------------
    // undici, the HTTP client of Node: the body was cut.
    row("wording.terminated", Pattern::Whole("terminated"), ErrorCode::StreamFailed),
    // The stream layer of Node.
    row("wording.premature_close", Pattern::Phrase("premature close"), ErrorCode::StreamFailed),
    // SDKs of several providers, in their own words for a missing terminal event.
    row(
        "wording.ended_before",
        Pattern::Ordered(&["stream", "ended before"]),
        ErrorCode::StreamFailed,
    ),
    row(
        "wording.ended_without",
        Pattern::Ordered(&["stream", "ended without"]),
        ErrorCode::StreamFailed,
    ),
    // Python's httpx.
    row(
        "wording.peer_closed",
        Pattern::Phrase("peer closed connection without sending complete message body"),
        ErrorCode::StreamFailed,
    ),
    // hyper: a pooled connection that was dead.
    row(
        "wording.closed_before_completed",
        Pattern::Phrase("connection closed before message completed"),
        ErrorCode::NetworkError,
    ),
];
