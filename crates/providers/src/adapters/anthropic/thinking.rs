//! How a model is asked to think, and how long its answer may be: both differ by
//! the generation of the model.

use serde::Serialize;

use super::schema::Refused;

/// The smallest budget that the API takes.
const MIN_BUDGET: u32 = 1024;

/// The `thinking` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    /// The model decides, by the effort. The newest show their thinking only if asked.
    Adaptive {
        display: Display,
    },
    Enabled {
        budget_tokens: u32,
    },
    Disabled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Display {
    Summarized,
}

/// What an effort becomes: the `thinking` field, and the effort to send as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Asked<'a> {
    pub(super) thinking: Option<Thinking>,
    pub(super) effort: Option<&'a str>,
}

/// Translates `effort` for `model`. Claude from 4.6 on thinks by effort; what came
/// before, and other models behind this API, by a budget below `limit`.
pub(super) fn asked<'a>(
    effort: &'a str,
    model: &str,
    limit: u32,
    tool_is_forced: bool,
) -> Result<Asked<'a>, Refused> {
    if ["none", "off", "disabled"].contains(&effort) {
        return Ok(Asked { thinking: Some(Thinking::Disabled), effort: None });
    }
    if thinks_by_effort(model) {
        let thinking = Thinking::Adaptive { display: Display::Summarized };
        // The API refuses thinking beside a forced tool; the effort holds without it.
        let thinking = Some(thinking).filter(|_| !tool_is_forced);
        return Ok(Asked { thinking, effort: Some(effort) });
    }
    let budget = match effort {
        "minimal" => MIN_BUDGET,
        "low" => 4_096,
        "medium" => 10_000,
        "high" => 16_000,
        "xhigh" | "max" => 24_000,
        _ => return Err(Refused::Effort(effort.to_owned())),
    };
    // The budget counts into the limit, and has to leave room for the answer.
    let budget = budget.min(limit.saturating_sub(MIN_BUDGET));
    let fits = budget >= MIN_BUDGET && !tool_is_forced;
    Ok(Asked {
        thinking: fits.then_some(Thinking::Enabled { budget_tokens: budget }),
        effort: None,
    })
}

/// The limit of the answer where the request names none: the API insists on one.
/// It is the most that the generation takes, but 32,000 at most.
pub(super) fn default_limit(model: &str) -> u32 {
    match generation(model) {
        Some((3, 5)) => 8_192,
        Some((..=3, 0..=4)) => 4_096,
        _ => 32_000,
    }
}

fn thinks_by_effort(model: &str) -> bool {
    match generation(model) {
        Some(generation) => generation >= (4, 6),
        // A name without a number is a newer one, if it is Claude at all.
        None => model.contains("claude"),
    }
}

/// The generation in the name of a Claude model: `claude-3-5-haiku-20241022`,
/// `claude-opus-4-20250514`, `anthropic/claude-haiku-4.5`.
fn generation(model: &str) -> Option<(u32, u32)> {
    let (_, name) = model.split_once("claude-")?;
    let name = name.split([':', '@']).next()?;
    let mut numbers = name
        .split(['-', '.'])
        .skip_while(|word| word.parse::<u32>().is_err())
        // A date is no number of a generation.
        .map_while(|word| word.parse::<u32>().ok().filter(|number| *number < 1000));
    let major = numbers.next()?;
    Some((major, numbers.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_is_read_from_the_name() {
        for (model, expected) in [
            ("claude-3-haiku-20240307", Some((3, 0))),
            ("claude-3-5-haiku-20241022", Some((3, 5))),
            ("anthropic/claude-3.7-sonnet:thinking", Some((3, 7))),
            ("claude-opus-4-20250514", Some((4, 0))),
            ("claude-sonnet-4-5-20250929", Some((4, 5))),
            ("anthropic/claude-haiku-4.5", Some((4, 5))),
            ("us.anthropic.claude-opus-4-6-v1:0", Some((4, 6))),
            ("claude-sonnet-4-6", Some((4, 6))),
            ("claude-sonnet-5", Some((5, 0))),
            ("claude-2.1", Some((2, 1))),
            ("claude-fable", None),
            ("kimi-k2", None),
        ] {
            assert_eq!(generation(model), expected, "{model}");
        }
    }

    #[test]
    fn a_limit_is_never_more_than_the_model_takes() {
        for (model, expected) in [
            ("claude-3-opus-20240229", 4_096),
            ("claude-2.1", 4_096),
            ("claude-3-5-sonnet-20241022", 8_192),
            ("claude-3-7-sonnet-20250219", 32_000),
            ("claude-opus-4-1", 32_000),
            ("something-else", 32_000),
        ] {
            assert_eq!(default_limit(model), expected, "{model}");
        }
    }

    #[test]
    fn an_effort_becomes_a_word_or_a_budget() {
        let adaptive = Thinking::Adaptive { display: Display::Summarized };
        let budget = |budget_tokens| Some(Thinking::Enabled { budget_tokens });
        let ask = |effort, model, limit, forced| {
            let asked = asked(effort, model, limit, forced)?;
            Ok::<_, Refused>((asked.thinking, asked.effort))
        };
        for model in ["claude-opus-4-6", "claude-fable-5", "claude-mythos-preview"] {
            assert_eq!(ask("xhigh", model, 9, false), Ok((Some(adaptive), Some("xhigh"))));
            assert_eq!(ask("low", model, 9, true), Ok((None, Some("low"))));
        }
        for model in ["claude-sonnet-4-5", "claude-3-7-sonnet-latest", "kimi-k2"] {
            assert_eq!(ask("medium", model, 32_000, false), Ok((budget(10_000), None)));
            assert_eq!(ask("medium", model, 4_000, false), Ok((budget(2_976), None)));
            assert_eq!(ask("medium", model, 2_000, false), Ok((None, None)));
            assert_eq!(ask("medium", model, 32_000, true), Ok((None, None)));
            assert_eq!(ask("hard", model, 9, false), Err(Refused::Effort("hard".into())));
        }
        assert_eq!(ask("none", "claude-x", 9, false), Ok((Some(Thinking::Disabled), None)));
    }
}
