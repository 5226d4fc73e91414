//! Which files a search is limited to.

use globset::{GlobBuilder, GlobMatcher};
use turnbuckle_errors::ErrorCode;

use crate::{
    ToolError,
    builtin::search::{Scope, check_pattern},
};

/// A pattern for names, or for paths below the start if it holds a `/`.
#[derive(Debug)]
pub(super) struct Include {
    matcher: GlobMatcher,
    whole_path: bool,
    /// Whether it says which files to leave out.
    leaves_out: bool,
}

impl Include {
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` for what is no pattern.
    pub(super) fn new(pattern: &str) -> Result<Self, ToolError> {
        check_pattern("Grep", "include", pattern)?;
        let (leaves_out, pattern) = match pattern.strip_prefix('!') {
            Some(pattern) => (true, pattern),
            None => (false, pattern),
        };
        let glob = GlobBuilder::new(pattern.strip_prefix("./").unwrap_or(pattern))
            .literal_separator(true)
            .build()
            .map_err(|error| {
                let text = format!(
                    "Grep: `include` is not a pattern for names: {}; write it as `*.rs` or \
                     `src/**/*.{{ts,tsx}}`",
                    error.kind()
                );
                ToolError::new(ErrorCode::InvalidArgument, text)
            })?;
        let whole_path = pattern.contains('/');
        Ok(Self { matcher: glob.compile_matcher(), whole_path, leaves_out })
    }

    pub(super) fn takes(&self, scope: &Scope, path: &str) -> bool {
        let below = scope.below(path);
        let name = below.rsplit('/').next().unwrap_or(below);
        let fits = self.matcher.is_match(if self.whole_path { below } else { name });
        fits != self.leaves_out
    }
}
