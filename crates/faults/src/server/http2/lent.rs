//! A socket lent to the HTTP/2 library, which can be taken back, and which
//! counts what was sent on each stream.

use std::{
    collections::HashMap,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::watch,
};

use crate::server::socket::Socket;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;

/// A handle to the socket; all handles share it.
#[derive(Debug, Clone)]
pub(super) struct Lent {
    inner: Arc<Mutex<Inner>>,
    /// Counts the writes, so that whoever waits for one is woken.
    writes: Arc<watch::Sender<u64>>,
}

#[derive(Debug)]
struct Inner {
    /// `None` once it was taken back.
    socket: Option<Socket>,
    frames: Frames,
}

impl Lent {
    pub(super) fn new(socket: Socket) -> Self {
        let inner = Inner { socket: Some(socket), frames: Frames::default() };
        Self { inner: Arc::new(Mutex::new(inner)), writes: Arc::new(watch::Sender::new(0)) }
    }

    /// Takes the socket from under the library, whose next call then fails.
    pub(super) fn take_back(&self) -> Option<Socket> {
        self.lock().socket.take()
    }

    /// Ready when what was sent so far are whole frames.
    pub(super) fn poll_between_frames(&self) -> Poll<()> {
        let inner = self.lock();
        if inner.frames.between() || inner.socket.is_none() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// What was sent on this stream: whether its headers, and how much data.
    pub(super) fn sent(&self, stream: u32) -> Sent {
        self.lock().frames.sent.get(&stream).copied().unwrap_or_default()
    }

    /// Tells of every write from now on.
    pub(super) fn writes(&self) -> watch::Receiver<u64> {
        self.writes.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change leaves the state whole, so a poisoned lock is harmless.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(
        &self,
        act: impl FnOnce(Pin<&mut Socket>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut self.lock().socket {
            Some(socket) => act(Pin::new(socket)),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl AsyncRead for Lent {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.with(|socket| socket.poll_read(cx, buf))
    }
}

impl AsyncWrite for Lent {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.with(|socket| socket.poll_write(cx, bytes));
        if let Poll::Ready(Ok(count)) = written {
            self.lock().frames.follow(bytes.get(..count).unwrap_or_default());
            self.writes.send_modify(|writes| *writes += 1);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|socket| socket.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|socket| socket.poll_shutdown(cx))
    }
}

/// What was sent on one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sent {
    pub(super) headers: bool,
    pub(super) data: usize,
}

/// Follows the frames in what is written (RFC 9113, section 4.1).
#[derive(Debug, Default)]
struct Frames {
    /// The bytes so far of the header of the next frame.
    header: Vec<u8>,
    /// Bytes left of the payload of this frame.
    left: usize,
    sent: HashMap<u32, Sent>,
}

impl Frames {
    fn between(&self) -> bool {
        self.left == 0 && self.header.is_empty()
    }

    fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let skipped = self.left.min(bytes.len());
                self.left -= skipped;
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            let wanted = (9 - self.header.len()).min(bytes.len());
            let (header, rest) = bytes.split_at(wanted);
            self.header.extend_from_slice(header);
            bytes = rest;
            if let [a, b, c, kind, _, s0, s1, s2, s3] = *self.header.as_slice() {
                self.header.clear();
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
                let stream = u32::from_be_bytes([s0, s1, s2, s3]) & 0x7fff_ffff;
                let sent = self.sent.entry(stream).or_default();
                sent.headers |= kind == HEADERS;
                sent.data += if kind == DATA { self.left } else { 0 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_followed_however_they_are_cut() {
        let mut wire = vec![0, 0, 2, HEADERS, 4, 0, 0, 0, 1, 0x88, 0x88];
        wire.extend([0, 0, 3, DATA, 0, 0, 0, 0, 1, 1, 2, 3]);
        wire.extend([0, 0, 1, DATA, 0, 0, 0, 0, 3, 1]);
        for cut in 1..wire.len() {
            let mut frames = Frames::default();
            for piece in wire.chunks(cut) {
                frames.follow(piece);
            }
            assert!(frames.between(), "{cut}");
            assert_eq!(frames.sent[&1], Sent { headers: true, data: 3 }, "{cut}");
            assert_eq!(frames.sent[&3], Sent { headers: false, data: 1 }, "{cut}");
        }
        let mut frames = Frames::default();
        frames.follow(&wire[..12]);
        assert!(!frames.between());
    }
}
