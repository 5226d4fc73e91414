//! The parts of a behaviour that change how an answer is said and framed.

use super::{
    Behaviour, Noise,
    edit::{Api, Change, Edit, Spot},
    form::{Http1, Spelling},
    wire::Protocol,
};
use crate::content::{Finish, ToolCall};

impl Behaviour {
    /// Says this text, unless the step says another.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.said.text = Some(text.into());
        self
    }

    /// Reasons with this text, unless the step has its own.
    #[must_use]
    pub fn reasoning(mut self, reasoning: impl Into<String>) -> Self {
        self.said.reasoning = Some(reasoning.into());
        self
    }

    /// Calls this tool, unless the step calls others.
    #[must_use]
    pub fn call(mut self, call: ToolCall) -> Self {
        self.said.tool_calls.push(call);
        self
    }

    /// Finishes for this reason, unless the step has another.
    #[must_use]
    pub fn finish(mut self, finish: Finish) -> Self {
        self.said.finish = Some(finish);
        self
    }

    /// Changes events of a streamed answer in every API.
    #[must_use]
    pub fn edit(self, spot: Spot, change: Change) -> Self {
        self.push_edit(None, spot, change)
    }

    /// Changes events of a streamed answer in this API.
    #[must_use]
    pub fn edit_in(self, api: Api, spot: Spot, change: Change) -> Self {
        self.push_edit(Some(api), spot, change)
    }

    fn push_edit(mut self, api: Option<Api>, spot: Spot, change: Change) -> Self {
        self.edits.push(Edit { api, spot, change });
        self
    }

    /// Spells its events in this way.
    #[must_use]
    pub fn spelling(mut self, spelling: Spelling) -> Self {
        self.spellings.push(spelling);
        self
    }

    /// Adds an oddity of HTTP/1.1.
    #[must_use]
    pub fn http1(mut self, oddity: Http1) -> Self {
        self.http1.push(oddity);
        self
    }

    /// Sends the body in pieces of this many bytes, each on its own; 0 counts as 1.
    #[must_use]
    pub fn drip(mut self, bytes: usize) -> Self {
        self.drip = Some(bytes.max(1));
        self
    }

    /// Sends trailers after the body.
    #[must_use]
    pub fn trailers(mut self) -> Self {
        self.trailers = true;
        self
    }

    /// Leaves out a header the server would send by itself, such as `content-type`.
    #[must_use]
    pub fn without_header(mut self, name: impl Into<String>) -> Self {
        self.left_out.push(name.into().to_ascii_lowercase());
        self
    }

    /// Answers with one JSON document, also where a stream was asked for.
    #[must_use]
    pub fn document(mut self) -> Self {
        self.document = true;
        self
    }

    /// Is served by this protocol, where it would be seen by any.
    #[must_use]
    pub fn over(mut self, protocol: Protocol) -> Self {
        self.over = Some(protocol);
        self
    }

    /// Whether it says something of its own, so that a step need not.
    pub fn says(&self) -> bool {
        self.said.text.is_some() || !self.said.tool_calls.is_empty()
    }

    /// The text it says by itself.
    pub fn said_text(&self) -> Option<&str> {
        self.said.text.as_deref()
    }

    /// Whether it falls silent somewhere on an open connection.
    pub fn falls_silent(&self) -> bool {
        self.cut.is_some_and(|cut| cut.how == super::How::Silence)
    }

    /// How many tools it calls by itself.
    pub fn calls(&self) -> usize {
        self.said.tool_calls.len()
    }

    /// Whether the connection is of no use after its answer, though nothing said so.
    pub fn hangs_up(&self) -> bool {
        self.hang_up.is_some()
    }

    /// What it says for ever, if it never ends.
    pub fn endless(&self) -> Option<Noise> {
        self.inserts.iter().find_map(|(_, insert)| match insert {
            super::Insert::Endless(noise, _) => Some(*noise),
            _ => None,
        })
    }
}
