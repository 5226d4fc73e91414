//! What a model may do with its calls before it is stopped.

/// The limits on the calls of one prompt. Data: a host may change each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallLimits {
    /// The most bytes of arguments, written as JSON without spaces; a call with
    /// more is refused, and the model is told. 1 MiB: above what a model can
    /// write in one answer, far below what would harm the machine.
    pub argument_bytes: usize,
    /// How often a call (the same tool, the same arguments) may give the same
    /// result before the prompt ends with `TURN_LIMIT_REACHED`. Only calls with
    /// nothing new between them are counted: a test that fails the same way after
    /// each of five edits is work, not a loop. 5; 0 switches it off.
    pub identical_calls: u32,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { argument_bytes: 1024 * 1024, identical_calls: 5 }
    }
}
