//! Ends a prompt whose model does the same thing over and over.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use turnbuckle_errors::{ErrorCode, Failure, Origin, Redact, SafeText};

use super::{Aftermath, Guard};
use crate::{Call, ToolOutcome};

/// Ends the prompt when the same call has given the same result too often, with
/// nothing new between.
///
/// Whatever was not seen before (another tool, other arguments, another result)
/// is progress, and all counts begin again.
pub struct RepetitionGuard {
    limit: u32,
    redact: Arc<dyn Redact>,
    /// How often each call came with its result, by their hash: a few bytes a
    /// call, however long its arguments and results are.
    seen: HashMap<u64, Seen>,
    hasher: RandomState,
    /// How much was new so far.
    news: u64,
}

/// How often a call came with its result since the last news.
struct Seen {
    since: u64,
    count: u32,
}

impl RepetitionGuard {
    /// A guard for one prompt that ends it at the `limit`th time; `redact` masks
    /// the tool's name in the failure.
    #[must_use]
    pub fn new(limit: u32, redact: Arc<dyn Redact>) -> Self {
        Self { limit, redact, seen: HashMap::new(), hasher: RandomState::new(), news: 0 }
    }

    fn ended(&self, call: &Call) -> Failure {
        let message = SafeText::compose(&[
            "the model made the same call of ".into(),
            (&SafeText::redacted(&call.name, &*self.redact)).into(),
            " with the same result ".into(),
            u64::from(self.limit).into(),
            " times; the prompt ends here so that it cannot loop".into(),
        ]);
        Failure::new(ErrorCode::TurnLimitReached, message).with_origin(Origin::Tool)
    }
}

impl Guard for RepetitionGuard {
    fn after(&mut self, call: &Call, outcome: &ToolOutcome) -> Aftermath {
        let what = (&call.name, &call.input, outcome.ok(), outcome.text());
        let key = self.hasher.hash_one(what);
        if !self.seen.contains_key(&key) {
            self.news += 1;
        }
        let seen = self.seen.entry(key).or_insert(Seen { since: self.news, count: 0 });
        if seen.since != self.news {
            *seen = Seen { since: self.news, count: 0 };
        }
        seen.count += 1;
        if seen.count >= self.limit {
            Aftermath::EndPrompt(self.ended(call))
        } else {
            Aftermath::Continue
        }
    }
}

impl std::fmt::Debug for RepetitionGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RepetitionGuard").field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnbuckle_errors::Opaque;

    use super::*;
    use crate::ToolOutput;

    /// The place of the call, each a page and what it held, that ended the prompt.
    fn ended_at(calls: &[(u32, &str)]) -> Option<usize> {
        let mut guard = RepetitionGuard::new(5, Arc::new(Opaque));
        calls.iter().position(|(page, text)| {
            let input = Ok(json!({"page": page}));
            let call = Call { id: format!("{page}"), name: "Read".into(), input };
            let outcome = ToolOutcome { result: Ok(ToolOutput::text(*text)), started: true };
            guard.after(&call, &outcome) != Aftermath::Continue
        })
    }

    #[test]
    fn the_fifth_identical_call_ends_the_prompt() {
        assert_eq!(ended_at(&[(1, "a"); 4]), None);
        assert_eq!(ended_at(&[(1, "a"); 6]), Some(4));
    }

    #[test]
    fn taking_turns_between_old_calls_is_a_loop_too() {
        let pair = [(1, "a"), (2, "b")];
        let loops = [pair; 6].concat();
        // The second call was news once more; the first counts from there.
        assert_eq!(ended_at(&loops), Some(9));
    }

    #[test]
    fn something_new_between_them_is_progress() {
        let mut guard = RepetitionGuard::new(5, Arc::new(Opaque));
        let calls: Vec<_> = (0..20).flat_map(|page| [(0, "same"), (page + 1, "new")]).collect();
        assert_eq!(ended_at(&calls), None);
        let broken = (0..9).all(|at| {
            let input = Err(format!("{{\"page\": {at}"));
            let call = Call { id: at.to_string(), name: "Read".into(), input };
            let error = crate::ToolError::new(ErrorCode::InvalidArgument, "not whole JSON");
            let outcome = ToolOutcome { result: Err(error), started: false };
            guard.after(&call, &outcome) == Aftermath::Continue
        });
        assert!(broken, "each was cut elsewhere");
        let changing = ["a", "b", "c", "d", "e", "f"].map(|text| (1, text));
        assert_eq!(ended_at(&changing), None, "another result is something new");
    }

    #[test]
    fn the_failure_names_the_tool_and_the_count() {
        let mut guard = RepetitionGuard::new(1, Arc::new(Opaque));
        let call = Call { id: "1".into(), name: "Read".into(), input: Ok(json!({})) };
        let outcome = ToolOutcome { result: Ok(ToolOutput::text("a")), started: true };
        let Aftermath::EndPrompt(failure) = guard.after(&call, &outcome) else {
            panic!("the first time was one too many");
        };
        assert_eq!(failure.code(), ErrorCode::TurnLimitReached);
        assert!(failure.message().as_str().contains("the same result 1 times"));
    }
}
