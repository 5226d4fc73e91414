//! The table: one constant a server. What is not named in one is as in [`CUSTOM`].

use std::time::Duration;

use super::{
    Affinity, AnswerSchema, Dialect, EffortField,
    ErrorsIn::{Chunk, ErrorLine, FinishWord, List, NamedEvent},
    Key, MaxTokensField, Profile, ReasoningIn, ToolIds,
};

/// All profiles, in the order in which they are shown.
pub const ALL: [&Profile; 23] = [
    &OPENAI,
    &AZURE,
    &DEEPSEEK,
    &GROQ,
    &MISTRAL,
    &XAI,
    &OPENROUTER,
    &TOGETHER,
    &FIREWORKS,
    &MOONSHOT,
    &ZAI,
    &QWEN,
    &PERPLEXITY,
    &CEREBRAS,
    &GITHUB_MODELS,
    &OLLAMA,
    &LM_STUDIO,
    &VLLM,
    &LLAMA_CPP,
    &LITELLM,
    &ANTHROPIC,
    &GEMINI,
    &CUSTOM,
];

/// Between two pings of the servers that send them lie 15 s or less; four of them
/// missing is no pause.
const PINGS: Option<Duration> = Some(Duration::from_secs(60));

const fn bearer(variable: &'static str) -> Key {
    Key { variable: Some(variable), required: true, header: "authorization", prefix: "Bearer " }
}

/// For servers that run with and without keys.
const fn perhaps(variable: &'static str) -> Key {
    Key { required: false, ..bearer(variable) }
}

const fn in_header(variable: &'static str, header: &'static str) -> Key {
    Key { variable: Some(variable), required: true, header, prefix: "" }
}

/// Any other server that speaks Chat Completions.
pub const CUSTOM: Profile = Profile {
    name: "custom",
    title: "any other server",
    base_url: None,
    key: Key { variable: None, required: false, header: "authorization", prefix: "Bearer " },
    dialect: Dialect::OpenAiChat,
    output_cap: MaxTokensField::MaxTokens,
    usage_in_stream: true,
    reasoning: ReasoningIn::Various,
    think_tags: false,
    wants_reasoning_back: false,
    errors: &[Chunk],
    affinity: Affinity::ByHost,
    byte_idle: None,
    tool_ids: ToolIds::Any,
    answer_schema: AnswerSchema::Schema,
    effort: EffortField::ReasoningEffort,
    cache_markers: false,
    notes: "Needs --base-url; name the key's variable with --api-key-env.",
};

/// OpenAI.
pub const OPENAI: Profile = Profile {
    name: "openai",
    title: "OpenAI",
    base_url: Some("https://api.openai.com/v1"),
    key: bearer("OPENAI_API_KEY"),
    // Its reasoning models refuse `max_tokens`.
    output_cap: MaxTokensField::MaxCompletionTokens,
    reasoning: ReasoningIn::Hidden,
    affinity: Affinity::PromptCacheKey,
    notes: "Chat Completions hides the reasoning; tools need a schema of type object.",
    ..CUSTOM
};

/// Azure OpenAI.
pub const AZURE: Profile = Profile {
    name: "azure",
    title: "Azure OpenAI",
    // Azure reads the key in a header of its own.
    key: in_header("AZURE_OPENAI_API_KEY", "api-key"),
    output_cap: MaxTokensField::MaxCompletionTokens,
    reasoning: ReasoningIn::Hidden,
    // Versions of its API before `v1` refuse `prompt_cache_key`.
    affinity: Affinity::Off,
    notes: "Needs --base-url https://RESOURCE.openai.azure.com/openai/v1; the model is the \
            deployment's name. The first chunk has no choices; a filtered prompt is an error in \
            the only chunk.",
    ..CUSTOM
};

/// DeepSeek.
pub const DEEPSEEK: Profile = Profile {
    name: "deepseek",
    title: "DeepSeek",
    base_url: Some("https://api.deepseek.com/v1"),
    key: bearer("DEEPSEEK_API_KEY"),
    reasoning: ReasoningIn::ReasoningContent,
    // It answers 400 "must be passed back" without it.
    wants_reasoning_back: true,
    // Full machines are the finish word `insufficient_system_resource`.
    errors: &[Chunk, FinishWord],
    affinity: Affinity::Off,
    // It sends the comment `: keep-alive` while a request waits.
    byte_idle: PINGS,
    // It knows `json_object` alone, and wants the word JSON in the prompt.
    answer_schema: AnswerSchema::ObjectOnly,
    notes: "Caches by itself and reports the hits as prompt_cache_hit_tokens.",
    ..CUSTOM
};

/// Groq.
pub const GROQ: Profile = Profile {
    name: "groq",
    title: "Groq",
    base_url: Some("https://api.groq.com/openai/v1"),
    key: bearer("GROQ_API_KEY"),
    output_cap: MaxTokensField::MaxCompletionTokens,
    reasoning: ReasoningIn::Reasoning,
    // Its reasoning format `raw`, the default of some models, is tags in the text.
    think_tags: true,
    // A call that the model wrote badly is `event: error` with `tool_use_failed`.
    errors: &[NamedEvent, Chunk],
    affinity: Affinity::Off,
    notes: "Token counts come in an object of their own, x_groq.",
    ..CUSTOM
};

/// Mistral.
pub const MISTRAL: Profile = Profile {
    name: "mistral",
    title: "Mistral",
    base_url: Some("https://api.mistral.ai/v1"),
    key: bearer("MISTRAL_API_KEY"),
    // It answers 422 `extra_forbidden` to `stream_options`, and sends usage unasked.
    usage_in_stream: false,
    reasoning: ReasoningIn::Parts,
    affinity: Affinity::Off,
    // It answers 400 "must be a-z, A-Z, 0-9, with a length of 9" to others.
    tool_ids: ToolIds::NineAlphanumeric,
    notes: "Refuses fields it does not know with 422. Its word for a cut answer is model_length.",
    ..CUSTOM
};

/// xAI.
pub const XAI: Profile = Profile {
    name: "xai",
    title: "xAI",
    base_url: Some("https://api.x.ai/v1"),
    key: bearer("XAI_API_KEY"),
    output_cap: MaxTokensField::MaxCompletionTokens,
    reasoning: ReasoningIn::ReasoningContent,
    // Its documented way to the server that holds the conversation's cache.
    affinity: Affinity::Header("x-grok-conv-id"),
    notes: "Counts reasoning beside the answer, not in it.",
    ..CUSTOM
};

/// OpenRouter.
pub const OPENROUTER: Profile = Profile {
    name: "openrouter",
    title: "OpenRouter",
    base_url: Some("https://openrouter.ai/api/v1"),
    key: bearer("OPENROUTER_API_KEY"),
    reasoning: ReasoningIn::Reasoning,
    // An error of its upstream stands beside choices whose finish word is `error`.
    errors: &[Chunk, FinishWord],
    affinity: Affinity::Header("x-session-id"),
    // It sends the comment `: OPENROUTER PROCESSING` while its upstream works.
    byte_idle: PINGS,
    effort: EffortField::ReasoningObject,
    // It hands them to Anthropic and Gemini, and drops them for others.
    cache_markers: true,
    notes: "Reasoning comes twice, as a text and in reasoning_details.",
    ..CUSTOM
};

/// Together.
pub const TOGETHER: Profile = Profile {
    name: "together",
    title: "Together",
    base_url: Some("https://api.together.xyz/v1"),
    key: bearer("TOGETHER_API_KEY"),
    // Its R1 models write their reasoning into the text.
    reasoning: ReasoningIn::ThinkTags,
    think_tags: true,
    affinity: Affinity::Off,
    notes: "Newer reasoning models use the field reasoning.",
    ..CUSTOM
};

/// Fireworks.
pub const FIREWORKS: Profile = Profile {
    name: "fireworks",
    title: "Fireworks",
    base_url: Some("https://api.fireworks.ai/inference/v1"),
    key: bearer("FIREWORKS_API_KEY"),
    reasoning: ReasoningIn::ReasoningContent,
    // Its documented way to the replica that holds the session's cache.
    affinity: Affinity::Header("x-session-affinity"),
    notes: "Models are named accounts/fireworks/models/NAME.",
    ..CUSTOM
};

/// Moonshot.
pub const MOONSHOT: Profile = Profile {
    name: "moonshot",
    title: "Moonshot",
    base_url: Some("https://api.moonshot.ai/v1"),
    key: bearer("MOONSHOT_API_KEY"),
    reasoning: ReasoningIn::ReasoningContent,
    // Its thinking models lose the thread of a tool loop without it.
    wants_reasoning_back: true,
    affinity: Affinity::PromptCacheKey,
    answer_schema: AnswerSchema::ObjectOnly,
    notes: "Token counts stand inside the choice. 429 may be an overload or an empty account.",
    ..CUSTOM
};

/// Z.ai.
pub const ZAI: Profile = Profile {
    name: "zai",
    title: "Z.ai",
    base_url: Some("https://api.z.ai/api/paas/v4"),
    key: bearer("ZAI_API_KEY"),
    reasoning: ReasoningIn::ReasoningContent,
    // `network_error` is no end, and `sensitive` is a filter.
    errors: &[Chunk, FinishWord],
    affinity: Affinity::Off,
    answer_schema: AnswerSchema::ObjectOnly,
    notes: "Error codes are numbers as text, such as 1113 for an empty account.",
    ..CUSTOM
};

/// Qwen, on Alibaba's Model Studio.
pub const QWEN: Profile = Profile {
    name: "qwen",
    title: "Qwen",
    base_url: Some("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
    key: bearer("DASHSCOPE_API_KEY"),
    reasoning: ReasoningIn::ReasoningContent,
    affinity: Affinity::Off,
    answer_schema: AnswerSchema::ObjectOnly,
    notes: "Some models answer streams only. Keys belong to a region; inside China the host is \
            dashscope.aliyuncs.com.",
    ..CUSTOM
};

/// Perplexity.
pub const PERPLEXITY: Profile = Profile {
    name: "perplexity",
    title: "Perplexity",
    base_url: Some("https://api.perplexity.ai"),
    key: bearer("PERPLEXITY_API_KEY"),
    // Its reasoning models write it there, by their documentation.
    reasoning: ReasoningIn::ThinkTags,
    think_tags: true,
    affinity: Affinity::Off,
    notes: "Each chunk repeats the whole message so far beside the delta.",
    ..CUSTOM
};

/// Cerebras.
pub const CEREBRAS: Profile = Profile {
    name: "cerebras",
    title: "Cerebras",
    base_url: Some("https://api.cerebras.ai/v1"),
    key: bearer("CEREBRAS_API_KEY"),
    output_cap: MaxTokensField::MaxCompletionTokens,
    reasoning: ReasoningIn::Reasoning,
    affinity: Affinity::Off,
    notes: "An overflowing context is status 400 or 413 without a body.",
    ..CUSTOM
};

/// GitHub Models.
pub const GITHUB_MODELS: Profile = Profile {
    name: "github-models",
    title: "GitHub Models",
    base_url: Some("https://models.github.ai/inference"),
    key: bearer("GITHUB_TOKEN"),
    reasoning: ReasoningIn::Various,
    affinity: Affinity::Off,
    notes: "The token needs the permission models:read; models are named VENDOR/NAME. Limits are \
            per day.",
    ..CUSTOM
};

/// Ollama.
pub const OLLAMA: Profile = Profile {
    name: "ollama",
    title: "Ollama",
    base_url: Some("http://localhost:11434/v1"),
    reasoning: ReasoningIn::Reasoning,
    affinity: Affinity::Off,
    notes: "Parallel calls all have the index 0. A prompt above num_ctx loses its beginning \
            without a word.",
    ..CUSTOM
};

/// LM Studio.
pub const LM_STUDIO: Profile = Profile {
    name: "lm-studio",
    title: "LM Studio",
    base_url: Some("http://localhost:1234/v1"),
    // Unless its setting for `reasoning_content` is on.
    reasoning: ReasoningIn::ThinkTags,
    think_tags: true,
    // An overflowing context is `event: error` with a text.
    errors: &[NamedEvent, Chunk],
    affinity: Affinity::Off,
    notes: "Any model name loads the model that is there.",
    ..CUSTOM
};

/// vLLM.
pub const VLLM: Profile = Profile {
    name: "vllm",
    title: "vLLM",
    base_url: Some("http://localhost:8000/v1"),
    key: perhaps("VLLM_API_KEY"),
    // Older ones say `reasoning_content`; without --reasoning-parser it is text.
    reasoning: ReasoningIn::Reasoning,
    // An error is typed `"object":"error"`; a request given up ends with `abort`.
    errors: &[Chunk, FinishWord],
    affinity: Affinity::Off,
    notes: "Tools need --enable-auto-tool-choice and a --tool-call-parser.",
    ..CUSTOM
};

/// llama.cpp's server.
pub const LLAMA_CPP: Profile = Profile {
    name: "llama-cpp",
    title: "llama.cpp",
    base_url: Some("http://localhost:8080/v1"),
    key: perhaps("LLAMA_API_KEY"),
    reasoning: ReasoningIn::ReasoningContent,
    // Older ones send failures as a line `error: {…}`.
    errors: &[Chunk, ErrorLine],
    affinity: Affinity::Off,
    notes: "Tools need --jinja. While the model loads it answers 503.",
    ..CUSTOM
};

/// LiteLLM's proxy.
pub const LITELLM: Profile = Profile {
    name: "litellm",
    title: "LiteLLM",
    base_url: Some("http://localhost:4000/v1"),
    key: perhaps("LITELLM_API_KEY"),
    reasoning: ReasoningIn::ReasoningContent,
    affinity: Affinity::Off,
    // It hands them to Anthropic and Bedrock, and drops them for others.
    cache_markers: true,
    notes: "Error codes are statuses as text.",
    ..CUSTOM
};

/// Anthropic.
pub const ANTHROPIC: Profile = Profile {
    name: "anthropic",
    title: "Anthropic",
    base_url: Some("https://api.anthropic.com/v1"),
    key: in_header("ANTHROPIC_API_KEY", "x-api-key"),
    dialect: Dialect::Anthropic,
    reasoning: ReasoningIn::Parts,
    errors: &[NamedEvent],
    affinity: Affinity::Off,
    // It sends `event: ping`.
    byte_idle: PINGS,
    cache_markers: true,
    notes: "Reasoning is signed, and goes back as it came. 529 is an overload.",
    ..CUSTOM
};

/// Gemini.
pub const GEMINI: Profile = Profile {
    name: "gemini",
    title: "Gemini",
    base_url: Some("https://generativelanguage.googleapis.com/v1beta"),
    key: in_header("GEMINI_API_KEY", "x-goog-api-key"),
    dialect: Dialect::Gemini,
    output_cap: MaxTokensField::MaxOutputTokens,
    reasoning: ReasoningIn::Parts,
    // Errors come wrapped in a list, in bodies as in events.
    errors: &[Chunk, List],
    affinity: Affinity::Off,
    notes: "A quota is told apart from a rate by its typed details.",
    ..CUSTOM
};
