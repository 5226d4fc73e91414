//! The message in Google's own words, in the making: what has to go back as it came.

use std::ops::Range;

use serde::Serialize;

use crate::{MAX_ANSWER_BYTES, TooLarge};

/// The parts so far. Plain text is not stored a second time: its place in the
/// assembled text is.
#[derive(Debug, Default)]
pub(super) struct Kept {
    parts: Vec<KeptPart>,
    bytes: usize,
    /// A part tells what text and calls do not.
    tells_more: bool,
    /// Something could not be kept, so that nothing can be sent back.
    given_up: bool,
}

#[derive(Debug)]
enum KeptPart {
    Text(Range<usize>),
    Thought(Range<usize>),
    /// The part's exact JSON.
    Exact(String),
}

impl Kept {
    /// More text, which lies at `at` in the text of the message. Pieces without a
    /// signature may be joined; those with one may not.
    pub(super) fn text(&mut self, at: Range<usize>) {
        match self.parts.last_mut() {
            _ if at.is_empty() => {}
            Some(KeptPart::Text(last)) => last.end = at.end,
            _ => self.parts.push(KeptPart::Text(at)),
        }
    }

    /// The same for reasoning.
    pub(super) fn thought(&mut self, at: Range<usize>) {
        match self.parts.last_mut() {
            _ if at.is_empty() => {}
            Some(KeptPart::Thought(last)) => last.end = at.end,
            _ => self.parts.push(KeptPart::Thought(at)),
        }
    }

    /// A part as it came.
    pub(super) fn exact(&mut self, json: String, tells_more: bool) -> Result<(), TooLarge> {
        self.bytes = self.bytes.saturating_add(json.len());
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(TooLarge);
        }
        self.parts.push(KeptPart::Exact(json));
        self.tells_more |= tells_more;
        Ok(())
    }

    /// A part cannot be sent back.
    pub(super) const fn give_up(&mut self) {
        self.given_up = true;
    }

    /// The parts, each as JSON; `None` where text and calls say everything.
    pub(super) fn parts(self, text: &str, reasoning: &str) -> Option<Vec<String>> {
        if !self.tells_more || self.given_up {
            return None;
        }
        let written = |part| match part {
            KeptPart::Text(at) => plain(text.get(at)?, None),
            KeptPart::Thought(at) => plain(reasoning.get(at)?, Some(true)),
            KeptPart::Exact(json) => Some(json),
        };
        self.parts.into_iter().map(written).collect()
    }
}

fn plain(text: &str, thought: Option<bool>) -> Option<String> {
    #[derive(Serialize)]
    struct Plain<'a> {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought: Option<bool>,
    }
    serde_json::to_string(&Plain { text, thought }).ok()
}
