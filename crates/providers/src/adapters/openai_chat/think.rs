//! Reasoning between `<think>` and `</think>` at the start of the text, for servers
//! that mean reasoning by it. Elsewhere, and on other servers, the tags are text.

use std::borrow::Cow;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Takes the text delta by delta; a tag may be cut anywhere.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    state: State,
    /// The start of what may become a tag.
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but white space came.
    #[default]
    Start,
    Thinking,
    /// Right after the closing tag: the line breaks there are no part of the text.
    Closed,
    Text,
}

/// What one delta comes to: reasoning first, then text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Split<'a> {
    pub(super) reasoning: String,
    pub(super) text: Cow<'a, str>,
}

impl Splitter {
    /// The next delta.
    pub(super) fn take<'a>(&mut self, delta: Cow<'a, str>) -> Split<'a> {
        let mut split = Split::default();
        if self.state == State::Text {
            split.text = delta;
            return split;
        }
        if delta.is_empty() {
            return split;
        }
        self.held.push_str(&delta);
        if self.state == State::Start {
            self.start();
        }
        if self.state == State::Thinking {
            split.reasoning = self.think();
        }
        if self.state == State::Closed {
            let text = self.held.trim_start();
            if !text.is_empty() {
                split.text = Cow::Owned(text.to_owned());
                self.state = State::Text;
            }
            self.held.clear();
        } else if self.state == State::Text {
            split.text = Cow::Owned(std::mem::take(&mut self.held));
        }
        split
    }

    /// The text is over: what was held is what it looks like.
    pub(super) fn rest(&mut self) -> Split<'static> {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Thinking => Split { reasoning: held, ..Split::default() },
            State::Start => Split { text: held.into(), ..Split::default() },
            State::Closed | State::Text => Split::default(),
        }
    }

    fn start(&mut self) {
        let seen = self.held.trim_start();
        if let Some(rest) = seen.strip_prefix(OPEN) {
            self.held = rest.to_owned();
            self.state = State::Thinking;
        } else if let Some(rest) = seen.strip_prefix(CLOSE) {
            // The reasoning came in a field of its own, and the template closed it here.
            self.held = rest.to_owned();
            self.state = State::Closed;
        } else if !OPEN.starts_with(seen) && !CLOSE.starts_with(seen) {
            self.state = State::Text;
        }
    }

    fn think(&mut self) -> String {
        if let Some((reasoning, rest)) = self.held.split_once(CLOSE) {
            let (reasoning, rest) = (reasoning.to_owned(), rest.to_owned());
            self.held = rest;
            self.state = State::Closed;
            return reasoning;
        }
        let cut = (1..CLOSE.len())
            .rev()
            .find(|len| CLOSE.get(..*len).is_some_and(|start| self.held.ends_with(start)))
            .unwrap_or(0);
        let kept = self.held.split_off(self.held.len() - cut);
        std::mem::replace(&mut self.held, kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(deltas: &[&str]) -> (String, String) {
        let mut splitter = Splitter::default();
        let (mut reasoning, mut text) = (String::new(), String::new());
        let mut add = |split: Split<'_>| {
            reasoning.push_str(&split.reasoning);
            text.push_str(&split.text);
        };
        for delta in deltas {
            add(splitter.take(Cow::Borrowed(delta)));
        }
        add(splitter.rest());
        (reasoning, text)
    }

    #[test]
    fn the_first_block_is_reasoning_however_it_is_cut() {
        for (whole, reasoning, text) in [
            ("<think>secret</think>ANSWER", "secret", "ANSWER"),
            ("\n<think>\nwhy</think>\n\nDone", "\nwhy", "Done"),
            ("</think>\n\nDone", "", "Done"),
            ("a < b <think>x</think>", "", "a < b <think>x</think>"),
            ("<thinking>x", "", "<thinking>x"),
            ("  <b>x", "", "  <b>x"),
            ("<think>a</thi> b</think>c", "a</thi> b", "c"),
            ("<think>cut off</thi", "cut off</thi", ""),
            ("<think>x</think><think>y</think>", "x", "<think>y</think>"),
            ("<thi", "", "<thi"),
            ("<think>é</think>ü", "é", "ü"),
            ("", "", ""),
        ] {
            let expected = (reasoning.to_owned(), text.to_owned());
            assert_eq!(read(&[whole]), expected, "{whole}");
            let each: Vec<String> = whole.chars().map(String::from).collect();
            let each: Vec<&str> = each.iter().map(String::as_str).collect();
            assert_eq!(read(&each), expected, "{whole}, char by char");
        }
    }

    #[test]
    fn text_passes_without_delay_once_it_is_text() {
        let mut splitter = Splitter::default();
        assert_eq!(splitter.take("a".into()).text, "a");
        assert!(matches!(splitter.take("b <".into()).text, Cow::Borrowed("b <")));
    }
}
