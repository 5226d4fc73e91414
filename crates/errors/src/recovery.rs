//! What may be done about a failure: one exhaustive table.

use crate::ErrorCode;

/// What a runtime may do about a failed model attempt.
///
/// This says what *kind* of recovery fits a code. Whether it is still affordable
/// is decided by whoever owns the step's budgets; whether this very failure
/// forbids it, by [`Failure::retriable`](crate::Failure::retriable).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Recovery {
    /// The same request would fail the same way: stop and say so.
    Never,
    /// Chance may have caused it: the same request again, after a short pause.
    Transient,
    /// The server is short of capacity: again after the wait it asks for.
    AfterWait,
    /// The request is too large: make it smaller once, then again.
    Reduce,
    /// The model ended in silence: ask once more, with a nudge.
    Nudge,
}

impl Recovery {
    /// The name used in tables: `never`, `transient`, `after-wait`, `reduce`, `nudge`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Transient => "transient",
            Self::AfterWait => "after-wait",
            Self::Reduce => "reduce",
            Self::Nudge => "nudge",
        }
    }
}

impl ErrorCode {
    /// The recovery that fits this code when it ends a model attempt.
    ///
    /// Tool codes are `Never` even where [`ErrorCode::retriable`] is true: for a
    /// tool that means the *model* may call again; a runtime never repeats a tool.
    #[must_use]
    pub const fn recovery(self) -> Recovery {
        match self {
            Self::ProviderRateLimited | Self::ProviderOverloaded => Recovery::AfterWait,
            Self::ProviderError | Self::NetworkError | Self::Timeout | Self::StreamFailed => {
                Recovery::Transient
            }
            Self::ContextTooLarge => Recovery::Reduce,
            Self::EmptyModelResponse => Recovery::Nudge,
            Self::ProviderUnauthorized
            | Self::ProviderSecretMissing
            | Self::ProviderSecretInvalid
            | Self::ProviderQuotaExceeded
            | Self::ProviderProtocolMismatch
            | Self::InvalidRequest
            | Self::ModelNotConfigured
            | Self::ContentFiltered
            | Self::TurnAborted
            | Self::AgentBusy
            | Self::ContextCompactionFailed
            | Self::MutationRetryBudgetExhausted
            | Self::TurnLimitReached
            | Self::SessionLocked
            | Self::SessionCorrupt
            | Self::SessionNotFound
            | Self::InvalidArgument
            | Self::ToolNotFound
            | Self::ToolDenied
            | Self::PermissionTimeout
            | Self::ToolTimeout
            | Self::ToolFailed
            | Self::ToolBinaryContent
            | Self::PathOutsideWorkspace
            | Self::EditNoMatch
            | Self::EditAmbiguous
            | Self::EditStale
            | Self::EditNoChange
            | Self::ProcessResourceExhausted
            | Self::McpUnavailable
            | Self::InvalidConfig
            | Self::Internal => Recovery::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn the_whole_recovery_table() {
        let mut table = String::new();
        for code in ErrorCode::ALL {
            writeln!(
                table,
                "{:<32} {:<9} {:<10} retriable={:<5} acts={}",
                code.as_str(),
                code.info().family.as_str(),
                code.recovery().as_str(),
                code.retriable(),
                code.info().actor.as_str(),
            )
            .unwrap();
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn what_recovers_is_retriable_but_for_a_reduced_request() {
        for code in ErrorCode::ALL {
            match code.recovery() {
                Recovery::Transient | Recovery::AfterWait | Recovery::Nudge => {
                    assert!(code.retriable(), "{code}");
                }
                Recovery::Reduce | Recovery::Never => {}
            }
        }
    }
}
