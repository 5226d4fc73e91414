//! Bytes to frames of `text/event-stream`, however the bytes are cut.
//!
//! Pure: no I/O and no clock. It is our own, and held equal to `sse-core` and
//! `sse-stream` by property tests, because servers of models send what the
//! standard drops: an `error:` field line, and a last event without the blank
//! line that should close it. A frame borrows from the decoder, so an event
//! costs no allocation.

use std::{borrow::Cow, ops::ControlFlow};

use memchr::memchr2;
use serde::{Deserialize, de::IgnoredAny};

/// The longest line, and the most data of one event, in bytes.
pub(crate) const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// How much of JSON outside of any event is looked at.
const MAX_BARE_BYTES: usize = 64 * 1024;

/// What a stream holds, comments aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A whole event. `name` is empty where the server gave none.
    Event { name: &'a str, data: &'a str },
    /// A line `error: …`, which is no field of the standard (seen on GPUStack), or an
    /// error as bare JSON after the last event (Gemini, when it sheds load).
    ErrorLine(&'a str),
}

/// A line or an event is longer than [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Why feeding stopped before the bytes were used up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stopped<B> {
    TooLong,
    /// The receiver of the frames wants no more of them.
    ByReceiver(B),
}

impl<B> From<TooLong> for Stopped<B> {
    fn from(_: TooLong) -> Self {
        Self::TooLong
    }
}

/// The decoder; one per response body.
#[derive(Debug)]
pub(crate) struct SseDecoder {
    /// The start of a line whose end has not come yet.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// Lines of JSON that came outside of any event since the last one.
    bare: Vec<u8>,
    after_cr: bool,
    first_line: bool,
    limit: usize,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseDecoder {
    pub(crate) const fn with_limit(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            bare: Vec::new(),
            after_cr: false,
            first_line: true,
            limit,
        }
    }

    /// Takes the next bytes and hands each frame that they complete to `receive`.
    pub(crate) fn feed<B>(
        &mut self,
        bytes: &[u8],
        receive: &mut dyn FnMut(Frame<'_>) -> ControlFlow<B>,
    ) -> Result<(), Stopped<B>> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_cr = false;
        }
        while let Some((line, ended_by, after)) = split_line(rest) {
            rest = after;
            if ended_by == b'\r' {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            if self.line.is_empty() {
                self.on_line(line, receive)?;
            } else {
                self.keep(line)?;
                self.on_kept_line(receive)?;
            }
        }
        Ok(self.keep(rest)?)
    }

    /// The body has ended: hands over what still waits for a line end or for its
    /// blank line (recorded from an Anthropic-compatible gateway), and an error that
    /// came as bare JSON.
    pub(crate) fn end<B>(
        &mut self,
        receive: &mut dyn FnMut(Frame<'_>) -> ControlFlow<B>,
    ) -> Result<(), Stopped<B>> {
        if !self.line.is_empty() {
            self.on_kept_line(receive)?;
        }
        self.dispatch(receive)?;
        let bare = std::mem::take(&mut self.bare);
        let bare = text_of(&bare);
        match names_an_error(&bare) {
            true => stop(receive(Frame::ErrorLine(&bare))),
            false => Ok(()),
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > self.limit {
            self.line = Vec::new();
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn on_kept_line<B>(
        &mut self,
        receive: &mut dyn FnMut(Frame<'_>) -> ControlFlow<B>,
    ) -> Result<(), Stopped<B>> {
        let mut line = std::mem::take(&mut self.line);
        let result = self.on_line(&line, receive);
        // The buffer is reused: lines that straddle chunks come again and again.
        line.clear();
        self.line = line;
        result
    }

    fn on_line<B>(
        &mut self,
        line: &[u8],
        receive: &mut dyn FnMut(Frame<'_>) -> ControlFlow<B>,
    ) -> Result<(), Stopped<B>> {
        let mut line = line;
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(receive);
        }
        if line.len() > self.limit {
            return Err(Stopped::TooLong);
        }
        let (field, value) = field_of(line);
        match field {
            b"data" => {
                if !self.bare.is_empty() {
                    let bare = std::mem::take(&mut self.bare);
                    // Some gateways send the end marker after an error, too. If the
                    // answer goes on, it was none.
                    if value.trim_ascii() == b"[DONE]" && is_an_error(&bare) {
                        stop(receive(Frame::ErrorLine(&text_of(&bare))))?;
                    }
                }
                self.add_data(value)?;
            }
            b"event" => {
                self.bare.clear();
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"error" => {
                let frame = Frame::ErrorLine(&String::from_utf8_lossy(value));
                return stop(receive(frame));
            }
            // A comment.
            b"" => {}
            // `id` and `retry` (nothing is resumed), or unknown.
            _ => self.keep_bare(line),
        }
        Ok(())
    }

    fn keep_bare(&mut self, line: &[u8]) {
        let begins = line.trim_ascii_start().starts_with(b"{");
        if (begins || !self.bare.is_empty()) && self.bare.len() + line.len() < MAX_BARE_BYTES {
            self.bare.extend_from_slice(line);
            self.bare.push(b'\n');
        }
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), TooLong> {
        if self.data.len() + value.len() >= self.limit {
            self.data = Vec::new();
            return Err(TooLong);
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.has_data = true;
        Ok(())
    }

    fn dispatch<B>(
        &mut self,
        receive: &mut dyn FnMut(Frame<'_>) -> ControlFlow<B>,
    ) -> Result<(), Stopped<B>> {
        let mut flow = ControlFlow::Continue(());
        if std::mem::take(&mut self.has_data) {
            let data = text_of(&self.data);
            flow = receive(Frame::Event { name: &text_of(&self.name), data: &data });
            self.data.clear();
        }
        self.name.clear();
        stop(flow)
    }
}

/// Whether it is an object that has something in its field `error`.
fn is_an_error(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Bare {
        error: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Bare>(json).is_ok_and(|bare| bare.error.is_some())
}

/// Whether it has a field `error`.
fn names_an_error(json: &str) -> bool {
    let after = |(_, rest): (&str, &str)| rest.trim_start().starts_with(':');
    json.split_once("\"error\"").is_some_and(after)
}

fn stop<B>(flow: ControlFlow<B>) -> Result<(), Stopped<B>> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(why) => Err(Stopped::ByReceiver(why)),
    }
}

/// The first line, the byte that ended it, and what follows.
fn split_line(bytes: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let at = memchr2(b'\n', b'\r', bytes)?;
    let (line, from_end) = bytes.split_at_checked(at)?;
    let (ended_by, after) = from_end.split_first()?;
    Some((line, *ended_by, after))
}

fn field_of(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line).and_then(|colon| line.split_at_checked(colon)) {
        Some((field, value)) => {
            let value = value.strip_prefix(b":").unwrap_or(value);
            (field, value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, b""),
    }
}

/// Invalid UTF-8 becomes U+FFFD, as the standard says; valid text is borrowed.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests;
