//! What this session last saw of each file.
//!
//! A hash decides whether a file changed. Small texts are kept as well, so that
//! a refused Write can show *what* changed.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use blake3::Hash;

/// The largest text that is kept, in bytes. A larger file has its hash only.
pub(crate) const KEPT_TEXT: usize = 64 * 1024;
/// How many texts are kept: the oldest one leaves first.
const KEPT_FILES: usize = 64;

/// What this session last saw of each file, by canonical path.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    hashes: HashMap<String, Hash>,
    /// How many changes this session made, and which of them was the last of a file.
    changes: u64,
    changed: HashMap<String, u64>,
    texts: HashMap<String, Arc<[u8]>>,
    /// The paths in `texts`, oldest first.
    order: VecDeque<String>,
}

/// How a file on disk compares with what the session saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The session never saw it.
    Never,
    /// It is as the session saw it.
    Same,
    /// It changed; the text the session saw, if it was kept.
    Changed(Option<Arc<[u8]>>),
}

/// A moment in the changes of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(u64);

impl Ledger {
    /// Notes content, in pieces, that the session itself gave a file.
    pub(crate) fn record(&self, path: &str, pieces: &[&[u8]]) {
        let mut hasher = blake3::Hasher::new();
        for piece in pieces {
            hasher.update(piece);
        }
        let size: usize = pieces.iter().map(|piece| piece.len()).sum();
        let bytes = (size <= KEPT_TEXT).then(|| pieces.concat());
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.changes += 1;
        let change = pages.changes;
        pages.changed.insert(path.to_owned(), change);
        pages.know(path, hasher.finalize(), bytes.as_deref());
    }

    /// The present moment, for [`Ledger::record_read`].
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.pages.lock().unwrap_or_else(PoisonError::into_inner).changes)
    }

    /// Notes content that a Read saw, unless the session changed the file since
    /// the Read began: then it is not known whether it saw that.
    pub(crate) fn record_read(&self, path: &str, hash: Hash, bytes: &[u8], began: Mark) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.changed.get(path).is_none_or(|change| *change <= began.0) {
            pages.know(path, hash, Some(bytes).filter(|bytes| bytes.len() <= KEPT_TEXT));
        }
    }

    /// Whether the session ever saw this file.
    pub(crate) fn knows(&self, path: &str) -> bool {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).hashes.contains_key(path)
    }

    /// Compares content with what the session saw last.
    pub(crate) fn compare(&self, path: &str, bytes: &[u8]) -> Seen {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        match pages.hashes.get(path) {
            None => Seen::Never,
            Some(hash) if *hash == blake3::hash(bytes) => Seen::Same,
            Some(_) => Seen::Changed(pages.texts.get(path).cloned()),
        }
    }
}

impl Pages {
    fn know(&mut self, path: &str, hash: Hash, text: Option<&[u8]>) {
        self.hashes.insert(path.to_owned(), hash);
        self.forget_text(path);
        if let Some(text) = text {
            self.keep_text(path, text);
        }
    }

    fn forget_text(&mut self, path: &str) {
        if self.texts.remove(path).is_some() {
            self.order.retain(|kept| kept != path);
        }
    }

    fn keep_text(&mut self, path: &str, bytes: &[u8]) {
        self.texts.insert(path.to_owned(), bytes.into());
        self.order.push_back(path.to_owned());
        if self.order.len() > KEPT_FILES
            && let Some(oldest) = self.order.pop_front()
        {
            self.texts.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_never_seen_then_the_same_then_changed() {
        let ledger = Ledger::default();
        assert_eq!(ledger.compare("a", b"one"), Seen::Never);
        ledger.record("a", &[b"o", b"ne"]);
        assert_eq!(ledger.compare("a", b"one"), Seen::Same);
        assert_eq!(ledger.compare("a", b"two"), Seen::Changed(Some(b"one".as_slice().into())));
    }

    #[test]
    fn a_read_that_ran_beside_a_change_does_not_hide_it() {
        let ledger = Ledger::default();
        let before = ledger.mark();
        ledger.record("a", &[b"mine"]);
        ledger.record_read("a", blake3::hash(b"old"), b"old", before);
        assert_eq!(ledger.compare("a", b"mine"), Seen::Same);
        ledger.record_read("b", blake3::hash(b"old"), b"old", before);
        assert_eq!(ledger.compare("b", b"old"), Seen::Same);
        ledger.record_read("a", blake3::hash(b"theirs"), b"theirs", ledger.mark());
        assert_eq!(ledger.compare("a", b"theirs"), Seen::Same);
    }

    #[test]
    fn only_the_newest_small_texts_are_kept_but_every_hash() {
        let ledger = Ledger::default();
        for number in 0..=KEPT_FILES {
            ledger.record(&number.to_string(), &[b"text"]);
        }
        ledger.record("large", &[&vec![b'x'; KEPT_TEXT], b"x"]);
        assert_eq!(ledger.compare("0", b"other"), Seen::Changed(None));
        assert_eq!(ledger.compare("1", b"other"), Seen::Changed(Some(b"text".as_slice().into())));
        assert_eq!(ledger.compare("large", b"other"), Seen::Changed(None));
        assert_eq!(ledger.pages.lock().unwrap().texts.len(), KEPT_FILES);
    }
}
