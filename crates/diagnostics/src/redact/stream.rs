//! Redaction of text that arrives in pieces.

use std::fmt;

use super::{
    MASK, Redactor,
    engine::Place,
    run::Run,
    span::{self, Span},
};

/// A line longer than this is given out before it is whole.
const MOST_HELD: usize = 8 * 1024;
/// So much of it is kept back, for the name before a value and the rest of a token.
const KEPT: usize = 1024;
/// After so much of a PEM block without its end, text is shown again.
const MOST_PEM: usize = 64 * 1024;
/// So much of what was shown stays as the context of what follows.
const CONTEXT: usize = 128;

/// Masks secrets in text that arrives in pieces, wherever the pieces are cut.
///
/// It gives out whole lines, and keeps back the end of a line that could be the
/// beginning of a known secret in any spelling. A line over 8 KiB is given out in
/// parts. It holds at most that much, plus the longest spelling of a known secret.
///
/// Text that was fed and not given out yet is lost when it is dropped without
/// [`finish`](Self::finish).
///
/// ```
/// use turnbuckle_diagnostics::{Redactor, SecretString};
///
/// let mut stream = Redactor::new([SecretString::from("correct-horse-battery")]).stream();
/// let mut shown = stream.feed("one\nthe key is correct-ho");
/// assert_eq!(shown, "one\n");
/// shown += &stream.feed("rse-battery, ok\n");
/// shown += &stream.finish();
/// assert_eq!(shown, "one\nthe key is [redacted], ok\n");
/// ```
pub struct StreamRedactor {
    redactor: Redactor,
    /// What was fed and not given out. Its first `shown` bytes are context only.
    held: String,
    shown: usize,
    /// So many bytes after those belong to a secret whose mask was given out.
    covered: usize,
    /// That secret goes on.
    inside: Option<Inside>,
    /// Nothing to give out before so much is held.
    look_again_at: usize,
}

/// A masked secret whose end has not come.
#[derive(Debug, Clone, Copy)]
enum Inside {
    Run(Run),
    /// A PEM block, and how much of it has come.
    Pem(usize),
}

impl StreamRedactor {
    /// A redactor for one stream.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor, held: String::new(), shown: 0, covered: 0, inside: None, look_again_at: 0 }
    }

    /// Takes the next piece, and returns what may be shown by now.
    #[must_use = "the text that may be shown"]
    pub fn feed(&mut self, piece: &str) -> String {
        let mut out = String::new();
        let mut rest = piece;
        // In portions, so that memory stays bounded whatever the size of the piece.
        while !rest.is_empty() {
            let cut = rest.floor_char_boundary(MOST_HELD.min(rest.len()));
            let (portion, after) = rest.split_at_checked(cut).unwrap_or((rest, ""));
            rest = after;
            self.held.push_str(portion);
            self.give_out(portion.contains('\n'), &mut out);
        }
        out
    }

    /// Ends the stream, and returns the rest. It can be fed again afterwards.
    #[must_use = "the rest of the text"]
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        self.advance_inside(true);
        self.release(self.held.len(), &mut out);
        let redactor = self.redactor.clone();
        *self = Self::new(redactor);
        out
    }

    fn give_out(&mut self, line_ended: bool, out: &mut String) {
        self.advance_inside(false);
        let fresh = self.held.len() - self.shown;
        let whole = line_ended || fresh > MOST_HELD || self.inside.is_some();
        if fresh < self.look_again_at || !whole {
            return;
        }
        let line = self.held.rfind('\n').map_or(0, |end| end + 1).max(self.shown);
        let most = if self.inside.is_some() {
            self.shown + self.covered
        } else if self.held.len() - line > MOST_HELD {
            self.held.len() - KEPT
        } else {
            line
        };
        let cut =
            self.held.floor_char_boundary(most.min(self.redactor.engine.open_tail(&self.held)));
        if cut > self.shown {
            self.look_again_at = 0;
            self.release(cut, out);
        } else {
            // A long known secret may be on its way; look when there is more of it.
            self.look_again_at = if fresh > MOST_HELD { fresh + KEPT } else { 0 };
        }
    }

    /// The secrets in what is held; the first may be one that is masked already.
    fn spans(&self) -> Vec<Span> {
        let found = self.redactor.engine.spans(&self.held, Place::Text).into_iter();
        // What ends in the context has been dealt with.
        let fresh = found.filter(|span| span.end > self.shown);
        let clipped = fresh.map(|span| Span { start: span.start.max(self.shown), ..span });
        let known = Span {
            start: self.shown,
            end: self.shown + self.covered,
            run: self.inside.map(Inside::run),
        };
        let known = (self.covered > 0).then_some(known);
        span::merged(known.into_iter().chain(clipped).collect())
    }

    /// Gives out what is held up to `cut`.
    fn release(&mut self, cut: usize, out: &mut String) {
        let spans = self.spans();
        let going_on = self.inside.filter(|_| cut <= self.shown + self.covered);
        let mut from = self.shown;
        let before = spans.iter().take_while(|span| span.start < cut);
        let mut last = None;
        for span in before {
            out.push_str(self.held.get(from..span.start).unwrap_or_default());
            if span.start > self.shown || self.covered == 0 {
                out.push_str(MASK);
            }
            from = span.end.min(cut);
            last = Some(*span);
        }
        out.push_str(self.held.get(from..cut).unwrap_or_default());

        let last = last.filter(|span| span.end >= cut);
        self.covered = last.map_or(0, |span| span.end - cut);
        // A secret at the end of what is held may go on in the next piece.
        let open = last.filter(|span| span.end == self.held.len()).and_then(|span| span.run);
        self.inside = going_on.or_else(|| open.map(Inside::begun));
        let context = if last.is_some() { 0 } else { CONTEXT };
        let context_start = self.held.floor_char_boundary(cut.saturating_sub(context));
        self.held.drain(..context_start);
        self.shown = cut - context_start;
    }

    /// Finds out how far a secret that is masked already goes on.
    fn advance_inside(&mut self, ended: bool) {
        let Some(inside) = self.inside else { return };
        let fresh = self.held.get(self.shown + self.covered..).unwrap_or_default();
        let (more, over) = match inside {
            Inside::Run(run) => {
                let stop = fresh.bytes().position(|byte| !run.has(byte));
                (stop.unwrap_or(fresh.len()), stop.is_some())
            }
            Inside::Pem(seen) => rest_of_pem(fresh, seen, ended),
        };
        self.covered += more;
        self.inside = match inside {
            _ if over => None,
            Inside::Pem(seen) => Some(Inside::Pem(seen + more)),
            run @ Inside::Run(_) => Some(run),
        };
    }
}

impl Inside {
    fn begun(run: Run) -> Self {
        if run == Run::Pem { Self::Pem(0) } else { Self::Run(run) }
    }

    fn run(self) -> Run {
        match self {
            Self::Run(run) => run,
            Self::Pem(_) => Run::Pem,
        }
    }
}

/// How much of `text` belongs to a PEM block that began before, and whether it
/// ends there.
fn rest_of_pem(text: &str, seen: usize, ended: bool) -> (usize, bool) {
    const END: &str = "-----END";
    if let Some(end) = text.find(END) {
        let label = end + END.len();
        let after = text.get(label..).unwrap_or_default();
        return match after.find("-----") {
            Some(dashes) => (label + dashes + 5, true),
            None if ended || after.len() > 64 => (label, true),
            None => (end, false),
        };
    }
    if seen + text.len() > MOST_PEM {
        return (0, true);
    }
    let kept = if ended { 0 } else { END.len() };
    (text.floor_char_boundary(text.len().saturating_sub(kept)), false)
}

impl fmt::Debug for StreamRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamRedactor")
            .field("redactor", &self.redactor)
            .field("held", &self.held.len())
            .finish_non_exhaustive()
    }
}
