//! One pass over a text that finds every secret in it.
//!
//! All spellings of the known secrets and the beginnings of all shapes are
//! needles of one automaton. A known secret is masked where it is found; at the
//! beginning of a shape, a function written for it looks at what follows.

use std::fmt;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::{
    exact::{self, Needle},
    run::{Run, Text, ends_url},
    shapes::{Judge, TRIGGERS},
    span::{Span, merged},
};

/// Up to this many bytes of needles the faster, larger automaton is built.
const MOST_FOR_TABLE: usize = 24 * 1024;

/// Where values under eight bytes may be masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In URLs and header lines inside the text.
    Text,
    /// Everywhere: the text is a URL or the value of a header.
    HeaderOrUrl,
}

/// The needles, and the automaton over them.
pub(super) struct Engine {
    automaton: Option<AhoCorasick>,
    known: Vec<Needle>,
    /// Lower-case, in order; for [`Engine::open_tail`].
    sorted: Vec<Vec<u8>>,
    /// `first[b]`: whether a spelling begins with this byte.
    first: [bool; 256],
    longest: usize,
}

impl Engine {
    pub(super) fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let known = exact::needles(secrets);
        let automaton = build(&known, true);
        let mut sorted: Vec<Vec<u8>> =
            known.iter().map(|needle| needle.text.to_ascii_lowercase().into_bytes()).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let longest = sorted.iter().map(Vec::len).max().unwrap_or(0);
        let mut first = [false; 256];
        for byte in sorted.iter().filter_map(|needle| needle.first()) {
            for byte in [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] {
                if let Some(begins) = first.get_mut(usize::from(byte)) {
                    *begins = true;
                }
            }
        }
        Self { automaton, known, sorted, first, longest }
    }

    /// How many spellings of known secrets it looks for.
    pub(super) fn known(&self) -> usize {
        self.known.len()
    }

    #[cfg(feature = "measure")]
    pub(super) fn known_needles(&self) -> &[Needle] {
        &self.known
    }

    /// The places of all secrets in `text`, in order and apart.
    pub(super) fn spans(&self, text: &str, place: Place) -> Vec<Span> {
        let Some(automaton) = &self.automaton else {
            // Without needles nothing can be told apart: show nothing.
            return Vec::from([Span::closed(0, text.len())]);
        };
        let judge = Judge::new(text);
        let (mut spans, mut short) = (Vec::new(), Vec::new());
        let mut shaped_to = 0;
        for found in automaton.find_overlapping_iter(text) {
            let pattern = found.pattern().as_usize();
            if let Some(needle) = self.known.get(pattern) {
                let span = widened(Text(text.as_bytes()), needle, found.start(), found.end());
                if needle.short { short.push(span) } else { spans.push(span) }
            } else if found.start() >= shaped_to
                && let Some((_, trigger)) = TRIGGERS.get(pattern - self.known.len())
                && let Some(span) = judge.judge(*trigger, found.start(), found.end())
                && span.start < span.end
            {
                shaped_to = span.end;
                spans.push(span);
            }
        }
        if !short.is_empty() {
            let zones = if place == Place::Text { zones(text) } else { vec![(0, text.len())] };
            spans.extend(short.into_iter().filter(|span| lies_in(&zones, *span)));
        }
        merged(spans)
    }

    /// Where the longest end of `text` begins that could be the beginning of a
    /// known secret; `text.len()` if none could.
    pub(super) fn open_tail(&self, text: &str) -> usize {
        let lower = Text(text.as_bytes());
        let from = text.len().saturating_sub(self.longest.saturating_sub(1));
        let candidates = (from..text.len())
            .filter(|at| self.first.get(usize::from(lower.at(*at))).copied().unwrap_or(false));
        for at in candidates {
            let tail = lower.slice(at, text.len()).to_ascii_lowercase();
            let next = self.sorted.partition_point(|needle| *needle < tail);
            let begins = |needle: &Vec<u8>| needle.len() > tail.len() && needle.starts_with(&tail);
            // The needle equal to the tail sorts before the longer ones.
            if self.sorted.get(next).is_some_and(begins)
                || self.sorted.get(next + 1).is_some_and(begins)
            {
                return at;
            }
        }
        text.len()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("known", &self.known()).finish_non_exhaustive()
    }
}

/// Every needle: first the known ones, then those of [`TRIGGERS`]. As a `table`
/// it is faster, if it does not get too large.
pub(super) fn build(known: &[Needle], table: bool) -> Option<AhoCorasick> {
    let needles: Vec<&str> = known
        .iter()
        .map(|needle| needle.text.as_str())
        .chain(TRIGGERS.iter().map(|(literal, _)| *literal))
        .collect();
    let bytes: usize = needles.iter().map(|needle| needle.len()).sum();
    let kind = (table && bytes <= MOST_FOR_TABLE).then_some(AhoCorasickKind::DFA);
    AhoCorasick::builder().ascii_case_insensitive(true).kind(kind).build(needles).ok()
}

/// With the neighbours in base64 that hold bits of the secret.
fn widened(text: Text<'_>, needle: &Needle, start: usize, end: usize) -> Span {
    let shares = |byte: u8| Run::Base64.has(byte) && byte != b'%';
    let start = start - usize::from(needle.shares_first && shares(text.before(start)));
    let end = end + usize::from(needle.shares_last && shares(text.at(end)));
    Span::closed(start, end)
}

/// The URLs and header lines of a text.
fn zones(text: &str) -> Vec<(usize, usize)> {
    let bytes = Text(text.as_bytes());
    let mut zones = Vec::new();
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let name = bytes.run_within(line_start, Run::Dash, 64);
        let named = bytes.slice(line_start, name);
        let header = named.contains(&b'-')
            || named.eq_ignore_ascii_case(b"authorization")
            || named.eq_ignore_ascii_case(b"cookie");
        if header && bytes.at(name) == b':' {
            zones.push((name, line_start + line.len()));
        }
        line_start += line.len();
    }
    let mut covered = 0;
    for (at, _) in text.match_indices("://") {
        if at >= covered {
            let rest = text.get(at + 3..).unwrap_or_default();
            let end = rest.bytes().position(ends_url).unwrap_or(rest.len());
            covered = at + 3 + end;
            zones.push((at, covered));
        }
    }
    zones.sort_unstable();
    zones
}

fn lies_in(zones: &[(usize, usize)], span: Span) -> bool {
    // Zones may nest (a URL in a header line), so look at the last few that begin before.
    let next = zones.partition_point(|(start, _)| *start <= span.start);
    let before = zones.get(..next).unwrap_or_default();
    before.iter().rev().take(2).any(|(_, end)| span.end <= *end)
}
