//! The body of a request, of which only what was added to the conversation is
//! written anew.
//!
//! Most of a body is the conversation, and most of that was in the last request.
//! So the last body is kept beside the messages, with the places in it up to which
//! nothing changes when a conversation goes on. Beginning anew gives the same bytes.

use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Result, Value};

use crate::{AssistantMessage, History, Message};

/// How one dialect writes a conversation, as elements of a JSON list.
///
/// It is written in groups. A group begins at the first message and at each message
/// of the model that [`opens`](Self::opens) one; what it looks like depends on
/// nothing outside of it, marks and earlier calls aside.
pub(crate) trait Dialogue {
    /// Whether this message of the model stands apart from what is before it.
    fn opens(&self, said: &AssistantMessage) -> bool {
        let _ = said;
        true
    }

    /// The first message that bears a mark which moves on when the conversation
    /// does; no message before it may ever bear one.
    fn marked_from(&self, history: &History) -> usize {
        history.len()
    }

    /// Writes the messages of a range that is made of whole groups, each by
    /// [`element`].
    fn write(&self, history: &History, range: Range<usize>, out: &mut Vec<u8>) -> Result<()>;
}

/// Writes one more element into a list that is open.
pub(crate) fn element(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> Result<()> {
    if out.last() != Some(&b'[') {
        out.push(b',');
    }
    serde_json::to_writer(out, value)
}

/// Whose words a conversation was written in: whatever they depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) dialect: &'static str,
    /// The profile, where the words depend on it.
    pub(crate) server: &'static str,
    pub(crate) model: String,
    /// Options of the dialect.
    pub(crate) options: [bool; 3],
}

/// The last body that was written of a conversation; clones of it share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<Rendering>>>);

#[derive(Debug)]
struct Rendering {
    key: Key,
    /// Ours alone once its request was sent, so that the next one grows out of it.
    body: Arc<Vec<u8>>,
    /// The messages in the body.
    messages: Range<usize>,
    /// How many there are, and what names them.
    extent: (usize, Option<u64>),
    /// The beginnings of the conversation that stay as they are where a group begins
    /// after them, short ones first.
    settled: Vec<Settled>,
}

/// A beginning of a conversation.
#[derive(Debug, Clone, Copy)]
struct Settled {
    /// How many messages, and what names them.
    extent: (usize, Option<u64>),
    /// How many bytes.
    bytes: usize,
}

impl Slot {
    fn take(&self) -> Option<Rendering> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, rendering: Rendering) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(rendering);
    }
}

impl Rendering {
    fn part(&self, range: Range<usize>) -> &[u8] {
        self.body.get(range).unwrap_or_default()
    }

    /// The beginning of another body: `before`, and the longest part of the messages
    /// that still `holds`. Nothing is copied if that is how this body begins and nobody
    /// else has it.
    fn begun_again(
        self,
        before: &[u8],
        holds: impl Fn((usize, Option<u64>)) -> bool,
    ) -> (Vec<u8>, Vec<Settled>) {
        let Self { body, messages, mut settled, .. } = self;
        // What names a beginning names all shorter ones as well.
        while settled.last().is_some_and(|it| !holds(it.extent)) {
            settled.pop();
        }
        let start = messages.start;
        let end = start + settled.last().map_or(0, |it| it.bytes);
        let same = body.get(0..start) == Some(before);
        let body = if same { Arc::try_unwrap(body) } else { Err(body) };
        let begun = match body {
            Ok(mut body) => {
                body.truncate(end);
                body
            }
            Err(shared) => [before, shared.get(start..end).unwrap_or_default()].concat(),
        };
        (begun, settled)
    }

    /// Whether it is what a body with these messages looks like.
    fn is(&self, extent: (usize, Option<u64>), before: &[u8], after: &[u8]) -> bool {
        let Range { start, end } = self.messages;
        self.extent == extent
            && self.part(0..start) == before
            && self.part(end..self.body.len()) == after
    }
}

fn extent(history: &History, end: usize) -> (usize, Option<u64>) {
    (end, history.id_up_to(end))
}

fn opens(history: &History, at: usize, dialogue: &dyn Dialogue) -> bool {
    matches!(history.get(at), Some(Message::Assistant(said)) if dialogue.opens(said))
}

/// Everything of a body but its messages.
pub(crate) struct Envelope {
    json: Vec<u8>,
    /// Where the messages go; `None` if the host has brought its own.
    place: Option<usize>,
}

impl Envelope {
    /// The body with these messages.
    ///
    /// # Errors
    ///
    /// Those of serde_json.
    pub(crate) fn around(
        self,
        history: &History,
        key: Key,
        dialogue: &dyn Dialogue,
    ) -> Result<Bytes> {
        let Some((before, after)) = self.place.and_then(|at| self.json.split_at_checked(at)) else {
            return Ok(Bytes::from(self.json));
        };
        let all = extent(history, history.len());
        // Whether something stands before the messages decides on a comma.
        let known = history.written().take().filter(|known| {
            known.key == key && known.part(0..known.messages.start).last() == before.last()
        });
        let rendering = match known {
            Some(known) if known.is(all, before, after) => known,
            known => {
                let marked = dialogue.marked_from(history);
                let end = settles_at(history, marked, dialogue);
                let (mut out, mut settled) = match known {
                    // Another branch may go on inside of what was a group.
                    Some(known) => known.begun_again(before, |known| {
                        known.0 <= end
                            && known == extent(history, known.0)
                            && opens(history, known.0, dialogue)
                    }),
                    None => (before.to_vec(), Vec::new()),
                };
                let mut from = settled.last().map_or(0, |it| it.extent.0);
                let room = history.range(from..history.len()).map(weight).sum::<usize>();
                out.reserve(room + after.len());
                let start = before.len();
                for to in from + 1..=end {
                    if to == end || opens(history, to, dialogue) {
                        dialogue.write(history, from..to, &mut out)?;
                        let bytes = out.len() - start;
                        settled.push(Settled { extent: extent(history, to), bytes });
                        from = to;
                    }
                }
                dialogue.write(history, from..history.len(), &mut out)?;
                let messages = start..out.len();
                if marked >= history.len() {
                    // It is settled if the next message begins a group.
                    settled.push(Settled { extent: all, bytes: messages.len() });
                }
                out.extend_from_slice(after);
                Rendering { key, body: Arc::new(out), messages, extent: all, settled }
            }
        };
        let body = Bytes::from_owner(Lent(Arc::clone(&rendering.body)));
        history.written().put(rendering);
        Ok(body)
    }
}

/// A body on its way to a server.
struct Lent(Arc<Vec<u8>>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// How many messages look the same whatever is added: all before the last group,
/// and before what bears a mark.
fn settles_at(history: &History, marked: usize, dialogue: &dyn Dialogue) -> usize {
    let most = marked.min(history.len().saturating_sub(1));
    (1..=most).rev().find(|at| opens(history, *at, dialogue)).unwrap_or(0)
}

/// About how many bytes a message is written in.
fn weight(message: &Message) -> usize {
    /// Names, ids and punctuation.
    const FRAME: usize = 128;
    let images = |images: &[crate::Image]| -> usize {
        images.iter().map(|image| image.base64.len() + FRAME).sum()
    };
    // A sixteenth is about what escapes take in prose and code.
    let text = |text: &str| text.len() + text.len() / 16;
    FRAME
        + match message {
            Message::User(said) => text(&said.text) + images(&said.images),
            Message::Tool(result) => text(&result.text) + images(&result.images),
            Message::Assistant(said) => {
                let calls = said.tool_calls.iter();
                let native = said.native.iter().flat_map(|native| &native.parts);
                text(&said.text)
                    + calls.map(|call| text(call.arguments.as_json()) + FRAME).sum::<usize>()
                    + native.map(String::len).sum::<usize>()
            }
        }
}

/// The fields of a body, written one by one. Those of the host win over ours.
pub(crate) struct Fields<'a> {
    json: Vec<u8>,
    place: Option<usize>,
    extra: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(extra: &'a Map<String, Value>) -> Self {
        Self { json: b"{".to_vec(), place: None, extra }
    }

    /// What the host says of a field.
    #[cfg(any(feature = "openai-chat", feature = "anthropic", feature = "gemini"))]
    pub(crate) fn theirs(&self, name: &str) -> Option<&'a Value> {
        self.extra.get(name)
    }

    pub(crate) fn put(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<()> {
        match self.extra.contains_key(name) {
            true => Ok(()),
            false => self.write(name, value),
        }
    }

    #[cfg(any(feature = "openai-chat", feature = "openai-responses", feature = "anthropic"))]
    pub(crate) fn put_some(&mut self, name: &str, value: Option<impl Serialize>) -> Result<()> {
        value.map_or(Ok(()), |value| self.put(name, &value))
    }

    /// A field whose JSON is written already; nothing if it is empty.
    pub(crate) fn put_written(&mut self, name: &str, json: &[u8]) -> Result<()> {
        if json.is_empty() || self.extra.contains_key(name) {
            return Ok(());
        }
        self.name(name)?;
        self.json.extend_from_slice(json);
        Ok(())
    }

    /// The list of the messages, which begins with `first`.
    pub(crate) fn messages(&mut self, name: &str, first: Option<impl Serialize>) -> Result<()> {
        if self.extra.contains_key(name) {
            return Ok(());
        }
        self.name(name)?;
        self.json.push(b'[');
        if let Some(first) = first {
            element(&mut self.json, &first)?;
        }
        self.place = Some(self.json.len());
        self.json.push(b']');
        Ok(())
    }

    /// Writes a field whatever the host says of it.
    pub(crate) fn write(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<()> {
        self.name(name)?;
        serde_json::to_writer(&mut self.json, value)
    }

    /// Adds the host's own fields, but for those of `written`.
    pub(crate) fn end(mut self, written: &[&str]) -> Result<Envelope> {
        for (name, value) in self.extra {
            if !written.contains(&name.as_str()) {
                self.write(name, value)?;
            }
        }
        self.json.push(b'}');
        Ok(Envelope { json: self.json, place: self.place })
    }

    fn name(&mut self, name: &str) -> Result<()> {
        if self.json.len() > 1 {
            self.json.push(b',');
        }
        serde_json::to_writer(&mut self.json, name)?;
        self.json.push(b':');
        Ok(())
    }
}

#[cfg(test)]
mod tests;
