//! What a search found: as much of it as a result can show, and the count of all.

use std::cmp::Reverse;

use super::Mode;
use crate::builtin::search::{MAX_BYTES, REMARKS, counted, on_one_line};

/// How much text of one file is kept, in bytes: as much as a result shows.
pub(super) const KEPT_BYTES: usize = MAX_BYTES;
/// How much may be held before what no result can show is dropped, in bytes.
const HELD: usize = 1024 * 1024;

/// The matching lines of one file.
#[derive(Debug)]
pub(super) struct FileHits {
    pub(super) path: String,
    /// When it was changed last, in seconds and nanoseconds.
    pub(super) modified: (i64, i64),
    pub(super) lines: Vec<(u64, String)>,
    pub(super) count: usize,
}

impl FileHits {
    fn bytes(&self) -> usize {
        self.path.len() + self.lines.iter().map(|(_, line)| line.len()).sum::<usize>()
    }
}

/// The hits of a whole search; files may come in any order.
#[derive(Debug)]
pub(super) struct Hits {
    limit: usize,
    files: Vec<FileHits>,
    held: usize,
    total_files: usize,
    total_lines: usize,
}

impl Hits {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, files: Vec::new(), held: 0, total_files: 0, total_lines: 0 }
    }

    pub(super) fn add(&mut self, file: FileHits) {
        self.total_files += 1;
        self.total_lines += file.count;
        self.held += file.bytes();
        self.files.push(file);
        if self.held > HELD {
            self.drop_what_cannot_be_shown();
        }
    }

    /// The newest first, and where times are equal by path.
    fn sort(&mut self) {
        self.files.sort_by(|a, b| {
            Reverse(a.modified).cmp(&Reverse(b.modified)).then_with(|| a.path.cmp(&b.path))
        });
    }

    /// Each file shows at least its path, so that older ones behind so many bytes
    /// never appear.
    fn drop_what_cannot_be_shown(&mut self) {
        self.sort();
        let mut bytes = 0;
        let kept = self.files.iter().take_while(|file| {
            let fits = bytes <= MAX_BYTES;
            bytes += file.bytes();
            fits
        });
        let kept = kept.count();
        self.files.truncate(kept);
        self.held = self.files.iter().map(FileHits::bytes).sum();
    }

    /// The result for the model; `None` if there is none.
    pub(super) fn told(mut self, mode: Mode) -> Option<String> {
        if self.total_files == 0 {
            return None;
        }
        self.sort();
        let mut page = Page { text: String::new(), entries: 0, limit: self.limit };
        for file in &self.files {
            let path = on_one_line(&file.path);
            let went = match mode {
                Mode::FilesWithMatches => page.push(&path),
                Mode::Count => page.push(&format!("{path}:{}", file.count)),
                Mode::Content => file
                    .lines
                    .iter()
                    .all(|(number, line)| page.push(&format!("{path}:{number}:{line}"))),
            };
            if !went {
                break;
            }
        }
        let (total, what) = match mode {
            Mode::Content => (self.total_lines, "matching line"),
            Mode::FilesWithMatches | Mode::Count => (self.total_files, "file"),
        };
        let Page { mut text, entries, .. } = page;
        if entries < total {
            let files = match mode {
                Mode::Content => format!(" in {}", counted(self.total_files, "file")),
                Mode::FilesWithMatches | Mode::Count => String::new(),
            };
            text.push_str(&format!(
                "({entries} of {}{files} shown, newest files first; for the others, narrow \
                 `pattern`, `path` or `include`, or raise `head_limit` if it is below 2000)\n",
                counted(total, what)
            ));
        }
        Some(text)
    }
}

/// A result that grows up to its bound.
struct Page {
    text: String,
    entries: usize,
    limit: usize,
}

impl Page {
    /// Adds a line if there is room for it.
    fn push(&mut self, line: &str) -> bool {
        let room = self.entries < self.limit && self.text.len() + line.len() < MAX_BYTES - REMARKS;
        if room {
            self.text.push_str(line);
            self.text.push('\n');
            self.entries += 1;
        }
        room
    }
}
