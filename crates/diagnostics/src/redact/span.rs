//! Places to be masked, and the masking.

use super::{MASK, run::Run};

/// One place to be masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    /// What would go on with it, if more text came.
    pub(super) run: Option<Run>,
}

impl Span {
    pub(super) fn closed(start: usize, end: usize) -> Self {
        Self { start, end, run: None }
    }

    pub(super) fn open(start: usize, end: usize, run: Run) -> Self {
        Self { start, end, run: Some(run) }
    }
}

/// Puts spans in order and joins those that overlap. Neighbours stay apart.
pub(super) fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut apart: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match apart.last_mut() {
            Some(last) if span.start < last.end => {
                if span.end > last.end {
                    last.end = span.end;
                    last.run = span.run;
                } else if span.end == last.end {
                    last.run = last.run.or(span.run);
                }
            }
            _ => apart.push(span),
        }
    }
    apart
}

/// `text` with a mask for each of the `spans`, which are in order and apart.
pub(super) fn masked(text: &str, spans: &[Span]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    for span in spans {
        masked.push_str(text.get(from..span.start).unwrap_or_default());
        masked.push_str(MASK);
        from = span.end;
    }
    masked.push_str(text.get(from..).unwrap_or_default());
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_become_one_and_neighbours_stay_two() {
        let spans = vec![Span::closed(4, 6), Span::closed(0, 3), Span::closed(2, 4)];
        let merged = merged(spans);
        assert_eq!(merged, [Span::closed(0, 4), Span::closed(4, 6)]);
        assert_eq!(masked("abcdefg", &merged), "[redacted][redacted]g");
    }
}
