//! The durable history of a session, and the only way into it.

use turnbuckle_providers::{
    AssistantMessage, CompletedMessage, History, Message, ToolResult, UserMessage,
};

use crate::compaction::Cut;

/// The messages that the next request is made of. After a compaction these are
/// fewer than were said; all of them are in the journal.
///
/// A message of the model comes in only when it is complete, and together with
/// one result for each of its calls: a failed attempt leaves no trace here, and
/// an unpaired call cannot be sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    messages: History,
}

/// The results do not pair with the calls of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("every tool call needs exactly one result, in call order")]
pub struct Unpaired;

impl Transcript {
    /// An empty history.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The messages, oldest first; a clone of them costs next to nothing.
    #[must_use]
    pub const fn messages(&self) -> &History {
        &self.messages
    }

    /// The same with `digest` in the place of what `cut` leaves out; `None` if the
    /// cut was not made for it.
    pub(crate) fn compacted(&self, cut: &Cut, digest: &str) -> Option<Self> {
        let messages: Vec<&Message> = self.messages.iter().collect();
        let smaller = cut.apply(&messages, digest)?;
        Some(Self { messages: smaller.into_iter().collect() })
    }

    /// Adds what the user said.
    pub fn commit_user(&mut self, said: impl Into<UserMessage>) {
        self.messages.push(Message::User(said.into()));
    }

    /// Adds a complete message with the results of its calls, in call order.
    ///
    /// A blank message without calls adds nothing: providers refuse it. Parts in the
    /// provider's own words make it none.
    ///
    /// # Errors
    ///
    /// [`Unpaired`], and nothing is added, if results and calls do not pair.
    pub fn commit(
        &mut self,
        completed: CompletedMessage,
        results: Vec<ToolResult>,
    ) -> Result<(), Unpaired> {
        self.append(completed.into_message(), results)
    }

    /// Adds a message that a journal says was complete.
    pub(crate) fn append(
        &mut self,
        message: AssistantMessage,
        results: Vec<ToolResult>,
    ) -> Result<(), Unpaired> {
        let calls = message.tool_calls.iter().map(|call| &call.id);
        if !calls.eq(results.iter().map(|result| &result.call_id)) {
            return Err(Unpaired);
        }
        let blank = message.text.trim().is_empty() && message.tool_calls.is_empty();
        if !blank || message.native.is_some() {
            self.messages.push(Message::Assistant(message));
            self.messages.extend(results.into_iter().map(Message::Tool));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use turnbuckle_providers::{Arguments, ToolCall};

    use super::*;

    fn asking(ids: &[&str]) -> AssistantMessage {
        let call = |id: &&str| ToolCall {
            id: (*id).into(),
            name: "f".into(),
            arguments: Arguments::parse(String::new()),
        };
        AssistantMessage {
            tool_calls: ids.iter().map(call).collect(),
            ..AssistantMessage::default()
        }
    }

    fn results(ids: &[&str]) -> Vec<ToolResult> {
        ids.iter()
            .map(|id| ToolResult {
                call_id: (*id).into(),
                name: "f".into(),
                text: String::new(),
                images: Vec::new(),
                ok: true,
            })
            .collect()
    }

    #[test]
    fn calls_and_results_pair_in_order_or_nothing_is_added() {
        let mut transcript = Transcript::new();
        for wrong in [&["a"][..], &["b", "a"], &["a", "b", "b"], &[]] {
            assert_eq!(transcript.append(asking(&["a", "b"]), results(wrong)), Err(Unpaired));
        }
        assert!(transcript.messages().is_empty());
        transcript.append(asking(&["a", "b"]), results(&["a", "b"])).unwrap();
        assert_eq!(transcript.messages().len(), 3);
    }

    #[test]
    fn a_blank_message_is_not_kept() {
        let mut transcript = Transcript::new();
        let blank = AssistantMessage {
            text: " \n".into(),
            reasoning: "hm".into(),
            ..AssistantMessage::default()
        };
        transcript.append(blank, Vec::new()).unwrap();
        assert!(transcript.messages().is_empty());
    }
}
