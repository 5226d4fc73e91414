//! The table of wordings, in the order in which they are asked.
//!
//! Each row: its rule, what is said, what it means, and above it who says it.

use super::{
    Pattern::{self, Any, Ordered, Phrase, Start, Whole},
    Row,
};
use crate::ErrorCode::{
    self, ContentFiltered, ContextTooLarge, ModelNotConfigured, NetworkError, ProviderError,
    ProviderOverloaded, ProviderQuotaExceeded, ProviderRateLimited, ProviderUnauthorized,
    StreamFailed, Timeout,
};

const fn row(rule: &'static str, pattern: Pattern, code: ErrorCode) -> Row {
    Row { rule, pattern, code }
}

pub(super) const ROWS: &[Row] = &[
    // --- a limit by the day, then one by the minute ----------------------------------
    // Bedrock; OpenAI and Groq (RPD, TPD); OpenRouter's free models.
    row(
        "wording.per_day",
        Any(&["tokens per day", "requests per day", "free-models-per-day"]),
        ProviderQuotaExceeded,
    ),
    // Cerebras; OpenAI and Groq tiers; Gemini.
    row(
        "wording.per_minute",
        Any(&["tokens per minute", "tokens per min", "requests per minute", "requests per min"]),
        ProviderRateLimited,
    ),
    // --- a plan or a credit ----------------------------------------------------------
    // OpenAI and many compatible. Google says it of a rate.
    row(
        "wording.quota",
        Any(&["exceeded your current quota", "exceeded your quota"]),
        ProviderQuotaExceeded,
    ),
    // Gateways.
    row("wording.quota_exceeded", Start("quota exceeded"), ProviderQuotaExceeded),
    // Anthropic.
    row("wording.credit", Phrase("credit balance is too low"), ProviderQuotaExceeded),
    // OpenRouter.
    row("wording.credits", Phrase("requires more credits"), ProviderQuotaExceeded),
    // Moonshot and DeepSeek; OpenRouter; Z.ai.
    row(
        "wording.balance",
        Any(&["insufficient balance", "insufficient credits", "余额不足"]),
        ProviderQuotaExceeded,
    ),
    // Anthropic, an entitlement and no rate.
    row("wording.extra_usage", Phrase("extra usage is required"), ProviderQuotaExceeded),
    // Coding plans: Codex and several others.
    row(
        "wording.usage_limit",
        Any(&["usage limit reached", "usage limit has been reached", "hit your usage limit"]),
        ProviderQuotaExceeded,
    ),
    // OpenAI; OpenRouter, for the limit of a single key.
    row(
        "wording.spending_limit",
        Any(&["billing hard limit", "key limit exceeded"]),
        ProviderQuotaExceeded,
    ),
    // --- a rate ----------------------------------------------------------------------
    // Bedrock.
    row("wording.throttle", Phrase("too many tokens, please wait"), ProviderRateLimited),
    // OpenAI, Groq, Azure, gateways.
    row(
        "wording.rate_limit",
        Any(&["rate limit reached", "rate limit exceeded", "exceeded rate limit"]),
        ProviderRateLimited,
    ),
    // Servers that say the name of the status.
    row("wording.too_many_requests", Phrase("too many requests"), ProviderRateLimited),
    // --- no capacity -----------------------------------------------------------------
    // Gemini code assist.
    row("wording.no_capacity", Phrase("no capacity available for model"), ProviderOverloaded),
    // Moonshot, OpenAI, Gemini; Anthropic as a word alone.
    row(
        "wording.overloaded",
        Any(&["currently overloaded", "model is overloaded", "overloaded_error"]),
        ProviderOverloaded,
    ),
    row("wording.overloaded_alone", Whole("overloaded"), ProviderOverloaded),
    // llama.cpp, while it starts.
    row("wording.loading", Whole("loading model"), ProviderOverloaded),
    // --- a key, a model, a filter ----------------------------------------------------
    // OpenAI, Anthropic, Gemini.
    row(
        "wording.key",
        Any(&[
            "incorrect api key provided",
            "invalid x-api-key",
            "invalid api key",
            "api key not valid",
        ]),
        ProviderUnauthorized,
    ),
    // Ollama.
    row(
        "wording.model.pull",
        Ordered(&["model", "not found, try pulling it first"]),
        ModelNotConfigured,
    ),
    // Anthropic.
    row("wording.model.not_found", Ordered(&["not_found_error", "model:"]), ModelNotConfigured),
    // OpenAI, Groq, Doubleword.
    row(
        "wording.model.access",
        Ordered(&["model", "does not exist or you do not have access to it"]),
        ModelNotConfigured,
    ),
    // OpenAI's Responses.
    row(
        "wording.model.requested",
        Ordered(&["the requested model", "does not exist"]),
        ModelNotConfigured,
    ),
    // xAI.
    row("wording.model.unknown", Start("model not found"), ModelNotConfigured),
    // Azure; OpenRouter.
    row(
        "wording.filter",
        Any(&["content management policy", "requires moderation", "your input was flagged"]),
        ContentFiltered,
    ),
    // --- a context that is too small -------------------------------------------------
    // Anthropic, Vertex.
    row("wording.overflow.prompt_long", Phrase("prompt is too long"), ContextTooLarge),
    // Ollama's cloud.
    row("wording.overflow.prompt_too_long", Phrase("prompt too long"), ContextTooLarge),
    // OpenAI, vLLM, Mistral, DeepSeek, OpenRouter.
    row("wording.overflow.context_length", Phrase("maximum context length"), ContextTooLarge),
    // vLLM, for a model with an encoder.
    row("wording.overflow.model_length", Phrase("maximum model length"), ContextTooLarge),
    // Gateways, and OpenAI's code where the stack prints it.
    row(
        "wording.overflow.exceeded",
        Any(&["context length exceeded", "context_length_exceeded"]),
        ContextTooLarge,
    ),
    // OpenAI.
    row("wording.overflow.window", Phrase("exceeds the context window"), ContextTooLarge),
    // Z.ai, as a finish reason.
    row(
        "wording.overflow.window_exceeded",
        Phrase("model_context_window_exceeded"),
        ContextTooLarge,
    ),
    // Anthropic.
    row("wording.overflow.limit", Phrase("exceed context limit"), ContextTooLarge),
    row("wording.overflow.request", Phrase("request_too_large"), ContextTooLarge),
    // llama.cpp.
    row("wording.overflow.size", Phrase("exceeds the available context size"), ContextTooLarge),
    // LM Studio.
    row(
        "wording.overflow.keep_first",
        Ordered(&["trying to keep the first", "context length of only"]),
        ContextTooLarge,
    ),
    row(
        "wording.overflow.keep",
        Ordered(&["tokens to keep from the initial prompt", "greater than the context length"]),
        ContextTooLarge,
    ),
    // Gemini.
    row(
        "wording.overflow.token_count",
        Ordered(&["input token count", "exceeds the maximum number of tokens allowed"]),
        ContextTooLarge,
    ),
    // xAI.
    row(
        "wording.overflow.prompt_length",
        Ordered(&["maximum prompt length is", "but the request contains"]),
        ContextTooLarge,
    ),
    // Groq.
    row(
        "wording.overflow.reduce",
        Phrase("reduce the length of the messages or completion"),
        ContextTooLarge,
    ),
    // Z.ai.
    row("wording.overflow.max_length", Phrase("prompt exceeds max length"), ContextTooLarge),
    // Kimi.
    row("wording.overflow.model_limit", Phrase("exceeded model token limit"), ContextTooLarge),
    // Bedrock.
    row(
        "wording.overflow.input_long",
        Phrase("input is too long for requested model"),
        ContextTooLarge,
    ),
    // OpenRouter, Together.
    row(
        "wording.overflow.input_length",
        Phrase("exceeds the maximum allowed input length"),
        ContextTooLarge,
    ),
    // Ollama, when it cut away the front of a prompt and no question was left.
    row("wording.overflow.no_query", Phrase("no user query found in messages"), ContextTooLarge),
    // --- a server that failed --------------------------------------------------------
    // OpenAI's Responses, in the stream; OpenAI's Chat Completions.
    row(
        "wording.server_error",
        Any(&[
            "an error occurred while processing your request",
            "had an error while processing your request",
        ]),
        ProviderError,
    ),
    // Ollama, in the stream.
    row("wording.runner", Phrase("error was encountered while running the model"), ProviderError),
    // llama.cpp (through GPUStack): its slots share one memory, which is full.
    row("wording.decode", Ordered(&["failed to decode", "context size"]), ProviderError),
    // --- a silence -------------------------------------------------------------------
    // Gateways; opencode; undici; the SDKs of OpenAI; DOM timeouts; reqwest.
    row("wording.idle", Any(&["upstream idle timeout exceeded", "sse read timed out"]), Timeout),
    row(
        "wording.timed_out",
        Any(&[
            "headers timeout error",
            "body timeout error",
            "operation timed out",
            "operation was aborted due to timeout",
        ]),
        Timeout,
    ),
    row("wording.request_timed_out", Whole("request timed out"), Timeout),
    // --- a request that was never sent -----------------------------------------------
    // Any stack, by the names of the operating system.
    row("wording.unsent.refused", Any(&["econnrefused", "connection refused"]), NetworkError),
    row(
        "wording.unsent.unresolved",
        Any(&["getaddrinfo", "enotfound", "eai_again", "dns error"]),
        NetworkError,
    ),
    // --- an answer that broke off, as flattened by other stacks -----------------------
    // undici, the HTTP client of Node.
    row("wording.terminated", Whole("terminated"), StreamFailed),
    row("wording.other_side_closed", Any(&["other side closed", "und_err_socket"]), StreamFailed),
    // The stream layer of Node.
    row("wording.premature_close", Phrase("premature close"), StreamFailed),
    // Codex.
    row("wording.disconnected", Phrase("stream disconnected before completion"), StreamFailed),
    // SDKs of several providers, in their own words for a missing terminal event.
    row("wording.ended_before", Ordered(&["stream", "ended before"]), StreamFailed),
    row("wording.ended_without", Ordered(&["stream", "ended without"]), StreamFailed),
    row(
        "wording.no_terminal_event",
        Any(&["ended before a terminal", "ended without a terminal"]),
        StreamFailed,
    ),
    // Anthropic's SDK for JavaScript.
    row("wording.no_chunks", Phrase("request ended without sending any chunks"), StreamFailed),
    // openai-node.
    row("wording.no_finish", Phrase("missing finish_reason for choice"), StreamFailed),
    // reqwest: any failure of a body.
    row(
        "wording.reading_body",
        Any(&[
            "error decoding response body",
            "request or response body error",
            "error reading a body from connection",
            "cannot decrypt peer's message",
        ]),
        StreamFailed,
    ),
    // Python's httpx.
    row(
        "wording.peer_closed",
        Any(&[
            "peer closed connection without sending complete message body",
            "incomplete chunked read",
        ]),
        StreamFailed,
    ),
    // Python's aiohttp.
    row(
        "wording.payload",
        Any(&["response payload is not completed", "transferencodingerror"]),
        StreamFailed,
    ),
    // Go's HTTP/2.
    row("wording.http2_reset", Phrase("stream error: stream id"), StreamFailed),
    // --- a connection that failed; in the stream phase a broken answer ---------------
    // HTTP/2 clients, when the server drains its connections.
    row("wording.http2_goaway", Phrase("goaway"), NetworkError),
    // rustls.
    row(
        "wording.close_notify",
        Phrase("peer closed connection without sending tls close_notify"),
        NetworkError,
    ),
    // hyper: a pooled connection that was dead.
    row(
        "wording.closed_before_completed",
        Phrase("connection closed before message completed"),
        NetworkError,
    ),
    // reqwest; undici; the SDKs of OpenAI for Python.
    row("wording.sending", Phrase("error sending request for url"), NetworkError),
    row("wording.fetch", Whole("fetch failed"), NetworkError),
    row("wording.connection_error", Whole("connection error"), NetworkError),
    // Node; any stack, by the names of the operating system.
    row("wording.hang_up", Phrase("socket hang up"), NetworkError),
    row(
        "wording.reset",
        Any(&["econnreset", "connection reset by peer", "broken pipe", "epipe"]),
        NetworkError,
    ),
];
