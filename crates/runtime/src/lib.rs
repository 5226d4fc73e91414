//! The turn: ask, stream, run tools, commit, and recover within a budget.
