//! How one provider's protocol spells an answer, an error and an event.
//!
//! The server and the behaviours speak of frames only; a dialect turns the
//! content of a step into frames and says which of them completes the answer.
//! To add a dialect: implement [`Dialect`] beside `chat.rs` and name its path
//! in [`for_path`].

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::Value;

use crate::{
    behaviour::{Api, ErrorReply},
    content::Content,
};
pub(crate) use anthropic::Anthropic;
pub(crate) use chat::Chat;
pub(crate) use gemini::Gemini;
pub(crate) use responses::Responses;

/// One wire protocol.
pub(crate) trait Dialect: Send + Sync {
    /// The API it speaks.
    fn api(&self) -> Api;

    /// What the request asks for, or what is wrong with it.
    fn read(&self, body: &Value) -> Result<Ask, String>;

    /// The streamed answer, first byte to last.
    fn frames(&self, content: &Content, ask: &Ask, turn: Turn) -> Vec<Frame>;

    /// The same answer as one document, for a request that does not stream.
    fn document(&self, content: &Content, ask: &Ask, turn: Turn) -> Value;

    /// Takes out of a document what says that the answer is complete.
    fn unfinish(&self, document: &mut Value);

    /// The body of an error; `{key}` is already replaced.
    fn error(&self, reply: &ErrorReply) -> Value;

    /// The same error as an event inside a stream.
    fn error_frame(&self, reply: &ErrorReply) -> Vec<u8>;

    /// An event on one line, opened around a text of any length: what comes
    /// before the text, and what comes after it.
    fn open_line(&self, ask: &Ask, turn: Turn) -> (Vec<u8>, Vec<u8>);

    /// An event that says nothing.
    fn ping(&self) -> &'static str;
}

/// The dialect spoken at a path (without its query), whatever stands before it.
pub(crate) fn for_path(path: &str) -> Option<&'static dyn Dialect> {
    let spoken: [(&str, &'static dyn Dialect); 5] = [
        ("/chat/completions", &Chat),
        ("/responses", &Responses),
        ("/messages", &Anthropic),
        (":streamGenerateContent", &Gemini { stream: true }),
        (":generateContent", &Gemini { stream: false }),
    ];
    spoken.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, dialect)| dialect)
}

/// What a request asks for, in the terms all dialects share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// Whether the stream should report usage.
    pub(crate) usage: bool,
    /// The size of the prompt, from which the default usage is made up.
    pub(crate) prompt_bytes: usize,
}

impl Ask {
    /// A request for a stream without usage, to count the events of a step.
    pub(crate) fn probe() -> Self {
        Self { model: String::new(), stream: true, usage: false, prompt_bytes: 0 }
    }
}

/// Where in the run an answer stands; its ids are made from this, so that two
/// runs of one script send the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Which attempt this is, from 1.
    pub(crate) attempt: usize,
    /// How many tool calls earlier attempts made.
    pub(crate) earlier_calls: usize,
}

impl Turn {
    pub(crate) const FIRST: Self = Self { attempt: 1, earlier_calls: 0 };
}

/// One event of a stream, with the blank line that ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    /// Whether it completes the answer.
    pub(crate) terminal: bool,
}
