//! The conversation of a request: a list that grows at its end, and costs next to
//! nothing to copy.

use std::{
    fmt,
    ops::Index,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::Message;
#[cfg(feature = "adapter")]
use crate::rendering::Slot;

/// Messages, oldest first. They can be added and never changed.
///
/// A clone shares them, and what an adapter has written of them: the next request
/// of a conversation writes what was added since, and an attempt that asks the same
/// again writes nothing. A clone may go on in another way than its original.
///
/// ```
/// use turnbuckle_providers::{History, Message};
///
/// let mut history = History::from(vec![Message::User("hello".into())]);
/// let before = history.clone();
/// history.push(Message::User("are you there?".into()));
/// assert_eq!((before.len(), history.len()), (1, 2));
/// assert_eq!(before[0], history[0]);
/// ```
#[derive(Clone, Default)]
pub struct History {
    entries: Arc<Vec<Entry>>,
    #[cfg(feature = "adapter")]
    written: Slot,
}

#[derive(Clone)]
struct Entry {
    /// Of this message after just those before it: no other has the same.
    #[cfg_attr(not(feature = "adapter"), expect(dead_code, reason = "adapters ask for it"))]
    id: u64,
    message: Arc<Message>,
}

impl Entry {
    fn new(message: Message) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), message: Arc::new(message) }
    }
}

impl History {
    /// A conversation in which nothing was said yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message at the end.
    pub fn push(&mut self, message: Message) {
        Arc::make_mut(&mut self.entries).push(Entry::new(message));
    }

    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The message at this place, counted from 0.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&Message> {
        self.entries.get(at).map(|entry| &*entry.message)
    }

    /// The oldest message.
    #[must_use]
    pub fn first(&self) -> Option<&Message> {
        self.get(0)
    }

    /// The newest message.
    #[must_use]
    pub fn last(&self) -> Option<&Message> {
        self.entries.last().map(|entry| &*entry.message)
    }

    /// The messages, oldest first.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.entries.iter())
    }

    /// Copies of the messages.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Message> {
        self.iter().cloned().collect()
    }
}

/// What adapters write of it.
#[cfg(feature = "adapter")]
impl History {
    /// What was written of it last.
    pub(crate) const fn written(&self) -> &Slot {
        &self.written
    }

    /// What names the messages up to this place: equal for two histories, so are
    /// these messages.
    pub(crate) fn id_up_to(&self, end: usize) -> Option<u64> {
        self.entries.get(end.checked_sub(1)?).map(|entry| entry.id)
    }

    /// The messages of a range; those of them that there are.
    pub(crate) fn range(&self, range: std::ops::Range<usize>) -> Iter<'_> {
        Iter(self.entries.get(range).unwrap_or_default().iter())
    }
}

/// The messages of a [`History`], oldest first.
#[derive(Clone)]
pub struct Iter<'a>(std::slice::Iter<'a, Entry>);

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Message;

    fn next(&mut self) -> Option<&'a Message> {
        self.0.next().map(|entry| &*entry.message)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|entry| &*entry.message)
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a> IntoIterator for &'a History {
    type Item = &'a Message;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Index<usize> for History {
    type Output = Message;

    #[expect(clippy::indexing_slicing, reason = "like a slice, this panics beyond the end")]
    fn index(&self, at: usize) -> &Message {
        &self.entries[at].message
    }
}

impl Extend<Message> for History {
    fn extend<I: IntoIterator<Item = Message>>(&mut self, messages: I) {
        Arc::make_mut(&mut self.entries).extend(messages.into_iter().map(Entry::new));
    }
}

impl FromIterator<Message> for History {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut history = Self::new();
        history.extend(messages);
        history
    }
}

impl From<Vec<Message>> for History {
    fn from(messages: Vec<Message>) -> Self {
        messages.into_iter().collect()
    }
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entries, &other.entries) || self.iter().eq(other.iter())
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_goes_its_own_way_and_copies_no_message() {
        let said = |text: &str| Message::User(text.into());
        let mut one: History = [said("a"), said("b")].into_iter().collect();
        let mut other = one.clone();
        assert_eq!(one, other);
        assert!(Arc::ptr_eq(&one.entries, &other.entries));
        one.push(said("c"));
        other.extend([said("d")]);
        assert_ne!(one, other);
        assert_eq!(one.to_vec(), [said("a"), said("b"), said("c")]);
        assert_eq!((other.first(), other.last()), (Some(&said("a")), Some(&said("d"))));
        assert!(Arc::ptr_eq(&one.entries[1].message, &other.entries[1].message));
        assert_eq!(one.iter().next_back(), Some(&said("c")));
        assert_eq!(History::from(one.to_vec()), one);
    }
}
