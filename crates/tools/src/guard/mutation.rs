//! The mutation guard: a model that fails the same change twice is stopped.
//!
//! Counts are per prompt. Failed Edits are counted per canonical file; failed
//! shell patch commands together, since a model that gropes varies the command.
//! A success clears its count, reads in between do not.

use std::{collections::BTreeMap, sync::Arc};

use turnbuckle_errors::{ErrorCode, Failure, Origin, Redact, SafeText};

use super::{Aftermath, Guard};
use crate::{Call, ToolError, ToolOutcome, Touched};

/// The failure of one change at which the prompt ends.
///
/// One failure is normal (the model reads again and repairs); reports show that
/// a second one of the same file is the start of a loop.
const LAST_STRIKE: usize = 2;

/// Ends the prompt at the second failure of the same change.
pub struct MutationGuard {
    redact: Arc<dyn Redact>,
    failed: BTreeMap<Counted, Vec<SafeText>>,
}

/// What failures are counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    File(String),
    PatchCommands,
}

impl MutationGuard {
    /// A guard for one prompt; `redact` masks the mismatches in its failure.
    #[must_use]
    pub fn new(redact: Arc<dyn Redact>) -> Self {
        Self { redact, failed: BTreeMap::new() }
    }

    /// What worked is counted anew.
    fn clear(&mut self, touched: Option<&Touched>) {
        let counted = match touched {
            Some(Touched::Edit(path) | Touched::Write(path)) => Counted::File(path.clone()),
            Some(Touched::PatchCommand(_) | Touched::PatchApplied(_)) => Counted::PatchCommands,
            None => return,
        };
        self.failed.remove(&counted);
    }

    fn strike(&mut self, touched: &Touched, error: &ToolError) -> Aftermath {
        let (counted, kind, target) = match touched {
            Touched::Edit(path) => (Counted::File(path.clone()), "edit", path),
            Touched::PatchCommand(command) => (Counted::PatchCommands, "shell_patch", command),
            // A failed Write says why it was refused and cannot half match: no strike.
            Touched::Write(_) | Touched::PatchApplied(_) => return Aftermath::Continue,
        };
        let mismatch = SafeText::redacted(&error.text, &*self.redact);
        let mismatches = self.failed.entry(counted).or_default();
        mismatches.push(mismatch);
        if mismatches.len() < LAST_STRIKE {
            return Aftermath::Continue;
        }
        Aftermath::EndPrompt(exhausted(
            kind,
            SafeText::redacted(target, &*self.redact),
            mismatches,
            error,
        ))
    }
}

impl Guard for MutationGuard {
    fn after(&mut self, _call: &Call, outcome: &ToolOutcome) -> Aftermath {
        match &outcome.result {
            Ok(output) => {
                self.clear(output.touched.as_ref());
                Aftermath::Continue
            }
            // The patch landed, and something else in the command did not work.
            Err(ToolError { touched: touched @ Some(Touched::PatchApplied(_)), .. }) => {
                self.clear(touched.as_ref());
                Aftermath::Continue
            }
            Err(error) if outcome.started => match &error.touched {
                Some(touched) => self.strike(touched, error),
                None => Aftermath::Continue,
            },
            Err(_) => Aftermath::Continue,
        }
    }
}

impl std::fmt::Debug for MutationGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MutationGuard").field("failed", &self.failed).finish_non_exhaustive()
    }
}

fn exhausted(
    kind: &'static str,
    target: SafeText,
    mismatches: &[SafeText],
    error: &ToolError,
) -> Failure {
    let message = SafeText::compose(&[
        "the same change failed twice (".into(),
        kind.into(),
        " of ".into(),
        (&target).into(),
        "); the prompt ends here so that it cannot loop".into(),
    ]);
    Failure::new(ErrorCode::MutationRetryBudgetExhausted, message)
        .with_origin(Origin::Tool)
        .with_cause_code(error.code)
        .with_details(|details| {
            details.kind = Some(kind);
            details.target = Some(target);
            details.mismatches = mismatches.to_vec();
        })
}

#[cfg(test)]
mod tests {
    use turnbuckle_errors::Opaque;

    use super::*;
    use crate::ToolOutput;

    fn outcome(touched: Touched, worked: bool) -> ToolOutcome {
        let result = if worked {
            Ok(ToolOutput::text("done").with_touched(touched))
        } else {
            Err(ToolError::new(ErrorCode::EditNoMatch, "not there").with_touched(touched))
        };
        ToolOutcome { result, started: true }
    }

    /// Runs outcomes through a guard; the index of the one that ended the prompt.
    fn ended_at(outcomes: &[ToolOutcome]) -> Option<usize> {
        let mut guard = MutationGuard::new(Arc::new(Opaque));
        let call = Call { id: "1".into(), name: "Edit".into(), input: Ok(serde_json::Value::Null) };
        outcomes.iter().position(|outcome| guard.after(&call, outcome) != Aftermath::Continue)
    }

    #[test]
    fn the_second_failure_of_one_file_ends_the_prompt() {
        let edit = |path: &str, worked| outcome(Touched::Edit(path.into()), worked);
        let read = ToolOutcome { result: Ok(ToolOutput::text("text")), started: true };
        assert_eq!(ended_at(&[edit("a", false), edit("a", false)]), Some(1));
        assert_eq!(ended_at(&[edit("a", false), read, edit("a", false)]), Some(2));
        assert_eq!(ended_at(&[edit("a", false), edit("b", false)]), None);
        assert_eq!(ended_at(&[edit("a", false), edit("a", true), edit("a", false)]), None);
        let write = outcome(Touched::Write("a".into()), true);
        assert_eq!(ended_at(&[edit("a", false), write, edit("a", false)]), None);
        let denied = ToolOutcome { started: false, ..edit("a", false) };
        assert_eq!(ended_at(&[edit("a", false), denied]), None);
    }

    #[test]
    fn the_second_failed_patch_command_ends_the_prompt_whatever_it_was() {
        let patch = |command: &str, worked| outcome(Touched::PatchCommand(command.into()), worked);
        assert_eq!(ended_at(&[patch("patch -p1", false), patch("git apply x", false)]), Some(1));
        assert_eq!(
            ended_at(&[patch("patch", false), patch("patch", true), patch("patch", false)]),
            None
        );
    }

    #[test]
    fn a_patch_that_landed_in_a_command_that_failed_is_a_success() {
        let failed = || outcome(Touched::PatchCommand("patch -p1".into()), false);
        let landed = || outcome(Touched::PatchApplied("patch -p1 && make".into()), false);
        assert_eq!(ended_at(&[landed(), landed(), landed()]), None);
        assert_eq!(ended_at(&[failed(), landed(), failed()]), None);
        assert_eq!(ended_at(&[failed(), landed(), failed(), failed()]), Some(3));
    }

    #[test]
    fn the_failure_carries_kind_target_and_both_mismatches() {
        let mut guard = MutationGuard::new(Arc::new(Opaque));
        let call = Call { id: "1".into(), name: "Edit".into(), input: Ok(serde_json::Value::Null) };
        let failed = outcome(Touched::Edit("a.rs".into()), false);
        guard.after(&call, &failed);
        let Aftermath::EndPrompt(failure) = guard.after(&call, &failed) else {
            panic!("the second strike must end the prompt");
        };
        assert_eq!(failure.code(), ErrorCode::MutationRetryBudgetExhausted);
        assert_eq!(failure.cause_code(), Some(ErrorCode::EditNoMatch));
        assert_eq!(failure.details().kind, Some("edit"));
        assert!(failure.details().target.is_some());
        assert_eq!(failure.details().mismatches.len(), 2);
        assert!(!failure.retriable());
    }
}
