//! Token counts, by the names that servers of this dialect have for them.

use serde::Deserialize;
use turnbuckle_errors::Usage;

use crate::loose::{Count, Object};

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct WireUsage {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Object<InputDetails>,
    completion_tokens_details: Object<OutputDetails>,
    /// Moonshot.
    cached_tokens: Count,
    /// DeepSeek.
    prompt_cache_hit_tokens: Count,
    /// LiteLLM.
    cache_creation_input_tokens: Count,
    /// Seen on Perplexity and Together.
    reasoning_tokens: Count,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Count,
    /// OpenRouter.
    cache_write_tokens: Count,
    /// LiteLLM.
    cache_creation_tokens: Count,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Count,
}

impl WireUsage {
    /// The counts made disjoint.
    pub(super) fn read(&self) -> Usage {
        let Object(details) = &self.prompt_tokens_details;
        let written = details.cache_write_tokens.0.or(details.cache_creation_tokens.0);
        let written = written.or(self.cache_creation_input_tokens.0);
        let cached = details.cached_tokens.0;
        let cached = cached.or(self.cached_tokens.0).or(self.prompt_cache_hit_tokens.0);
        let reasoning = self.completion_tokens_details.0.reasoning_tokens.0;
        let reasoning = reasoning.or(self.reasoning_tokens.0);
        let prompt = self.prompt_tokens.0;
        Usage {
            input_tokens: prompt.map(|prompt| {
                let fresh = prompt.saturating_sub(cached.unwrap_or(0));
                // More than that was counted beside the prompt.
                fresh.checked_sub(written.unwrap_or(0)).unwrap_or(fresh)
            }),
            output_tokens: self.visible_output(reasoning.unwrap_or(0)),
            cached_tokens: cached,
            cache_write_tokens: written,
            reasoning_tokens: reasoning,
        }
    }

    /// The answer without its reasoning. OpenAI counts reasoning into the answer;
    /// xAI beside it, which its total shows.
    fn visible_output(&self, reasoning: u64) -> Option<u64> {
        let completion = self.completion_tokens.0?;
        let beside =
            self.prompt_tokens.0.zip(self.total_tokens.0).is_some_and(|(prompt, total)| {
                total == prompt.saturating_add(completion).saturating_add(reasoning)
            });
        Some(if beside {
            completion
        } else {
            completion.checked_sub(reasoning).unwrap_or(completion)
        })
    }
}
