//! Step 5, the last resort: what prose means when nothing better is held.
//!
//! Best effort by nature. Each row cites the stack that says it. Throttle rows
//! come before overflow rows, because "too many tokens" is often a throttle; a
//! digit in prose is never taken for a status.

use super::Verdict;
use crate::{ErrorCode, Origin};

pub(super) fn conclude(text: &str) -> Option<Verdict> {
    let prose = Prose::new(text);
    ROWS.iter().find(|row| row.pattern.matches(&prose)).map(Row::verdict)
}

/// The rows that may refine a 400, 413 or 422: throttle, quota and overflow.
pub(super) fn refine(text: &str) -> Option<Verdict> {
    let prose = Prose::new(text);
    let refining = |row: &&Row| {
        matches!(
            row.code,
            ErrorCode::ProviderRateLimited
                | ErrorCode::ProviderQuotaExceeded
                | ErrorCode::ContextTooLarge
        )
    };
    ROWS.iter().filter(refining).find(|row| row.pattern.matches(&prose)).map(Row::verdict)
}

/// Whether prose speaks of a plan, a credit or a daily limit.
pub(super) fn says_quota(text: &str) -> bool {
    conclude(text).is_some_and(|verdict| verdict.code == ErrorCode::ProviderQuotaExceeded)
}

/// Whether prose speaks of a rate.
pub(super) fn says_throttle(text: &str) -> bool {
    conclude(text).is_some_and(|verdict| verdict.code == ErrorCode::ProviderRateLimited)
}

struct Row {
    rule: &'static str,
    pattern: Pattern,
    code: ErrorCode,
}

impl Row {
    fn verdict(&self) -> Verdict {
        let (source, sentence) = match self.code {
            ErrorCode::StreamFailed => (Origin::Transport, "the answer broke off"),
            ErrorCode::Timeout => (Origin::Transport, "the answer fell silent"),
            ErrorCode::NetworkError => (Origin::Transport, "the connection failed"),
            _ => (Origin::Provider, "the provider refused the request"),
        };
        Verdict::new(self.code, source, self.rule, sentence)
    }
}

enum Pattern {
    /// The whole text, behind any number of `SomethingError:` prefixes.
    Whole(&'static str),
    /// A phrase that begins and ends at a word's border.
    Phrase(&'static str),
    /// Phrases that all occur, in this order.
    Ordered(&'static [&'static str]),
}

/// Lower-case text with white space folded.
struct Prose(String);

impl Prose {
    fn new(text: &str) -> Self {
        Self(text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase())
    }

    fn without_error_names(&self) -> &str {
        let mut rest = self.0.as_str();
        while let Some((name, tail)) = rest.split_once(": ") {
            let is_name =
                name.ends_with("error") && name.bytes().all(|b| b.is_ascii_alphanumeric());
            if !is_name {
                break;
            }
            rest = tail;
        }
        rest.trim_end_matches('.')
    }
}

impl Pattern {
    fn matches(&self, prose: &Prose) -> bool {
        match self {
            Self::Whole(whole) => prose.without_error_names() == *whole,
            Self::Phrase(phrase) => find_phrase(&prose.0, phrase).is_some(),
            Self::Ordered(phrases) => {
                let mut rest = prose.0.as_str();
                phrases.iter().all(|phrase| match find_phrase(rest, phrase) {
                    Some(end) => {
                        rest = rest.get(end..).unwrap_or_default();
                        true
                    }
                    None => false,
                })
            }
        }
    }
}

/// The end of the first `phrase` in `text` that stands at word borders.
fn find_phrase(text: &str, phrase: &str) -> Option<usize> {
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(phrase).find_map(|(at, found)| {
        let end = at + found.len();
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(end..).and_then(|text| text.chars().next());
        let open = word(before) && found.starts_with(char::is_alphanumeric);
        let shut = word(after) && found.ends_with(char::is_alphanumeric);
        (!open && !shut).then_some(end)
    })
}

const fn row(rule: &'static str, pattern: Pattern, code: ErrorCode) -> Row {
    Row { rule, pattern, code }
}

const ROWS: &[Row] = &[
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

#[cfg(test)]
mod tests {
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
        (
            "wording.overflow.input_long",
            "Input is too long for requested model",
            "input is too long",
        ),
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
        for text in [
            "terminated",
            "TypeError: terminated",
            "Error: TypeError: Terminated.",
            " terminated\n",
        ] {
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
}
